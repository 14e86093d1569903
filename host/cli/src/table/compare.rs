//! The table of a comparison.

use super::run::{footer, warnings};
use super::text::{Section, printable, render};
use crate::comparison::Comparison;
use crate::format::{TimeUnit, count, digits, percent, plain, signed_percent, tenths};
use crate::metric::{Kind, Metric, by_key};
use crate::stats::{IntervalKind, Paired};

/// Figures of the two tables, and whether the difference to the baseline stands beside.
const TIMES: [(&str, bool); 3] = [("jct_mean_s", true), ("jct_p99_s", true), ("makespan_s", true)];
const CLUSTER: [(&str, bool); 7] = [
    ("queueing_mean_s", false),
    ("gpu_utilisation", false),
    ("gpu_allocation", false),
    ("cpu_allocation", false),
    ("gpus_stranded_by_cpu", false),
    ("restarts", false),
    ("resizes", false),
];

/// Everything that `compare` prints on standard output without `--json`.
pub(crate) fn print_comparison(comparison: &Comparison) -> String {
    let Some(first) = comparison.spokesman() else { return String::new() };
    let workload = &first.workload;
    let mut out = format!(
        "{}: {} jobs, {} nodes, {} GPUs, {} cores; {} seed{}\n",
        printable(&workload.name),
        count(workload.jobs),
        count(workload.nodes),
        count(workload.gpus),
        plain(workload.cpu_cores),
        comparison.seeds.len(),
        if comparison.seeds.len() == 1 { "" } else { "s" }
    );
    for line in comparison_warnings(comparison) {
        out.push_str(&format!("!! {line}\n"));
    }
    for (load, jobs_per_hour) in comparison.loads.iter().enumerate() {
        out.push('\n');
        if let Some(jobs_per_hour) = jobs_per_hour {
            out.push_str(&format!("at {} jobs per hour\n", plain(*jobs_per_hour)));
        }
        for section in comparison_sections(comparison, load) {
            out.push_str(&render(&section));
        }
    }
    out.push_str(&format!("{}\n", interval_note(comparison)));
    out.push_str(&footer(first));
    out
}

/// Loud lines of all runs.
pub(crate) fn comparison_warnings(comparison: &Comparison) -> Vec<String> {
    let lines = comparison.cells.iter().flat_map(|cell| {
        let label = comparison.labels.get(cell.policy).map_or("?", String::as_str);
        warnings(&format!("{label} (seed {})", cell.seed), &cell.result)
    });
    lines.collect()
}

/// The tables at one load, a row per policy: times with differences, then the cluster.
pub(crate) fn comparison_sections(comparison: &Comparison, load: usize) -> [Section; 2] {
    let times = section(comparison, load, &TIMES);
    let mut cluster = section(comparison, load, &CLUSTER);
    cluster.head.push("fallback\ncycles".to_owned());
    for (policy, row) in cluster.rows.iter_mut().enumerate() {
        row.push(count(comparison.runs(policy, load).map(|run| run.cycles.fallback_cycles).sum()));
    }
    [times, cluster]
}

fn section(comparison: &Comparison, load: usize, keys: &[(&str, bool)]) -> Section {
    let baseline = comparison.labels.get(comparison.baseline).map_or("", String::as_str);
    let columns: Vec<Column> = keys
        .iter()
        .filter_map(|(key, versus)| {
            let metric = by_key(key)?;
            Some(Column { metric, versus: *versus, unit: unit(comparison, metric, load) })
        })
        .collect();
    let mut section = Section::new(&["policy"]);
    for column in &columns {
        section.head.push(column.heading());
        if column.versus {
            section.head.push(format!("vs {baseline}\n[%]"));
        }
    }
    for (policy, label) in comparison.labels.iter().enumerate() {
        let mut row = vec![label.clone()];
        for column in &columns {
            let summary = comparison.summary(column.metric, policy, load);
            row.push(column.value(summary.mean));
            if column.versus {
                row.push(summary.versus.map_or("baseline".to_owned(), difference));
            }
        }
        section.rows.push(row);
    }
    section
}

/// What the intervals cover; one sentence under every table.
pub(crate) fn interval_note(comparison: &Comparison) -> String {
    let metric = by_key("jct_mean_s");
    let kinds = metric.into_iter().flat_map(|metric| {
        let others = (0..comparison.labels.len()).filter(|policy| *policy != comparison.baseline);
        others.filter_map(|policy| comparison.summary(metric, policy, 0).versus.and_then(|versus| versus.kind))
    });
    match kinds.last() {
        Some(IntervalKind::PairedTOverSeeds) => format!(
            "Differences: mean over {} seeds of the relative difference, paired by seed; in brackets the 95 % interval \
             (paired t).",
            comparison.seeds.len()
        ),
        Some(IntervalKind::PairedBootstrapOverJobs) => format!(
            "Differences of one seed. In brackets, for means over jobs: 95 % interval of a bootstrap over the jobs, paired \
             by job ({} resamples, fixed seed); it says how evenly the difference is spread over these jobs, not how \
             another workload would differ.",
            crate::stats::BOOTSTRAP_RESAMPLES
        ),
        None => "Differences of one seed; no intervals.".to_owned(),
    }
}

struct Column {
    metric: &'static Metric,
    versus: bool,
    /// Of times.
    unit: Option<TimeUnit>,
}

impl Column {
    fn heading(&self) -> String {
        match (self.metric.kind, self.unit) {
            (Kind::Time, Some(unit)) => format!("{}\n[{}]", self.metric.title, unit.symbol()),
            (Kind::Ratio, _) => format!("{}\n[%]", self.metric.title),
            _ => self.metric.title.to_owned(),
        }
    }

    fn value(&self, mean: f64) -> String {
        match (self.metric.kind, self.unit) {
            (Kind::Time, Some(unit)) => unit.show(mean),
            (Kind::Ratio, _) => percent(mean),
            (Kind::Count, _) => tenths(mean),
            _ => digits(mean),
        }
    }
}

fn unit(comparison: &Comparison, metric: &Metric, load: usize) -> Option<TimeUnit> {
    let means = (0..comparison.labels.len()).map(|policy| comparison.summary(metric, policy, load).mean);
    (metric.kind == Kind::Time).then(|| TimeUnit::for_max(means.fold(0.0, f64::max)))
}

fn difference(paired: Paired) -> String {
    match paired.interval {
        Some((low, high)) => {
            format!("{} [{}, {}]", signed_percent(paired.relative), signed_percent(low), signed_percent(high))
        }
        None => signed_percent(paired.relative),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn shows_differences_and_says_what_they_are() {
        let text = print_comparison(&fixture::comparison(&["fifo", "coretuner"], &[1, 2, 3]));
        assert!(text.contains("paired t") && text.contains("vs fifo") && text.contains("baseline"), "{text}");
        let text = print_comparison(&fixture::comparison(&["fifo", "coretuner"], &[1]));
        assert!(text.contains("bootstrap over the jobs"), "{text}");
        let text = print_comparison(&fixture::comparison(&["fifo"], &[1]));
        assert!(text.contains("no intervals"), "{text}");
    }
}
