//! How fast a job runs with what it holds.

use coretuner_core::model::{Allocation, GroupSpec, JobId, NodeId};

use super::error::SimError;
use crate::metrics::Holding;
use crate::truth::Share;
use crate::workload::{TraceJob, Workload};

/// Speed of a running job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Speed {
    /// Seconds per iteration of the whole job: of its slowest node, as workers wait for each other.
    pub(crate) iteration_s: f64,
    /// The same with all the CPU and memory that it can use.
    pub(crate) best_iteration_s: f64,
    /// CPU that it turns into speed, of all that it holds.
    pub(crate) cpu_useful_milli: i64,
}

/// A job's GPU workers on one node.
struct OnNode {
    node: NodeId,
    gpu_milli: u64,
    cpu_milli: u64,
    memory_mib: u64,
}

impl Speed {
    /// Speed of `job` holding `rows`.
    pub(crate) fn of(workload: &Workload, id: JobId, job: &TraceJob, rows: &[Allocation]) -> Result<Self, SimError> {
        let parts = by_node(&job.spec.groups, rows);
        let gpus = parts.iter().map(|part| part.gpu_milli).sum::<u64>().div_ceil(1000);
        let nodes = parts.len() as u32;
        let all: i64 = rows.iter().map(|row| i64::from(row.cpu_milli)).sum();
        let mut speed = Self { cpu_useful_milli: all, ..Self::default() };
        for part in &parts {
            let gpu_kind = workload.nodes.get(part.node.0 as usize).map_or("", |node| node.gpu_kind.as_str());
            let on_node = (part.gpu_milli as f64 / 1000.0).max(1.0);
            let share = Share {
                gpu_kind,
                gpus: gpus as u32,
                nodes,
                cores_per_gpu: part.cpu_milli as f64 / 1000.0 / on_node,
                memory_mib_per_gpu: (part.memory_mib as f64 / on_node) as u32,
            };
            let known = workload.truth.iteration_s(job.truth, &share);
            let best = workload.truth.best_iteration_s(job.truth, &share);
            let (Some(iteration_s), Some(best_s)) = (known, best) else {
                return Err(SimError::NoSpeed { job: id, node: part.node, gpu_kind: gpu_kind.to_owned() });
            };
            let useful_milli = (workload.truth.useful_cores(job.truth, &share) * on_node * 1000.0).ceil();
            speed.iteration_s = speed.iteration_s.max(iteration_s);
            speed.best_iteration_s = speed.best_iteration_s.max(best_s);
            speed.cpu_useful_milli -= (part.cpu_milli as f64 - useful_milli).max(0.0) as i64;
        }
        Ok(speed)
    }

    /// What the job holds and uses; nothing is used while it makes no progress.
    pub(crate) fn holding(&self, rows: &[Allocation], progresses: bool) -> Holding {
        let sum = |of: fn(&Allocation) -> u32| rows.iter().map(|row| i64::from(of(row))).sum::<i64>();
        let gpu_milli = sum(|row| row.gpu_milli);
        let share = if progresses { self.best_iteration_s / self.iteration_s } else { 0.0 };
        Holding {
            gpu_milli,
            gpu_effective_micro: (gpu_milli as f64 * 1000.0 * share) as i64,
            cpu_milli: sum(|row| row.cpu_milli),
            cpu_useful_milli: if progresses { self.cpu_useful_milli } else { 0 },
            memory_mib: sum(|row| row.memory_mib),
        }
    }
}

/// Totals by node over groups with GPUs (over all groups of a job without any).
fn by_node(groups: &[GroupSpec], rows: &[Allocation]) -> Vec<OnNode> {
    let cpu_only = groups.iter().all(|group| group.gpu_milli == 0);
    let counts =
        |row: &&Allocation| cpu_only || groups.get(row.group as usize).is_some_and(|group| group.gpu_milli > 0);
    let mut parts: Vec<OnNode> = Vec::new();
    for row in rows.iter().filter(counts) {
        let at = parts.iter().position(|part| part.node == row.node).unwrap_or_else(|| {
            parts.push(OnNode { node: row.node, gpu_milli: 0, cpu_milli: 0, memory_mib: 0 });
            parts.len() - 1
        });
        let part = &mut parts[at];
        part.gpu_milli += u64::from(row.gpu_milli);
        part.cpu_milli += u64::from(row.cpu_milli);
        part.memory_mib += u64::from(row.memory_mib);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Gangs, GenerateOptions, generate};

    fn row(node: u32, gpus: u32, cores: u32, memory_mib: u32) -> Allocation {
        Allocation {
            group: 0,
            node: NodeId(node),
            workers: gpus,
            cpu_milli: cores * 1000,
            memory_mib,
            gpu_milli: gpus * 1000,
            device_mask: 0,
        }
    }

    fn check(rows: &[Allocation], iteration_s: f64, useful_milli: i64, effective_micro: i64) {
        let options = GenerateOptions { jobs: 1, gangs: Gangs::Single, ..GenerateOptions::default() };
        let mut workload = generate(&options).expect("valid");
        let kinds = std::sync::Arc::clone(&workload.kinds);
        workload.jobs[0].truth = workload.truth.intern("alexnet", &kinds).expect("known").0;
        let speed = Speed::of(&workload, JobId(0), &workload.jobs[0], rows).expect("known speed");
        assert!((speed.iteration_s - iteration_s).abs() < 1e-12, "{speed:?}");
        let holding = speed.holding(rows, true);
        assert_eq!((holding.cpu_useful_milli, holding.gpu_effective_micro), (useful_milli, effective_micro));
        assert_eq!(speed.holding(rows, false).gpu_effective_micro, 0);
    }

    #[test]
    fn the_slowest_node_sets_the_pace() {
        check(&[row(0, 1, 3, 64_000)], 0.6, 3000, 340_136);
        check(&[row(0, 1, 12, 64_000)], 0.3, 9000, 680_272);
        check(&[row(0, 2, 24, 256_000)], 0.6 / 2.94, 24_000, 2_000_000);
        check(&[row(0, 1, 12, 128_000), row(1, 1, 3, 64_000)], 0.6, 15_000, 680_272);
    }
}
