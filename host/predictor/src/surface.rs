//! The speeds of one kind of job over a grid of allocations.

use std::time::Instant;

use coretuner_core::catalog::ModelDescriptor;
use coretuner_core::port::CurveQuery;

use crate::calibration::Belief;
use crate::features::{self, Allocation};
use crate::interface::{Output, Row};

/// The axes of a query, without its jobs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grid {
    pub gpu_kind: String,
    /// (GPUs, nodes spanned): one axis.
    pub gpus: Vec<(u32, u32)>,
    pub cpu_milli: Vec<u32>,
    pub memory_mib: Vec<u32>,
}

impl Grid {
    /// `None` when the GPU axis is inconsistent.
    pub fn of(query: &CurveQuery) -> Option<Self> {
        (query.gpus.len() == query.nodes_spanned.len()).then(|| Self {
            gpu_kind: query.gpu_kind.clone(),
            gpus: query.gpus.iter().copied().zip(query.nodes_spanned.iter().copied()).collect(),
            cpu_milli: query.cpu_milli.clone(),
            memory_mib: query.memory_mib.clone(),
        })
    }

    /// Points of the grid.
    pub fn points(&self) -> usize {
        self.gpus.len().saturating_mul(self.cpu_milli.len()).saturating_mul(self.memory_mib.len())
    }

    /// Allocations, row-major `[gpus][cpu][memory]`.
    fn allocations(&self) -> impl Iterator<Item = Allocation> {
        self.gpus.iter().flat_map(move |&(gpus, nodes)| {
            self.cpu_milli.iter().flat_map(move |&cpu_milli| {
                self.memory_mib.iter().map(move |&memory_mib| Allocation { gpus, nodes, cpu_milli, memory_mib })
            })
        })
    }
}

/// Iterations/s of the whole job at each point of a grid; NaN where there is nothing to run on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Surface {
    pub mean: Vec<f32>,
    pub low: Vec<f32>,
    pub high: Vec<f32>,
}

/// The model rows that a surface needs. Points that differ only in memory that the job does not feel share a row.
pub(crate) struct Plan {
    rows: Vec<Row>,
    /// By point: index into `rows` and samples per iteration; `None` without resources.
    points: Vec<Option<(usize, f64)>>,
}

impl Plan {
    /// The rows that ask the model for one job over the grid.
    pub fn new(grid: &Grid, descriptor: &ModelDescriptor, belief: Option<&Belief>, storage_mib_per_s: f64) -> Self {
        let (job, gpu) = (features::job(descriptor), features::gpu(&grid.gpu_kind));
        let belief = belief.map(Belief::columns);
        let batch = features::batch(descriptor);
        let mut plan = Self { rows: Vec::new(), points: Vec::with_capacity(grid.points()) };
        let memories = grid.memory_mib.len();
        for allocation in grid.allocations() {
            let point = features::place(descriptor, &allocation, storage_mib_per_s).map(|place| {
                let row = Row { job, gpu, place: place.columns(), belief };
                let recent = plan.rows.len().saturating_sub(memories);
                let known = plan.rows.iter().skip(recent).position(|r| r.place == row.place).map(|at| at + recent);
                let at = known.unwrap_or_else(|| {
                    plan.rows.push(row);
                    plan.rows.len() - 1
                });
                (at, batch * f64::from(allocation.gpus))
            });
            plan.points.push(point);
        }
        plan
    }

    /// The rows, in the order of the grid.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The surface, given the answers to [`Plan::rows`].
    pub fn surface(&self, grid: &Grid, answers: &[Output]) -> Surface {
        let read = |pick: fn(&Output) -> f32| {
            let speed = |point: &Option<(usize, f64)>| match point.and_then(|(at, size)| Some((answers.get(at)?, size)))
            {
                Some((answer, samples)) => rounded((libm::exp(f64::from(pick(answer))) / samples) as f32),
                None => f32::NAN,
            };
            let mut values: Vec<f32> = self.points.iter().map(speed).collect();
            never_falling(&mut values, grid);
            values
        };
        Surface { mean: read(|o| o.log_tput), low: read(|o| o.log_lo), high: read(|o| o.log_hi) }
    }
}

/// `value` with 16 significant bits, ties away from zero: what is left of an engine's last bits.
pub(crate) fn rounded(value: f32) -> f32 {
    if value.is_finite() { f32::from_bits((value.to_bits().saturating_add(0x80)) & !0xFF) } else { value }
}

/// Removes falls of the last bit: more CPU, or more memory, never slows a job. The form itself never falls; its float32
/// evaluation can by 4e-6, which rounding may turn into one unit of 16 bits.
fn never_falling(values: &mut [f32], grid: &Grid) {
    let (cpus, memories) = (grid.cpu_milli.len(), grid.memory_mib.len());
    let by_cpu = ascending(&grid.cpu_milli);
    let by_memory = ascending(&grid.memory_mib);
    for block in values.chunks_mut((cpus * memories).max(1)) {
        for m in 0..memories {
            sweep(block, by_cpu.iter().map(|c| c * memories + m));
        }
        for c in 0..cpus {
            sweep(block, by_memory.iter().map(|m| c * memories + m));
        }
    }
}

fn sweep(block: &mut [f32], order: impl Iterator<Item = usize>) {
    let mut most = f32::NAN;
    for at in order {
        if let Some(value) = block.get_mut(at).filter(|v| !v.is_nan()) {
            most = most.max(*value);
            *value = most;
        }
    }
}

/// Indices of `axis`, by ascending value.
fn ascending(axis: &[u32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..axis.len()).collect();
    order.sort_by_key(|i| axis.get(*i).copied());
    order
}

/// Whether `deadline` has passed; `None` never does.
pub(crate) fn late(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|at| Instant::now() >= at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_sixteen_bits() {
        let check = |value: f32, expected: f32| assert_eq!(rounded(value), expected);
        check(1.0, 1.0);
        check(0.0, 0.0);
        check(65535.0, 65535.0);
        check(65536.4, 65536.0);
        check(65537.0, 65538.0);
        check(f32::INFINITY, f32::INFINITY);
        assert!(rounded(f32::NAN).is_nan());
    }

    #[test]
    fn removes_falls_along_cpu_and_memory() {
        let grid = Grid {
            gpu_kind: String::new(),
            gpus: vec![(1, 1), (2, 1)],
            cpu_milli: vec![2000, 1000],
            memory_mib: vec![10, 20],
        };
        let mut values = vec![5.0, 6.0, 5.5, 5.0, f32::NAN, 3.0, 1.0, 2.0];
        never_falling(&mut values, &grid);
        assert_eq!(values[..4], [5.5, 6.0, 5.5, 5.5]);
        assert!(values[4].is_nan());
        assert_eq!(values[5..], [3.0, 1.0, 2.0]);
    }

    #[test]
    fn points_that_feel_the_same_share_a_row() {
        let grid = Grid {
            gpu_kind: "V100".to_owned(),
            gpus: vec![(1, 1), (0, 1)],
            cpu_milli: vec![1000, 2000],
            memory_mib: vec![100, 200, 300],
        };
        let rows = |dataset_mib| {
            let descriptor = ModelDescriptor { bytes_per_sample: Some(1e5), dataset_mib, ..ModelDescriptor::default() };
            let plan = Plan::new(&grid, &descriptor, None, 60.0);
            (plan.rows().len(), plan.points.iter().filter(|p| p.is_none()).count())
        };
        assert_eq!(rows(None), (2, 6));
        assert_eq!(rows(Some(250)), (6, 6));
        assert_eq!(rows(Some(200)), (4, 6));
    }
}
