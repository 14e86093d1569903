//! GPUs that must not be left without CPU.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::model::JobSpec;
use coretuner_policy_coretuner::CoreTuner;
use world::World;

fn config(spare_cpu: bool) -> String {
    let levels = "[0.3333333333333333, 1, 2, 3, 4]";
    format!(r#"{{"order": "fifo", "memory_levels": {levels}, "swaps_max": 0, "spare_cpu": {spare_cpu}}}"#)
}

fn cpu_only(cores: u32) -> impl FnOnce(&mut JobSpec) {
    move |spec| {
        let group = &mut spec.groups[0];
        (group.gpu_milli, group.cpu_milli, group.memory_mib) = (0, cores * 1000, 1000);
        (group.cpu_milli_min, group.cpu_milli_max) = (cores * 1000, cores * 1000);
    }
}

#[test]
fn a_cpu_only_job_goes_where_no_free_gpu_misses_its_cores() {
    let started = |spare_cpu: bool| {
        let mut world: World<CoreTuner> = World::new(2, &config(spare_cpu));
        // All GPUs of one node are taken by jobs that need a core each.
        world.submit("gnmt", 8);
        world.cycle(0);
        for _ in 0..2 {
            let hungry = world.submit("res50", 1);
            world.cycle(10);
            world.complete(hungry);
        }
        let job = world.submit_with(None, 1, cpu_only(8));
        world.cycle(10);
        assert!(world.is_running(job));
        let images: Vec<_> = (0..8).map(|_| world.submit("res50", 1)).collect();
        world.cycle(10);
        images.iter().filter(|job| world.is_running(**job)).count()
    };
    assert!(started(true) > started(false), "{} and {}", started(true), started(false));
    assert_eq!(started(true), 8);
}

#[test]
fn a_job_without_usual_company_is_placed_as_ever() {
    let nodes = |spare_cpu: bool| {
        let mut world: World<CoreTuner> = World::new(3, &config(spare_cpu));
        let jobs: Vec<_> =
            ["alexnet", "gnmt", "res18"].into_iter().cycle().take(9).map(|name| world.submit(name, 2)).collect();
        world.cycle(0);
        jobs.iter().map(|job| world.held(*job)).collect::<Vec<_>>()
    };
    assert_eq!(nodes(true), nodes(false));
}
