use coretuner_sdk::testing::{Bed, Outcome, job};

use crate::LeastService;

const SECOND_NS: u64 = 1_000_000_000;

fn bed(config: &str) -> Bed<LeastService> {
    let mut bed = Bed::new(config);
    bed.nodes(1, 8, 24, 512_000);
    bed
}

fn check(outcome: &Outcome, started: &[u32], preempted: &[u32]) {
    assert_eq!((&outcome.started[..], &outcome.preempted[..]), (started, preempted));
}

#[test]
fn a_job_falls_and_yields_to_one_that_waits() {
    let mut bed = bed("{}");
    bed.submit(job(1).gpus(8));
    check(&bed.cycle(), &[1], &[]);
    bed.pass_s(10);
    bed.submit(job(2).gpus(8));
    let outcome = bed.cycle();
    check(&outcome, &[], &[]);
    // 3250 GPU-seconds on 8 GPUs.
    assert_eq!(outcome.wake_at_ns / 1000, 406_250_000_000 / 1000);
    bed.pass_until(outcome.wake_at_ns);
    check(&bed.cycle(), &[2], &[1]);
    check(&bed.cycle(), &[], &[]);
    bed.finish(2);
    check(&bed.cycle(), &[1], &[]);
}

#[test]
fn within_a_queue_nobody_is_stopped() {
    let mut bed = bed("{}");
    bed.submit(job(2).gpus(8));
    check(&bed.cycle(), &[2], &[]);
    bed.submit(job(1).gpus(8));
    check(&bed.cycle(), &[], &[]);
}

#[test]
fn the_last_in_order_is_stopped_and_only_what_is_needed() {
    let mut bed = bed(r#"{"thresholds_gpu_s": [100, 1000]}"#);
    bed.submit(job(1).gpus(4));
    bed.submit(job(2).gpus(2));
    bed.submit(job(3).gpus(2));
    bed.cycle();
    // Attained: 1200, 600 and 600 GPU-seconds.
    bed.pass_s(300);
    bed.submit(job(4).gpus(2));
    check(&bed.cycle(), &[4], &[1]);
    assert_eq!(bed.cycle().started, [] as [u32; 0]);
    bed.submit(job(5).gpus(2));
    check(&bed.cycle(), &[5], &[]);
    bed.submit(job(6).gpus(2));
    check(&bed.cycle(), &[6], &[3]);
}

#[test]
fn without_preemption_jobs_wait() {
    let mut bed = bed(r#"{"preemptive": false}"#);
    bed.submit(job(1).gpus(8));
    bed.cycle();
    bed.pass_s(100_000);
    bed.submit(job(2).gpus(1));
    check(&bed.cycle(), &[], &[]);
}

#[test]
fn a_long_wait_promotes() {
    let mut bed = bed(r#"{"thresholds_gpu_s": [80, 800], "promote_after": 2}"#);
    bed.submit(job(1).gpus(8));
    bed.cycle();
    // 960 GPU-seconds: the last queue.
    bed.pass_s(120);
    bed.submit(job(2).gpus(8).not_preemptible());
    check(&bed.cycle(), &[2], &[1]);
    let outcome = bed.cycle();
    assert!(outcome.wake_at_ns > 0, "{outcome:?}");
    // It ran 120 s, so it is promoted after 240 s of waiting, before one of the second queue.
    bed.pass_s(250);
    bed.cycle();
    bed.submit(job(3).gpus(8));
    bed.cycle();
    bed.finish(2);
    check(&bed.cycle(), &[1], &[]);
    assert_eq!(bed.now_ns(), 370 * SECOND_NS);
}

/// Whether the cycle in which job 2 comes asks for another, beside a running job of 4 GPUs that will fall.
fn check_wish(config: &str, gpus: u32, expected: bool) {
    let mut bed = bed(config);
    bed.submit(job(1).gpus(4));
    bed.cycle();
    bed.pass_s(10);
    bed.cycle();
    bed.submit(job(2).gpus(gpus));
    let outcome = bed.cycle();
    assert_eq!(outcome.wake_at_ns > 0, expected, "{outcome:?}");
}

#[test]
fn a_cycle_is_asked_for_only_where_a_job_waits_that_may_gain_by_it() {
    // It waits for job 1 to fall.
    check_wish("{}", 8, true);
    // It starts at once.
    check_wish("{}", 4, false);
    // It never fits.
    check_wish("{}", 16, false);
    // Nobody yields to it.
    check_wish(r#"{"preemptive": false}"#, 8, false);
}

#[test]
fn who_was_stopped_waits_too() {
    let mut bed = bed(r#"{"thresholds_gpu_s": [100, 10000]}"#);
    bed.submit(job(1).gpus(4));
    bed.submit(job(2).gpus(4));
    bed.cycle();
    bed.pass_s(100);
    bed.cycle();
    bed.submit(job(3).gpus(4));
    let outcome = bed.cycle();
    check(&outcome, &[3], &[2]);
    assert!(outcome.wake_at_ns > 0, "{outcome:?}");
}

#[test]
fn wrong_thresholds_are_named() {
    let error = coretuner_sdk::Instance::<LeastService>::new().configure(r#"{"thresholds_gpu_s": [2, 1]}"#);
    assert!(error.unwrap_err().contains("rising"));
}
