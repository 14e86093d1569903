use crate::place::{Demand, Fit, Gang, gang};
use crate::testing::{Bed, JobBuilder, job};
use crate::{Cycle, Policy};

/// Starts what fits, in order of submission.
struct Placer {
    how: Gang,
}

impl Policy for Placer {
    type Config = Fit;
    const NAME: &'static str = "placer";
    const SUMMARY: &'static str = "";

    fn new(fit: Fit) -> Result<Self, String> {
        Ok(Self { how: Gang { fit, demand: Demand::Requested } })
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        for job in cycle.cluster.waiting() {
            if let Some(rows) = gang(&mut cycle.plan, job, self.how) {
                assert!(cycle.plan.start(job.id, &rows).is_ok());
            }
        }
    }
}

/// On 4-GPU, 8-core nodes that have these many GPUs taken (1 core each), where the workers of a job go.
fn check(fit: &str, taken: &[u32], job: JobBuilder, expected: &[(u32, u32)]) {
    let mut bed = bed(fit, taken);
    let id = job.clone().build().id.0;
    bed.submit(job);
    bed.cycle();
    let held: Vec<_> = bed.held(id).iter().map(|(node, workers, _)| (*node, *workers)).collect();
    assert_eq!(held, expected, "{fit} {taken:?}");
}

fn bed(fit: &str, taken: &[u32]) -> Bed<Placer> {
    let mut bed = Bed::new(&format!("\"{fit}\""));
    bed.class(0, None);
    bed.nodes(taken.len() as u32, 4, 8, 10_000);
    for (node, gpus) in taken.iter().enumerate() {
        bed.class(100 + node as u32, Some(&[node as u32]));
        if *gpus > 0 {
            bed.submit(job(1000 + node as u32).gpus(*gpus).class(100 + node as u32));
        }
    }
    bed.cycle();
    bed
}

#[test]
fn one_node_is_taken_where_one_is_enough() {
    check("fewest-nodes", &[0, 2, 3], job(1).gpus(2), &[(1, 2)]);
    check("best-fit", &[0, 2, 3], job(1).gpus(1), &[(2, 1)]);
    check("first-fit", &[0, 2, 3], job(1).gpus(1), &[(0, 1)]);
    check("first-fit", &[3, 2, 0], job(1).gpus(2), &[(1, 2)]);
    check("fewest-nodes", &[3, 3, 3], job(1).gpus(0).gpu_milli(0), &[]);
}

#[test]
fn a_split_follows_the_fit() {
    check("fewest-nodes", &[2, 0, 3], job(1).gpus(5), &[(1, 4), (2, 1)]);
    check("best-fit", &[1, 2, 3], job(1).gpus(4), &[(0, 3), (2, 1)]);
    check("first-fit", &[1, 2, 3], job(1).gpus(4), &[(0, 3), (1, 1)]);
    check("fewest-nodes", &[2, 2, 3], job(1).gpus(6), &[]);
}

#[test]
fn workers_of_several_gpus_are_not_split() {
    check("fewest-nodes", &[1, 1], job(1).gpus(3).gpu_milli(2000).cores(2), &[]);
    check("fewest-nodes", &[1, 1], job(1).gpus(2).gpu_milli(2000).cores(2), &[(0, 1), (1, 1)]);
    check("fewest-nodes", &[0, 1], job(1).gpus(3).gpu_milli(2000).cores(2), &[(0, 2), (1, 1)]);
}

#[test]
fn cpu_and_memory_bind_too() {
    check("fewest-nodes", &[0, 2], job(1).gpus(2).cores(4), &[(0, 2)]);
    check("fewest-nodes", &[0, 0], job(1).gpus(3).cores(3), &[(0, 2), (1, 1)]);
    check("fewest-nodes", &[0, 0], job(1).gpus(3).memory_mib(4000), &[(0, 2), (1, 1)]);
    check("fewest-nodes", &[0, 0], job(1).cores(9), &[]);
}

#[test]
fn workers_without_gpus_go_where_gpus_are_gone() {
    check("fewest-nodes", &[0, 4, 2], job(1).gpu_milli(0).cores(2), &[(1, 1)]);
    check("fewest-nodes", &[0, 4], job(1).gpus(6).gpu_milli(0).cores(2), &[(0, 4), (1, 2)]);
}

#[test]
fn classes_and_node_states_are_kept() {
    let mut bed = bed("fewest-nodes", &[0, 0, 0]);
    bed.class(7, Some(&[1, 2]));
    bed.node_state(1, crate::NodeState::Draining);
    bed.submit(job(1).gpus(4).class(7));
    bed.submit(job(2).gpus(4).class(7));
    assert_eq!(bed.cycle().started, [1]);
    assert_eq!(bed.held(1), [(2, 4, 4)]);
}

#[test]
fn shares_pack_on_used_devices() {
    let mut bed = bed("fewest-nodes", &[3, 0]);
    for id in 1..=4 {
        bed.submit(job(id).gpu_milli(400).cores(1));
    }
    // A group has one row on a node, so its shares there are of one device.
    bed.submit(job(5).gpus(2).gpu_milli(500).cores(1));
    bed.submit(job(6).gpus(4).gpu_milli(500).cores(1));
    assert_eq!(bed.cycle().started, [1, 2, 3, 4, 5]);
    let node = |id: u32| bed.held(id).iter().map(|row| (row.0, row.1)).collect::<Vec<_>>();
    assert_eq!((node(1), node(2), node(3), node(4)), (vec![(0, 1)], vec![(0, 1)], vec![(1, 1)], vec![(1, 1)]));
}

#[test]
fn groups_of_a_job_share_what_is_left() {
    let two = |id| {
        job(id).gpus(4).cores(1).with(|job| {
            let mut server = job.groups[0].clone();
            (server.workers_min, server.workers_max, server.gpu_milli) = (1, 1, 0);
            (server.cpu_milli, server.cpu_milli_min, server.cpu_milli_max) = (5000, 5000, 5000);
            job.groups.push(server);
        })
    };
    check("fewest-nodes", &[0, 0], two(1), &[(0, 4), (1, 1)]);
    check("fewest-nodes", &[0], two(1), &[]);
}
