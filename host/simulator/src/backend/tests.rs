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

/// A policy on one server that starts, resizes and preempts as its bytes say; then it only starts.
struct Whimsical<'w> {
    backend: SimBackend<'w>,
    whims: std::vec::IntoIter<u8>,
    /// Job by device.
    devices: [Option<u32>; 8],
    waiting: Vec<u32>,
}

impl Whimsical<'_> {
    fn run(&mut self) {
        let mut wake_ns = None;
        while let Some(batch) = self.backend.next(wake_ns).expect("batch") {
            for event in &batch.events {
                match event {
                    Event::JobSubmitted { id, .. } => self.waiting.push(id.0),
                    Event::JobRemoved { id, .. } => self.devices.iter_mut().for_each(|job| {
                        job.take_if(|job| *job == id.0);
                    }),
                    _ => {}
                }
            }
            let commands = self.commands();
            assert_eq!(self.backend.execute(batch.now_ns, &commands), Ok(Vec::new()));
            wake_ns = self.whims.next().map(|whim| batch.now_ns + 1 + u64::from(whim) * SECOND / 7);
        }
    }

    fn commands(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        for device in 0..8 {
            let whim = self.whims.next();
            let cores = 1 + u32::from(whim.unwrap_or(2)) % 3;
            match (self.devices[device], whim) {
                (None, _) => {
                    let Some(job) = self.waiting.pop() else { continue };
                    self.devices[device] = Some(job);
                    commands.push(start(job, rows(1, device as u32, cores)));
                }
                (Some(job), Some(whim)) if whim % 5 == 0 => {
                    self.devices[device] = None;
                    self.waiting.insert(0, job);
                    commands.push(Command::Preempt { job: JobId(job) });
                }
                (Some(job), Some(whim)) if whim % 5 == 1 => {
                    let allocations = rows(1, device as u32, cores);
                    commands.push(Command::Resize { job: JobId(job), allocations });
                }
                _ => {}
            }
        }
        commands
    }
}

proptest::proptest! {
    #[test]
    fn work_and_time_are_conserved(
        jobs in proptest::collection::vec((0_u64..200, 0_usize..4, 1_u64..3000), 1..30),
        whims in proptest::collection::vec(0_u8..=255, 0..400),
        costs in (0_u8..40, 0_u8..5),
        rounds in proptest::option::of((1_u8..100, proptest::bool::ANY)),
    ) {
        let models = ["alexnet", "gnmt", "deepspeech", "lstm"];
        let jobs: Vec<_> = jobs.into_iter().map(|(at, model, work)| (at, 1, models[model], work)).collect();
        let workload = workload(&jobs);
        let mode = rounds.map_or(Mode::Events, |(round_s, whole_iterations)| Mode::Rounds {
            round_s: f64::from(round_s) + 40.0,
            first_round_s: None,
            whole_iterations,
        });
        let settings = Settings {
            mode,
            restart_s: f64::from(costs.0),
            resize_s: f64::from(costs.1),
            segments_max: usize::MAX,
            ..Settings::default()
        };
        let backend = SimBackend::new(&workload, settings).expect("valid");
        let mut run = Whimsical { backend, whims: whims.into_iter(), devices: [None; 8], waiting: Vec::new() };
        run.run();
        check_conservation(&workload, run.backend);
    }
}

fn check_conservation(workload: &Workload, backend: SimBackend<'_>) {
    let totals = backend.ledger.totals();
    assert!(totals.gpus_effective <= totals.gpus + 1e-6 && totals.cores_useful <= totals.cores + 1e-6, "{totals:?}");
    let segments = backend.segments.finish();
    let mut service_s = 0.0;
    for (id, (run, job)) in backend.jobs.iter().zip(&workload.jobs).enumerate() {
        assert_eq!((run.phase, run.done), (super::Phase::Ended, run.work), "job {id}");
        let jct_s = (run.finish_ns.expect("finished") - job.spec.submit_ns) as f64 / 1e9;
        let least_s = run.work * run.speed.best_iteration_s;
        assert!(jct_s >= least_s - 1e-6, "job {id}: {jct_s} s for work of at least {least_s} s");
        service_s += run.service_gpu_s;
    }
    let held_s: f64 = segments.iter().map(|part| part.gpus * (part.to_s - part.from_s)).sum();
    assert!((held_s - service_s).abs() < 1e-3, "segments hold {held_s} GPU s, jobs got {service_s}");
    assert!(totals.gpus >= service_s - 1e-3, "{totals:?}");
}
