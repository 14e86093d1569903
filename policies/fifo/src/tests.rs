use coretuner_sdk::testing::{Bed, job};

use crate::Fifo;

fn bed(config: &str) -> Bed<Fifo> {
    let mut bed = Bed::new(config);
    bed.nodes(2, 8, 24, 512_000);
    bed
}

/// Jobs of these GPU counts (3 cores each) arrive together; which start, and which after the first job ends.
fn check(config: &str, gpus: &[u32], first: &[u32], then: &[u32]) {
    let mut bed = bed(config);
    for (i, gpus) in gpus.iter().enumerate() {
        bed.submit(job(i as u32 + 1).gpus(*gpus).cores(3));
    }
    assert_eq!(bed.cycle().started, first, "{config} {gpus:?}");
    assert!(bed.cycle().plan.actions.job.is_empty());
    bed.finish(1);
    assert_eq!(bed.cycle().started, then, "{config} {gpus:?}, then");
}

#[test]
fn backfilling_passes_what_does_not_fit() {
    check("{}", &[8, 4, 8, 4, 1], &[1, 2, 4], &[3]);
    check(r#"{"mode": "strict"}"#, &[8, 4, 8, 4, 1], &[1, 2], &[3, 4]);
    check("{}", &[16, 1, 16], &[1], &[2]);
    check(r#"{"mode": "strict"}"#, &[16, 16, 1], &[1], &[2]);
}

#[test]
fn searches_are_bounded_and_go_on_in_the_next_cycle() {
    let mut bed = bed(r#"{"searches_max": 1}"#);
    for (id, gpus) in [(1, 16), (2, 4), (3, 2), (4, 1)] {
        bed.submit(job(id).gpus(gpus));
    }
    assert_eq!(bed.cycle().started, [1]);
    bed.finish(1);
    bed.submit(job(5).gpus(64));
    let mut started = bed.cycle().started;
    started.sort_unstable();
    assert_eq!(started, [2, 3, 4]);
}

#[test]
fn a_waiting_job_is_told_why() {
    let mut bed = bed(r#"{"mode": "strict"}"#);
    for (id, gpus) in [(1, 16), (2, 2), (3, 1)] {
        bed.submit(job(id).gpus(gpus));
    }
    let held = bed.cycle().held;
    assert_eq!(held, [(2, "no-room".to_owned()), (3, "behind".to_owned())]);
}

#[test]
fn a_job_that_never_fits_stops_nobody_until_it_does() {
    let mut bed = bed(r#"{"mode": "strict"}"#);
    bed.submit(job(1).gpus(17));
    bed.submit(job(2).gpus(1).cores(25));
    bed.submit(job(3).gpus(16));
    bed.submit(job(4).gpus(1));
    let outcome = bed.cycle();
    assert_eq!(outcome.started, [3]);
    let code = |job: u32| outcome.held.iter().find(|held| held.0 == job).map(|held| held.1.as_str());
    assert_eq!((code(1), code(2), code(4)), (Some("never-fits"), Some("never-fits"), Some("no-room")));
    bed.finish(3);
    bed.nodes(1, 1, 1, 1000);
    assert_eq!(bed.cycle().started, [1]);
}

#[test]
fn wrong_configuration_is_named() {
    let check = |json: &str, expected: &str| {
        let error = coretuner_sdk::Instance::<Fifo>::new().configure(json).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    check(r#"{"mode": "lazy"}"#, "`mode`");
    check(r#"{"modus": "strict"}"#, "modus");
    check(r#"{"searches_max": -1}"#, "`searches_max`");
    check("{} x", "trailing");
}
