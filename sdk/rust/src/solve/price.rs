//! What every job would hold if the cluster were one big node, and the price of resources there.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::options::{Options, Point};

/// Least gain of a jump that counts.
const GAIN_EPSILON: f64 = 1e-12;

/// Jobs with the same options.
#[derive(Clone, Copy, Debug)]
pub struct Crowd<'a> {
    pub options: &'a Options,
    pub jobs: u32,
}

/// Result of [`targets`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Targets {
    /// Gain per normalised cost of the first jump that found no room, or of the best one where none ever had; 0 if all
    /// did.
    pub price: f64,
    /// Free amounts above all bases at the start: the units of the normalised cost, at least 1.
    pub cpu_scale: f64,
    pub memory_scale: f64,
    /// Per crowd: how many of its jobs stop at each of its points.
    pub stops: Vec<Vec<u32>>,
}

impl Targets {
    /// Mean CPU and memory that a job of crowd `index` would hold; its base if the crowd is empty.
    pub fn mean(&self, index: usize, options: &Options) -> (f64, f64) {
        let empty = Vec::new();
        let stops = self.stops.get(index).unwrap_or(&empty);
        let jobs: u32 = stops.iter().sum();
        if jobs == 0 {
            return (f64::from(options.base().cpu), f64::from(options.base().memory));
        }
        let sum = options.points().iter().zip(stops).fold((0.0, 0.0), |(cpu, memory), (point, &stop)| {
            (cpu + f64::from(point.cpu) * f64::from(stop), memory + f64::from(point.memory) * f64::from(stop))
        });
        (sum.0 / f64::from(jobs), sum.1 / f64::from(jobs))
    }

    /// The point that a job would take at this price: the highest value after paying for what exceeds the base.
    pub fn best_response<'a>(&self, options: &'a Options) -> &'a Point {
        let base = options.base();
        let mut best = (0.0, base);
        for point in options.points() {
            let surplus = point.value - base.value - self.price * self.cost(base, point);
            if surplus > best.0 + GAIN_EPSILON {
                best = (surplus, point);
            }
        }
        best.1
    }

    fn cost(&self, from: &Point, to: &Point) -> f64 {
        // Scales are 0 only in a default value, whose price is 0 too.
        let cpu = f64::from(to.cpu.saturating_sub(from.cpu)) / self.cpu_scale.max(1.0);
        let memory = f64::from(to.memory.saturating_sub(from.memory)) / self.memory_scale.max(1.0);
        (cpu + memory).max(GAIN_EPSILON)
    }
}

/// Hands out `cpu` and `memory` above the bases by best jumps: again and again the move of some jobs from their point to
/// any dearer one of theirs with the best gain per cost, where the cost of both resources is measured in what was free
/// at the start. Jumps, not steps: curves are not concave, and memory often helps only together with cores.
pub fn targets(crowds: &[Crowd<'_>], cpu: u64, memory: u64) -> Targets {
    let mut market = Market::new(crowds, cpu, memory);
    let mut heap: BinaryHeap<Jump> = (0..crowds.len()).filter_map(|crowd| market.best_jump(crowd, 0)).collect();
    while let Some(jump) = heap.pop() {
        let moved = market.apply(&jump);
        heap.extend(market.best_jump(jump.crowd, jump.from));
        if moved {
            heap.extend(market.best_jump(jump.crowd, jump.to));
        }
    }
    if market.result.price == 0.0 {
        market.result.price = market.unmet();
    }
    market.result
}

struct Market<'a> {
    crowds: &'a [Crowd<'a>],
    cpu_free: u64,
    memory_free: u64,
    result: Targets,
}

impl<'a> Market<'a> {
    fn new(crowds: &'a [Crowd<'a>], cpu: u64, memory: u64) -> Self {
        let sum = |amount: fn(&Point) -> u32| {
            crowds.iter().map(|crowd| u64::from(amount(crowd.options.base())) * u64::from(crowd.jobs)).sum::<u64>()
        };
        let cpu_free = cpu.saturating_sub(sum(|point| point.cpu));
        let memory_free = memory.saturating_sub(sum(|point| point.memory));
        let at_base = |crowd: &Crowd<'_>| {
            let mut stops = vec![0; crowd.options.points().len()];
            stops[0] = crowd.jobs;
            stops
        };
        let result = Targets {
            price: 0.0,
            cpu_scale: cpu_free.max(1) as f64,
            memory_scale: memory_free.max(1) as f64,
            stops: crowds.iter().map(at_base).collect(),
        };
        Self { crowds, cpu_free, memory_free, result }
    }

    /// Best ratio of all jumps that are left; none of them fits. 0 where nobody wants more.
    fn unmet(&self) -> f64 {
        let mut best = 0.0_f64;
        for (crowd, stops) in self.crowds.iter().zip(&self.result.stops) {
            let points = crowd.options.points();
            for (from, _) in points.iter().zip(stops).filter(|(_, jobs)| **jobs > 0) {
                let wanted = points.iter().filter(|to| to.value > from.value + GAIN_EPSILON);
                best = wanted.map(|to| (to.value - from.value) / self.result.cost(from, to)).fold(best, f64::max);
            }
        }
        best
    }

    /// Best jump of the jobs of `crowd` that stand at `from`, among those that still fit for one job.
    fn best_jump(&self, crowd: usize, from: usize) -> Option<Jump> {
        if self.result.stops[crowd][from] == 0 {
            return None;
        }
        let points = self.crowds[crowd].options.points();
        let start = &points[from];
        let mut best: Option<Jump> = None;
        for (to, point) in points.iter().enumerate() {
            let gain = point.value - start.value;
            if gain <= GAIN_EPSILON || self.room(start, point) == 0 {
                continue;
            }
            let ratio = gain / self.result.cost(start, point);
            if best.as_ref().is_none_or(|best| ratio > best.ratio + GAIN_EPSILON) {
                best = Some(Jump { ratio, crowd, from, to });
            }
        }
        best
    }

    /// How many jobs the free amounts carry from one point to another.
    fn room(&self, from: &Point, to: &Point) -> u64 {
        let times = |from: u32, to: u32, free: u64| match u64::from(to.saturating_sub(from)) {
            0 => u64::MAX,
            more => free / more,
        };
        times(from.cpu, to.cpu, self.cpu_free).min(times(from.memory, to.memory, self.memory_free))
    }

    /// Moves as many jobs as there is room for; the first jump that leaves some behind sets the price.
    fn apply(&mut self, jump: &Jump) -> bool {
        let points = self.crowds[jump.crowd].options.points();
        let (from, to) = (&points[jump.from], &points[jump.to]);
        let stops = &self.result.stops[jump.crowd];
        let waiting = stops[jump.from];
        let movers = u32::try_from(self.room(from, to)).unwrap_or(u32::MAX).min(waiting);
        if movers < waiting && self.result.price == 0.0 {
            self.result.price = jump.ratio;
        }
        let stops = &mut self.result.stops[jump.crowd];
        stops[jump.from] -= movers;
        stops[jump.to] += movers;
        let rest = |free: u64, from: u32, to: u32| {
            let moved = u64::from(movers);
            (free + moved * u64::from(from)).saturating_sub(moved * u64::from(to))
        };
        self.cpu_free = rest(self.cpu_free, from.cpu, to.cpu);
        self.memory_free = rest(self.memory_free, from.memory, to.memory);
        movers > 0
    }
}

/// A move from one point of a crowd to another. Ordered by ratio; of equal ones the first crowd's comes first.
#[derive(Debug)]
struct Jump {
    ratio: f64,
    crowd: usize,
    from: usize,
    to: usize,
}

impl Ord for Jump {
    fn cmp(&self, other: &Self) -> Ordering {
        let ties = (other.crowd, other.from, other.to).cmp(&(self.crowd, self.from, self.to));
        self.ratio.total_cmp(&other.ratio).then(ties)
    }
}

impl PartialOrd for Jump {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Jump {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Jump {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::options::{Amount, Floor};
    use crate::solve::synergy::options_of;

    /// Where each crowd's jobs stop, as (cpu, memory, jobs), and the price.
    fn check(jobs: &[(&str, u32, u32)], nodes: u64, expected: &[&[(u32, u32, u32)]], priced: bool) {
        let options: Vec<_> = jobs.iter().map(|&(model, gpus, _)| options_of(model, gpus, Floor::Share)).collect();
        let crowds: Vec<_> = options.iter().zip(jobs).map(|(options, &(_, _, jobs))| Crowd { options, jobs }).collect();
        let found = targets(&crowds, 24 * nodes, 24 * nodes);
        for ((options, stops), expected) in options.iter().zip(&found.stops).zip(expected) {
            let stops: Vec<_> = options
                .points()
                .iter()
                .zip(stops)
                .filter(|(_, jobs)| **jobs > 0)
                .map(|(point, jobs)| (point.cpu, point.memory, *jobs))
                .collect();
            assert_eq!(stops, *expected);
        }
        assert_eq!(found.price > 0.0, priced, "price {}", found.price);
    }

    #[test]
    fn all_reach_their_peak_where_there_is_plenty() {
        check(&[("alexnet", 1, 2), ("gnmt", 1, 14)], 2, &[&[(12, 6, 2)], &[(1, 1, 14)]], false);
    }

    #[test]
    fn nothing_is_handed_out_where_bases_take_all_and_that_has_a_price() {
        check(&[("alexnet", 1, 8)], 1, &[&[(3, 3, 8)]], true);
        check(&[("deepspeech", 1, 8)], 1, &[&[(3, 3, 8)]], false);
        let options = options_of("alexnet", 1, Floor::Share);
        let found = targets(&[Crowd { options: &options, jobs: 8 }], 24, 24);
        assert_eq!(found.best_response(&options).cpu, 3);
    }

    #[test]
    fn the_first_jump_without_room_sets_the_price() {
        check(&[("res50", 1, 4), ("deepspeech", 1, 3)], 1, &[&[(3, 3, 1), (4, 3, 3)], &[(3, 3, 3)]], true);
    }

    #[test]
    fn the_study_case_c1_gives_the_hungry_gangs_what_the_others_leave() {
        let jobs = [("res18", 4, 1), ("m5", 4, 1), ("transformer", 4, 1), ("gnmt", 4, 1)];
        let options: Vec<_> = jobs.iter().map(|&(model, gpus, _)| options_of(model, gpus, Floor::Share)).collect();
        let crowds: Vec<_> = options.iter().map(|options| Crowd { options, jobs: 1 }).collect();
        let found = targets(&crowds, 48, 48);
        let cores: Vec<_> = options.iter().enumerate().map(|(at, options)| found.mean(at, options).0).collect();
        assert_eq!(cores[2..], [4.0, 4.0]);
        assert!(cores[0] + cores[1] <= 40.0 && cores[0] >= 16.0 && cores[1] >= 16.0, "{cores:?}");
    }

    #[test]
    fn the_best_response_falls_as_the_price_rises() {
        let options = options_of("alexnet", 1, Floor::Share);
        let at = |price: f64| {
            let targets = Targets { price, cpu_scale: 24.0, memory_scale: 24.0, stops: Vec::new() };
            targets.best_response(&options).cpu
        };
        assert_eq!((at(0.0), at(3.0), at(4.0), at(5.5), at(100.0)), (12, 12, 6, 5, 3));
    }

    #[test]
    fn the_mean_of_an_empty_crowd_is_its_base() {
        let options = Options::fixed(Amount { cpu: 5, memory: 7 }, 1.0);
        assert_eq!(Targets::default().mean(3, &options), (5.0, 7.0));
    }
}
