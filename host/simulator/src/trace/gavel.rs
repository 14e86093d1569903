//! Gavel: tab-separated jobs without a header; clusters as counts of one-GPU servers by kind.

use std::path::Path;

use coretuner_core::model::NodeSpec;

use super::cluster::read_nodes;
use super::detect::Format;
use super::error::TraceError;
use super::read::display_name;
use super::rows::{Layout, Rows};
use super::source;
use super::synergy::GPUS_MAX;
use crate::truth::GAVEL;
use crate::workload::{Draft, DraftJob, Work, synergy_server};

/// Traces of `physical_cluster/`.
const LONG: [&str; 10] = [
    "job_type",
    "command",
    "working_directory",
    "num_steps_arg",
    "needs_data_dir",
    "total_steps",
    "scale_factor",
    "priority_weight",
    "slo",
    "arrival_s",
];
/// Traces of `msr/`.
const SHORT: [&str; 7] =
    ["job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "arrival_s", "scale_factor"];

/// GPU kinds in the order of a cluster's counts.
const KINDS: [&str; 3] = ["V100", "P100", "K80"];

pub(crate) fn read(path: &Path, cluster: Option<&Path>) -> Result<Draft, TraceError> {
    let head = source::head(path, 4096)?;
    let long = head.lines().next().is_some_and(|line| line.split('\t').count() == LONG.len());
    let columns: &[&str] = if long { &LONG } else { &SHORT };
    let layout = Layout { delimiter: b'\t', columns: Some(columns), required: &[], optional: None, comments: false };
    let mut rows = Rows::open(path, &layout)?;
    let mut jobs = Vec::new();
    while let Some(row) = rows.next()? {
        let steps: u64 = row.number("total_steps")?;
        if steps == 0 {
            return Err(row.error("total_steps", "a job needs at least one step"));
        }
        let gpus = row.within("scale_factor", 1, GPUS_MAX)?;
        let name = format!("job-{}", row.line());
        let mut job = DraftJob::of_gpus(row.line(), name, row.seconds("arrival_s")?, gpus, Work::Iterations(steps));
        job.model = Some(format!("{GAVEL}{}", row.name("job_type")?));
        jobs.push(job);
    }
    let nodes = cluster.map(read_cluster).transpose()?.unwrap_or_default();
    let files: Vec<&Path> = std::iter::once(path).chain(cluster).collect();
    Ok(Draft {
        name: display_name(Format::Gavel, path),
        format: Format::Gavel.name().to_owned(),
        digest: source::digest(&files)?,
        nodes,
        jobs,
        ..Draft::default()
    })
}

/// Our own nodes, or Gavel's `{"name": ["V100:P100:K80"]}`: servers of one GPU, 3 cores and 62.5 GB each.
fn read_cluster(path: &Path) -> Result<Vec<NodeSpec>, TraceError> {
    let head = source::head(path, 64)?;
    if !head.trim_start().starts_with('{') {
        return read_nodes(path);
    }
    let wrong = |reason: String| TraceError::File { path: path.to_owned(), reason };
    let text = source::text(path)?;
    let specs: std::collections::BTreeMap<String, Vec<String>> =
        serde_json::from_str(&text).map_err(|error| wrong(format!("is no cluster specification: {error}")))?;
    let spec = specs.values().flatten().next().ok_or_else(|| wrong("names no cluster".to_owned()))?;
    let counts: Vec<u32> = spec.split(':').filter_map(|count| count.parse().ok()).collect();
    if counts.len() != KINDS.len() || counts.iter().any(|count| *count > 1_000_000) {
        return Err(wrong(format!("`{spec}` is no cluster: give counts of V100, P100 and K80 as 4:2:0")));
    }
    let kinds = KINDS.iter().zip(counts).flat_map(|(kind, count)| (0..count).map(move |index| (kind, index)));
    let server = |(kind, index): (&&str, u32)| NodeSpec {
        name: format!("{}-{index:04}", kind.to_lowercase()),
        gpu_kind: (*kind).to_owned(),
        devices: 1,
        cpu_milli: 3_000,
        memory_mib: 64_000,
        ..synergy_server(0)
    };
    Ok(kinds.map(server).collect())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, file};
    use super::*;

    fn read_alone(path: &Path) -> Result<Draft, TraceError> {
        read(path, None)
    }

    #[test]
    fn good_and_bad_lines() {
        let long = "A3C\tcmd\tdir\t-n\t0\t77\t1\t1\t-1.0\t3.5\n";
        let short = "LM (batch size 5)\tcmd\t-n\t1\t95121\t6.000000\t4\n";
        check(read_alone, long, Ok(1));
        check(read_alone, short, Ok(1));
        check(read_alone, &format!("{short}x\t1\n"), Err("line 2: 2 columns, 7 expected"));
        check(read_alone, &short.replace("95121", "many"), Err("column 5 (total_steps): `many` is no whole number"));
        check(read_alone, &long.replace("\t1\t1\t", "\t0\t1\t"), Err("column 7 (scale_factor): 0 is no whole number"));
    }

    #[test]
    fn clusters_are_counts_by_kind() {
        let good = file("{\"philly\": [\"2:1:1\"]}");
        let kinds: Vec<String> =
            read_cluster(good.path()).expect("valid").into_iter().map(|node| node.gpu_kind).collect();
        assert_eq!(kinds, ["V100", "V100", "P100", "K80"]);
        let bad = file("{\"philly\": [\"2:1\"]}");
        assert!(read_cluster(bad.path()).is_err_and(|error| error.to_string().contains("4:2:0")));
    }
}
