//! The figures that tables, comparisons and reports show: one list for all of them.

use coretuner_simulator::result::{JobOutcome, Metrics};

/// How a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Seconds, shown in a unit that suits.
    Time,
    /// 0 to 1, shown in percent.
    Ratio,
    Number,
    /// Counted things, as a mean over seeds.
    Count,
}

/// One figure of a run.
pub(crate) struct Metric {
    /// Name in JSON and CSV.
    pub(crate) key: &'static str,
    /// Name in tables.
    pub(crate) title: &'static str,
    pub(crate) kind: Kind,
    pub(crate) of: fn(&Metrics) -> f64,
    /// The part of one job, where the figure is a mean over jobs: pairs runs job by job.
    pub(crate) of_job: Option<fn(&JobOutcome) -> Option<f64>>,
    /// What it means, for the report.
    pub(crate) about: &'static str,
}

/// Every compared figure, the most asked for first.
pub(crate) const METRICS: &[Metric] = &[
    Metric {
        key: "jct_mean_s",
        title: "mean JCT",
        kind: Kind::Time,
        of: |m| m.jct_s.mean,
        of_job: Some(|job| job.jct_s),
        about: "job completion time: finish − submit, mean over finished jobs",
    },
    Metric {
        key: "jct_median_s",
        title: "median JCT",
        kind: Kind::Time,
        of: |m| m.jct_s.median,
        of_job: None,
        about: "half of the jobs are done within it",
    },
    Metric {
        key: "jct_p95_s",
        title: "p95 JCT",
        kind: Kind::Time,
        of: |m| m.jct_s.p95,
        of_job: None,
        about: "95 % of the jobs are done within it",
    },
    Metric {
        key: "jct_p99_s",
        title: "p99 JCT",
        kind: Kind::Time,
        of: |m| m.jct_s.p99,
        of_job: None,
        about: "99 % of the jobs are done within it",
    },
    Metric {
        key: "queueing_mean_s",
        title: "mean queueing",
        kind: Kind::Time,
        of: |m| m.queueing_delay_s.mean,
        of_job: Some(|job| job.first_start_s.map(|start| start - job.submit_s)),
        about: "first start − submit, mean",
    },
    Metric {
        key: "makespan_s",
        title: "makespan",
        kind: Kind::Time,
        of: |m| m.makespan_s,
        of_job: None,
        about: "last finish − first submit",
    },
    Metric {
        key: "gpu_allocation",
        title: "GPU allocation",
        kind: Kind::Ratio,
        of: |m| m.gpu_allocation,
        of_job: None,
        about: "GPUs held / GPUs, over time",
    },
    Metric {
        key: "gpu_utilisation",
        title: "GPU utilisation",
        kind: Kind::Ratio,
        of: |m| m.gpu_utilisation,
        of_job: None,
        about: "held GPUs weighted by speed / best speed of their job on as many GPUs",
    },
    Metric {
        key: "cpu_allocation",
        title: "CPU allocation",
        kind: Kind::Ratio,
        of: |m| m.cpu_allocation,
        of_job: None,
        about: "cores held / cores, over time",
    },
    Metric {
        key: "cpu_utilisation",
        title: "CPU utilisation",
        kind: Kind::Ratio,
        of: |m| m.cpu_utilisation,
        of_job: None,
        about: "cores that their job turns into speed / cores, over time",
    },
    Metric {
        key: "memory_allocation",
        title: "memory allocation",
        kind: Kind::Ratio,
        of: |m| m.memory_allocation,
        of_job: None,
        about: "memory held / memory, over time",
    },
    Metric {
        key: "gpus_stranded_by_cpu",
        title: "stranded GPUs",
        kind: Kind::Number,
        of: |m| m.gpus_stranded_by_cpu,
        of_job: None,
        about: "mean idle GPUs that a waiting job could use but for lack of CPU or memory on their node",
    },
    Metric {
        key: "fairness_rho_mean",
        title: "mean rho",
        kind: Kind::Number,
        of: |m| m.fairness_rho.mean,
        of_job: Some(|job| job.rho),
        about: "finish-time fairness (Themis): JCT / time alone on an equal share, mean",
    },
    Metric {
        key: "fairness_unfair_share",
        title: "jobs with rho > 1",
        kind: Kind::Ratio,
        of: |m| m.fairness_unfair_share,
        of_job: None,
        about: "share of jobs that an equal share would have served better",
    },
    Metric {
        key: "preemptions",
        title: "preemptions",
        kind: Kind::Count,
        of: |m| m.preemptions as f64,
        of_job: None,
        about: "over all jobs",
    },
    Metric {
        key: "restarts",
        title: "restarts",
        kind: Kind::Count,
        of: |m| m.restarts as f64,
        of_job: None,
        about: "over all jobs",
    },
    Metric {
        key: "resizes",
        title: "resizes",
        kind: Kind::Count,
        of: |m| m.resizes as f64,
        of_job: None,
        about: "changes of CPU or memory in place, over all jobs",
    },
];

/// The metric named `key`; every key used in this crate is checked by a test.
pub(crate) fn by_key(key: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique() {
        let mut keys: Vec<&str> = METRICS.iter().map(|metric| metric.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), METRICS.len());
        assert!(by_key("jct_mean_s").is_some() && by_key("nothing").is_none());
    }
}
