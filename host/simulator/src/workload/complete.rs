//! From a draft to a workload: every gap is filled by a named rule.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use coretuner_core::catalog::KindCatalog;
use coretuner_core::model::{
    ClassId, Eligibility, GroupSpec, JobSpec, NodeSpec, QueueId, QueueSpec, ResizeRights, TimeNs,
};

use super::assign::{Mix, ModelDraw, rule};
use super::classes::Classes;
use super::cluster::{named_queue, synergy_server};
use super::draft::{Draft, DraftJob, Extent, Work};
use super::feasible::mark_never_schedulable;
use super::reference::Reference;
use super::types::{TraceJob, Workload};
use crate::result::WorkloadInfo;
use crate::trace::TraceError;
use crate::truth::{CPU_ONLY, GroundTruth, LEAST_MEMORY_MIB, PORTABLE, TruthId, TruthOptions};

/// Choices that fill gaps or change a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FillOptions {
    pub seed: u64,
    pub mix: Mix,
    /// Synergy servers instead of what the trace says or the rule gives.
    pub servers: Option<u32>,
    /// Only the first so many jobs.
    pub jobs_max: Option<usize>,
    /// Submit times are stretched to this mean arrival rate.
    pub load_jobs_per_hour: Option<f64>,
    pub truth: TruthOptions,
}

/// Fills the gaps of `draft`; `path` is for messages.
pub fn complete(draft: Draft, path: &Path, options: &FillOptions) -> Result<Workload, TraceError> {
    let mut filler = Filler::new(path, options);
    filler.run(draft)
}

struct Filler<'a> {
    path: &'a Path,
    options: &'a FillOptions,
    kinds: Arc<KindCatalog>,
    truth: GroundTruth,
    rules: Vec<String>,
    queues: Vec<QueueSpec>,
    checked: BTreeSet<(TruthId, ClassId)>,
}

/// Where the jobs run, as far as their description depends on it.
struct Site<'n> {
    classes: Classes<'n>,
    reference: Reference,
}

impl<'n> Site<'n> {
    fn new(nodes: &'n [NodeSpec]) -> Self {
        Self { classes: Classes::new(nodes), reference: Reference::new(nodes) }
    }
}

impl<'a> Filler<'a> {
    fn new(path: &'a Path, options: &'a FillOptions) -> Self {
        Self {
            path,
            options,
            kinds: Arc::new(KindCatalog::default()),
            truth: GroundTruth::new(options.truth),
            rules: Vec::new(),
            queues: Vec::new(),
            checked: BTreeSet::new(),
        }
    }

    fn run(&mut self, mut draft: Draft) -> Result<Workload, TraceError> {
        self.rules = std::mem::take(&mut draft.rules);
        self.queues = std::mem::take(&mut draft.queues);
        if self.queues.is_empty() {
            self.queues.push(named_queue("default"));
        }
        arrange(&mut draft.jobs, self.options);
        if draft.jobs.is_empty() {
            return Err(TraceError::NoJobs { path: self.path.to_owned() });
        }
        self.name_models(&mut draft);
        let nodes = self.cluster(&mut draft)?;
        let mut site = Site::new(&nodes);
        let mut jobs = Vec::with_capacity(draft.jobs.len());
        for job in &draft.jobs {
            jobs.push(self.job(job, &mut site)?);
        }
        self.note_rules(&draft.jobs);
        let classes = site.classes.into_nodes();
        Ok(self.assemble(draft, nodes, classes, jobs))
    }

    /// R1 and R6: every GPU job gets a model.
    fn name_models(&mut self, draft: &mut Draft) {
        let mut draw = ModelDraw::new(self.options.mix, self.options.seed);
        let mut drawn = false;
        for job in &mut draft.jobs {
            if job.gpus() == 0 {
                job.model = Some(CPU_ONLY.to_owned());
            } else if job.model.is_none() {
                drawn = true;
                let prefix = if draft.portable_models { PORTABLE } else { "" };
                job.model = Some(format!("{prefix}{}", draw.next()));
            }
        }
        if drawn {
            self.rules.push(rule::models(self.options.mix));
            if draft.portable_models {
                self.rules.push(rule::PORTABLE.to_owned());
            }
        }
    }

    /// R5: the nodes.
    fn cluster(&mut self, draft: &mut Draft) -> Result<Vec<NodeSpec>, TraceError> {
        if self.options.servers.is_none() && !draft.nodes.is_empty() {
            return Ok(std::mem::take(&mut draft.nodes));
        }
        let count = match self.options.servers {
            Some(count) => {
                self.rules.push(rule::servers(count as usize));
                count as usize
            }
            None => {
                let count = self.servers_for(&draft.jobs)?;
                self.rules.push(rule::sized_servers(count, LOAD_PERCENT));
                count
            }
        };
        Ok((0..count).map(synergy_server).collect())
    }

    /// As many servers as make the jobs ask for [`LOAD_PERCENT`] of the GPU time, and enough for the largest job.
    fn servers_for(&mut self, jobs: &[DraftJob]) -> Result<usize, TraceError> {
        let server = [synergy_server(0)];
        let mut site = Site::new(&server);
        let (mut gpu_s, mut longest_s, mut largest) = (0.0, 1.0_f64, 1);
        for job in jobs {
            let seconds = match job.work {
                Work::Duration(ns) => ns as f64 / 1e9,
                Work::Iterations(count) => count as f64 * self.speed(job, &mut site)?.2,
            };
            gpu_s += job.gpus() as f64 * seconds;
            longest_s = longest_s.max(seconds);
            largest = largest.max(job.gpus());
        }
        let first = jobs.first().map_or(0, |job| job.submit_ns);
        let last = jobs.last().map_or(0, |job| job.submit_ns);
        let span_s = ((last - first) as f64 / 1e9).max(longest_s);
        let by_load = gpu_s / span_s / (f64::from(LOAD_PERCENT) / 100.0) / 8.0;
        Ok((by_load.ceil() as usize).max(largest.div_ceil(8) as usize).max(1))
    }

    fn job(&mut self, draft: &DraftJob, site: &mut Site<'_>) -> Result<TraceJob, TraceError> {
        let (truth, eligibility, iteration_s) = self.speed(draft, site)?;
        self.check_gpus(draft, truth, eligibility, &site.classes)?;
        if draft.workers_max > draft.workers {
            self.truth.check_elastic(truth).map_err(|source| self.truth_error(draft, source))?;
        }
        let kind = self.truth.kind(truth);
        let (work_iterations, estimated_duration_ns) = match draft.work {
            Work::Iterations(count) => (count, draft.estimate_ns),
            Work::Duration(ns) => {
                (iterations(ns, iteration_s), if draft.estimate_ns > 0 { draft.estimate_ns } else { ns })
            }
        };
        let mut groups = vec![self.group(draft, truth, &site.reference)];
        groups.extend(draft.more_groups.iter().cloned());
        let model = kind.and_then(|kind| self.kinds.get(kind)).map_or(String::new(), |kind| kind.name.clone());
        let spec = JobSpec {
            name: draft.name.clone(),
            user: draft.user.clone(),
            queue: self.queue(&draft.queue),
            eligibility,
            priority: draft.priority,
            tier: draft.tier,
            preemptible: draft.preemptible,
            submit_ns: draft.submit_ns,
            groups,
            work_iterations,
            estimated_duration_ns,
            deadline_ns: draft.deadline_ns,
            kind,
            labels: Vec::new(),
        };
        Ok(TraceJob { spec, truth, model, never: None })
    }

    /// The job's model and class, and seconds per iteration at the request on the reference GPU kind.
    fn speed(&mut self, draft: &DraftJob, site: &mut Site<'_>) -> Result<(TruthId, ClassId, f64), TraceError> {
        let key = draft.model.as_deref().unwrap_or(CPU_ONLY);
        let (truth, _) = self.truth.intern(key, &self.kinds).map_err(|source| self.truth_error(draft, source))?;
        let eligibility = site.classes.of(&draft.gpu_kinds);
        let group = self.group(draft, truth, &site.reference);
        let job = TraceJob {
            spec: JobSpec { groups: vec![group], eligibility, ..empty_spec() },
            truth,
            model: String::new(),
            never: None,
        };
        let gpu = site.classes.gpu_kinds(eligibility).first().copied().unwrap_or("");
        if gpu.is_empty() {
            return Ok((truth, eligibility, 1.0));
        }
        self.truth.check_gpu(truth, gpu).map_err(|source| self.truth_error(draft, source))?;
        Ok((truth, eligibility, self.truth.iteration_s(truth, &job.requested(gpu)).unwrap_or(1.0)))
    }

    fn truth_error(&self, draft: &DraftJob, source: crate::truth::TruthError) -> TraceError {
        TraceError::Truth { path: self.path.to_owned(), line: draft.line, job: draft.name.clone(), source }
    }

    /// The model's speed must be known wherever the job may run.
    fn check_gpus(
        &mut self,
        draft: &DraftJob,
        truth: TruthId,
        class: ClassId,
        classes: &Classes<'_>,
    ) -> Result<(), TraceError> {
        if draft.gpus() == 0 || self.checked.contains(&(truth, class)) {
            return Ok(());
        }
        for gpu in classes.gpu_kinds(class) {
            self.truth.check_gpu(truth, gpu).map_err(|source| self.truth_error(draft, source))?;
        }
        self.checked.insert((truth, class));
        Ok(())
    }

    fn queue(&mut self, name: &str) -> QueueId {
        let name = if name.is_empty() { self.queues[0].name.clone() } else { name.to_owned() };
        let found = self.queues.iter().position(|queue| queue.name == name);
        let index = found.unwrap_or_else(|| {
            self.queues.push(named_queue(&name));
            self.queues.len() - 1
        });
        QueueId(index as u32)
    }

    /// R3 and R4: what one worker asks for and the range it may be given.
    fn group(&self, draft: &DraftJob, truth: TruthId, reference: &Reference) -> GroupSpec {
        let gpus_per_worker = f64::from(draft.gpu_milli) / 1000.0;
        let portable = self.truth.key(truth).starts_with(PORTABLE);
        let cpu = reference.cpu.fill(draft.cpu_milli, gpus_per_worker, 1000);
        let least = if portable { u32::MAX } else { (f64::from(LEAST_MEMORY_MIB) * gpus_per_worker.max(1.0)) as u32 };
        let memory = reference.memory.fill(draft.memory_mib, gpus_per_worker, least);
        GroupSpec {
            role: "worker".to_owned(),
            workers_min: draft.workers,
            workers_max: draft.workers_max.max(draft.workers),
            gpu_milli: draft.gpu_milli,
            cpu_milli: cpu[0],
            memory_mib: memory[0],
            cpu_milli_min: cpu[1],
            cpu_milli_max: cpu[2],
            memory_mib_min: memory[1],
            memory_mib_max: memory[2],
            resize_rights: ResizeRights::ALL,
        }
    }

    fn note_rules(&mut self, jobs: &[DraftJob]) {
        let lacks = |of: fn(&Extent) -> bool| jobs.iter().any(|job| of(&job.cpu_milli) || of(&job.memory_mib));
        if jobs.iter().any(|job| matches!(job.work, Work::Duration(_)) && job.gpus() > 0) {
            self.rules.push(rule::ITERATIONS.to_owned());
        }
        if lacks(|extent| extent.request.is_none()) {
            self.rules.push(rule::REQUEST.to_owned());
        }
        if lacks(|extent| extent.min.is_none() || extent.max.is_none()) {
            self.rules.push(rule::RANGE.to_owned());
        }
        if jobs.iter().any(|job| job.model.as_deref().is_some_and(|key| key.starts_with(crate::truth::GAVEL))) {
            self.rules.push(rule::GAVEL_CPU.to_owned());
        }
        if jobs.iter().any(|job| matches!(job.work, Work::Duration(_)) && job.estimate_ns == 0) {
            self.rules.push(rule::ESTIMATE.to_owned());
        }
    }

    fn assemble(
        &mut self,
        draft: Draft,
        nodes: Vec<NodeSpec>,
        classes: Vec<Eligibility>,
        jobs: Vec<TraceJob>,
    ) -> Workload {
        let info = WorkloadInfo {
            name: draft.name,
            format: draft.format,
            digest: draft.digest,
            assigned: std::mem::take(&mut self.rules),
            seed: self.options.seed,
            jobs: jobs.len() as u64,
            never_schedulable: 0,
            nodes: nodes.len() as u64,
            gpus: nodes.iter().map(|node| u64::from(node.devices)).sum(),
            cpu_cores: nodes.iter().map(|node| f64::from(node.cpu_milli)).sum::<f64>() / 1000.0,
            load_jobs_per_hour: self.options.load_jobs_per_hour,
        };
        let mut workload = Workload {
            nodes,
            queues: std::mem::take(&mut self.queues),
            classes,
            jobs,
            kinds: Arc::clone(&self.kinds),
            truth: std::mem::take(&mut self.truth),
            info,
        };
        mark_never_schedulable(&mut workload);
        workload
    }
}

/// GPU time that jobs ask for where a rule sizes the cluster, percent.
const LOAD_PERCENT: u32 = 80;

fn empty_spec() -> JobSpec {
    JobSpec {
        name: String::new(),
        user: String::new(),
        queue: QueueId(0),
        eligibility: ClassId(0),
        priority: 0,
        tier: 0,
        preemptible: true,
        submit_ns: 0,
        groups: Vec::new(),
        work_iterations: 0,
        estimated_duration_ns: 0,
        deadline_ns: 0,
        kind: None,
        labels: Vec::new(),
    }
}

/// R2, at least one iteration.
fn iterations(duration_ns: TimeNs, iteration_s: f64) -> u64 {
    ((duration_ns as f64 / 1e9 / iteration_s).ceil() as u64).max(1)
}

/// Sorts by submit time, cuts, and stretches to the asked arrival rate.
fn arrange(jobs: &mut Vec<DraftJob>, options: &FillOptions) {
    jobs.sort_by_key(|job| job.submit_ns);
    jobs.truncate(options.jobs_max.unwrap_or(usize::MAX));
    let (Some(first), Some(last)) = (jobs.first().map(|job| job.submit_ns), jobs.last().map(|job| job.submit_ns))
    else {
        return;
    };
    let Some(rate) = options.load_jobs_per_hour.filter(|_| last > first) else { return };
    let wanted_ns = (jobs.len() - 1) as f64 / rate * 3.6e12;
    let stretch = wanted_ns / (last - first) as f64;
    for job in jobs {
        job.submit_ns = ((job.submit_ns - first) as f64 * stretch) as TimeNs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sized_cluster_is_the_class_of_its_own_nodes() {
        let second = 1_000_000_000;
        let job = |line| DraftJob {
            gpu_kinds: vec!["V100".to_owned()],
            ..DraftJob::of_gpus(line, format!("job-{line}"), 0, 8, Work::Duration(100 * second))
        };
        let draft = Draft { jobs: (0..4).map(job).collect(), ..Draft::default() };
        let workload = complete(draft, Path::new("test"), &FillOptions::default()).expect("valid");
        assert_eq!(workload.nodes.len(), 5);
        assert_eq!(workload.nodes_of(workload.jobs[0].spec.eligibility.0 as usize).len(), 5);
    }
}
