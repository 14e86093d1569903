//! The event loop.

use std::collections::BTreeSet;

use coretuner_core::event::{Batch, Command, Event, RemovalReason};
use coretuner_core::model::{ClassId, JobId, NodeId, QueueId, TimeNs};
use coretuner_core::port::Backend;

use super::calendar::{Calendar, Happening};
use super::error::SimError;
use super::job::{JobRun, Phase};
use super::measure::Measurements;
use super::nodes::Nodes;
use super::rounds::Rounds;
use super::settings::{Mode, Settings, nanoseconds};
use crate::metrics::{Ledger, Segments, Stranded};
use crate::workload::{TraceJob, Workload};

/// Wake-ups or rounds in a row with nothing running and nothing to come, before the run ends with jobs waiting.
const IDLE_MAX: u32 = 1_000;

/// A simulated cluster running one workload.
pub struct SimBackend<'w> {
    pub(crate) workload: &'w Workload,
    pub(crate) settings: Settings,
    pub(crate) jobs: Vec<JobRun>,
    pub(crate) ledger: Ledger,
    pub(crate) segments: Segments,
    pub(super) now_ns: TimeNs,
    pub(super) calendar: Calendar,
    pub(super) nodes: Nodes,
    pub(super) stranded: Stranded,
    pub(super) rounds: Option<Rounds>,
    /// Running or done jobs, for rounds.
    pub(super) holding: BTreeSet<u32>,
    pub(super) waiting: usize,
    pub(super) finished: u64,
    /// Counted jobs that have not finished.
    counted_left: usize,
    /// Jobs whose change point the controller does not know yet.
    pub(super) unreported: BTreeSet<u32>,
    pub(super) measurements: Measurements,
    next_arrival: usize,
    described: bool,
    idle: u32,
}

impl<'w> SimBackend<'w> {
    /// An empty cluster; nothing has happened yet.
    pub fn new(workload: &'w Workload, settings: Settings) -> Result<Self, SimError> {
        settings.check().map_err(SimError::Settings)?;
        let start_ns = workload.jobs.first().map_or(0, |job| job.spec.submit_ns);
        let counts = |(index, job): &(usize, &TraceJob)| settings.counts(*index) && job.never.is_none();
        let counted_left = workload.jobs.iter().enumerate().filter(counts).count();
        Ok(Self {
            workload,
            counted_left,
            rounds: Rounds::new(&settings.mode, start_ns),
            segments: Segments::new(settings.segments_max),
            settings,
            jobs: workload.jobs.iter().map(|job| JobRun::new(job.spec.work_iterations)).collect(),
            ledger: Ledger::new(start_ns),
            now_ns: start_ns,
            calendar: Calendar::default(),
            nodes: Nodes::new(workload),
            stranded: Stranded::new(workload),
            holding: BTreeSet::new(),
            waiting: 0,
            finished: 0,
            unreported: BTreeSet::new(),
            measurements: Measurements::default(),
            next_arrival: 0,
            described: false,
            idle: 0,
        })
    }

    /// Jobs that have finished.
    pub fn finished(&self) -> u64 {
        self.finished
    }

    /// Virtual time.
    pub fn now_ns(&self) -> TimeNs {
        self.now_ns
    }

    /// Time of the next job that is yet to come.
    pub(super) fn arrival_ns(&mut self) -> Option<TimeNs> {
        while self.workload.jobs.get(self.next_arrival).is_some_and(|job| job.never.is_some()) {
            self.next_arrival += 1;
        }
        self.workload.jobs.get(self.next_arrival).map(|job| job.spec.submit_ns)
    }

    pub(super) fn appointment_ns(&mut self) -> Option<TimeNs> {
        let jobs = &self.jobs;
        self.calendar.next_ns(|job| jobs.get(job as usize).map_or(0, |job| job.generation))
    }

    /// The next moment and whether it is one that was asked for.
    fn moment(&mut self, wake_at_ns: Option<TimeNs>) -> Option<(TimeNs, bool)> {
        let happens = [self.arrival_ns(), self.appointment_ns()].into_iter().flatten().min();
        let wake = wake_at_ns.map(|wake| wake.max(self.now_ns + 1)).filter(|_| self.waiting + self.holding.len() > 0);
        self.idle = if happens.is_some() { 0 } else { self.idle + 1 };
        if self.idle > IDLE_MAX {
            return None;
        }
        match (happens, wake) {
            (Some(happens), Some(wake)) if wake <= happens => Some((wake, true)),
            (Some(happens), _) => Some((happens, false)),
            (None, wake) => wake.map(|wake| (wake, true)),
        }
    }

    /// In rounds the moment is a boundary; idle stretches are skipped.
    fn boundary(&mut self) -> Option<TimeNs> {
        let arrival_ns = self.arrival_ns();
        let active = !self.holding.is_empty();
        let progresses = |job: &u32| self.jobs.get(*job as usize).is_some_and(|run| run.speed.iteration_s.is_finite());
        let moves = arrival_ns.is_some() || self.holding.iter().any(progresses);
        self.idle = if moves { 0 } else { self.idle + 1 };
        if self.idle > IDLE_MAX || (!active && self.waiting == 0 && arrival_ns.is_none()) {
            return None;
        }
        let earliest = if active || self.waiting > 0 { 0 } else { arrival_ns.unwrap_or(0) };
        self.rounds.as_mut().map(|rounds| rounds.advance(earliest))
    }

    /// Lets time pass.
    pub(super) fn advance(&mut self, now_ns: TimeNs) {
        let stranded = &mut self.stranded;
        self.ledger.advance(now_ns, || stranded.gpus());
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// What is due until now, in order of time; `JobRemoved` events unless a round holds them back.
    fn appointments(&mut self, until_ns: TimeNs, events: &mut Vec<Event>) {
        while self.appointment_ns().is_some_and(|at_ns| at_ns <= until_ns) {
            let Some((at_ns, happening, job, _)) = self.calendar.pop() else { return };
            self.advance(at_ns);
            match happening {
                Happening::Completes if self.rounds.is_some() => self.done(job),
                Happening::Completes => {
                    self.done(job);
                    self.remove(job, events);
                }
                Happening::Resumes => self.resume(job),
            }
        }
    }

    /// All work is done, now.
    pub(super) fn done(&mut self, job: u32) {
        let now_ns = self.now_ns;
        let Some(run) = self.jobs.get_mut(job as usize) else { return };
        run.settle(now_ns, false);
        run.done = run.work;
        run.finish_ns = Some(now_ns);
        run.generation += 1;
        self.close_segment(job);
        let Some(run) = self.jobs.get_mut(job as usize) else { return };
        run.phase = Phase::Done;
        run.crowd[1] = self.ledger.totals().jobs;
        self.finished += 1;
        self.hold(job);
        if self.settings.counts(job as usize) {
            self.counted_left = self.counted_left.saturating_sub(1);
            self.ledger.extend_window();
        }
    }

    /// A done job gives everything back and leaves.
    pub(super) fn remove(&mut self, job: u32, events: &mut Vec<Event>) {
        let Some(run) = self.jobs.get_mut(job as usize) else { return };
        run.phase = Phase::Ended;
        let rows = std::mem::take(&mut run.rows);
        self.nodes.give(&rows);
        self.hold(job);
        self.ledger.count(-1, 0);
        self.holding.remove(&job);
        self.unreported.remove(&job);
        self.measurements.left(job, self.workload.jobs.get(job as usize).and_then(|job| job.spec.kind));
        events.push(Event::JobRemoved { id: JobId(job), reason: RemovalReason::Completed });
    }

    fn resume(&mut self, job: u32) {
        let now_ns = self.now_ns;
        self.close_segment(job);
        if let Some(run) = self.jobs.get_mut(job as usize) {
            run.settle(now_ns, false);
            self.hold(job);
            self.unreported.insert(job);
        }
    }

    /// Tells the ledger what the job holds from now on.
    pub(super) fn hold(&mut self, job: u32) {
        let now_ns = self.now_ns;
        let Some(run) = self.jobs.get_mut(job as usize) else { return };
        let progresses = run.phase == Phase::Running && run.resume_ns <= now_ns;
        let new = run.speed.holding(&run.rows, progresses);
        let old = std::mem::replace(&mut run.holding, new);
        self.ledger.replace(old, new);
    }

    fn arrivals(&mut self, until_ns: TimeNs, events: &mut Vec<Event>) {
        while let Some(at_ns) = self.arrival_ns().filter(|at_ns| *at_ns <= until_ns) {
            let index = self.next_arrival;
            self.next_arrival += 1;
            self.advance(at_ns);
            let (Some(job), Some(run)) = (self.workload.jobs.get(index), self.jobs.get_mut(index)) else { return };
            run.phase = Phase::Waiting;
            run.since_ns = at_ns;
            run.crowd[0] = self.ledger.totals().jobs;
            self.waiting += 1;
            self.ledger.count(0, 1);
            self.stranded.waits(job.spec.eligibility, &job.spec.groups);
            self.measurements.came(index as u32, job.spec.kind);
            if self.settings.counts(index) {
                self.ledger.open_window();
            }
            events.push(Event::JobSubmitted { id: JobId(index as u32), spec: job.spec.clone() });
        }
    }

    /// Everything up to `until_ns` in order of time: arrivals between two appointments count from their own time.
    fn pass(&mut self, until_ns: TimeNs, ends: &mut Vec<Event>, arrivals: &mut Vec<Event>) {
        loop {
            let (arrival, appointment) = (self.arrival_ns(), self.appointment_ns());
            match [appointment, arrival].into_iter().flatten().min() {
                Some(at_ns) if at_ns <= until_ns => {
                    self.appointments(at_ns, ends);
                    self.arrivals(at_ns, arrivals);
                }
                _ => break,
            }
        }
        self.advance(until_ns);
    }

    fn describe(&mut self, events: &mut Vec<Event>) {
        if std::mem::replace(&mut self.described, true) {
            return;
        }
        let nodes = self.workload.nodes.iter().zip(0..);
        events.extend(nodes.map(|(spec, id)| Event::NodeSet { id: NodeId(id), spec: spec.clone() }));
        let queues = self.workload.queues.iter().zip(0..);
        events.extend(queues.map(|(spec, id)| Event::QueueSet { id: QueueId(id), spec: spec.clone() }));
        let classes = self.workload.classes.iter().zip(0..);
        events.extend(classes.map(|(nodes, id)| Event::ClassSet { id: ClassId(id), nodes: nodes.clone() }));
    }

    fn report(&mut self, events: &mut Vec<Event>) {
        let round_s = self.rounds.as_ref().and_then(Rounds::whole_round_s);
        for job in std::mem::take(&mut self.unreported) {
            if let Some(run) = self.jobs.get(job as usize).filter(|run| run.phase == Phase::Running) {
                let point = run.change_point(run.since_ns, round_s);
                events.push(Event::Progress { job: JobId(job), point });
            }
        }
    }
}

impl Backend for SimBackend<'_> {
    type Error = SimError;

    fn next(&mut self, wake_at_ns: Option<TimeNs>) -> Result<Option<Batch>, SimError> {
        if self.settings.stop_after_window && self.counted_left == 0 {
            return Ok(None);
        }
        let moment = match self.settings.mode {
            Mode::Events => self.moment(wake_at_ns),
            Mode::Rounds { .. } => self.boundary().map(|at_ns| (at_ns, true)),
        };
        let horizon_ns = self.settings.horizon_s.map_or(TimeNs::MAX, nanoseconds);
        let Some((now_ns, timer)) = moment.filter(|(at_ns, _)| *at_ns <= horizon_ns) else {
            self.advance(if moment.is_some() { horizon_ns } else { self.now_ns });
            return Ok(None);
        };
        let (mut events, mut ends, mut arrivals) = (Vec::new(), Vec::new(), Vec::new());
        self.describe(&mut events);
        self.pass(now_ns, &mut ends, &mut arrivals);
        self.close_round(now_ns, &mut ends);
        self.report(&mut events);
        events.append(&mut ends);
        events.append(&mut arrivals);
        self.nodes.settle(self.workload, &mut self.stranded)?;
        Ok(Some(Batch { now_ns, events, timer }))
    }

    fn execute(&mut self, now_ns: TimeNs, commands: &[Command]) -> Result<Vec<(JobId, String)>, SimError> {
        self.advance(now_ns);
        for command in commands {
            self.carry_out(command)?;
        }
        self.nodes.settle(self.workload, &mut self.stranded)?;
        Ok(Vec::new())
    }
}
