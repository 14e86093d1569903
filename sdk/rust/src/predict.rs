//! Asking for predicted speeds.

use crate::id::{GpuKind, JobId};

/// Allocations to predict at: all combinations of the axes. CPU and memory are totals of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    pub gpu_kind: GpuKind,
    /// (GPUs, nodes that they span).
    pub gpus: Vec<(u32, u32)>,
    pub cpu_milli: Vec<u32>,
    pub memory_mib: Vec<u32>,
}

impl Grid {
    /// Points for one job.
    pub fn points(&self) -> usize {
        self.gpus.len() * self.cpu_milli.len() * self.memory_mib.len()
    }
}

/// What goes to the host: the contract's `curve-request`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CurveRequest {
    /// Model named by the operator; empty = the default, throughput.
    pub model: String,
    pub jobs: Vec<JobId>,
    pub gpu_kind: u32,
    pub gpus: Vec<u32>,
    pub nodes_spanned: Vec<u32>,
    pub cpu_milli: Vec<u32>,
    pub memory_mib: Vec<u32>,
}

/// What comes from the host: row-major `[job][gpus][cpu][memory]`, NaN where nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    pub mean: Vec<f32>,
    pub low: Vec<f32>,
    pub high: Vec<f32>,
    /// Per job; changes when the answer would.
    pub version: Vec<u32>,
}

/// Why there is no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictError {
    UnknownModel,
    UnknownJob,
    /// Ask for fewer jobs or points at once.
    TooManyRows,
    Unavailable,
    /// The host's own deadline passed.
    Late,
}

impl std::fmt::Display for PredictError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::UnknownModel => "the host has no such model",
            Self::UnknownJob => "the host has no such job",
            Self::TooManyRows => "more rows were asked than the host allows at once",
            Self::Unavailable => "the predictor is unavailable",
            Self::Late => "the prediction took longer than the host allows",
        })
    }
}

impl std::error::Error for PredictError {}

/// Predicted iterations per second of the whole job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    pub mean: f64,
    /// Band in which it probably lies.
    pub low: f64,
    pub high: f64,
}

/// Predicted speeds of jobs over a grid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speeds {
    curves: Curves,
    gpus: usize,
    cpus: usize,
    memories: usize,
}

impl Speeds {
    pub(crate) fn new(curves: Curves, grid: &Grid, jobs: usize) -> Result<Self, PredictError> {
        let rows = jobs * grid.points();
        if [&curves.mean, &curves.low, &curves.high].iter().any(|column| column.len() != rows)
            || curves.version.len() != jobs
        {
            return Err(PredictError::Unavailable);
        }
        let (gpus, cpus, memories) = (grid.gpus.len(), grid.cpu_milli.len(), grid.memory_mib.len());
        Ok(Self { curves, gpus, cpus, memories })
    }

    /// Speed of the `job`-th job asked for at indices of the grid's axes; none where nothing is known, or when an index
    /// is outside.
    pub fn get(&self, job: usize, gpus: usize, cpu: usize, memory: usize) -> Option<Speed> {
        if gpus >= self.gpus || cpu >= self.cpus || memory >= self.memories {
            return None;
        }
        let row = ((job * self.gpus + gpus) * self.cpus + cpu) * self.memories + memory;
        let mean = f64::from(*self.curves.mean.get(row)?);
        let (low, high) = (f64::from(*self.curves.low.get(row)?), f64::from(*self.curves.high.get(row)?));
        mean.is_finite().then_some(Speed { mean, low, high })
    }

    /// Changes when the prediction for the `job`-th job would.
    pub fn version(&self, job: usize) -> Option<u32> {
        self.curves.version.get(job).copied()
    }

    /// Mean speeds of the `job`-th job, row-major `[gpus][cpu][memory]`, NaN where unknown; empty when there is no such
    /// job.
    pub fn means(&self, job: usize) -> &[f32] {
        let points = self.gpus * self.cpus * self.memories;
        self.curves.mean.get(job * points..(job + 1) * points).unwrap_or(&[])
    }
}
