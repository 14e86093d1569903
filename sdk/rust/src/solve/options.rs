//! From a job's speed surface to the few allocations that are worth considering.

/// Least difference of values that counts: predictions are 32-bit floats.
pub(crate) const VALUE_EPSILON: f64 = 1e-9;

/// CPU and memory, in the caller's units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount {
    pub cpu: u32,
    pub memory: u32,
}

/// An allocation of a job and what it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Totals of the job.
    pub cpu: u32,
    pub memory: u32,
    /// GPUs × speed relative to the speed at the job's share: GPUs of work done per GPU-second at the share.
    pub value: f64,
}

impl Point {
    /// What it takes.
    pub fn amount(&self) -> Amount {
        Amount { cpu: self.cpu, memory: self.memory }
    }
}

/// Predicted speeds of a job on a grid of totals.
#[derive(Clone, Copy, Debug)]
pub struct Surface<'a> {
    /// Ascending, without repeats.
    pub cpu: &'a [u32],
    /// Ascending, without repeats.
    pub memory: &'a [u32],
    /// Row-major `[cpu][memory]`, any unit of speed; not a finite number where nothing is known.
    pub speed: &'a [f32],
}

/// What a job never falls below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Floor {
    /// The speed at its share of the node.
    #[default]
    Share,
    /// The least CPU of the grid, with the memory that keeps the speed there.
    LeastCpu,
}

/// Which points of a surface become options.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Filter {
    pub floor: Floor,
    /// Relative difference up to which two speeds count as equal, from 0 (included) to 1: more resources must buy more
    /// than that, and the floor may be missed by that much. Predicted curves never get quite flat; without it a job keeps
    /// its whole share for the last thousandth.
    pub tolerance: f64,
}

impl From<Floor> for Filter {
    /// Every difference counts.
    fn from(floor: Floor) -> Self {
        Self { floor, tolerance: 0.0 }
    }
}

/// Allocations of a job worth considering; never empty.
///
/// The first is the base: what the job has at least. Each other takes no less than the base of either resource, is
/// faster, and no cheaper one is as fast. Ascending by CPU, then memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    points: Vec<Point>,
}

impl Options {
    /// A job that takes exactly this and nothing else.
    pub fn fixed(amount: Amount, value: f64) -> Self {
        Self { points: vec![Point { cpu: amount.cpu, memory: amount.memory, value }] }
    }

    /// The allocation that it has at least.
    pub fn base(&self) -> &Point {
        &self.points[0]
    }

    /// All, the base first.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The point at `index`; the base if there is none.
    pub fn get(&self, index: usize) -> &Point {
        self.points.get(index).unwrap_or(&self.points[0])
    }

    /// The cheapest point of the highest value.
    pub fn peak(&self) -> &Point {
        let mut best = &self.points[0];
        for point in &self.points {
            if point.value > best.value + VALUE_EPSILON {
                best = point;
            }
        }
        best
    }
}

/// Options of a job of `weight` GPUs whose proportional share is `share`.
///
/// Values are relative to the speed at the largest grid point within the share: there the value is `weight`.
/// `None` when the surface says nothing usable of the share: NaN, zero, or no grid point within it.
///
/// The base is the cheapest grid point (CPU, then memory) within the share that is as fast as the share.
pub fn options(surface: Surface<'_>, share: Amount, weight: f64, filter: impl Into<Filter>) -> Option<Options> {
    let filter = filter.into();
    let share_cpu = last_within(surface.cpu, share.cpu)?;
    let share_memory = last_within(surface.memory, share.memory)?;
    let values = Values::new(surface, share_cpu, share_memory, weight)?;
    let (cpu, memory) = values.base(share_cpu, share_memory, filter)?;
    let mut points = vec![values.point(cpu, memory)];
    values.undominated_above((cpu, memory), filter.tolerance, &mut points);
    Some(Options { points })
}

fn last_within(grid: &[u32], limit: u32) -> Option<usize> {
    grid.iter().rposition(|&amount| amount <= limit)
}

struct Values<'a> {
    surface: Surface<'a>,
    scale: f64,
}

impl<'a> Values<'a> {
    fn new(surface: Surface<'a>, share_cpu: usize, share_memory: usize, weight: f64) -> Option<Self> {
        let whole = surface.speed.len() == surface.cpu.len() * surface.memory.len();
        let at_share = *surface.speed.get(share_cpu * surface.memory.len() + share_memory)?;
        let usable = whole && at_share.is_finite() && at_share > 0.0;
        usable.then(|| Self { surface, scale: weight / f64::from(at_share) })
    }

    /// NaN where the surface knows nothing; what is no speed counts as that.
    fn value(&self, cpu: usize, memory: usize) -> f64 {
        let speed = self.surface.speed[cpu * self.surface.memory.len() + memory];
        if speed.is_finite() { f64::from(speed) * self.scale } else { f64::NAN }
    }

    fn point(&self, cpu: usize, memory: usize) -> Point {
        Point { cpu: self.surface.cpu[cpu], memory: self.surface.memory[memory], value: self.value(cpu, memory) }
    }

    fn base(&self, share_cpu: usize, share_memory: usize, filter: Filter) -> Option<(usize, usize)> {
        let (cpu_max, least) = match filter.floor {
            Floor::Share => (share_cpu, self.value(share_cpu, share_memory)),
            Floor::LeastCpu => (0, self.value(0, share_memory)),
        };
        let enough = |&(cpu, memory): &(usize, usize)| {
            self.value(cpu, memory) >= least * (1.0 - filter.tolerance) - VALUE_EPSILON
        };
        (0..=cpu_max).flat_map(|cpu| (0..=share_memory).map(move |memory| (cpu, memory))).find(enough)
    }

    /// Sweeps the grid above the base, keeping for each memory column the best value met so far at no more memory.
    fn undominated_above(&self, (base_cpu, base_memory): (usize, usize), tolerance: f64, points: &mut Vec<Point>) {
        let base = self.value(base_cpu, base_memory);
        let mut best_of_column = vec![base; self.surface.memory.len()];
        for cpu in base_cpu..self.surface.cpu.len() {
            let mut best_of_row = base;
            for (memory, best_of_column) in best_of_column.iter_mut().enumerate().skip(base_memory) {
                let value = self.value(cpu, memory);
                let best = best_of_row.max(*best_of_column);
                // A comparison with NaN is false: unknown points are never options.
                let better = value > best * (1.0 + tolerance) + VALUE_EPSILON;
                if better {
                    points.push(self.point(cpu, memory));
                }
                best_of_row = if better { value } else { best };
                *best_of_column = best_of_row;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::synergy;

    fn check(model: &str, gpus: u32, floor: Floor, expected: &[(u32, u32, f64)]) {
        let options = synergy::options_of(model, gpus, floor);
        let found: Vec<_> = options.points().iter().map(|point| (point.cpu, point.memory, point.value)).collect();
        assert_eq!(found.len(), expected.len(), "{model} x{gpus}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            let same = (found.0, found.1) == (expected.0, expected.1) && (found.2 - expected.2).abs() < 5e-5;
            assert!(same, "{model} x{gpus}: {found:?}, not {expected:?}");
        }
    }

    const ALEXNET: [(u32, u32, f64); 10] = [
        (3, 3, 1.0),
        (4, 3, 1.25),
        (5, 3, 1.53),
        (6, 3, 1.75),
        (7, 3, 1.8333),
        (8, 3, 1.9167),
        (9, 3, 2.0),
        (10, 6, 2.3133),
        (11, 6, 2.6267),
        (12, 6, 2.94),
    ];

    #[test]
    fn published_tables_give_the_options_of_the_study() {
        check("res50", 1, Floor::Share, &[(3, 3, 1.0), (4, 3, 1.15)]);
        let m5 = [(3, 3, 1.0), (4, 3, 1.2), (5, 3, 1.4), (6, 3, 1.5), (6, 6, 2.0), (6, 9, 2.5)];
        check("m5", 1, Floor::Share, &m5);
        check("mobilenet", 1, Floor::Share, &[(3, 3, 1.0), (4, 3, 1.3), (5, 3, 1.49), (6, 3, 1.55)]);
        check("gnmt", 1, Floor::Share, &[(1, 1, 1.0)]);
        check("deepspeech", 1, Floor::Share, &[(3, 3, 1.0)]);
        check("alexnet", 8, Floor::Share, &[(24, 24, 8.0)]);
        check("alexnet", 1, Floor::Share, &ALEXNET);
    }

    #[test]
    fn without_the_floor_the_base_is_the_least_cpu_at_full_memory() {
        let expected: Vec<_> = [(1, 3, 0.3), (2, 3, 0.66)].into_iter().chain(ALEXNET).collect();
        check("alexnet", 1, Floor::LeastCpu, &expected);
    }

    #[test]
    fn an_unknown_share_gives_no_options_and_unknown_points_are_left_out() {
        let nan = f32::NAN;
        let ask = |speed: &[f32]| {
            let surface = Surface { cpu: &[1, 2, 3], memory: &[1], speed };
            options(surface, Amount { cpu: 2, memory: 1 }, 1.0, Floor::Share)
        };
        assert_eq!(ask(&[1.0, nan, 3.0]), None);
        assert_eq!(ask(&[1.0, 0.0, 3.0]), None);
        assert_eq!(ask(&[1.0, 2.0]), None, "a table of another shape");
        let cpus = |speed: &[f32]| ask(speed).unwrap().points().iter().map(|point| point.cpu).collect::<Vec<_>>();
        assert_eq!(cpus(&[nan, 2.0, nan]), [2]);
        assert_eq!(cpus(&[nan, 2.0, 3.0]), [2, 3]);
        assert_eq!(cpus(&[f32::INFINITY, 2.0, f32::INFINITY]), [2], "no speed is infinite");
    }

    #[test]
    fn a_share_below_the_grid_gives_no_options() {
        let surface = Surface { cpu: &[4], memory: &[4], speed: &[1.0] };
        assert_eq!(options(surface, Amount { cpu: 3, memory: 4 }, 1.0, Floor::Share), None);
    }

    #[test]
    fn what_hardly_differs_counts_as_equal() {
        let surface = Surface { cpu: &[1, 2, 3, 4, 5], memory: &[1], speed: &[0.992, 0.999, 1.0, 1.008, 1.02] };
        let cpus = |filter: Filter| -> Vec<u32> {
            let found = options(surface, Amount { cpu: 3, memory: 1 }, 1.0, filter).unwrap();
            found.points().iter().map(|point| point.cpu).collect()
        };
        assert_eq!(cpus(Floor::Share.into()), [3, 4, 5]);
        assert_eq!(cpus(Filter { floor: Floor::Share, tolerance: 0.01 }), [1, 4, 5]);
        assert_eq!(cpus(Filter { floor: Floor::Share, tolerance: 0.002 }), [2, 4, 5]);
        assert_eq!(cpus(Filter { floor: Floor::Share, tolerance: 0.02 }), [1, 5]);
    }

    #[test]
    fn a_slower_dearer_point_is_no_option() {
        let surface = Surface { cpu: &[1, 2, 3], memory: &[1, 2], speed: &[1.0, 1.2, 0.9, 1.1, 1.3, 1.3] };
        let found = options(surface, Amount { cpu: 1, memory: 1 }, 2.0, Floor::Share).unwrap();
        let amounts: Vec<_> = found.points().iter().map(|point| (point.cpu, point.memory)).collect();
        assert_eq!(amounts, [(1, 1), (1, 2), (3, 1)]);
    }
}
