//! Philly as derived by AdaptDL: unsorted local timestamps, durations, GPUs, virtual clusters.

use std::path::{Path, PathBuf};

use coretuner_core::model::{NodeSpec, QueueSpec};

use super::cluster::read_nodes;
use super::detect::Format;
use super::error::TraceError;
use super::read::display_name;
use super::rows::{Layout, Rows};
use super::source;
use super::synergy::GPUS_MAX;
use crate::workload::{Draft, DraftJob, Work, named_queue, synergy_server};

const REQUIRED: [&str; 5] = ["timestamp", "duration", "num_gpus", "gpu_time", "cluster"];
const NODES: [&str; 2] = ["vc", "node num"];
/// Looked for beside the trace.
const NODES_FILE: &str = "philly_vc_nodes.csv";

pub(crate) fn read(path: &Path, cluster: Option<&Path>) -> Result<Draft, TraceError> {
    let layout = Layout { delimiter: b',', columns: None, required: &REQUIRED, optional: Some(&[]), comments: false };
    let mut rows = Rows::open(path, &layout)?;
    let mut stamped = Vec::new();
    while let Some(row) = rows.next()? {
        let text = row.name("timestamp")?;
        let at_s = civil_seconds(text)
            .ok_or_else(|| row.error("timestamp", &format!("`{text}` is no time such as 2017-10-09 07:01:55")))?;
        let work = Work::Duration(row.seconds("duration")?);
        let gpus = row.within("num_gpus", 1, GPUS_MAX)?;
        let mut job = DraftJob::of_gpus(row.line(), format!("job-{}", row.line() - 1), 0, gpus, work);
        job.queue = row.name("cluster")?.to_owned();
        stamped.push((at_s, job));
    }
    let start_s = stamped.iter().map(|(at_s, _)| *at_s).min().unwrap_or(0);
    let jobs = stamped
        .into_iter()
        .map(|(at_s, job)| DraftJob { submit_ns: (at_s - start_s).unsigned_abs() * 1_000_000_000, ..job });
    let beside = path.with_file_name(NODES_FILE);
    let cluster: Option<PathBuf> = cluster.map(Path::to_owned).or_else(|| beside.is_file().then_some(beside));
    let (nodes, queues) = cluster.as_deref().map(read_cluster).transpose()?.unwrap_or_default();
    let files: Vec<&Path> = std::iter::once(path).chain(cluster.as_deref()).collect();
    let mut rules = vec!["P1 local times are taken as they stand; the first submission is at 0".to_owned()];
    if !queues.is_empty() {
        rules.push(
            "P2 one cluster of Synergy servers, as many as all virtual clusters have nodes; a queue for each, \
                    weighted by its nodes"
                .to_owned(),
        );
    }
    Ok(Draft {
        name: display_name(Format::Philly, path),
        format: Format::Philly.name().to_owned(),
        digest: source::digest(&files)?,
        nodes,
        queues,
        jobs: jobs.collect(),
        rules,
        ..Draft::default()
    })
}

/// `vc, node num`, or our own nodes.
fn read_cluster(path: &Path) -> Result<(Vec<NodeSpec>, Vec<QueueSpec>), TraceError> {
    if !source::head(path, 64)?.starts_with("vc,") {
        return Ok((read_nodes(path)?, Vec::new()));
    }
    let layout = Layout { delimiter: b',', columns: None, required: &NODES, optional: Some(&[]), comments: false };
    let mut rows = Rows::open(path, &layout)?;
    let (mut count, mut queues) = (0_u32, Vec::new());
    while let Some(row) = rows.next()? {
        let nodes = row.within("node num", 1, 100_000)?;
        count += nodes;
        queues.push(QueueSpec { weight_milli: nodes * 1000, ..named_queue(row.name("vc")?) });
    }
    Ok(((0..count as usize).map(synergy_server).collect(), queues))
}

/// Seconds of `YYYY-MM-DD hh:mm:ss` since 1970-01-01, on the proleptic Gregorian calendar without time zones.
fn civil_seconds(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ')?;
    let numbers = |text: &str, separator| -> Option<[i64; 3]> {
        let parts: Vec<i64> = text.split(separator).map(str::parse).collect::<Result<_, _>>().ok()?;
        parts.try_into().ok()
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let in_range = (1900..3000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second);
    // Days from civil: years start in March, so that a leap day is the last of its year.
    let shifted = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468;
    in_range.then_some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, file};
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(civil_seconds("1970-01-01 00:00:00"), Some(0));
        assert_eq!(civil_seconds("2017-10-09 07:01:55"), Some(1_507_532_515));
        assert_eq!(civil_seconds("2016-02-29 00:00:01"), Some(1_456_704_001));
        assert_eq!(civil_seconds("2017-13-09 07:01:55"), None);
        assert_eq!(civil_seconds("yesterday"), None);
    }

    #[test]
    fn good_and_bad_lines() {
        let read = |path: &Path| read(path, None);
        let good = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n\
                    2017-10-09 06:13:03,2951.0,8,2951.0,6214e9\n";
        check(read, good, Ok(2));
        check(read, &good.replace("2017-10-09 06", "2017/10/09 06"), Err("line 3, column 1 (timestamp)"));
        check(read, &good.replace("66.0,1,", "-66.0,1,"), Err("line 2, column 2 (duration): -66 seconds"));
        check(read, &good.replace("11cb48", ""), Err("line 2, column 5 (cluster): is empty"));
    }

    #[test]
    fn times_count_from_the_first_submission() {
        let text = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n\
                    2017-10-09 06:13:03,2951.0,8,2951.0,6214e9\n";
        let draft = read(file(text).path(), None).expect("valid");
        let times: Vec<u64> = draft.jobs.iter().map(|job| job.submit_ns / 1_000_000_000).collect();
        assert_eq!(times, [2932, 0]);
    }

    #[test]
    fn virtual_clusters_become_queues() {
        let (nodes, queues) = read_cluster(file("vc,node num\na,2\nb,3").path()).expect("valid");
        assert_eq!((nodes.len(), queues.len(), queues[1].weight_milli), (5, 2, 3000));
    }
}
