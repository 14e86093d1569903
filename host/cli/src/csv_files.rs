//! Results as CSV.

use coretuner_simulator::result::{JobOutcome, RunResult, Sample};

use crate::comparison::Comparison;
use crate::metric::METRICS;

/// One row per job.
pub(crate) fn jobs(run: &RunResult) -> Vec<u8> {
    let head = [
        "id",
        "name",
        "model",
        "gpus",
        "submit_s",
        "first_start_s",
        "finish_s",
        "jct_s",
        "rho",
        "preemptions",
        "restarts",
        "resizes",
        "end",
        "note",
    ];
    write(&head, run.jobs.iter().map(|job| job_row(job).to_vec()))
}

/// One row per sample of the cluster's state.
pub(crate) fn series(run: &RunResult) -> Vec<u8> {
    let head = [
        "t_s",
        "gpus_allocated",
        "gpus_effective",
        "cpu_cores_allocated",
        "cpu_cores_useful",
        "jobs_running",
        "jobs_waiting",
    ];
    write(&head, run.series.iter().map(|sample| sample_row(sample).to_vec()))
}

/// One row per run with every metric.
pub(crate) fn runs(comparison: &Comparison) -> Vec<u8> {
    let mut head = vec!["policy", "load_jobs_per_hour", "seed"];
    head.extend(METRICS.iter().map(|metric| metric.key));
    head.extend(["faults", "fallback_cycles"]);
    let rows = comparison.cells.iter().map(|cell| {
        let mut row = vec![
            comparison.labels.get(cell.policy).cloned().unwrap_or_default(),
            number(comparison.loads.get(cell.load).copied().flatten()),
            cell.seed.to_string(),
        ];
        row.extend(METRICS.iter().map(|metric| (metric.of)(&cell.result.metrics).to_string()));
        let cycles = &cell.result.cycles;
        row.extend([cycles.faults.values().sum::<u64>().to_string(), cycles.fallback_cycles.to_string()]);
        row
    });
    write(&head, rows)
}

/// One row per policy, load and metric.
pub(crate) fn summary(comparison: &Comparison) -> Vec<u8> {
    let head = [
        "policy",
        "load_jobs_per_hour",
        "metric",
        "mean",
        "half_width_95",
        "relative_to_baseline",
        "interval_low",
        "interval_high",
    ];
    let mut rows = Vec::new();
    for (load, jobs_per_hour) in comparison.loads.iter().enumerate() {
        for (policy, label) in comparison.labels.iter().enumerate() {
            for metric in METRICS {
                let summary = comparison.summary(metric, policy, load);
                let interval = summary.versus.and_then(|versus| versus.interval);
                rows.push(vec![
                    label.clone(),
                    number(*jobs_per_hour),
                    metric.key.to_owned(),
                    summary.mean.to_string(),
                    number(summary.half_width),
                    number(summary.versus.map(|versus| versus.relative)),
                    number(interval.map(|ends| ends.0)),
                    number(interval.map(|ends| ends.1)),
                ]);
            }
        }
    }
    write(&head, rows.into_iter())
}

/// The jobs of every run of a comparison.
pub(crate) fn all_jobs(comparison: &Comparison) -> Vec<u8> {
    let head = [
        "policy",
        "load_jobs_per_hour",
        "seed",
        "id",
        "name",
        "model",
        "gpus",
        "submit_s",
        "first_start_s",
        "finish_s",
        "jct_s",
        "rho",
        "preemptions",
        "restarts",
        "resizes",
        "end",
        "note",
    ];
    let rows = comparison.cells.iter().flat_map(|cell| {
        let label = comparison.labels.get(cell.policy).cloned().unwrap_or_default();
        let load = number(comparison.loads.get(cell.load).copied().flatten());
        cell.result.jobs.iter().map(move |job| {
            let mut row = vec![label.clone(), load.clone(), cell.seed.to_string()];
            row.extend(job_row(job));
            row
        })
    });
    write(&head, rows)
}

fn job_row(job: &JobOutcome) -> [String; 14] {
    [
        job.id.to_string(),
        job.name.clone(),
        job.model.clone(),
        job.gpus.to_string(),
        job.submit_s.to_string(),
        number(job.first_start_s),
        number(job.finish_s),
        number(job.jct_s),
        number(job.rho),
        job.preemptions.to_string(),
        job.restarts.to_string(),
        job.resizes.to_string(),
        job.end.clone(),
        job.note.clone().unwrap_or_default(),
    ]
}

fn sample_row(sample: &Sample) -> [String; 7] {
    [
        sample.t_s,
        sample.gpus_allocated,
        sample.gpus_effective,
        sample.cpu_cores_allocated,
        sample.cpu_cores_useful,
        sample.jobs_running,
        sample.jobs_waiting,
    ]
    .map(|value| value.to_string())
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Writing CSV to memory cannot fail: every row has as many cells as the head.
fn write(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    let _ = writer.write_record(head);
    for row in rows {
        let _ = writer.write_record(&row);
    }
    writer.into_inner().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn rows_have_as_many_cells_as_heads() {
        let comparison = fixture::comparison(&["fifo", "las"], &[1, 2]);
        let run = fixture::run("fifo", 1);
        let check = |bytes: Vec<u8>, rows: usize| {
            let mut reader = csv::Reader::from_reader(bytes.as_slice());
            assert_eq!(reader.records().collect::<Result<Vec<_>, _>>().unwrap().len(), rows);
        };
        check(jobs(&run), run.jobs.len());
        check(series(&run), run.series.len());
        check(runs(&comparison), 4);
        check(summary(&comparison), 2 * METRICS.len());
        check(all_jobs(&comparison), 4 * run.jobs.len());
    }
}
