use coretuner_contract::cluster::Trigger;
use coretuner_core::event::{Batch, Event};

/// Why a cycle for `batch` runs.
pub(crate) fn of(batch: &Batch) -> Trigger {
    let timer = if batch.timer { Trigger::TIMER } else { Trigger::empty() };
    batch.events.iter().map(of_event).fold(timer, |all, one| all | one)
}

fn of_event(event: &Event) -> Trigger {
    match event {
        Event::JobSubmitted { .. } => Trigger::ARRIVAL,
        Event::JobRemoved { .. } => Trigger::COMPLETION,
        // What it held is free and the job waits again, as after a lost node.
        Event::JobStopped { .. }
        | Event::NodeSet { .. }
        | Event::NodeStateSet { .. }
        | Event::ForeignUse { .. }
        | Event::NodeRemoved { .. }
        | Event::QueueSet { .. }
        | Event::ClassSet { .. } => Trigger::CAPACITY,
        Event::Progress { .. } | Event::Observation { .. } => Trigger::OBSERVATION,
        Event::EstimatesChanged { .. } => Trigger::ESTIMATE,
    }
}
