//! Defects that make a plan as a whole unreadable. They are faults of the policy, not verdicts.

use crate::contract::plan::Plan;

/// Why a plan cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanDefect {
    #[error("plan column `{column}` has {rows} rows where `{first}` has {expected}; make all columns equally long")]
    Columns { column: &'static str, rows: usize, first: &'static str, expected: usize },
    #[error("bundle numbers fall at action {action} (from {before} to {bundle}); number bundles upwards")]
    BundleFalls { action: usize, before: u32, bundle: u32 },
    #[error("the plan is for revision {plan}, the cluster is at {state}; copy the revision of the delta")]
    Newer { plan: u64, state: u64 },
}

/// Checks that columns agree, bundles never fall and the plan is not from the future.
pub fn check_shape(plan: &Plan, revision: u64) -> Result<(), PlanDefect> {
    let actions = &plan.actions;
    same_length(
        ("verb", actions.verb.len()),
        &[
            ("job", actions.job.len()),
            ("bundle", actions.bundle.len()),
            ("placement-start", actions.placement_start.len()),
            ("placement-count", actions.placement_count.len()),
            ("batch-per-gpu", actions.batch_per_gpu.len()),
            ("reason", actions.reason.len()),
        ],
    )?;
    let rows = &plan.placements;
    same_length(
        ("group", rows.group.len()),
        &[
            ("node", rows.node.len()),
            ("workers", rows.workers.len()),
            ("cpu-milli", rows.cpu_milli.len()),
            ("memory-mib", rows.memory_mib.len()),
            ("gpu-milli", rows.gpu_milli.len()),
            ("device-mask", rows.device_mask.len()),
        ],
    )?;
    if plan.revision > revision {
        return Err(PlanDefect::Newer { plan: plan.revision, state: revision });
    }
    let pairs = actions.bundle.iter().zip(actions.bundle.iter().skip(1)).enumerate();
    let fall = pairs.into_iter().find(|(_, (before, bundle))| before > bundle);
    fall.map_or(Ok(()), |(at, (before, bundle))| {
        Err(PlanDefect::BundleFalls { action: at + 1, before: *before, bundle: *bundle })
    })
}

fn same_length(first: (&'static str, usize), others: &[(&'static str, usize)]) -> Result<(), PlanDefect> {
    let differs = others.iter().find(|(_, rows)| *rows != first.1);
    differs.map_or(Ok(()), |(column, rows)| {
        Err(PlanDefect::Columns { column, rows: *rows, first: first.0, expected: first.1 })
    })
}
