//! The policy.

use coretuner_sdk::order::{Las, Order};
use coretuner_sdk::place::{Demand, Fit, Gang};
use coretuner_sdk::queueing::{Mode, Preemption, Queueing, REASONS, Settings};
use coretuner_sdk::{Cycle, Policy, Reason};

/// Serves the job that needs least first.
#[derive(Debug)]
pub struct Srtf {
    queueing: Queueing,
    predict: bool,
}

/// What a job needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Remaining time.
    #[default]
    Time,
    /// Remaining time × GPUs.
    Service,
}

/// Configuration.
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub measure: Measure,
    /// When running jobs are stopped for shorter ones; null = never.
    pub preemption: Option<Preemption>,
    /// Ask for the predicted speed of jobs that never ran; else, or without an answer, the submitter's estimate counts.
    pub predict: bool,
    /// Most searches without success in one cycle. Jobs of a shape that did not fit cost none.
    pub searches_max: u32,
    /// Which nodes a job prefers.
    pub fit: Fit,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            measure: Measure::default(),
            preemption: Some(Preemption::default()),
            predict: true,
            searches_max: 256,
            fit: Fit::default(),
        }
    }
}

impl Policy for Srtf {
    type Config = Config;
    const NAME: &'static str = "srtf";
    const SUMMARY: &'static str = "Shortest remaining time (or service) first, preemptive; jobs get what they ask for";
    const REASONS: &'static [Reason] = REASONS;

    fn new(config: Config) -> Result<Self, String> {
        let order = match config.measure {
            Measure::Time => Order::Srtf,
            Measure::Service => Order::Srsf,
        };
        Ok(Self {
            predict: config.predict,
            queueing: Queueing::new(Settings {
                order,
                las: Las::default(),
                mode: Mode::Backfill { searches_max: config.searches_max },
                gang: Gang { fit: config.fit, demand: Demand::Requested },
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
