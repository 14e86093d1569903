use coretuner_sdk::testing::{Bed, JobBuilder, job};

use crate::Proportional;

fn tunable(id: u32, gpus: u32) -> JobBuilder {
    job(id).gpus(gpus).cores(1).tunable((1, 24), (1000, 512_000))
}

/// What one job holds on a cluster with one node per (GPUs, cores, MiB).
fn check(nodes: &[(u32, u32, u32)], job: JobBuilder, expected: &[(u32, u32, u32)]) {
    let mut bed = Bed::<Proportional>::new("{}");
    nodes.iter().for_each(|(gpus, cores, mib)| bed.nodes(1, *gpus, *cores, *mib));
    let id = job.clone().build().id.0;
    bed.submit(job);
    bed.cycle();
    assert_eq!(bed.held(id), expected);
}

#[test]
fn a_job_gets_the_share_of_its_gpus() {
    check(&[(8, 24, 512_000)], tunable(1, 1), &[(0, 1, 3)]);
    check(&[(8, 24, 512_000)], tunable(1, 4), &[(0, 4, 12)]);
    check(&[(4, 64, 512_000)], tunable(1, 3), &[(0, 3, 48)]);
    check(&[(8, 24, 512_000), (8, 32, 512_000)], tunable(1, 12), &[(0, 8, 24), (1, 4, 16)]);
}

#[test]
fn ranges_are_kept() {
    check(&[(8, 24, 512_000)], tunable(1, 2).tunable((1, 2), (1000, 512_000)), &[(0, 2, 4)]);
    check(&[(8, 24, 512_000)], tunable(1, 2).tunable((4, 8), (1000, 512_000)), &[(0, 2, 8)]);
    check(&[(8, 24, 512_000)], job(1).gpu_milli(0).cores(5), &[(0, 1, 5)]);
}

#[test]
fn memory_follows_too() {
    let mut bed = Bed::<Proportional>::new("{}");
    bed.nodes(1, 8, 24, 512_000);
    bed.submit(tunable(1, 2));
    let plan = bed.cycle().plan;
    assert_eq!(plan.placements.memory_mib, [128_000]);
}

#[test]
fn eight_jobs_fill_a_node_whatever_they_ask_for() {
    let mut bed = Bed::<Proportional>::new("{}");
    bed.nodes(1, 8, 24, 512_000);
    (1..=9).for_each(|id| bed.submit(tunable(id, 1).cores(6).tunable((1, 24), (1000, 512_000))));
    assert_eq!(bed.cycle().started, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn the_base_order_is_configured() {
    let run = |config: &str| {
        let mut bed = Bed::<Proportional>::new(config);
        bed.nodes(1, 8, 24, 512_000);
        bed.submit(tunable(1, 8).estimate_s(900));
        bed.submit(tunable(2, 8).estimate_s(100));
        bed.cycle().started
    };
    assert_eq!(run("{}"), [1]);
    assert_eq!(run(r#"{"order": "srtf"}"#), [2]);
    assert_eq!(run(r#"{"order": "las", "las": {"thresholds_gpu_s": [10]}}"#), [1]);
}
