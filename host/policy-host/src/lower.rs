//! Between the contract's Rust types and the generated bindings: columns are lent to the call, never copied.

use coretuner_contract::cluster::{self, Delta, Refusal, Trigger};
use coretuner_contract::plan::{self, Plan};

use crate::bindings::coretuner::policy::cluster as wit;
use crate::bindings::coretuner::policy::plan as wit_plan;

/// Temporary columns whose element types differ; alive for one call.
pub(crate) struct Scratch<'a> {
    strings: Vec<&'a str>,
    reasons: Vec<wit::Refusal>,
}

impl<'a> Scratch<'a> {
    pub(crate) fn new(delta: &'a Delta) -> Self {
        let reasons = delta.verdicts.iter().flat_map(|rows| &rows.reason);
        Self {
            strings: delta.strings.iter().map(String::as_str).collect(),
            reasons: reasons.map(|reason| refusal(*reason)).collect(),
        }
    }
}

/// Lends the columns of a table, by name.
macro_rules! lend {
    ($rows:expr, $table:ident: $($column:ident)*) => {
        $rows.as_ref().map(|rows: &cluster::$table| wit::$table { $($column: &rows.$column),* })
    };
}

/// The delta as the bindings want it.
pub(crate) fn delta<'a>(delta: &'a Delta, scratch: &'a Scratch<'a>) -> wit::Delta<'a> {
    wit::Delta {
        base_revision: delta.base_revision,
        revision: delta.revision,
        now_ns: delta.now_ns,
        trigger: trigger(delta.trigger),
        strings: &scratch.strings,
        nodes: nodes(delta),
        node_states: lend!(delta.node_states, NodeStateRows: id state cpu_milli_free memory_mib_free devices_free_mask),
        device_shares: lend!(delta.device_shares, DeviceShareRows: node device gpu_milli_free),
        removed_nodes: &delta.removed_nodes,
        eligibility: lend!(delta.eligibility, EligibilityRows: id all node_start node_count nodes),
        queues: queues(delta),
        jobs: jobs(delta),
        groups: groups(delta),
        job_states: lend!(delta.job_states, JobStateRows: id state mine restarts allocation_start allocation_count),
        allocations: allocations(delta),
        removed_jobs: &delta.removed_jobs,
        progress: lend!(delta.progress, ProgressRows:
            job since_ns iterations iterations_per_s service_gpu_s service_gpu_s_per_s),
        observations: lend!(delta.observations, ObservationRows: job metric_name at_ns value),
        estimates_changed: &delta.estimates_changed,
        verdicts: delta.verdicts.as_ref().map(|rows| wit::VerdictRows {
            action: &rows.action,
            reason: &scratch.reasons,
            job: &rows.job,
        }),
        checksum: delta.checksum,
    }
}

fn nodes(delta: &Delta) -> Option<wit::NodeRows<'_>> {
    lend!(delta.nodes, NodeRows:
        id name gpu_kind_name cpu_milli memory_mib storage_mib_per_s device_count device_memory_mib
        zone_name rack_name link_domain_name)
}

fn queues(delta: &Delta) -> Option<wit::QueueRows<'_>> {
    lend!(delta.queues, QueueRows:
        id name parent weight_milli guaranteed_gpu_milli maximum_gpu_milli guaranteed_cpu_milli maximum_cpu_milli)
}

fn jobs(delta: &Delta) -> Option<wit::JobRows<'_>> {
    lend!(delta.jobs, JobRows:
        id name user_name queue eligibility priority tier preemptible submit_ns group_start group_count
        work_iterations estimated_duration_ns deadline_ns kind)
}

fn groups(delta: &Delta) -> Option<wit::GroupRows<'_>> {
    lend!(delta.groups, GroupRows:
        role_name workers_min workers_max gpu_milli cpu_milli memory_mib cpu_milli_min cpu_milli_max
        memory_mib_min memory_mib_max resize_rights)
}

fn allocations(delta: &Delta) -> Option<wit::AllocationRows<'_>> {
    lend!(delta.allocations, AllocationRows: job group node workers cpu_milli memory_mib gpu_milli device_mask)
}

fn trigger(trigger: Trigger) -> wit::Trigger {
    let pairs = [
        (Trigger::IMAGE, wit::Trigger::IMAGE),
        (Trigger::ARRIVAL, wit::Trigger::ARRIVAL),
        (Trigger::COMPLETION, wit::Trigger::COMPLETION),
        (Trigger::CAPACITY, wit::Trigger::CAPACITY),
        (Trigger::OBSERVATION, wit::Trigger::OBSERVATION),
        (Trigger::ESTIMATE, wit::Trigger::ESTIMATE),
        (Trigger::VERDICT, wit::Trigger::VERDICT),
        (Trigger::TIMER, wit::Trigger::TIMER),
        (Trigger::CONFIGURATION, wit::Trigger::CONFIGURATION),
    ];
    let set = pairs.into_iter().filter(|(own, _)| trigger.contains(*own));
    set.fold(wit::Trigger::empty(), |flags, (_, flag)| flags | flag)
}

fn refusal(reason: Refusal) -> wit::Refusal {
    match reason {
        Refusal::UnknownId => wit::Refusal::UnknownId,
        Refusal::NotMine => wit::Refusal::NotMine,
        Refusal::NotEligible => wit::Refusal::NotEligible,
        Refusal::NoCpu => wit::Refusal::NoCpu,
        Refusal::NoMemory => wit::Refusal::NoMemory,
        Refusal::NoGpu => wit::Refusal::NoGpu,
        Refusal::GangIncomplete => wit::Refusal::GangIncomplete,
        Refusal::OutOfRange => wit::Refusal::OutOfRange,
        Refusal::WrongState => wit::Refusal::WrongState,
        Refusal::GroupBroken => wit::Refusal::GroupBroken,
        Refusal::Quota => wit::Refusal::Quota,
        Refusal::Superseded => wit::Refusal::Superseded,
        Refusal::BackendRefused => wit::Refusal::BackendRefused,
        Refusal::PlanTooLong => wit::Refusal::PlanTooLong,
    }
}

/// The guest's plan as the contract's type; columns are moved.
pub(crate) fn plan(plan: wit_plan::Plan) -> Plan {
    let (actions, placements) = (plan.actions, plan.placements);
    Plan {
        revision: plan.revision,
        actions: plan::ActionRows {
            verb: actions.verb.into_iter().map(verb).collect(),
            job: actions.job,
            bundle: actions.bundle,
            placement_start: actions.placement_start,
            placement_count: actions.placement_count,
            batch_per_gpu: actions.batch_per_gpu,
            reason: actions.reason,
        },
        placements: plan::PlacementRows {
            group: placements.group,
            node: placements.node,
            workers: placements.workers,
            cpu_milli: placements.cpu_milli,
            memory_mib: placements.memory_mib,
            gpu_milli: placements.gpu_milli,
            device_mask: placements.device_mask,
        },
        reasons: plan.reasons.into_iter().map(reason).collect(),
        wake_at_ns: plan.wake_at_ns,
    }
}

fn verb(verb: wit_plan::Verb) -> plan::Verb {
    match verb {
        wit_plan::Verb::Start => plan::Verb::Start,
        wit_plan::Verb::Resize => plan::Verb::Resize,
        wit_plan::Verb::Rescale => plan::Verb::Rescale,
        wit_plan::Verb::Preempt => plan::Verb::Preempt,
        wit_plan::Verb::Hold => plan::Verb::Hold,
    }
}

fn reason(reason: wit_plan::Reason) -> plan::Reason {
    plan::Reason { code: reason.code, arguments: reason.arguments, node: reason.node, other_job: reason.other_job }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trigger_flag_crosses() {
        for bit in 0..9 {
            let flag = trigger(Trigger::from_bits_retain(1 << bit));
            assert_ne!(flag, wit::Trigger::empty(), "{bit}");
            for other in 0..bit {
                assert_ne!(flag, trigger(Trigger::from_bits_retain(1 << other)));
            }
        }
        assert_eq!(trigger(Trigger::empty()), wit::Trigger::empty());
    }

    #[test]
    fn refusals_keep_their_discriminants() {
        for reason in Refusal::ALL {
            assert_eq!(refusal(reason) as u8, reason as u8);
        }
    }
}
