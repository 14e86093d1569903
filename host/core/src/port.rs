//! The traits through which the controller knows the edges.

use crate::contract::cluster::Delta;
use crate::contract::plan::Plan;
use crate::event::{Batch, Command};
use crate::model::{JobId, KindId, TimeNs};

/// A scheduling policy that answers cycles: a Wasm component behind the policy host, or the same code compiled natively.
///
/// An instance keeps a view of the cluster that only deltas change. After any fault the caller must [`Policy::reset`] it
/// and send a full image.
pub trait Policy {
    /// Who answers, for reports.
    fn identity(&self) -> &PolicyIdentity;

    /// Answers one cycle.
    fn decide(&mut self, delta: &Delta) -> Result<Answer, PolicyFault>;

    /// Whether the next delta must be a full image: the instance is new, was reset, or is due to be renewed (stores are
    /// renewed by age, see the policy host's limits). The caller then restarts its cursor before it makes the delta.
    fn needs_image(&self) -> bool {
        false
    }

    /// The last answer was judged and its commands given: what the policy staged with it (`kv` writes) takes effect.
    /// Not called after a fault; the next [`Policy::decide`] drops what was not committed.
    fn commit(&mut self) {}

    /// Replaces the instance by a fresh one with the same configuration.
    fn reset(&mut self) -> Result<(), PolicyFault>;
}

impl<P: Policy + ?Sized> Policy for Box<P> {
    fn identity(&self) -> &PolicyIdentity {
        (**self).identity()
    }

    fn decide(&mut self, delta: &Delta) -> Result<Answer, PolicyFault> {
        (**self).decide(delta)
    }

    fn needs_image(&self) -> bool {
        (**self).needs_image()
    }

    fn commit(&mut self) {
        (**self).commit();
    }

    fn reset(&mut self) -> Result<(), PolicyFault> {
        (**self).reset()
    }
}

/// Names a policy in reports, journals and caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyIdentity {
    pub name: String,
    pub version: String,
    /// `blake3:` + hex digest of the component, or `native`.
    pub digest: String,
}

/// What a policy said and what it cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub plan: Plan,
    /// Fuel burnt, where the engine meters it.
    pub fuel: Option<u64>,
    /// Size of the guest's memory after the call, bytes; 0 for native code.
    pub memory_bytes: u64,
}

/// A policy failed to answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy fault ({kind}): {message}")]
pub struct PolicyFault {
    pub kind: FaultKind,
    pub message: String,
    /// Guest frames, innermost first, with function names where the component has them.
    pub backtrace: Vec<String>,
    /// Last lines that the guest logged.
    pub output_tail: Vec<String>,
}

/// How a policy failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The guest trapped: panic, unreachable, out-of-bounds, …
    Trap,
    /// It ran past its deadline.
    Deadline,
    /// It burnt its fuel.
    Fuel,
    /// It asked for more memory than it may have.
    Memory,
    StackOverflow,
    /// The answer is larger than allowed.
    AnswerTooLarge,
    /// The answer cannot be decoded or its columns disagree.
    InvalidAnswer,
    /// A fresh instance could not be started or configured.
    Start,
}

impl FaultKind {
    /// Every kind, in a fixed order for tables.
    pub const ALL: [Self; 8] = [
        Self::Trap,
        Self::Deadline,
        Self::Fuel,
        Self::Memory,
        Self::StackOverflow,
        Self::AnswerTooLarge,
        Self::InvalidAnswer,
        Self::Start,
    ];

    /// Kebab-case name, as in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Deadline => "deadline",
            Self::Fuel => "fuel",
            Self::Memory => "memory",
            Self::StackOverflow => "stack-overflow",
            Self::AnswerTooLarge => "answer-too-large",
            Self::InvalidAnswer => "invalid-answer",
            Self::Start => "start",
        }
    }
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A cluster: real or simulated.
pub trait Backend {
    type Error: std::error::Error + Send + Sync + 'static;

    /// Waits for the next moment at which something happens, or for `wake_at_ns`, whichever is first. `None`: nothing
    /// will happen any more.
    fn next(&mut self, wake_at_ns: Option<TimeNs>) -> Result<Option<Batch>, Self::Error>;

    /// Carries out what one cycle decided, in order. Returns the jobs whose command the backend refused, with the reason:
    /// their state is rolled back. A backend that refuses to give something back also refuses what needs it.
    fn execute(&mut self, now_ns: TimeNs, commands: &[Command]) -> Result<Vec<(JobId, String)>, Self::Error>;
}

/// Predicts how fast jobs run.
pub trait Predictor: Send + Sync {
    /// Name and digest of the model, for reports: identity of a result includes both.
    fn identity(&self) -> PredictorIdentity;

    /// Speeds of each kind at each point of the grid.
    fn curves(&self, query: &CurveQuery) -> Result<Curves, PredictError>;

    /// Total `cpu_milli` at which one observation of a one-GPU job of this kind would tell most.
    fn next_probe(&self, kind: KindId) -> Option<u32>;
}

/// Names a predictor.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PredictorIdentity {
    pub name: String,
    /// `blake3:` + hex of the model file, or what stands for it.
    pub digest: String,
    /// Inference engine with version and execution provider, for example `onnxruntime 1.31.1 CPUExecutionProvider`.
    pub engine: String,
}

/// A grid of allocations. `gpus[i]` and `nodes_spanned[i]` are one axis; CPU and memory are totals of the job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CurveQuery {
    /// Model named by the operator; empty or `throughput` = the default.
    pub model: String,
    /// `None` for a job of unknown kind: its answers are NaN.
    pub kinds: Vec<Option<KindId>>,
    pub gpu_kind: String,
    pub gpus: Vec<u32>,
    pub nodes_spanned: Vec<u32>,
    pub cpu_milli: Vec<u32>,
    pub memory_mib: Vec<u32>,
}

impl CurveQuery {
    /// Points of the grid for one job.
    pub fn points(&self) -> usize {
        self.gpus.len() * self.cpu_milli.len() * self.memory_mib.len()
    }
}

/// Iterations per second of the whole job, row-major `[job][gpus][cpu][memory]`; NaN where nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    pub mean: Vec<f32>,
    pub low: Vec<f32>,
    pub high: Vec<f32>,
    /// Per job; changes when an observation or another model changes the answer.
    pub version: Vec<u32>,
}

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PredictError {
    #[error("no model named `{0}`")]
    UnknownModel(String),
    #[error("{rows} rows asked, {limit} allowed")]
    TooManyRows { rows: usize, limit: usize },
    #[error("the predictor is unavailable: {0}")]
    Unavailable(String),
    #[error("the answer took longer than {deadline_ms} ms")]
    Late { deadline_ms: u64 },
}
