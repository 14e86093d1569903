//! Writing a workload in our own format: `.json` holds everything, `.csv` the jobs with their nodes beside them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use coretuner_core::model::{Eligibility, GroupSpec, NodeSpec};

use super::cluster::{self, NODES_MARK};
use super::coretuner::{self, JOBS_MARK, nodes_path};
use super::document::{DOCUMENT, Document, GroupRow, JobRow, QueueRow, VERSION};
use super::error::TraceError;
use crate::workload::{TraceJob, Workload};

/// Writes `workload` to `path`; a CSV of jobs gets a CSV of nodes beside it.
pub fn write(workload: &Workload, path: &Path) -> Result<(), TraceError> {
    let json = path.extension().is_some_and(|extension| extension == "json");
    if json {
        return save(path, |out| {
            serde_json::to_writer_pretty(&mut *out, &document(workload))?;
            writeln!(out)
        });
    }
    if let Some(job) = workload.jobs.iter().find(|job| job.spec.groups.len() > 1) {
        let name = &job.spec.name;
        let reason = format!("job `{name}` has several worker groups, which CSV cannot hold: write a .json file");
        return Err(TraceError::File { path: path.to_owned(), reason });
    }
    save(&nodes_path(path), |out| write_nodes(out, &workload.nodes))?;
    save(path, |out| write_jobs(out, workload))
}

fn save(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> Result<(), TraceError> {
    let failed = |source| TraceError::Write { path: path.to_owned(), source };
    let mut out = BufWriter::new(File::create(path).map_err(failed)?);
    fill(&mut out).and_then(|()| out.flush()).map_err(failed)
}

fn write_nodes(out: &mut impl Write, nodes: &[NodeSpec]) -> std::io::Result<()> {
    writeln!(out, "{NODES_MARK} v{VERSION}")?;
    let mut table = csv::Writer::from_writer(out);
    table.write_record(cluster::REQUIRED.iter().chain(&cluster::OPTIONAL))?;
    for node in nodes {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        table.write_record([
            node.name.clone(),
            node.gpu_kind.clone(),
            node.devices.to_string(),
            node.cpu_milli.to_string(),
            node.memory_mib.to_string(),
            "1".to_owned(),
            node.storage_mib_per_s.to_string(),
            node.device_memory_mib.to_string(),
            text(&node.zone),
            text(&node.rack),
            text(&node.link_domain),
        ])?;
    }
    table.flush()
}

fn write_jobs(out: &mut impl Write, workload: &Workload) -> std::io::Result<()> {
    writeln!(out, "{JOBS_MARK} v{VERSION}")?;
    let mut table = csv::Writer::from_writer(out);
    table.write_record(coretuner::REQUIRED.iter().chain(&coretuner::OPTIONAL))?;
    for job in &workload.jobs {
        table.write_record(cells(job_row(workload, job)))?;
    }
    table.flush()
}

fn cells(job: JobRow) -> [String; 22] {
    let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
    let time = |time: Option<f64>| time.map_or_else(String::new, |time| time.to_string());
    [
        job.name,
        job.submit_s.to_string(),
        job.workers.to_string(),
        job.gpu_milli.to_string(),
        job.iterations.map_or_else(String::new, |iterations| iterations.to_string()),
        time(job.duration_s),
        job.model.unwrap_or_default(),
        job.gpu_kinds.join("|"),
        number(job.cpu_milli),
        number(job.cpu_milli_min),
        number(job.cpu_milli_max),
        number(job.memory_mib),
        number(job.memory_mib_min),
        number(job.memory_mib_max),
        job.queue,
        job.user,
        job.priority.to_string(),
        number(job.tier.map(u32::from)),
        job.preemptible.map_or_else(String::new, |preemptible| preemptible.to_string()),
        time(job.estimate_s),
        time(job.deadline_s),
        number(job.workers_max),
    ]
}

fn document(workload: &Workload) -> Document {
    Document {
        format: DOCUMENT.to_owned(),
        version: VERSION,
        nodes: workload.nodes.clone(),
        queues: workload.queues.iter().map(|queue| queue_row(workload, queue)).collect(),
        jobs: workload.jobs.iter().map(|job| job_row(workload, job)).collect(),
    }
}

fn queue_row(workload: &Workload, queue: &coretuner_core::model::QueueSpec) -> QueueRow {
    QueueRow {
        name: queue.name.clone(),
        parent: queue.parent.and_then(|id| workload.queues.get(id.0 as usize)).map(|parent| parent.name.clone()),
        weight_milli: Some(queue.weight_milli),
        guaranteed_gpu_milli: queue.guaranteed_gpu_milli,
        maximum_gpu_milli: queue.maximum_gpu_milli,
        guaranteed_cpu_milli: queue.guaranteed_cpu_milli,
        maximum_cpu_milli: queue.maximum_cpu_milli,
    }
}

fn job_row(workload: &Workload, job: &TraceJob) -> JobRow {
    let spec = &job.spec;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let given = |ns: u64| (ns > 0).then(|| seconds(ns));
    let gpu = job.gpus() > 0;
    let mut row = JobRow {
        name: spec.name.clone(),
        submit_s: seconds(spec.submit_ns),
        iterations: gpu.then_some(spec.work_iterations),
        // Without GPUs an iteration is a second.
        duration_s: (!gpu).then_some(spec.work_iterations as f64),
        model: gpu.then(|| workload.truth.key(job.truth).to_owned()),
        gpu_kinds: gpu_kinds(workload, job),
        queue: workload.queues.get(spec.queue.0 as usize).map_or_else(String::new, |queue| queue.name.clone()),
        user: spec.user.clone(),
        priority: spec.priority,
        tier: Some(spec.tier),
        preemptible: Some(spec.preemptible),
        estimate_s: given(spec.estimated_duration_ns),
        deadline_s: given(spec.deadline_ns),
        more_groups: spec.groups.iter().skip(1).map(group_row).collect(),
        ..JobRow::default()
    };
    if let Some(group) = spec.groups.first() {
        fill_request(&mut row, group);
    }
    row
}

fn fill_request(row: &mut JobRow, group: &GroupSpec) {
    row.workers = group.workers_min;
    row.workers_max = (group.workers_max > group.workers_min).then_some(group.workers_max);
    row.gpu_milli = group.gpu_milli;
    row.cpu_milli = Some(group.cpu_milli);
    row.cpu_milli_min = Some(group.cpu_milli_min);
    row.cpu_milli_max = Some(group.cpu_milli_max);
    row.memory_mib = Some(group.memory_mib);
    row.memory_mib_min = Some(group.memory_mib_min);
    row.memory_mib_max = Some(group.memory_mib_max);
}

fn group_row(group: &GroupSpec) -> GroupRow {
    GroupRow {
        role: group.role.clone(),
        workers: group.workers_min,
        gpu_milli: group.gpu_milli,
        cpu_milli: group.cpu_milli,
        memory_mib: group.memory_mib,
    }
}

/// The kinds of the nodes that the job may use; none for all nodes.
fn gpu_kinds(workload: &Workload, job: &TraceJob) -> Vec<String> {
    let Some(Eligibility::Nodes(nodes)) = workload.classes.get(job.spec.eligibility.0 as usize) else {
        return Vec::new();
    };
    let mut kinds: Vec<String> =
        nodes.iter().filter_map(|id| workload.nodes.get(id.0 as usize)).map(|node| node.gpu_kind.clone()).collect();
    kinds.sort();
    kinds.dedup();
    if kinds.is_empty() {
        // No node at all is not the same as any node.
        kinds.push("none".to_owned());
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ReadOptions, read};
    use crate::workload::{GenerateOptions, generate};

    fn check(file: &str) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join(file);
        let workload = generate(&GenerateOptions { jobs: 40, ..GenerateOptions::default() }).expect("valid");
        write(&workload, &path).expect("written");
        let back = read(&path, &ReadOptions::default()).expect("read back");
        assert_eq!(back.nodes, workload.nodes);
        for (got, wanted) in back.jobs.iter().zip(&workload.jobs) {
            assert_eq!((&got.spec, &got.model), (&wanted.spec, &wanted.model));
        }
        assert_eq!(back.jobs.len(), 40);
        assert!(back.info.assigned.is_empty(), "{:?}", back.info.assigned);
    }

    #[test]
    fn what_is_written_is_read_back() {
        check("jobs.csv");
        check("trace.json");
    }

    #[test]
    fn an_elastic_job_is_written_and_read_back() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for file in ["jobs.csv", "trace.json"] {
            let mut workload = generate(&GenerateOptions { jobs: 2, ..GenerateOptions::default() }).expect("valid");
            let kinds = std::sync::Arc::clone(&workload.kinds);
            let job = &mut workload.jobs[0];
            let known = workload.truth.intern("gavel/LM (batch size 80)", &kinds).expect("known");
            (job.truth, job.spec.kind) = known;
            job.spec.groups[0].workers_max = job.spec.groups[0].workers_min + 3;
            let path = folder.path().join(file);
            write(&workload, &path).expect("written");
            let back = read(&path, &ReadOptions::default()).expect("read back");
            assert_eq!(back.jobs[0].spec.groups, workload.jobs[0].spec.groups);
        }
    }

    #[test]
    fn an_unwritable_place_is_an_error() {
        let workload = generate(&GenerateOptions { jobs: 1, ..GenerateOptions::default() }).expect("valid");
        let error = write(&workload, Path::new("no/such/folder/trace.json")).expect_err("no folder");
        assert!(error.to_string().starts_with("cannot write `no/such/folder/trace.json`"), "{error}");
    }
}
