//! Our own format as JSON: one document with nodes, queues and jobs. The CSV columns have the same names.

use coretuner_core::model::{GroupSpec, NodeSpec, QueueId, QueueSpec, ResizeRights};
use serde::{Deserialize, Serialize};

use crate::workload::{DraftJob, Extent, Work};

/// Value of `format`.
pub(crate) const DOCUMENT: &str = "coretuner-trace";
/// Version of the JSON and CSV forms.
pub(crate) const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    pub(crate) format: String,
    pub(crate) version: u32,
    #[serde(default)]
    pub(crate) nodes: Vec<NodeSpec>,
    #[serde(default)]
    pub(crate) queues: Vec<QueueRow>,
    pub(crate) jobs: Vec<JobRow>,
}

/// A queue; parents come before their children.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct QueueRow {
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    pub(crate) weight_milli: Option<u32>,
    pub(crate) guaranteed_gpu_milli: Option<u32>,
    pub(crate) maximum_gpu_milli: Option<u32>,
    pub(crate) guaranteed_cpu_milli: Option<u32>,
    pub(crate) maximum_cpu_milli: Option<u32>,
}

/// A job, times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct JobRow {
    pub(crate) name: String,
    pub(crate) submit_s: f64,
    pub(crate) workers: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workers_max: Option<u32>,
    pub(crate) gpu_milli: u32,
    pub(crate) iterations: Option<u64>,
    pub(crate) duration_s: Option<f64>,
    pub(crate) model: Option<String>,
    pub(crate) gpu_kinds: Vec<String>,
    pub(crate) cpu_milli: Option<u32>,
    pub(crate) cpu_milli_min: Option<u32>,
    pub(crate) cpu_milli_max: Option<u32>,
    pub(crate) memory_mib: Option<u32>,
    pub(crate) memory_mib_min: Option<u32>,
    pub(crate) memory_mib_max: Option<u32>,
    pub(crate) queue: String,
    pub(crate) user: String,
    pub(crate) priority: i32,
    pub(crate) tier: Option<u8>,
    pub(crate) preemptible: Option<bool>,
    pub(crate) estimate_s: Option<f64>,
    pub(crate) deadline_s: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) more_groups: Vec<GroupRow>,
}

/// A further worker group, complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupRow {
    pub(crate) role: String,
    pub(crate) workers: u32,
    pub(crate) gpu_milli: u32,
    pub(crate) cpu_milli: u32,
    pub(crate) memory_mib: u32,
}

/// Longest time, seconds (as in the CSV readers).
const TIME_S_MAX: f64 = 3e9;

impl JobRow {
    /// The job as a draft, or what is wrong with which field.
    pub(crate) fn draft(self, line: u64) -> Result<DraftJob, (&'static str, String)> {
        self.check()?;
        let work = match (self.iterations, self.duration_s) {
            (Some(iterations), None) if iterations > 0 => Work::Iterations(iterations),
            (None, Some(duration_s)) => Work::Duration(nanoseconds("duration_s", duration_s)?),
            _ => return Err(("iterations", "give a job either iterations (1 or more) or duration_s".to_owned())),
        };
        let time = |field, seconds: Option<f64>| seconds.map_or(Ok(0), |seconds| nanoseconds(field, seconds));
        let extent = |request, min, max| Extent { request, min, max };
        Ok(DraftJob {
            line,
            submit_ns: nanoseconds("submit_s", self.submit_s)?,
            estimate_ns: time("estimate_s", self.estimate_s)?,
            deadline_ns: time("deadline_s", self.deadline_s)?,
            cpu_milli: extent(self.cpu_milli, self.cpu_milli_min, self.cpu_milli_max),
            memory_mib: extent(self.memory_mib, self.memory_mib_min, self.memory_mib_max),
            more_groups: self.more_groups.iter().map(GroupRow::spec).collect(),
            name: self.name,
            user: self.user,
            queue: self.queue,
            workers: self.workers,
            workers_max: self.workers_max.unwrap_or(self.workers),
            gpu_milli: self.gpu_milli,
            model: self.model,
            work,
            gpu_kinds: self.gpu_kinds,
            priority: self.priority,
            tier: self.tier.unwrap_or(1),
            preemptible: self.preemptible.unwrap_or(true),
        })
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        if self.name.is_empty() {
            return Err(("name", "is empty".to_owned()));
        }
        if !(1..=65_536).contains(&self.workers) {
            return Err(("workers", format!("{} workers are not between 1 and 65536", self.workers)));
        }
        if let Some(most) = self.workers_max.filter(|most| !(self.workers..=65_536).contains(most)) {
            return Err(("workers_max", format!("{most} workers are not between `workers` and 65536")));
        }
        if self.gpu_milli > 32_000 || (self.gpu_milli >= 1000 && !self.gpu_milli.is_multiple_of(1000)) {
            let reason = format!("{} is neither a share below 1000 nor whole GPUs up to 32000", self.gpu_milli);
            return Err(("gpu_milli", reason));
        }
        ordered("cpu_milli", [self.cpu_milli_min, self.cpu_milli, self.cpu_milli_max])?;
        ordered("memory_mib", [self.memory_mib_min, self.memory_mib, self.memory_mib_max])
    }
}

impl GroupRow {
    fn spec(&self) -> GroupSpec {
        GroupSpec {
            role: self.role.clone(),
            workers_min: self.workers,
            workers_max: self.workers,
            gpu_milli: self.gpu_milli,
            cpu_milli: self.cpu_milli,
            memory_mib: self.memory_mib,
            cpu_milli_min: self.cpu_milli,
            cpu_milli_max: self.cpu_milli,
            memory_mib_min: self.memory_mib,
            memory_mib_max: self.memory_mib,
            resize_rights: ResizeRights::NONE,
        }
    }
}

impl QueueRow {
    /// The queue; `known` are those before it.
    pub(crate) fn spec(&self, known: &[QueueSpec]) -> Result<QueueSpec, String> {
        let parent = match &self.parent {
            None => None,
            Some(name) => {
                let found = known.iter().position(|queue| queue.name == *name);
                let index = found.ok_or_else(|| format!("queue `{}` comes before its parent `{name}`", self.name))?;
                Some(QueueId(index as u32))
            }
        };
        Ok(QueueSpec {
            name: self.name.clone(),
            parent,
            weight_milli: self.weight_milli.unwrap_or(1000),
            guaranteed_gpu_milli: self.guaranteed_gpu_milli,
            maximum_gpu_milli: self.maximum_gpu_milli,
            guaranteed_cpu_milli: self.guaranteed_cpu_milli,
            maximum_cpu_milli: self.maximum_cpu_milli,
        })
    }
}

fn ordered(field: &'static str, values: [Option<u32>; 3]) -> Result<(), (&'static str, String)> {
    let known: Vec<u32> = values.into_iter().flatten().collect();
    let request_missing = values[1].is_none() && !known.is_empty();
    if request_missing || !known.is_sorted() {
        return Err((field, "minimum, request and maximum must rise, and bounds need a request".to_owned()));
    }
    Ok(())
}

fn nanoseconds(field: &'static str, seconds: f64) -> Result<u64, (&'static str, String)> {
    if (0.0..=TIME_S_MAX).contains(&seconds) {
        Ok((seconds * 1e9).round() as u64)
    } else {
        Err((field, format!("{seconds} seconds are not between 0 and {TIME_S_MAX}")))
    }
}
