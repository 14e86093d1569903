use coretuner_sdk::predict::{CurveRequest, Curves};
use coretuner_sdk::testing::{Bed, Outcome, job};
use coretuner_sdk::{Host, PredictError};

use crate::Srtf;

fn bed(config: &str) -> Bed<Srtf> {
    let mut bed = Bed::new(config);
    bed.nodes(1, 8, 24, 512_000);
    bed
}

fn check(outcome: &Outcome, started: &[u32], preempted: &[u32]) {
    assert_eq!((&outcome.started[..], &outcome.preempted[..]), (started, preempted));
}

#[test]
fn the_shorter_job_goes_first_and_unknown_ones_last() {
    let mut bed = bed("{}");
    bed.submit(job(1).gpus(8));
    bed.submit(job(2).gpus(8).estimate_s(900));
    bed.submit(job(3).gpus(8).estimate_s(600));
    check(&bed.cycle(), &[3], &[]);
    bed.finish(3);
    check(&bed.cycle(), &[2], &[]);
    bed.finish(2);
    check(&bed.cycle(), &[1], &[]);
}

#[test]
fn a_much_shorter_job_stops_the_longest() {
    let mut bed = bed("{}");
    bed.submit(job(1).gpus(4).work(10_000));
    bed.submit(job(2).gpus(4).work(20_000));
    bed.cycle();
    bed.pass_s(1000);
    bed.submit(job(3).gpus(2).work(600).estimate_s(600));
    check(&bed.cycle(), &[3], &[2]);
    check(&bed.cycle(), &[], &[]);
    bed.finish(3);
    check(&bed.cycle(), &[2], &[]);
}

#[test]
fn hysteresis_and_restart_cost_protect_running_jobs() {
    let run = |config: &str, left_s: u64| {
        let mut bed = bed(config);
        bed.submit(job(1).gpus(8).work(1000));
        bed.cycle();
        bed.submit(job(2).gpus(8).work(left_s).estimate_s(left_s));
        !bed.cycle().preempted.is_empty()
    };
    // 1000 > 1.2 × 780 + 60 = 996, but not > 1.2 × 790 + 60 = 1008.
    assert!(run("{}", 780));
    assert!(!run("{}", 790));
    assert!(run(r#"{"preemption": {"hysteresis": 0, "restart_s": 0}}"#, 999));
    assert!(!run(r#"{"preemption": null}"#, 1));
}

#[test]
fn no_more_jobs_are_stopped_than_needed() {
    let mut bed = bed("{}");
    for (id, work) in [(1, 50_000), (2, 40_000), (3, 30_000)] {
        bed.submit(job(id).gpus(2).work(work));
    }
    bed.submit(job(4).gpus(2).work(1000).not_preemptible());
    check(&bed.cycle(), &[1, 2, 3, 4], &[]);
    bed.submit(job(5).gpus(4).estimate_s(100));
    check(&bed.cycle(), &[5], &[1, 2]);
    bed.submit(job(6).gpus(6).estimate_s(10));
    check(&bed.cycle(), &[6], &[3, 5]);
}

#[test]
fn service_counts_gpus() {
    let mut bed = bed(r#"{"measure": "service"}"#);
    bed.submit(job(1).gpus(8).estimate_s(100));
    bed.submit(job(2).gpus(1).estimate_s(700));
    check(&bed.cycle(), &[2], &[]);
}

/// Kind 1 runs ten times as fast as others; asks for kind are answered by job number.
struct FastOdd;

impl Host for FastOdd {
    fn curves(&mut self, request: &CurveRequest) -> Result<Curves, PredictError> {
        let mean: Vec<f32> = request.jobs.iter().map(|job| if job.0 % 2 == 1 { 10.0 } else { 1.0 }).collect();
        let version = vec![1; mean.len()];
        Ok(Curves { low: mean.clone(), high: mean.clone(), mean, version })
    }
}

#[test]
fn predictions_order_jobs_that_never_ran() {
    let first = |config: &str| {
        let mut bed = bed(config);
        bed.host(FastOdd);
        bed.submit(job(1).gpus(8).work(5000).estimate_s(5000));
        bed.submit(job(2).gpus(8).work(1000).estimate_s(1000));
        bed.cycle().started
    };
    assert_eq!(first("{}"), [1]);
    assert_eq!(first(r#"{"predict": false}"#), [2]);
}
