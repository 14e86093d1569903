//! The policy.

use coretuner_sdk::order::{Las, Order};
use coretuner_sdk::place::{Demand, Fit, Gang};
use coretuner_sdk::queueing::{Mode, Preemption, Queueing, REASONS, Settings};
use coretuner_sdk::{Cycle, Policy, Reason};

/// Gives every job its node's CPU and memory in proportion to its GPUs.
#[derive(Debug)]
pub struct Proportional {
    queueing: Queueing,
    predict: bool,
}

/// Configuration.
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Who is served first.
    pub order: Order,
    /// Queues of attained service, for `las`.
    pub las: Las,
    /// When running jobs are stopped for others, with `las`, `srtf` and `srsf`; null = never.
    pub preemption: Option<Preemption>,
    /// Whether jobs may overtake one that does not fit.
    pub backfill: bool,
    /// With `backfill`: most searches without success in one cycle. Jobs of a shape that did not fit cost none.
    pub searches_max: u32,
    /// Ask for the predicted speed of jobs that never ran, for `srtf` and `srsf`.
    pub predict: bool,
    /// Which nodes a job prefers.
    pub fit: Fit,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            order: Order::Fifo,
            las: Las::default(),
            preemption: Some(Preemption::default()),
            backfill: true,
            searches_max: 256,
            predict: true,
            fit: Fit::default(),
        }
    }
}

impl Policy for Proportional {
    type Config = Config;
    const NAME: &'static str = "proportional";
    const SUMMARY: &'static str = "CPU and memory in proportion to GPUs, on any base order";
    const REASONS: &'static [Reason] = REASONS;

    fn new(config: Config) -> Result<Self, String> {
        let mode = if config.backfill { Mode::Backfill { searches_max: config.searches_max } } else { Mode::Strict };
        Ok(Self {
            predict: config.predict,
            queueing: Queueing::new(Settings {
                order: config.order,
                las: config.las,
                mode,
                gang: Gang { fit: config.fit, demand: Demand::Proportional },
                preemption: config.preemption,
            })?,
        })
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        if self.predict {
            self.queueing.predict(cycle);
        }
        self.queueing.run(cycle);
    }
}
