//! Settings of the common queueing part.

use crate::order::{Las, Order};
use crate::place::Gang;
use crate::policy::Reason;

/// Whether jobs may overtake one that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nobody passes the first job that does not fit, unless it would not fit on the empty cluster either.
    Strict,
    /// Later jobs are tried too, at most so many searches per cycle. Jobs of a shape that did not fit cost no search.
    /// Nothing is reserved for the jobs that are overtaken.
    Backfill { searches_max: u32 },
}

/// When a running job is stopped for a waiting one.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Preemption {
    /// By remaining time (or service): the waiting job must need less even when made longer by this part. By attained
    /// service: no effect, queues are the hysteresis.
    pub hysteresis: f64,
    /// What a restart costs, seconds; added to the time that the waiting job needs.
    pub restart_s: f64,
    /// Most jobs that are stopped to start one.
    pub victims_max: u32,
}

impl Default for Preemption {
    fn default() -> Self {
        Self { hysteresis: 0.2, restart_s: 60.0, victims_max: 64 }
    }
}

impl Preemption {
    /// Says what is wrong with the settings.
    pub fn check(&self) -> Result<(), String> {
        let good = |value: f64| value.is_finite() && value >= 0.0;
        if good(self.hysteresis) && good(self.restart_s) {
            Ok(())
        } else {
            Err("preemption.hysteresis and preemption.restart_s must be numbers of at least 0".to_owned())
        }
    }
}

/// What a queueing policy does.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub order: Order,
    pub las: Las,
    pub mode: Mode,
    pub gang: Gang,
    /// None: running jobs stay. Never used with [`Order::Fifo`].
    pub preemption: Option<Preemption>,
}

/// Reasons that [`crate::queueing::Queueing`] gives; a policy that uses it declares them.
pub const REASONS: &[Reason] = &[
    Reason {
        code: "no-room",
        text: "{0} GPUs with their CPU and memory are not free on its nodes within its queue's ceiling",
        arguments: &["GPUs of the gang"],
    },
    Reason {
        code: "never-fits",
        text: "{0} GPUs with their CPU and memory would not fit on its nodes even if nobody else ran",
        arguments: &["GPUs of the gang"],
    },
    Reason { code: "behind", text: "waits behind the first job that does not fit", arguments: &[] },
    Reason { code: "yields", text: "stopped for a job that is served first", arguments: &[] },
    Reason {
        code: "preempts",
        text: "started by stopping {0} jobs that are served later",
        arguments: &["jobs stopped"],
    },
];
