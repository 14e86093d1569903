//! Hand-computed cases of the event loop.

use std::path::Path;

use coretuner_core::event::{Command, Event};
use coretuner_core::model::{Allocation, JobId, NodeId};
use coretuner_core::port::Backend;

use super::{Mode, Settings, SimBackend, SimError};
use crate::workload::{Draft, DraftJob, FillOptions, Work, Workload, complete, synergy_server};

const SECOND: u64 = 1_000_000_000;

/// One server; jobs of (submit s, GPUs, model, iterations).
fn workload(jobs: &[(u64, u32, &str, u64)]) -> Workload {
    let mut draft = Draft { nodes: vec![synergy_server(0)], ..Draft::default() };
    for (index, (submit_s, gpus, model, iterations)) in jobs.iter().enumerate() {
        let work = Work::Iterations(*iterations);
        let mut job = DraftJob::of_gpus(index as u64, format!("job-{index}"), submit_s * SECOND, *gpus, work);
        job.model = Some((*model).to_owned());
        draft.jobs.push(job);
    }
    complete(draft, Path::new("test"), &FillOptions::default()).expect("valid workload")
}

fn rows(gpus: u32, first_device: u32, cores: u32) -> Vec<Allocation> {
    vec![Allocation {
        group: 0,
        node: NodeId(0),
        workers: gpus,
        cpu_milli: cores * 1000,
        memory_mib: 64_000 * gpus,
        gpu_milli: gpus * 1000,
        device_mask: ((1 << gpus) - 1) << first_device,
    }]
}

fn start(job: u32, allocations: Vec<Allocation>) -> Command {
    Command::Start { job: JobId(job), allocations }
}

/// Steps a backend and says what came at which second, in short.
struct Driver<'w> {
    backend: SimBackend<'w>,
}

impl<'w> Driver<'w> {
    fn new(workload: &'w Workload, settings: Settings) -> Self {
        Self { backend: SimBackend::new(workload, settings).expect("valid settings") }
    }

    fn step(&mut self, wake_s: Option<u64>, expected: Option<(f64, &[&str])>) {
        let batch = self.backend.next(wake_s.map(|wake_s| wake_s * SECOND)).expect("batch");
        let got = batch.map(|batch| {
            let short: Vec<String> = batch.events.iter().filter_map(short).collect();
            (batch.now_ns as f64 / 1e9, short)
        });
        let expected = expected.map(|(at_s, events)| (at_s, events.iter().map(|text| (*text).to_owned()).collect()));
        assert_eq!(got, expected);
    }

    fn execute(&mut self, commands: &[Command]) -> Result<(), SimError> {
        self.backend.execute(self.backend.now_ns(), commands).map(|_| ())
    }
}

fn short(event: &Event) -> Option<String> {
    match event {
        Event::JobSubmitted { id, .. } => Some(format!("+{id}")),
        Event::JobRemoved { id, .. } => Some(format!("-{id}")),
        Event::Progress { job, point } => Some(format!(
            "{job}:{}@{:.3}/s since {}",
            point.iterations,
            point.iterations_per_s,
            point.since_ns / SECOND
        )),
        _ => None,
    }
}

fn free() -> Settings {
    Settings { restart_s: 0.0, ..Settings::default() }
}

#[test]
fn completions_come_exactly_and_before_arrivals() {
    // gnmt: 0.12 s per iteration with one core; 1000 iterations = 120 s.
    let workload = workload(&[(10, 1, "gnmt", 1000), (130, 1, "gnmt", 1)]);
    let mut driver = Driver::new(&workload, free());
    driver.step(None, Some((10.0, &["+0"])));
    driver.execute(&[start(0, rows(1, 0, 1))]).expect("started");
    driver.step(Some(50), Some((50.0, &["0:0@8.333/s since 10"])));
    driver.step(None, Some((130.0, &["-0", "+1"])));
    driver.step(None, None);
}

#[test]
fn a_resize_changes_the_pace_in_place() {
    // alexnet: 0.6 s per iteration with 3 cores, 0.3 s with 9.
    let workload = workload(&[(0, 1, "alexnet", 1000)]);
    let mut driver = Driver::new(&workload, Settings { resize_s: 5.0, ..free() });
    driver.step(None, Some((0.0, &["+0"])));
    driver.execute(&[start(0, rows(1, 0, 3))]).expect("started");
    driver.step(Some(300), Some((300.0, &["0:0@1.667/s since 0"])));
    driver.execute(&[Command::Resize { job: JobId(0), allocations: rows(1, 0, 9) }]).expect("resized");
    driver.step(None, Some((305.0, &["0:500@3.333/s since 305"])));
    driver.step(None, Some((455.0, &["-0"])));
    assert_eq!(driver.backend.jobs[0].resizes, 1);
}

#[test]
fn a_restart_costs_time_and_keeps_progress() {
    let workload = workload(&[(0, 1, "gnmt", 1000), (60, 1, "gnmt", 1000)]);
    let mut driver = Driver::new(&workload, Settings { restart_s: 30.0, ..free() });
    driver.step(None, Some((0.0, &["+0"])));
    driver.execute(&[start(0, rows(1, 0, 1))]).expect("started");
    driver.step(None, Some((60.0, &["0:0@8.333/s since 0", "+1"])));
    // A swap in one cycle: the old one goes, the new one starts on the same device.
    driver.execute(&[start(1, rows(1, 0, 1)), Command::Preempt { job: JobId(0) }]).expect("swapped");
    driver.step(None, Some((180.0, &["-1"])));
    driver.execute(&[start(0, rows(1, 0, 1))]).expect("started again");
    driver.step(None, Some((210.0, &["0:500@8.333/s since 210"])));
    driver.step(None, Some((270.0, &["-0"])));
    let run = &driver.backend.jobs[0];
    assert_eq!((run.preemptions, run.restarts, run.first_start_ns), (1, 1, Some(0)));
    assert_eq!(run.service_gpu_s, 150.0);
}

#[test]
fn rounds_tell_at_boundaries_only() {
    let workload = workload(&[(10, 1, "gnmt", 1000), (20, 1, "gnmt", 1000)]);
    let mode = Mode::Rounds { round_s: 100.0, first_round_s: None, whole_iterations: false };
    let mut driver = Driver::new(&workload, Settings { mode, ..free() });
    driver.step(None, Some((100.0, &["+0", "+1"])));
    driver.execute(&[start(0, rows(1, 0, 1))]).expect("started");
    driver.step(None, Some((200.0, &["0:0@8.333/s since 100"])));
    driver.step(None, Some((300.0, &["-0"])));
    assert_eq!(driver.backend.jobs[0].finish_ns, Some(220 * SECOND));
}

#[test]
fn whole_iterations_end_with_the_round() {
    // deepspeech: 0.757 s, so 396 iterations in 300 s.
    let workload = workload(&[(0, 1, "deepspeech", 397)]);
    let mode = Mode::Rounds { round_s: 300.0, first_round_s: Some(1.0), whole_iterations: true };
    let mut driver = Driver::new(&workload, Settings { mode, ..free() });
    driver.step(None, Some((1.0, &["+0"])));
    driver.execute(&[start(0, rows(1, 0, 3))]).expect("started");
    driver.step(None, Some((301.0, &["0:396@1.320/s since 301"])));
    driver.step(None, Some((601.0, &["-0"])));
    driver.step(None, None);
}

#[test]
fn a_policy_that_never_starts_anything_ends_the_run() {
    let workload = workload(&[(0, 1, "gnmt", 1000)]);
    for mode in [Mode::Events, Mode::Rounds { round_s: 1.0, first_round_s: None, whole_iterations: false }] {
        let mut driver = Driver::new(&workload, Settings { mode, ..free() });
        driver.step(None, Some((0.0, &["+0"])));
        let mut cycles = 0_u64;
        while driver.backend.next(Some((cycles + 1) * SECOND)).expect("batch").is_some() {
            cycles += 1;
            assert!(cycles < 10_000, "no end");
        }
        assert!(cycles > 100, "{mode:?}: patience ended after {cycles}");
    }
}

#[test]
fn the_horizon_ends_a_run() {
    let workload = workload(&[(0, 1, "gnmt", 1000)]);
    let mut driver = Driver::new(&workload, Settings { horizon_s: Some(60.0), ..free() });
    driver.step(None, Some((0.0, &["+0"])));
    driver.execute(&[start(0, rows(1, 0, 1))]).expect("started");
    driver.step(None, None);
    assert_eq!(driver.backend.ledger.totals().gpus, 60.0);
}

#[test]
fn what_the_judge_should_have_refused_is_noticed() {
    let workload = workload(&[(0, 1, "gnmt", 1000), (0, 1, "gnmt", 1000)]);
    let check = |commands: &[Command], expected: &str| {
        let mut driver = Driver::new(&workload, free());
        driver.step(None, Some((0.0, &["+0", "+1"])));
        let error = driver.execute(commands).expect_err("refused");
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(&[start(0, rows(1, 0, 1)), start(1, rows(1, 0, 1))], "more GPU than it has");
    check(&[start(0, rows(1, 0, 20)), start(1, rows(1, 1, 5))], "more CPU than it has");
    check(&[start(0, rows(1, 0, 1)), start(0, rows(1, 1, 1))], "it is running");
    check(&[Command::Preempt { job: JobId(0) }], "it is waiting");
}

#[test]
fn senseless_settings_are_refused() {
    let workload = workload(&[(0, 1, "gnmt", 1)]);
    let check = |settings: Settings| assert!(SimBackend::new(&workload, settings).is_err());
    check(Settings { restart_s: -1.0, ..free() });
    check(Settings { restart_s: f64::NAN, ..free() });
    check(Settings { window: Some((5, 4)), ..free() });
    let mode = Mode::Rounds { round_s: 0.0, first_round_s: None, whole_iterations: false };
    check(Settings { mode, ..free() });
}
