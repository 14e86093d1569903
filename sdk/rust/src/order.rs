//! Orders in which jobs are served, and what they are computed from.
//!
//! Sources: attained service in discretised queues is Tiresias (Gu et al., NSDI'19; its two-dimensional form counts
//! GPUs × time); shortest remaining time and shortest remaining service (time × GPUs) are its clairvoyant counterparts.

use crate::cluster::Job;

/// Nanoseconds in a second.
const SECOND_NS: f64 = 1e9;

/// Who is served first. Ties go to the earlier submission, then to the lower id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The earlier submission.
    #[default]
    Fifo,
    /// The lower queue of attained service (Tiresias); the earlier submission within a queue.
    Las,
    /// The shorter remaining time; jobs of unknown length last.
    Srtf,
    /// The smaller remaining service: remaining time × GPUs; jobs of unknown length last.
    Srsf,
}

/// Discretised attained service (Tiresias).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Las {
    /// Attained GPU-seconds at which a job falls to the next queue, rising. The default is that of Tiresias' published
    /// simulator (3250, 7200, 18000).
    pub thresholds_gpu_s: Vec<f64>,
    /// A waiting job goes back to the first queue when it has waited this many times as long as it ran; none = never.
    pub promote_after: Option<f64>,
}

impl Default for Las {
    fn default() -> Self {
        Self { thresholds_gpu_s: vec![3250.0, 7200.0, 18_000.0], promote_after: None }
    }
}

impl Las {
    /// Says what is wrong with the settings.
    pub fn check(&self) -> Result<(), String> {
        let rising = self.thresholds_gpu_s.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising || self.thresholds_gpu_s.iter().any(|threshold| !threshold.is_finite() || *threshold <= 0.0) {
            return Err("las.thresholds_gpu_s must be positive and rising".to_owned());
        }
        match self.promote_after {
            Some(ratio) if !(ratio.is_finite() && ratio > 0.0) => {
                Err("las.promote_after must be a positive number".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Queue of a job with this attained service: 0 is served first.
    pub fn level(&self, service_gpu_s: f64) -> u32 {
        level(&self.thresholds_gpu_s, service_gpu_s)
    }

    /// When a running job falls to the next queue if its rate stays; `forgiven` is not counted. None: never.
    pub fn next_demotion_ns(&self, job: &Job, now_ns: u64, forgiven_gpu_s: f64) -> Option<u64> {
        let progress = job.progress(now_ns);
        let service = progress.service_gpu_s - forgiven_gpu_s;
        let threshold = *self.thresholds_gpu_s.iter().find(|threshold| !reaches(service, **threshold))?;
        if progress.service_gpu_s_per_s <= 0.0 {
            return None;
        }
        let wait_ns = (threshold - service) / progress.service_gpu_s_per_s * SECOND_NS;
        Some(now_ns.saturating_add(libm::ceil(wait_ns) as u64).saturating_add(1))
    }
}

/// Queue of a job with this attained service, by thresholds as in [`Las`]: 0 is served first.
pub fn level(thresholds_gpu_s: &[f64], service_gpu_s: f64) -> u32 {
    thresholds_gpu_s.iter().filter(|threshold| reaches(service_gpu_s, **threshold)).count() as u32
}

/// Whether a service counts as being at a threshold: a sum of rates may end a rounding error below it.
fn reaches(service_gpu_s: f64, threshold: f64) -> bool {
    service_gpu_s >= threshold * (1.0 - 1e-9)
}

/// Time that a job still needs, in nanoseconds; `u64::MAX` where nobody knows.
///
/// From the remaining iterations and, first of these that is known: the rate at which it runs, `rate` (a prediction, or
/// what it ran at before), the rate that the submitter's estimate implies. Without known work: the estimate less the time
/// that its attained service stands for.
pub fn remaining_ns(job: &Job, now_ns: u64, rate: Option<f64>) -> u64 {
    let seconds = remaining_s(job, now_ns, rate).filter(|seconds| seconds.is_finite());
    seconds.map_or(u64::MAX, |seconds| (seconds.max(0.0) * SECOND_NS) as u64)
}

fn remaining_s(job: &Job, now_ns: u64, rate: Option<f64>) -> Option<f64> {
    let progress = job.progress(now_ns);
    let estimate_s = job.estimated_duration_ns.map(|ns| ns as f64 / SECOND_NS);
    if let (Some(total), Some(left)) = (job.work_iterations, job.remaining_iterations(now_ns)) {
        let running = Some(progress.iterations_per_s);
        let estimated = estimate_s.map(|seconds| total as f64 / seconds);
        let positive = |rate: &f64| rate.is_finite() && *rate > 0.0;
        let rates = [running, rate, estimated];
        return rates.into_iter().flatten().find(positive).map(|rate| left / rate);
    }
    let gpus = (job.gpu_milli_min() as f64 / 1000.0).max(f64::MIN_POSITIVE);
    let ran_s = if job.gpu_milli_min() == 0 { 0.0 } else { progress.service_gpu_s / gpus };
    Some((estimate_s? - ran_s).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::job;

    #[test]
    fn levels_follow_attained_service() {
        let las = Las::default();
        for (service, level) in
            [(0.0, 0), (3249.0, 0), (3250.0, 1), (3250.0 - 1e-9, 1), (7200.0, 2), (18_000.0, 3), (1e9, 3)]
        {
            assert_eq!(las.level(service), level, "{service}");
        }
    }

    #[test]
    fn a_demotion_comes_when_the_threshold_is_reached() {
        let las = Las::default();
        let check = |service: f64, rate: f64, forgiven: f64, expected: Option<u64>| {
            let mut job = job(1).build();
            job.point.service_gpu_s = service;
            job.point.service_gpu_s_per_s = rate;
            assert_eq!(las.next_demotion_ns(&job, 0, forgiven), expected);
            if let Some(at) = expected {
                assert!(las.level(job.progress(at).service_gpu_s - forgiven) > las.level(service - forgiven));
            }
        };
        check(0.0, 2.0, 0.0, Some(1_625_000_000_001));
        check(3250.0, 1.0, 0.0, Some(3_950_000_000_001));
        check(3250.0, 1.0, 3250.0, Some(3_250_000_000_001));
        check(0.0, 0.0, 0.0, None);
        check(20_000.0, 8.0, 0.0, None);
        check(0.0, 3.0, 0.0, Some(1_083_333_333_335));
    }

    #[test]
    fn settings_are_checked() {
        let check = |thresholds: &[f64], promote_after: Option<f64>, good: bool| {
            let las = Las { thresholds_gpu_s: thresholds.to_vec(), promote_after };
            assert_eq!(las.check().is_ok(), good, "{las:?}");
        };
        check(&[1.0, 2.0], None, true);
        check(&[], Some(8.0), true);
        check(&[2.0, 1.0], None, false);
        check(&[0.0], None, false);
        check(&[f64::NAN], None, false);
        check(&[1.0], Some(0.0), false);
    }

    #[test]
    fn remaining_time_takes_the_best_known_rate() {
        let check = |work: u64, done: f64, running: f64, given: Option<f64>, estimate_s: u64, expected: u64| {
            let mut job = job(1).work(work).estimate_s(estimate_s).build();
            job.point.iterations = done;
            job.point.iterations_per_s = running;
            assert_eq!(remaining_ns(&job, 0, given), expected);
        };
        const S: u64 = 1_000_000_000;
        check(100, 20.0, 8.0, Some(4.0), 10, 10 * S);
        check(100, 20.0, 0.0, Some(4.0), 10, 20 * S);
        check(100, 20.0, 0.0, Some(f64::NAN), 10, 8 * S);
        check(100, 20.0, 0.0, None, 0, u64::MAX);
        check(100, 120.0, 1.0, None, 0, 0);
        check(0, 0.0, 0.0, None, 7, 7 * S);
        check(0, 0.0, 0.0, None, 0, u64::MAX);
    }
}
