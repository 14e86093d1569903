//! Synergy: jobs as `job_id, model, arrival_s, iterations, gpus` without a header; clusters as `.ini`.

use std::path::Path;

use coretuner_core::model::NodeSpec;

use super::detect::Format;
use super::error::TraceError;
use super::read::display_name;
use super::rows::{Layout, Rows};
use super::source;
use crate::workload::{Draft, DraftJob, Work, synergy_server};

const COLUMNS: [&str; 5] = ["job_id", "model", "arrival_s", "iterations", "gpus"];

/// Most GPUs of one job that any reader accepts.
pub(crate) const GPUS_MAX: u32 = 65_536;

pub(crate) fn read(path: &Path, cluster: Option<&Path>) -> Result<Draft, TraceError> {
    let layout = Layout { delimiter: b',', columns: Some(&COLUMNS), required: &[], optional: None, comments: false };
    let mut rows = Rows::open(path, &layout)?;
    let mut jobs = Vec::new();
    while let Some(row) = rows.next()? {
        let iterations: u64 = row.number("iterations")?;
        if iterations == 0 {
            return Err(row.error("iterations", "a job needs at least one iteration"));
        }
        let gpus = row.within("gpus", 1, GPUS_MAX)?;
        let mut job = DraftJob::of_gpus(
            row.line(),
            format!("job-{}", row.name("job_id")?),
            row.seconds("arrival_s")?,
            gpus,
            Work::Iterations(iterations),
        );
        job.model = Some(row.name("model")?.to_owned());
        jobs.push(job);
    }
    let nodes = cluster.map(read_cluster).transpose()?.unwrap_or_default();
    let files: Vec<&Path> = std::iter::once(path).chain(cluster).collect();
    Ok(Draft {
        name: display_name(Format::Synergy, path),
        format: Format::Synergy.name().to_owned(),
        digest: source::digest(&files)?,
        nodes,
        jobs,
        ..Draft::default()
    })
}

/// `racks`, `servers_per_rack` and what a server has, of section `[CLUSTER]`.
fn read_cluster(path: &Path) -> Result<Vec<NodeSpec>, TraceError> {
    let text = source::text(path)?;
    let get = |key: &str| -> Result<u32, TraceError> {
        let mut lines = text.lines().zip(1_u64..).filter_map(|(line, number)| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| (number, value.trim().to_owned()))
        });
        let lacks = || TraceError::File { path: path.to_owned(), reason: format!("lacks `{key} = …` in [CLUSTER]") };
        let (line, value) = lines.next().ok_or_else(lacks)?;
        let reason = format!("`{key}` is `{value}`, not a whole number from 1 to 100000");
        let parsed = value.parse().ok().filter(|count| (1..=100_000).contains(count));
        parsed.ok_or_else(|| TraceError::Line { path: path.to_owned(), line, reason })
    };
    let servers = get("racks")?.saturating_mul(get("servers_per_rack")?);
    let server = NodeSpec {
        devices: get("gpus_per_server")?,
        cpu_milli: get("cpus_per_server")?.saturating_mul(1000),
        memory_mib: get("dram_per_server")?.saturating_mul(1024),
        storage_mib_per_s: get("sspeed_per_server")?,
        ..synergy_server(0)
    };
    if server.devices > coretuner_core::contract::DEVICES_MAX || servers > 1_000_000 {
        let reason = format!("{servers} servers of {} GPUs are more than can be modelled", server.devices);
        return Err(TraceError::File { path: path.to_owned(), reason });
    }
    let named = |index| NodeSpec { name: format!("server-{index:04}"), ..server.clone() };
    Ok((0..servers).map(named).collect())
}

#[cfg(test)]
mod tests {
    use super::super::testing::file;
    use super::*;

    fn check(text: &str, expected: Result<usize, &str>) {
        super::super::testing::check(|path| read(path, None), text, expected);
    }

    #[test]
    fn good_and_bad_lines() {
        check("0,alexnet,0.0,3349,1\n1,gnmt,.286,26435,8\n", Ok(2));
        check("0,alexnet,0.0,3349,1\n1,gnmt,soon,26435,1\n", Err("line 2, column 3 (arrival_s): `soon` is no number"));
        check("0,alexnet,-1,3349,1\n", Err("line 1, column 3 (arrival_s): -1 seconds"));
        check("0,alexnet,NaN,3349,1\n", Err("column 3 (arrival_s)"));
        check("0,alexnet,0,3349\n", Err("line 1: 4 columns, 5 expected"));
        check("0,alexnet,0,3349,1,9\n", Err("line 1: 6 columns, 5 expected"));
        check("0,alexnet,0,0,1\n", Err("column 4 (iterations): a job needs"));
        check("0,alexnet,0,10,0\n", Err("column 5 (gpus): 0 is no whole number"));
        check("0,,0,10,1\n", Err("column 2 (model): is empty"));
    }

    #[test]
    fn times_are_exact_nanoseconds() {
        let file = file("0,alexnet,.001,3349,1\n");
        assert_eq!(read(file.path(), None).expect("valid").jobs[0].submit_ns, 1_000_000);
    }

    #[test]
    fn clusters_are_read() {
        let text = "[CLUSTER]\t\n# note\nracks = 1\nservers_per_rack = 4\ngpus_per_server = 8\n\
                    cpus_per_server = 24\ndram_per_server = 500\nsspeed_per_server = 500\n";
        let nodes = read_cluster(file(text).path()).expect("valid");
        assert_eq!((nodes.len(), nodes[3].memory_mib, nodes[0].cpu_milli), (4, 512_000, 24_000));
        let broken = read_cluster(file(&text.replace("500\n", "lots\n")).path());
        assert!(broken.is_err_and(|error| error.to_string().contains("line 7")));
        let lacking = read_cluster(file("racks = 1\n").path());
        assert!(lacking.is_err_and(|error| error.to_string().contains("servers_per_rack")));
    }
}
