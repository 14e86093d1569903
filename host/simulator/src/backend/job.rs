//! One job's life: progress between change points.

use coretuner_core::model::{Allocation, ChangePoint, TimeNs};

use super::speed::Speed;
use crate::metrics::Holding;

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not submitted yet, or never.
    Absent,
    Waiting,
    Running,
    /// Its work is done, the round is not: it still holds its resources.
    Done,
    Ended,
}

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Absent => "not submitted",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Ended => "finished",
        }
    }
}

/// State of one job. Progress is piecewise linear: it is added up at changes only.
#[derive(Clone, Debug)]
pub(crate) struct JobRun {
    pub(crate) phase: Phase,
    pub(crate) work: f64,
    pub(crate) done: f64,
    pub(crate) since_ns: TimeNs,
    /// Since when it holds the same rows and runs or restarts.
    pub(crate) segment_ns: TimeNs,
    /// No progress before this time.
    pub(crate) resume_ns: TimeNs,
    pub(crate) service_gpu_s: f64,
    pub(crate) rows: Vec<Allocation>,
    pub(crate) speed: Speed,
    pub(crate) holding: Holding,
    /// Raised by every change, so that appointments made before are void.
    pub(crate) generation: u32,
    pub(crate) first_start_ns: Option<TimeNs>,
    pub(crate) finish_ns: Option<TimeNs>,
    pub(crate) preemptions: u32,
    pub(crate) restarts: u32,
    pub(crate) resizes: u32,
    /// Integral of jobs in the cluster at submission and at the end (job-seconds).
    pub(crate) crowd: [f64; 2],
}

impl JobRun {
    pub(crate) fn new(work: u64) -> Self {
        Self {
            phase: Phase::Absent,
            work: work as f64,
            done: 0.0,
            since_ns: 0,
            segment_ns: 0,
            resume_ns: 0,
            service_gpu_s: 0.0,
            rows: Vec::new(),
            speed: Speed::default(),
            holding: Holding::default(),
            generation: 0,
            first_start_ns: None,
            finish_ns: None,
            preemptions: 0,
            restarts: 0,
            resizes: 0,
            crowd: [0.0; 2],
        }
    }

    /// GPUs held.
    pub(crate) fn gpus(&self) -> f64 {
        self.rows.iter().map(|row| f64::from(row.gpu_milli)).sum::<f64>() / 1000.0
    }

    /// Adds up progress and service until `now_ns`; with `whole`, whole iterations only.
    pub(crate) fn settle(&mut self, now_ns: TimeNs, whole: bool) {
        if self.phase == Phase::Running || self.phase == Phase::Done {
            self.service_gpu_s += self.gpus() * seconds(self.since_ns, now_ns);
        }
        if self.phase == Phase::Running {
            let active_s = seconds(self.since_ns.max(self.resume_ns), now_ns);
            let iterations = active_s / self.speed.iteration_s;
            self.done += if whole { iterations.floor() } else { iterations };
            self.done = self.done.min(self.work);
        }
        self.since_ns = now_ns;
    }

    /// When its work is done if nothing changes; `None` if never.
    pub(crate) fn completion_ns(&self) -> Option<TimeNs> {
        let remaining_ns = (self.work - self.done) * self.speed.iteration_s * 1e9;
        if !remaining_ns.is_finite() {
            return None;
        }
        // Up to the next nanosecond, except that rounding noise of the product is no reason for one more.
        let whole_ns = (remaining_ns - remaining_ns * 4.0 * f64::EPSILON).ceil().max(0.0);
        (whole_ns < 1e19).then(|| self.since_ns.max(self.resume_ns).saturating_add(whole_ns as u64))
    }

    /// As the controller may know it. With `round_s`, the mean rate of a round of whole iterations.
    pub(crate) fn change_point(&self, now_ns: TimeNs, round_s: Option<f64>) -> ChangePoint {
        let rate = match round_s {
            _ if self.phase != Phase::Running => 0.0,
            Some(round_s) => {
                let active_s = round_s - seconds(now_ns, self.resume_ns.max(now_ns));
                (active_s.max(0.0) / self.speed.iteration_s).floor() / round_s
            }
            None if self.resume_ns > self.since_ns => 0.0,
            None => 1.0 / self.speed.iteration_s,
        };
        ChangePoint {
            since_ns: self.since_ns,
            iterations: self.done,
            iterations_per_s: rate,
            service_gpu_s: self.service_gpu_s,
            service_gpu_s_per_s: self.gpus(),
        }
    }
}

pub(crate) fn seconds(from_ns: TimeNs, to_ns: TimeNs) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(iteration_s: f64) -> JobRun {
        let speed = Speed { iteration_s, ..Speed::default() };
        JobRun { phase: Phase::Running, speed, ..JobRun::new(100) }
    }

    #[test]
    fn progress_is_linear_from_the_resume_on() {
        let mut job = running(0.5);
        job.resume_ns = 2_000_000_000;
        assert_eq!(job.completion_ns(), Some(52_000_000_000));
        job.settle(7_000_000_000, false);
        assert_eq!(job.done, 10.0);
        assert_eq!(job.completion_ns(), Some(52_000_000_000));
        job.speed.iteration_s = 1.0;
        assert_eq!(job.completion_ns(), Some(97_000_000_000));
    }

    #[test]
    fn whole_iterations_drop_the_rest() {
        let mut job = running(0.7);
        job.settle(1_000_000_000, true);
        assert_eq!(job.done, 1.0);
        job.resume_ns = 1_650_000_000;
        job.settle(2_000_000_000, true);
        assert_eq!(job.done, 1.0);
    }

    #[test]
    fn no_speed_means_no_end() {
        assert_eq!(running(f64::INFINITY).completion_ns(), None);
    }
}
