//! What commands do to jobs.

use coretuner_core::event::Command;
use coretuner_core::model::{Allocation, JobId};

use super::calendar::Happening;
use super::error::SimError;
use super::job::{JobRun, Phase};
use super::settings::nanoseconds;
use super::sim::SimBackend;
use super::speed::Speed;

impl SimBackend<'_> {
    pub(super) fn carry_out(&mut self, command: &Command) -> Result<(), SimError> {
        let job = command.job();
        match command {
            Command::Start { allocations, .. } => {
                self.expect(job, Phase::Waiting)?;
                self.start(job, allocations)
            }
            Command::Resize { allocations, .. } => {
                self.expect(job, Phase::Running)?;
                let cost_ns = nanoseconds(self.settings.resize_s);
                self.settle(job);
                self.place(job, allocations, cost_ns)?;
                self.count(job, |run| run.resizes += 1);
                Ok(())
            }
            Command::Rescale { allocations, .. } => {
                self.expect(job, Phase::Running)?;
                let cost_ns = nanoseconds(self.settings.restart_s);
                self.settle(job);
                self.place(job, allocations, cost_ns)?;
                self.count(job, |run| run.restarts += 1);
                Ok(())
            }
            Command::Preempt { .. } => {
                self.expect(job, Phase::Running)?;
                self.stop(job);
                Ok(())
            }
        }
    }

    fn count(&mut self, job: JobId, add: impl FnOnce(&mut JobRun)) {
        if let Some(run) = self.jobs.get_mut(job.0 as usize) {
            add(run);
        }
    }

    fn expect(&self, job: JobId, phase: Phase) -> Result<(), SimError> {
        let found = self.jobs.get(job.0 as usize).map_or(Phase::Absent, |run| run.phase);
        if found == phase { Ok(()) } else { Err(SimError::Phase { job, phase: found.name() }) }
    }

    /// The first start is free; later ones cost a restart.
    fn start(&mut self, job: JobId, rows: &[Allocation]) -> Result<(), SimError> {
        let now_ns = self.now_ns;
        let Some(run) = self.jobs.get_mut(job.0 as usize) else { return Ok(()) };
        let again = run.first_start_ns.is_some();
        run.first_start_ns.get_or_insert(now_ns);
        run.restarts += u32::from(again);
        run.phase = Phase::Running;
        run.since_ns = now_ns;
        run.segment_ns = now_ns;
        run.resume_ns = now_ns;
        self.waiting -= 1;
        self.ledger.count(1, -1);
        self.holding.insert(job.0);
        if let Some(spec) = self.workload.jobs.get(job.0 as usize).map(|job| &job.spec) {
            self.stranded.waits_no_more(spec.eligibility, &spec.groups);
        }
        let cost_ns = if again { nanoseconds(self.settings.restart_s) } else { 0 };
        self.place(job, rows, cost_ns)
    }

    /// Stops a job where it is: it keeps its progress and waits.
    fn stop(&mut self, job: JobId) {
        self.settle(job);
        let Some(run) = self.jobs.get_mut(job.0 as usize) else { return };
        run.phase = Phase::Waiting;
        run.preemptions += 1;
        run.generation += 1;
        let rows = std::mem::take(&mut run.rows);
        self.nodes.give(&rows);
        self.hold(job.0);
        self.waiting += 1;
        self.ledger.count(-1, 1);
        self.holding.remove(&job.0);
        self.unreported.remove(&job.0);
        if let Some(spec) = self.workload.jobs.get(job.0 as usize).map(|job| &job.spec) {
            self.stranded.waits(spec.eligibility, &spec.groups);
        }
    }

    /// Adds up what the job did with what it holds.
    fn settle(&mut self, job: JobId) {
        let (now_ns, whole) = (self.now_ns, self.whole());
        self.close_segment(job.0);
        if let Some(run) = self.jobs.get_mut(job.0 as usize) {
            run.settle(now_ns, whole);
        }
    }

    /// The job holds `rows` from now on and makes progress after `cost_ns` (and after what it still had to sit out).
    fn place(&mut self, job: JobId, rows: &[Allocation], cost_ns: u64) -> Result<(), SimError> {
        let now_ns = self.now_ns;
        let Some(trace) = self.workload.jobs.get(job.0 as usize) else { return Ok(()) };
        let speed = Speed::of(self.workload, job, trace, rows)?;
        let Some(run) = self.jobs.get_mut(job.0 as usize) else { return Ok(()) };
        self.nodes.take(rows);
        self.nodes.give(&std::mem::replace(&mut run.rows, rows.to_vec()));
        run.speed = speed;
        run.resume_ns = run.resume_ns.max(now_ns + cost_ns);
        run.generation += 1;
        let (resume_ns, generation) = (run.resume_ns, run.generation);
        let completion_ns = run.completion_ns();
        if !self.whole() {
            if let Some(at_ns) = completion_ns {
                self.calendar.add((at_ns, Happening::Completes, job.0, generation));
            }
            if resume_ns > now_ns {
                self.calendar.add((resume_ns, Happening::Resumes, job.0, generation));
            }
        }
        self.hold(job.0);
        self.unreported.insert(job.0);
        self.measurements.placed(job.0);
        Ok(())
    }

    /// Records what jobs hold when the run ends before they do.
    pub(crate) fn close_segments(&mut self) {
        let phase = |job: &u32| self.jobs.get(*job as usize).map(|run| run.phase);
        let running: Vec<u32> = self.holding.iter().copied().filter(|job| phase(job) == Some(Phase::Running)).collect();
        running.into_iter().for_each(|job| self.close_segment(job));
    }

    /// Records what the job held since its last change.
    pub(super) fn close_segment(&mut self, job: u32) {
        let (Some(run), Some(trace)) = (self.jobs.get(job as usize), self.workload.jobs.get(job as usize)) else {
            return;
        };
        let request = trace.requested(self.workload.reference_gpu(trace));
        let request_s = self.workload.truth.iteration_s(trace.truth, &request).unwrap_or(0.0);
        let relative = if run.resume_ns >= self.now_ns { 0.0 } else { request_s / run.speed.iteration_s };
        self.segments.add(job, &run.rows, run.segment_ns, self.now_ns, relative);
        let now_ns = self.now_ns;
        self.count(JobId(job), |run| run.segment_ns = now_ns);
    }
}
