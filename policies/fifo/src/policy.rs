//! The policy.

use coretuner_sdk::order::{Las, Order};
use coretuner_sdk::place::{Demand, Fit, Gang};
use coretuner_sdk::queueing::{self, Queueing, REASONS, Settings};
use coretuner_sdk::{Cycle, Policy, Reason};

/// Starts waiting jobs in the order of their submission; what runs is left alone.
#[derive(Debug)]
pub struct Fifo {
    queueing: Queueing,
}

/// Whether jobs may overtake one that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nobody passes the first job that does not fit.
    Strict,
    /// Later jobs start where there is room; nothing is reserved for the jobs that they pass.
    #[default]
    Backfill,
}

/// Configuration.
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub mode: Mode,
    /// With `backfill`: most searches without success in one cycle. Jobs of a shape that did not fit cost none.
    pub searches_max: u32,
    /// Which nodes a job prefers.
    pub fit: Fit,
}

impl Default for Config {
    fn default() -> Self {
        Self { mode: Mode::default(), searches_max: 256, fit: Fit::default() }
    }
}

impl Policy for Fifo {
    type Config = Config;
    const NAME: &'static str = "fifo";
    const SUMMARY: &'static str = "First in, first out, strict or with backfilling; jobs get what they ask for";
    const REASONS: &'static [Reason] = REASONS;

    fn new(config: Config) -> Result<Self, String> {
        let mode = match config.mode {
            Mode::Strict => queueing::Mode::Strict,
            Mode::Backfill => queueing::Mode::Backfill { searches_max: config.searches_max },
        };
        let gang = Gang { fit: config.fit, demand: Demand::Requested };
        let settings = Settings { order: Order::Fifo, las: Las::default(), mode, gang, preemption: None };
        Ok(Self { queueing: Queueing::new(settings)? })
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        self.queueing.run(cycle);
    }
}
