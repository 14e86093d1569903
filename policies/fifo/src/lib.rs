//! First in, first out.

use coretuner_sdk::place::{Gang, gang};
use coretuner_sdk::{Cycle, Policy};

/// Starts waiting jobs in the order of their submission.
#[derive(Debug)]
pub struct Fifo {
    config: Config,
}

#[derive(Clone, Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether jobs may overtake one that does not fit.
    pub backfill: bool,
}

impl Policy for Fifo {
    type Config = Config;
    const NAME: &'static str = "fifo";
    const SUMMARY: &'static str = "First in, first out";

    fn new(config: Config) -> Result<Self, String> {
        Ok(Self { config })
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        for job in cycle.cluster.waiting() {
            let placed = gang(&mut cycle.plan, job, Gang::default());
            let started = placed.is_some_and(|rows| cycle.plan.start(job.id, &rows).is_ok());
            if !started && !self.config.backfill {
                return;
            }
        }
    }
}

coretuner_sdk::export!(Fifo);
