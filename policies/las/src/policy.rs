//! The policy.

use coretuner_sdk::order::{Las, Order};
use coretuner_sdk::place::{Demand, Fit, Gang};
use coretuner_sdk::queueing::{Mode, Preemption, Queueing, REASONS, Settings};
use coretuner_sdk::{Cycle, Policy, Reason};

/// Serves the jobs that got least so far.
#[derive(Debug)]
pub struct LeastService {
    queueing: Queueing,
}

/// Configuration.
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Attained GPU-seconds at which a job falls to the next queue, rising.
    pub thresholds_gpu_s: Vec<f64>,
    /// A waiting job goes back to the first queue when it has waited this many times as long as it ran; null = never.
    pub promote_after: Option<f64>,
    /// Whether jobs of higher queues stop those of lower ones.
    pub preemptive: bool,
    /// Most jobs that are stopped to start one.
    pub victims_max: u32,
    /// Most searches without success in one cycle. Jobs of a shape that did not fit cost none.
    pub searches_max: u32,
    /// Which nodes a job prefers.
    pub fit: Fit,
}

impl Default for Config {
    fn default() -> Self {
        let Las { thresholds_gpu_s, promote_after } = Las::default();
        let victims_max = Preemption::default().victims_max;
        Self { thresholds_gpu_s, promote_after, preemptive: true, victims_max, searches_max: 256, fit: Fit::default() }
    }
}

impl Policy for LeastService {
    type Config = Config;
    const NAME: &'static str = "las";
    const SUMMARY: &'static str = "Least attained service in discretised queues (Tiresias), preemptive";
    const REASONS: &'static [Reason] = REASONS;

    fn new(config: Config) -> Result<Self, String> {
        let preemption = Preemption { victims_max: config.victims_max, ..Preemption::default() };
        Ok(Self {
            queueing: Queueing::new(Settings {
                order: Order::Las,
                las: Las { thresholds_gpu_s: config.thresholds_gpu_s, promote_after: config.promote_after },
                mode: Mode::Backfill { searches_max: config.searches_max },
                gang: Gang { fit: config.fit, demand: Demand::Requested },
                preemption: config.preemptive.then_some(preemption),
            })?,
        })
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        self.queueing.run(cycle);
    }
}
