//! The best division of one node's CPU and memory among the jobs on it.

use super::options::{Amount, Options};

/// Least gain that counts when two divisions are compared.
const GAIN_EPSILON: f64 = 1e-12;

/// Steps in which a resource of a node is handed out: `units` equal parts of `total`, each part's border rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Axis {
    pub total: u32,
    pub units: u32,
}

impl Axis {
    /// Amount of `units` steps.
    pub fn amount(&self, units: u32) -> u32 {
        (u64::from(units) * u64::from(self.total) / u64::from(self.units.max(1))).try_into().unwrap_or(u32::MAX)
    }

    /// Steps that cover `amount`: exact for amounts of [`Axis::amount`], rounded up for others.
    pub fn units_for(&self, amount: u32) -> u32 {
        if self.total == 0 {
            return if amount == 0 { 0 } else { u32::MAX };
        }
        let units = (u64::from(amount) * u64::from(self.units)).div_ceil(u64::from(self.total));
        units.try_into().unwrap_or(u32::MAX)
    }

    /// Whole steps within `amount`.
    pub fn units_within(&self, amount: u32) -> u32 {
        let units = (u64::from(amount) * u64::from(self.units)).checked_div(u64::from(self.total)).unwrap_or(0);
        units.try_into().unwrap_or(u32::MAX)
    }
}

/// Steps of both resources of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lattice {
    pub cpu: Axis,
    pub memory: Axis,
}

impl Lattice {
    /// One step per unit of the caller: for amounts that are steps already.
    pub fn unit(total: Amount) -> Self {
        let axis = |total| Axis { total, units: total };
        Self { cpu: axis(total.cpu), memory: axis(total.memory) }
    }
}

/// What each job gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// Sum of the values of the points picked.
    pub value: f64,
    /// Per job, the index of its point in its options.
    pub picks: Vec<u32>,
}

/// Divides `capacity` of a node among `jobs` so that the sum of values is largest; `None` when the bases alone do not fit.
///
/// Exact for the given steps: dynamic programming over free steps of CPU × memory above the bases, the options of a job
/// as items of which it takes one.
pub fn divide(jobs: &[&Options], lattice: Lattice, capacity: Amount) -> Option<Division> {
    let steps: Vec<Vec<Step>> = jobs.iter().map(|options| steps_of(options, lattice)).collect();
    let taken = |resource: fn(&Options) -> u32, axis: Axis| {
        jobs.iter().map(|options| u64::from(axis.units_for(resource(options)))).sum::<u64>()
    };
    let cpu = u64::from(lattice.cpu.units_within(capacity.cpu));
    let memory = u64::from(lattice.memory.units_within(capacity.memory));
    let cpu_free = cpu.checked_sub(taken(|options| options.base().cpu, lattice.cpu))?;
    let memory_free = memory.checked_sub(taken(|options| options.base().memory, lattice.memory))?;
    let picks = Table::new(&steps, cpu_free as usize, memory_free as usize).solve(&steps);
    let value = jobs.iter().zip(&picks).map(|(options, &pick)| options.get(pick as usize).value).sum();
    Some(Division { value, picks })
}

/// A point above the base: extra steps and extra value.
#[derive(Clone, Copy, Debug)]
struct Step {
    cpu: usize,
    memory: usize,
    gain: f64,
}

fn steps_of(options: &Options, lattice: Lattice) -> Vec<Step> {
    let base = options.base();
    let base_cpu = lattice.cpu.units_for(base.cpu);
    let base_memory = lattice.memory.units_for(base.memory);
    let step = |point: &super::options::Point| Step {
        cpu: lattice.cpu.units_for(point.cpu).saturating_sub(base_cpu) as usize,
        memory: lattice.memory.units_for(point.memory).saturating_sub(base_memory) as usize,
        gain: point.value - base.value,
    };
    options.points().iter().skip(1).map(step).collect()
}

/// Best gain for every number of free steps, and what each job picked there.
struct Table {
    columns: usize,
    cells: usize,
    best: Vec<f64>,
    picks: Vec<u32>,
}

impl Table {
    fn new(steps: &[Vec<Step>], cpu_free: usize, memory_free: usize) -> Self {
        // More than all jobs could ever use needs no cells.
        let most = |resource: fn(&Step) -> usize| -> usize {
            steps.iter().map(|steps| steps.iter().map(resource).max().unwrap_or(0)).sum()
        };
        let rows = cpu_free.min(most(|step| step.cpu)) + 1;
        let columns = memory_free.min(most(|step| step.memory)) + 1;
        let cells = rows * columns;
        Self { columns, cells, best: vec![0.0; cells], picks: vec![0; cells * steps.len()] }
    }

    fn solve(mut self, steps: &[Vec<Step>]) -> Vec<u32> {
        let mut next = self.best.clone();
        for (job, steps) in steps.iter().enumerate() {
            next.copy_from_slice(&self.best);
            for (at, step) in steps.iter().enumerate() {
                self.offer(job, at as u32 + 1, step, &mut next);
            }
            std::mem::swap(&mut self.best, &mut next);
        }
        self.read_back(steps)
    }

    /// Takes `step` for `job` in every cell where that beats what `next` holds.
    fn offer(&mut self, job: usize, pick: u32, step: &Step, next: &mut [f64]) {
        let rows = self.cells / self.columns;
        if step.memory >= self.columns {
            return;
        }
        let picks = &mut self.picks[job * self.cells..(job + 1) * self.cells];
        for row in step.cpu..rows {
            let to = row * self.columns + step.memory..(row + 1) * self.columns;
            let from = (row - step.cpu) * self.columns;
            let before = &self.best[from..from + self.columns - step.memory];
            for ((next, picked), before) in next[to.clone()].iter_mut().zip(&mut picks[to]).zip(before) {
                if before + step.gain > *next + GAIN_EPSILON {
                    *next = before + step.gain;
                    *picked = pick;
                }
            }
        }
    }

    fn read_back(&self, steps: &[Vec<Step>]) -> Vec<u32> {
        let mut cell = self.cells - 1;
        let mut picks = vec![0; steps.len()];
        for (job, steps) in steps.iter().enumerate().rev() {
            let pick = self.picks[job * self.cells + cell];
            picks[job] = pick;
            if pick > 0 {
                let step = &steps[pick as usize - 1];
                cell -= step.cpu * self.columns + step.memory;
            }
        }
        picks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::options::Floor;
    use crate::solve::synergy::{SERVER, options_of};

    type Held = (u32, u32);

    fn solve(jobs: &[(&str, u32)], floor: Floor) -> (f64, Vec<Held>) {
        let options: Vec<_> = jobs.iter().map(|&(model, gpus)| options_of(model, gpus, floor)).collect();
        let division = divide(&options.iter().collect::<Vec<_>>(), Lattice::unit(SERVER), SERVER).unwrap();
        let held = options.iter().zip(&division.picks).map(|(options, &pick)| {
            let point = options.get(pick as usize);
            (point.cpu, point.memory)
        });
        (division.value, held.collect())
    }

    fn check(jobs: &[(&str, u32)], floor: Floor, value: f64, held: &[Held]) {
        let found = solve(jobs, floor);
        assert!((found.0 - value).abs() < 1e-4, "{jobs:?}: value {}, not {value}", found.0);
        assert_eq!(found.1, held, "{jobs:?}");
    }

    #[test]
    fn g1_alexnet_gets_its_jump_and_res18_the_rest() {
        let jobs: Vec<_> = [("alexnet", 1), ("res18", 1)].into_iter().chain([("gnmt", 1); 6]).collect();
        let held: Vec<_> = [(12, 6), (6, 3)].into_iter().chain([(1, 1); 6]).collect();
        check(&jobs, Floor::Share, 10.69, &held);
        check(&jobs, Floor::LeastCpu, 10.69, &held);
    }

    #[test]
    fn g2_one_audio_job_gets_the_memory() {
        let jobs: Vec<_> =
            [("m5", 1), ("m5", 1), ("mobilenet", 1), ("mobilenet", 1)].into_iter().chain([("lstm", 1); 4]).collect();
        let (value, held) = solve(&jobs, Floor::Share);
        assert!((value - 10.69).abs() < 1e-4, "{value}");
        let mut hungry = held[..4].to_vec();
        hungry[..2].sort_unstable();
        hungry[2..].sort_unstable();
        assert_eq!(hungry, [(5, 3), (6, 9), (4, 3), (5, 3)]);
        assert_eq!(held[4..], [(1, 1); 4]);
    }

    const MIXED: [(&str, u32); 8] = [
        ("alexnet", 1),
        ("res18", 1),
        ("m5", 1),
        ("mobilenet", 1),
        ("deepspeech", 1),
        ("res50", 1),
        ("gnmt", 1),
        ("gnmt", 1),
    ];

    #[test]
    fn g3_the_floor_costs_a_little() {
        let (value, held) = solve(&MIXED, Floor::Share);
        assert!((value - 9.30).abs() < 1e-4, "{value}");
        assert_eq!(held[2], (6, 6));
        assert!((held[1].0, held[3].0) == (4, 3) || (held[1].0, held[3].0) == (3, 4), "{held:?}");
        assert!((solve(&MIXED, Floor::LeastCpu).0 - 9.34).abs() < 1e-4);
    }

    #[test]
    fn g4_and_g5_a_hungry_gang_takes_what_a_language_gang_leaves() {
        check(&[("res18", 4), ("transformer", 4)], Floor::Share, 10.12, &[(20, 12), (4, 4)]);
        check(&[("m5", 4), ("gnmt", 4)], Floor::Share, 9.60, &[(20, 12), (4, 4)]);
    }

    #[test]
    fn g6_where_all_are_hungry_all_stay_at_their_share() {
        let jobs = [
            ("alexnet", 1),
            ("alexnet", 1),
            ("alexnet", 1),
            ("res18", 1),
            ("deepspeech", 1),
            ("res50", 1),
            ("m5", 1),
            ("mobilenet", 1),
        ];
        check(&jobs, Floor::Share, 8.0, &[(3, 3); 8]);
        assert!((solve(&jobs, Floor::LeastCpu).0 - 8.04).abs() < 1e-4);
    }

    #[test]
    fn c4_an_end_gives_its_cores_to_those_that_stay() {
        let mut jobs = vec![
            ("shufflenet", 1),
            ("res18", 1),
            ("deepspeech", 1),
            ("deepspeech", 1),
            ("gnmt", 1),
            ("gnmt", 1),
            ("gnmt", 1),
        ];
        let rest = [(3, 3), (3, 3), (1, 1), (1, 1), (1, 1)];
        check(&jobs, Floor::Share, 9.15, &[&[(6, 3), (9, 3)][..], &rest].concat());
        jobs.insert(0, ("alexnet", 1));
        check(&jobs, Floor::Share, 9.59, &[&[(5, 3), (5, 3), (5, 3)][..], &rest].concat());
    }

    /// Every combination of options, for comparison.
    fn best_by_enumeration(options: &[Options], capacity: Amount) -> f64 {
        let Some((first, rest)) = options.split_first() else { return 0.0 };
        let mut best = f64::NEG_INFINITY;
        for point in first.points() {
            if point.cpu <= capacity.cpu && point.memory <= capacity.memory {
                let left = Amount { cpu: capacity.cpu - point.cpu, memory: capacity.memory - point.memory };
                best = best.max(point.value + best_by_enumeration(rest, left));
            }
        }
        best
    }

    #[test]
    fn it_is_as_good_as_trying_all_combinations() {
        for jobs in [
            &[("alexnet", 1), ("alexnet", 1), ("res18", 1)][..],
            &[("m5", 1), ("m5", 1), ("m5", 1), ("res18", 1)],
            &[("m5", 2), ("res18", 2), ("gnmt", 1)],
            &[("m5", 4), ("alexnet", 4)],
            &[("mobilenet", 1), ("res50", 1), ("shufflenet", 1), ("m5", 1)],
        ] {
            let options: Vec<_> = jobs.iter().map(|&(model, gpus)| options_of(model, gpus, Floor::Share)).collect();
            let (value, held) = solve(jobs, Floor::Share);
            assert!((value - best_by_enumeration(&options, SERVER)).abs() < 1e-9, "{jobs:?}");
            assert!(
                held.iter().map(|held| held.0).sum::<u32>() <= 24 && held.iter().map(|held| held.1).sum::<u32>() <= 24
            );
        }
    }

    #[test]
    fn bases_that_do_not_fit_have_no_division() {
        let options = Options::fixed(Amount { cpu: 13, memory: 1 }, 1.0);
        assert_eq!(divide(&[&options, &options], Lattice::unit(SERVER), SERVER), None);
        assert_eq!(divide(&[], Lattice::unit(SERVER), SERVER), Some(Division { value: 0.0, picks: vec![] }));
    }

    #[test]
    fn amounts_of_steps_convert_back_exactly() {
        for axis in
            [Axis { total: 512_000, units: 24 }, Axis { total: 24_000, units: 24 }, Axis { total: 6_001, units: 8 }]
        {
            for units in 0..=axis.units {
                assert_eq!(axis.units_for(axis.amount(units)), units, "{axis:?}");
            }
            assert_eq!(axis.units_within(axis.total), axis.units);
            assert_eq!(axis.units_within(axis.total - 1), axis.units - 1);
        }
        assert_eq!(Axis { total: 512_000, units: 24 }.amount(1), 21_333);
        assert_eq!(Axis { total: 0, units: 24 }.units_for(1), u32::MAX);
    }
}
