//! The searches.

use coretuner_contract::GPU_MILLI;

use crate::cluster::{Allocation, Class, Free, Group, Job, Node};
use crate::id::NodeId;
use crate::plan::{Placement, PlanBuilder};

/// Which nodes a gang prefers. A single node that holds the whole gang is taken whenever there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(crate = "crate::schemars")]
pub enum Fit {
    /// The node with the fewest free GPUs that holds the gang; else as few nodes as a greedy choice needs.
    #[default]
    FewestNodes,
    /// The node with the fewest free GPUs that holds the gang; else the nodes with the fewest free GPUs, so that fragments
    /// are used up.
    BestFit,
    /// The lowest id that holds the gang; else the lowest ids that hold a worker.
    FirstFit,
}

/// How much CPU and memory workers get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(crate = "crate::schemars")]
pub enum Demand {
    /// What the job asks for.
    #[default]
    Requested,
    /// The node's CPU and memory in proportion to the GPUs taken, within the job's ranges. Workers without GPUs get what
    /// they ask for.
    Proportional,
}

/// How to place a gang.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gang {
    pub fit: Fit,
    pub demand: Demand,
}

impl Demand {
    /// CPU and memory of `workers` workers of `group` together on `node`.
    pub fn of(self, group: &Group, node: &Node, workers: u32) -> (u32, u32) {
        let workers = u64::from(workers);
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let devices = u64::from(node.devices);
        if self == Self::Requested || group.gpu_milli == 0 || devices == 0 {
            return (narrow(workers * u64::from(group.cpu_milli)), narrow(workers * u64::from(group.memory_mib)));
        }
        let share = |total: u32, min: u32, max: u32| {
            let part = u64::from(total) * workers * u64::from(group.gpu_milli) / (devices * u64::from(GPU_MILLI));
            narrow(part.max(workers * u64::from(min)).min(workers * u64::from(max)))
        };
        (
            share(node.cpu_milli, group.cpu_milli_min, group.cpu_milli_max),
            share(node.memory_mib, group.memory_mib_min, group.memory_mib_max),
        )
    }

    /// The least CPU that one worker gets on any node.
    fn cpu_milli_least(self, group: &Group) -> u32 {
        if self == Self::Requested || group.gpu_milli == 0 { group.cpu_milli } else { group.cpu_milli_min }
    }
}

/// A whole gang of `job` (the smallest one) on what `plan` leaves free, or none where it does not fit now. Only finds;
/// [`PlanBuilder::start`] takes.
pub fn gang(plan: &mut PlanBuilder<'_>, job: &Job, how: Gang) -> Option<Vec<Placement>> {
    let class = plan.cluster().class(job.class)?;
    plan.try_out(|plan| {
        let mut rows = Vec::new();
        for (index, group) in job.groups.iter().enumerate() {
            let search = Search { class, index: index as u32, group, how };
            search.place(plan, &mut rows)?;
        }
        (!rows.is_empty()).then_some(rows)
    })
}

struct Search<'a> {
    class: &'a Class,
    index: u32,
    group: &'a Group,
    how: Gang,
}

impl Search<'_> {
    fn place(&self, plan: &mut PlanBuilder<'_>, rows: &mut Vec<Placement>) -> Option<()> {
        let mut left = self.group.workers_min;
        while left > 0 {
            let (node, workers) = self.choose(plan, rows, left)?;
            rows.push(self.take(plan, node, workers)?);
            left -= workers;
        }
        Some(())
    }

    fn take(&self, plan: &mut PlanBuilder<'_>, id: NodeId, workers: u32) -> Option<Placement> {
        let node = plan.cluster().node(id)?;
        let (cpu_milli, memory_mib) = self.how.demand.of(self.group, node, workers);
        let gpu_milli = workers * self.group.gpu_milli;
        let group = self.index;
        let row = Allocation { group, node: id, workers, cpu_milli, memory_mib, gpu_milli, device_mask: 0 };
        let device_mask = plan.space.take(&row).ok()?;
        Some(Placement { group, node: id, workers, cpu_milli, memory_mib, device_mask })
    }

    /// The next node and how many workers it gets.
    fn choose(&self, plan: &PlanBuilder<'_>, rows: &[Placement], left: u32) -> Option<(NodeId, u32)> {
        if self.group.is_share() {
            return self.choose_share(plan, rows, left);
        }
        let whole = match self.how.fit {
            Fit::FirstFit => self.lowest_id(plan, rows, left),
            Fit::FewestNodes | Fit::BestFit => self.fewest_free(plan, rows, left),
        };
        if whole.is_some() || left == 1 {
            return whole.map(|node| (node, left));
        }
        let node = match self.how.fit {
            Fit::FewestNodes => return self.most_workers(plan, rows, left),
            Fit::BestFit => self.fewest_free(plan, rows, 1)?,
            Fit::FirstFit => self.lowest_id(plan, rows, 1)?,
        };
        Some((node, self.workers_on(plan, node, left)))
    }

    /// Whether `workers` fit on a node that this group does not use yet.
    fn fits(&self, plan: &PlanBuilder<'_>, rows: &[Placement], id: NodeId, free: &Free, workers: u32) -> bool {
        let used = rows.iter().any(|row| row.group == self.index && row.node == id);
        let Some(node) = plan.cluster().node(id).filter(|_| !used) else { return false };
        let (cpu_milli, memory_mib) = self.how.demand.of(self.group, node, workers);
        free.gpus() >= workers * self.group.gpus() && free.cpu_milli >= cpu_milli && free.memory_mib >= memory_mib
    }

    fn with_gpus(&self, plan: &PlanBuilder<'_>, rows: &[Placement], gpus: u32, workers: u32) -> Option<NodeId> {
        let cpu = self.how.demand.cpu_milli_least(self.group).saturating_mul(workers);
        plan.space.first(self.class, gpus, cpu, |node, free| self.fits(plan, rows, node, free, workers))
    }

    fn fewest_free(&self, plan: &PlanBuilder<'_>, rows: &[Placement], workers: u32) -> Option<NodeId> {
        let need = workers.checked_mul(self.group.gpus())?;
        (need..=plan.space.gpus_max()).find_map(|gpus| self.with_gpus(plan, rows, gpus, workers))
    }

    fn lowest_id(&self, plan: &PlanBuilder<'_>, rows: &[Placement], workers: u32) -> Option<NodeId> {
        let need = workers.checked_mul(self.group.gpus())?;
        (need..=plan.space.gpus_max()).filter_map(|gpus| self.with_gpus(plan, rows, gpus, workers)).min()
    }

    /// The node that holds most workers; among equals the one with fewest free GPUs.
    fn most_workers(&self, plan: &PlanBuilder<'_>, rows: &[Placement], left: u32) -> Option<(NodeId, u32)> {
        let mut best: Option<(NodeId, u32)> = None;
        for gpus in (self.group.gpus()..=plan.space.gpus_max()).rev() {
            let bound = gpus.checked_div(self.group.gpus()).unwrap_or(left).min(left - 1);
            let least = best.map_or(1, |(_, workers)| workers);
            let found =
                (least..=bound).rev().find_map(|workers| Some((self.with_gpus(plan, rows, gpus, workers)?, workers)));
            best = found.or(best);
        }
        best
    }

    /// How many workers fit on a node where one fits.
    fn workers_on(&self, plan: &PlanBuilder<'_>, node: NodeId, left: u32) -> u32 {
        let Some(free) = plan.free(node) else { return 1 };
        let bound = free.gpus().checked_div(self.group.gpus()).unwrap_or(left).min(left);
        (2..=bound).rev().find(|workers| self.fits(plan, &[], node, free, *workers)).unwrap_or(1)
    }

    /// Workers that share one device: a partly used one first, else one of the fullest node.
    fn choose_share(&self, plan: &PlanBuilder<'_>, rows: &[Placement], left: u32) -> Option<(NodeId, u32)> {
        let together = left.min(GPU_MILLI / self.group.gpu_milli);
        (1..=together).rev().find_map(|workers| {
            let part = workers * self.group.gpu_milli;
            let fits = |node, free: &Free| self.fits(plan, rows, node, free, workers);
            let node = plan
                .space
                .first_share(self.class, part, fits)
                .or_else(|| (1..=plan.space.gpus_max()).find_map(|gpus| self.with_gpus(plan, rows, gpus, workers)));
            Some((node?, workers))
        })
    }
}
