//! Our own format (`docs/traces.md`): jobs as CSV with a file of nodes beside it, or all in one JSON document.

use std::path::{Path, PathBuf};

use coretuner_core::model::{NodeSpec, QueueSpec};

use super::cluster::read_nodes;
use super::detect::Format;
use super::document::{DOCUMENT, Document, JobRow, VERSION};
use super::error::TraceError;
use super::read::display_name;
use super::rows::{Layout, Row, Rows};
use super::source;
use crate::workload::{Draft, DraftJob};

/// First words of the first line of a CSV.
pub(crate) const JOBS_MARK: &str = "# coretuner-jobs";
pub(crate) const REQUIRED: [&str; 4] = ["name", "submit_s", "workers", "gpu_milli"];
pub(crate) const OPTIONAL: [&str; 18] = [
    "iterations",
    "duration_s",
    "model",
    "gpu_kinds",
    "cpu_milli",
    "cpu_milli_min",
    "cpu_milli_max",
    "memory_mib",
    "memory_mib_min",
    "memory_mib_max",
    "queue",
    "user",
    "priority",
    "tier",
    "preemptible",
    "estimate_s",
    "deadline_s",
    "workers_max",
];
/// Nodes beside `jobs.csv`: `jobs.nodes.csv`, else this.
const NODES_FILE: &str = "nodes.csv";

pub(crate) fn read(path: &Path, cluster: Option<&Path>) -> Result<Draft, TraceError> {
    let json = source::head(path, 64)?.trim_start().starts_with('{');
    let (nodes, queues, jobs, cluster) = if json {
        let (nodes, queues, jobs) = read_document(path)?;
        let own = cluster.map(read_nodes).transpose()?;
        (own.unwrap_or(nodes), queues, jobs, cluster.map(Path::to_owned))
    } else {
        let cluster = cluster.map(Path::to_owned).or_else(|| nodes_beside(path));
        let nodes = cluster.as_deref().map(read_nodes).transpose()?;
        (nodes.unwrap_or_default(), Vec::new(), read_jobs(path)?, cluster)
    };
    let files: Vec<&Path> = std::iter::once(path).chain(cluster.as_deref()).collect();
    Ok(Draft {
        name: display_name(Format::Coretuner, path),
        format: Format::Coretuner.name().to_owned(),
        digest: source::digest(&files)?,
        nodes,
        queues,
        jobs,
        ..Draft::default()
    })
}

/// Where the nodes of a CSV of jobs are looked for and written.
pub(crate) fn nodes_path(jobs: &Path) -> PathBuf {
    jobs.with_extension("nodes.csv")
}

fn nodes_beside(path: &Path) -> Option<PathBuf> {
    [nodes_path(path), path.with_file_name(NODES_FILE)].into_iter().find(|beside| beside.is_file())
}

/// Fails unless the file starts with `mark` and a version that this build reads.
pub(crate) fn check_version(path: &Path, mark: &str) -> Result<(), TraceError> {
    let head = source::head(path, 256)?;
    let first = head.lines().next().unwrap_or("").trim_start_matches('\u{feff}').trim();
    let reason = match first.strip_prefix(mark).map(str::trim) {
        Some(version) if version == format!("v{VERSION}") => return Ok(()),
        Some(version) => format!("version `{version}` is not known; this build reads v{VERSION}"),
        None => format!("does not start with `{mark} v{VERSION}`"),
    };
    Err(TraceError::Line { path: path.to_owned(), line: 1, reason })
}

fn read_jobs(path: &Path) -> Result<Vec<DraftJob>, TraceError> {
    check_version(path, JOBS_MARK)?;
    let layout =
        Layout { delimiter: b',', columns: None, required: &REQUIRED, optional: Some(&OPTIONAL), comments: true };
    let mut rows = Rows::open(path, &layout)?;
    let mut jobs = Vec::new();
    while let Some(row) = rows.next()? {
        let job = job_row(&row)?.draft(row.line());
        jobs.push(job.map_err(|(field, reason)| row.error(field, &reason))?);
    }
    Ok(jobs)
}

fn job_row(row: &Row<'_>) -> Result<JobRow, TraceError> {
    let kinds = row.text("gpu_kinds").split('|').filter(|kind| !kind.is_empty());
    Ok(JobRow {
        name: row.name("name")?.to_owned(),
        submit_s: row.number("submit_s")?,
        workers: row.number("workers")?,
        workers_max: row.optional("workers_max")?,
        gpu_milli: row.number("gpu_milli")?,
        iterations: row.optional("iterations")?,
        duration_s: row.optional("duration_s")?,
        model: Some(row.text("model").to_owned()).filter(|model| !model.is_empty()),
        gpu_kinds: kinds.map(str::to_owned).collect(),
        cpu_milli: row.optional("cpu_milli")?,
        cpu_milli_min: row.optional("cpu_milli_min")?,
        cpu_milli_max: row.optional("cpu_milli_max")?,
        memory_mib: row.optional("memory_mib")?,
        memory_mib_min: row.optional("memory_mib_min")?,
        memory_mib_max: row.optional("memory_mib_max")?,
        queue: row.text("queue").to_owned(),
        user: row.text("user").to_owned(),
        priority: row.optional("priority")?.unwrap_or(0),
        tier: row.optional("tier")?,
        preemptible: preemptible(row)?,
        estimate_s: row.optional("estimate_s")?,
        deadline_s: row.optional("deadline_s")?,
        more_groups: Vec::new(),
    })
}

fn preemptible(row: &Row<'_>) -> Result<Option<bool>, TraceError> {
    match row.text("preemptible") {
        "" => Ok(None),
        "true" => Ok(Some(true)),
        "false" => Ok(Some(false)),
        other => Err(row.error("preemptible", &format!("`{other}` is neither true nor false"))),
    }
}

type Parts = (Vec<NodeSpec>, Vec<QueueSpec>, Vec<DraftJob>);

fn read_document(path: &Path) -> Result<Parts, TraceError> {
    let text = source::text(path)?;
    let document: Document = serde_json::from_str(&text).map_err(|error| json_error(path, &error))?;
    let wrong = |reason: String| TraceError::File { path: path.to_owned(), reason };
    if document.format != DOCUMENT || document.version != VERSION {
        let (format, version) = (&document.format, document.version);
        return Err(wrong(format!(
            "`{format}` version {version} is not known; this build reads {DOCUMENT} version {VERSION}"
        )));
    }
    let mut queues = Vec::new();
    for queue in &document.queues {
        queues.push(queue.spec(&queues).map_err(&wrong)?);
    }
    let mut jobs = Vec::with_capacity(document.jobs.len());
    for (index, job) in document.jobs.into_iter().enumerate() {
        let name = job.name.clone();
        let job = job.draft(index as u64 + 1);
        jobs.push(job.map_err(|(field, reason)| wrong(format!("job {} (`{name}`), {field}: {reason}", index + 1)))?);
    }
    Ok((document.nodes, queues, jobs))
}

/// serde_json says where; its text ends with the same place, which is cut.
fn json_error(path: &Path, error: &serde_json::Error) -> TraceError {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text).to_owned();
    TraceError::Cell {
        path: path.to_owned(),
        line: error.line() as u64,
        column: error.column(),
        field: "JSON".to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, file};
    use super::*;
    use crate::workload::Work;

    fn read_alone(path: &Path) -> Result<Draft, TraceError> {
        read(path, None)
    }

    const CSV: &str = "# coretuner-jobs v1\n# a comment\nname,submit_s,workers,gpu_milli,iterations,duration_s,model,preemptible\n\
                       a,0.5,4,1000,100,,resnet18,false\nb,1,1,0,,60,,\n";

    #[test]
    fn good_and_bad_csv() {
        check(read_alone, CSV, Ok(2));
        check(read_alone, &CSV.replace("v1", "v9"), Err("line 1: version `v9` is not known; this build reads v1"));
        check(
            read_alone,
            &CSV.replace("100,,res", "100,5,res"),
            Err("line 4, column 5 (iterations): give a job either"),
        );
        check(read_alone, &CSV.replace("false", "no"), Err("line 4, column 8 (preemptible): `no` is neither"));
        check(read_alone, &CSV.replace(",1000,", ",1500,"), Err("line 4, column 4 (gpu_milli): 1500 is neither"));
        check(read_alone, &CSV.replace("0.5", "-0.5"), Err("line 4, column 2 (submit_s): -0.5 seconds"));
        check(read_alone, &CSV.replace("b,1,1", "b,1,0"), Err("line 5, column 3 (workers): 0 workers"));
        let elastic = CSV.replace("preemptible", "workers_max").replace("false", "3");
        check(read_alone, &elastic, Err("line 4, column 8 (workers_max): 3 workers are not between"));
        check(read_alone, &elastic.replace(",3", ",8"), Ok(2));
    }

    const JSON: &str = r#"{"format": "coretuner-trace", "version": 1,
        "queues": [{"name": "all"}, {"name": "a", "parent": "all", "weight_milli": 500}],
        "jobs": [{"name": "x", "submit_s": 2, "workers": 1, "gpu_milli": 1000, "duration_s": 3, "queue": "a",
                  "cpu_milli": 4000, "cpu_milli_min": 1000}]}"#;

    #[test]
    fn good_and_bad_json() {
        check(read_alone, JSON, Ok(1));
        let job = read_alone(file(JSON).path()).expect("valid").jobs.remove(0);
        assert_eq!((job.work, job.cpu_milli.min, job.tier), (Work::Duration(3_000_000_000), Some(1000), 1));
        check(read_alone, &JSON.replace("\"version\": 1", "\"version\": 2"), Err("version 2 is not known"));
        check(read_alone, &JSON.replace("submit_s", "submitted"), Err("line 3, column"));
        check(
            read_alone,
            &JSON.replace("\"all\", \"w", "\"none\", \"w"),
            Err("queue `a` comes before its parent `none`"),
        );
        check(
            read_alone,
            &JSON.replace("_min\": 1000", "_min\": 5000"),
            Err("job 1 (`x`), cpu_milli: minimum, request"),
        );
    }
}
