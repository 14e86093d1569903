//! Best fit: each waiting job goes to the node that it leaves fullest. Looks at every node for every job.

use coretuner_sdk::{Cycle, Free, Group, Job, Node, Placement, Policy};

/// The policy; it keeps nothing between cycles.
#[derive(Debug)]
pub struct BestFit {
    config: Config,
}

/// What an operator may set.
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How much a free GPU counts against a node's whole CPU left free.
    pub gpu_weight: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { gpu_weight: 4.0 }
    }
}

impl Policy for BestFit {
    type Config = Config;
    const NAME: &'static str = "best-fit";
    const SUMMARY: &'static str = "Each job in order of submission on the node that it leaves fullest";

    fn new(config: Config) -> Result<Self, String> {
        if config.gpu_weight.is_finite() { Ok(Self { config }) } else { Err("gpu_weight must be a number".into()) }
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        for job in cycle.cluster.waiting() {
            if let Some(placement) = self.place(cycle, job) {
                // A refusal leaves the job waiting; the next cycle tries again.
                let _ = cycle.plan.start(job.id, &[placement]);
            }
        }
    }
}

impl BestFit {
    /// The whole smallest gang on one node, for jobs of one group.
    fn place(&self, cycle: &Cycle<'_>, job: &Job) -> Option<Placement> {
        let [group] = job.groups.as_slice() else { return None };
        let nodes = cycle.cluster.nodes().filter(|node| node.is_schedulable());
        let eligible = nodes.filter(|node| cycle.cluster.is_eligible(job.class, node.id));
        let fits = eligible.filter_map(|node| Some((node, self.left(group, node, cycle.plan.free(node.id)?)?)));
        let (node, _) = fits.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let workers = group.workers_min;
        let (cpu_milli, memory_mib) = (workers * group.cpu_milli, workers * group.memory_mib);
        Some(Placement { group: 0, node: node.id, workers, cpu_milli, memory_mib, device_mask: 0 })
    }

    /// What the node would have left, weighted; none when the gang does not fit.
    fn left(&self, group: &Group, node: &Node, free: &Free) -> Option<f64> {
        let workers = group.workers_min;
        let gpus = free.gpus().checked_sub(workers * group.gpus())?;
        let cpu = free.cpu_milli.checked_sub(workers * group.cpu_milli)?;
        free.memory_mib.checked_sub(workers * group.memory_mib)?;
        Some(self.config.gpu_weight * f64::from(gpus) + f64::from(cpu) / f64::from(node.cpu_milli.max(1)))
    }
}

coretuner_sdk::export!(BestFit);
