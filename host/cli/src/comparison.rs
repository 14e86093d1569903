//! Several policies on the same workloads: what `compare --json` prints.

use std::collections::BTreeMap;

use coretuner_core::port::PredictorIdentity;
use coretuner_simulator::result::{CycleStats, JobOutcome, Metrics, PolicyInfo, RunResult, SettingsInfo, WorkloadInfo};
use serde::Serialize;

use crate::metric::{METRICS, Metric};
use crate::predictor;
use crate::stats::{self, Paired};

/// Version of this format; raised by every change of it.
const FORMAT: u32 = 1;

/// One run of the grid.
pub(crate) struct Cell {
    /// Index into [`Comparison::labels`].
    pub(crate) policy: usize,
    /// Index into [`Comparison::loads`].
    pub(crate) load: usize,
    pub(crate) seed: u64,
    pub(crate) result: RunResult,
}

/// All runs: for each load, for each policy, for each seed.
pub(crate) struct Comparison {
    /// Policies as asked for, unique.
    pub(crate) labels: Vec<String>,
    /// Index of the baseline.
    pub(crate) baseline: usize,
    /// Jobs per hour; `None` = as the workload is.
    pub(crate) loads: Vec<Option<f64>>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) cells: Vec<Cell>,
}

/// A metric of one policy at one load, over the seeds.
pub(crate) struct Summary {
    /// One value per seed.
    pub(crate) values: Vec<f64>,
    pub(crate) mean: f64,
    /// Half of the 95 % t interval of the mean over seeds.
    pub(crate) half_width: Option<f64>,
    /// Relative to the baseline; `None` for the baseline itself.
    pub(crate) versus: Option<Paired>,
}

impl Comparison {
    /// Runs of one policy at one load, in the order of the seeds.
    pub(crate) fn runs(&self, policy: usize, load: usize) -> impl Iterator<Item = &RunResult> {
        self.cells.iter().filter(move |cell| cell.policy == policy && cell.load == load).map(|cell| &cell.result)
    }

    /// The run that speaks for what all have in common: the first whose policy asked for predictions, if any did.
    pub(crate) fn spokesman(&self) -> Option<&RunResult> {
        let asked = self.cells.iter().find(|cell| !predictor::is_unused(&cell.result.predictor));
        asked.or_else(|| self.cells.first()).map(|cell| &cell.result)
    }

    /// Mean, spread and paired difference of `metric`.
    pub(crate) fn summary(&self, metric: &Metric, policy: usize, load: usize) -> Summary {
        let values: Vec<f64> = self.runs(policy, load).map(|run| (metric.of)(&run.metrics)).collect();
        let versus = (policy != self.baseline).then(|| self.versus(metric, policy, load, &values));
        Summary { mean: stats::mean(&values), half_width: stats::half_width(&values), values, versus }
    }

    fn versus(&self, metric: &Metric, policy: usize, load: usize, values: &[f64]) -> Paired {
        let baseline: Vec<f64> = self.runs(self.baseline, load).map(|run| (metric.of)(&run.metrics)).collect();
        let over_seeds = stats::paired_over_seeds(values, &baseline);
        let (Some(of_job), [_]) = (metric.of_job, values) else { return over_seeds };
        let mine = self.runs(policy, load).next().map(|run| by_job(run, of_job));
        let theirs = self.runs(self.baseline, load).next().map(|run| by_job(run, of_job));
        let (Some(mine), Some(theirs)) = (mine, theirs) else { return over_seeds };
        let pairs: Vec<(f64, f64)> =
            mine.iter().filter_map(|(id, value)| theirs.get(id).map(|base| (*value, *base))).collect();
        let paired = stats::paired_over_jobs(&pairs);
        Paired { relative: over_seeds.relative, ..paired }
    }

    /// The document that `--json` prints.
    pub(crate) fn document(&self) -> Option<Document<'_>> {
        let first = self.spokesman()?;
        Some(Document {
            format: FORMAT,
            baseline: self.labels.get(self.baseline)?,
            loads_jobs_per_hour: &self.loads,
            seeds: &self.seeds,
            predictor: &first.predictor,
            settings: &first.settings,
            summary: self.summary_rows(),
            runs: self.cells.iter().filter_map(|cell| self.run_row(cell)).collect(),
        })
    }

    fn summary_rows(&self) -> Vec<SummaryRow<'_>> {
        let mut rows = Vec::new();
        for (load, jobs_per_hour) in self.loads.iter().enumerate() {
            for (policy, label) in self.labels.iter().enumerate() {
                for metric in METRICS {
                    let summary = self.summary(metric, policy, load);
                    rows.push(SummaryRow {
                        load_jobs_per_hour: *jobs_per_hour,
                        policy: label,
                        metric: metric.key,
                        mean: summary.mean,
                        half_width_95: summary.half_width,
                        versus_baseline: summary.versus,
                    });
                }
            }
        }
        rows
    }

    fn run_row<'a>(&'a self, cell: &'a Cell) -> Option<RunRow<'a>> {
        Some(RunRow {
            label: self.labels.get(cell.policy)?,
            load_jobs_per_hour: self.loads.get(cell.load).copied().flatten(),
            seed: cell.seed,
            policy: &cell.result.policy,
            workload: &cell.result.workload,
            metrics: &cell.result.metrics,
            cycles: &cell.result.cycles,
        })
    }
}

/// Values of the counted jobs by id.
fn by_job(run: &RunResult, of: fn(&JobOutcome) -> Option<f64>) -> BTreeMap<u32, f64> {
    counted(run).filter_map(|job| of(job).map(|value| (job.id, value))).collect()
}

/// Jobs of the window, or all.
pub(crate) fn counted(run: &RunResult) -> impl Iterator<Item = &JobOutcome> {
    let mut jobs: Vec<&JobOutcome> = run.jobs.iter().collect();
    jobs.sort_by(|a, b| a.submit_s.total_cmp(&b.submit_s).then(a.id.cmp(&b.id)));
    let (first, last) = run.settings.window.unwrap_or((0, u64::MAX));
    jobs.into_iter().enumerate().filter(move |(at, _)| (first..=last).contains(&(*at as u64))).map(|(_, job)| job)
}

/// `compare --json`.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    format: u32,
    baseline: &'a str,
    loads_jobs_per_hour: &'a [Option<f64>],
    seeds: &'a [u64],
    predictor: &'a PredictorIdentity,
    settings: &'a SettingsInfo,
    summary: Vec<SummaryRow<'a>>,
    runs: Vec<RunRow<'a>>,
}

#[derive(Serialize)]
struct SummaryRow<'a> {
    load_jobs_per_hour: Option<f64>,
    policy: &'a str,
    metric: &'a str,
    mean: f64,
    half_width_95: Option<f64>,
    versus_baseline: Option<Paired>,
}

#[derive(Serialize)]
struct RunRow<'a> {
    label: &'a str,
    load_jobs_per_hour: Option<f64>,
    seed: u64,
    policy: &'a PolicyInfo,
    workload: &'a WorkloadInfo,
    metrics: &'a Metrics,
    cycles: &'a CycleStats,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::metric::by_key;
    use crate::stats::IntervalKind;

    #[test]
    fn pairs_by_seed_and_with_one_seed_by_job() {
        let many = fixture::comparison(&["fifo", "coretuner"], &[1, 2, 3]);
        let metric = by_key("jct_mean_s").unwrap();
        let versus = many.summary(metric, 1, 0).versus.unwrap();
        assert_eq!(versus.kind, Some(IntervalKind::PairedTOverSeeds));
        assert!(many.summary(metric, 0, 0).versus.is_none());
        let one = fixture::comparison(&["fifo", "coretuner"], &[1]);
        let versus = one.summary(metric, 1, 0).versus.unwrap();
        assert_eq!(versus.kind, Some(IntervalKind::PairedBootstrapOverJobs));
        assert_eq!(one.summary(by_key("makespan_s").unwrap(), 1, 0).versus.unwrap().kind, None);
    }

    #[test]
    fn document_is_the_same_each_time() {
        let comparison = fixture::comparison(&["fifo", "coretuner"], &[1, 2]);
        let json = |comparison: &Comparison| serde_json::to_string(&comparison.document()).unwrap();
        assert_eq!(json(&comparison), json(&comparison));
        assert!(json(&comparison).contains("\"baseline\":\"fifo\""));
    }

    #[test]
    fn a_policy_that_asks_for_predictions_speaks_for_the_predictor() {
        let mut comparison = fixture::comparison(&["fifo", "coretuner"], &[1]);
        comparison.cells[0].result.predictor = predictor::unused();
        assert!(!predictor::is_unused(&comparison.spokesman().unwrap().predictor));
        assert!(crate::table::print_comparison(&comparison).contains(&comparison.cells[1].result.predictor.engine));
        comparison.cells[1].result.predictor = predictor::unused();
        assert!(predictor::is_unused(&comparison.spokesman().unwrap().predictor));
    }

    #[test]
    fn counts_the_window_only() {
        let mut run = fixture::run("fifo", 1);
        run.settings.window = Some((2, 4));
        assert_eq!(counted(&run).count(), 3);
    }
}
