//! Which jobs fit no set of nodes even when the cluster is empty.

use std::collections::BTreeMap;

use coretuner_core::model::{ClassId, GroupSpec, NodeSpec};

use super::types::Workload;

/// Marks jobs that can never start and counts them.
pub(crate) fn mark_never_schedulable(workload: &mut Workload) {
    let mut capacity = Capacity::default();
    let notes: Vec<Option<String>> = workload
        .jobs
        .iter()
        .map(|job| {
            let class = job.spec.eligibility;
            job.spec.groups.iter().find_map(|group| capacity.shortfall(workload, class, group))
        })
        .collect();
    for (job, note) in workload.jobs.iter_mut().zip(notes) {
        job.never = note;
    }
    workload.info.never_schedulable = workload.jobs.iter().filter(|job| job.never.is_some()).count() as u64;
}

/// Workers that an empty class of nodes takes, by request: jobs share few requests, so each is counted once.
#[derive(Default)]
struct Capacity {
    workers: BTreeMap<(ClassId, [u32; 3]), u64>,
}

impl Capacity {
    fn shortfall(&mut self, workload: &Workload, class: ClassId, group: &GroupSpec) -> Option<String> {
        let need = [group.gpu_milli, group.cpu_milli_min, group.memory_mib_min];
        let room = *self.workers.entry((class, need)).or_insert_with(|| {
            let ids = workload.nodes_of(class.0 as usize);
            ids.iter().filter_map(|id| workload.nodes.get(id.0 as usize)).map(|node| workers_on(node, need)).sum()
        });
        (room < u64::from(group.workers_min)).then(|| {
            format!(
                "needs {} workers of {} GPU, {} cores and {} MiB; the empty cluster takes {room}",
                group.workers_min,
                f64::from(group.gpu_milli) / 1000.0,
                f64::from(group.cpu_milli_min) / 1000.0,
                group.memory_mib_min
            )
        })
    }
}

/// Workers with these needs (GPU thousandths, CPU thousandths, MiB) that fit an empty node.
pub(crate) fn workers_on(node: &NodeSpec, [gpu_milli, cpu_milli, memory_mib]: [u32; 3]) -> u64 {
    let by = |have: u32, need: u32| have.checked_div(need).map_or(u64::MAX, u64::from);
    let by_gpu = match gpu_milli {
        0 => u64::MAX,
        share if share < 1000 => u64::from(node.devices) * u64::from(1000 / share),
        whole => u64::from(node.devices / whole.div_ceil(1000)),
    };
    by_gpu.min(by(node.cpu_milli, cpu_milli)).min(by(node.memory_mib, memory_mib)).min(u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::synergy_server;

    #[test]
    fn workers_per_empty_node() {
        let check = |need, expected| assert_eq!(workers_on(&synergy_server(0), need), expected, "{need:?}");
        check([1000, 1000, 21_330], 8);
        check([1000, 6000, 21_330], 4);
        check([1000, 1000, 192_000], 2);
        check([300, 1000, 1000], 24);
        check([8000, 24_000, 512_000], 1);
        check([9000, 1000, 1000], 0);
        check([0, 5000, 1000], 4);
    }
}
