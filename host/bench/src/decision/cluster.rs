//! A cluster at work: most GPUs taken, a few jobs waiting.

use crate::error::Error;
use coretuner_contract::cluster::{Delta, Trigger};
use coretuner_core::event::Event;
use coretuner_core::fallback;
use coretuner_core::model::{ClassId, JobId, NodeId, NodeState, QueueId};
use coretuner_core::state::State;
use coretuner_core::view::Cursor;
use coretuner_simulator::workload::{GenerateOptions, Workload, generate};
use std::sync::Arc;

/// Jobs per node: enough to take about four of five GPUs.
const JOBS_PER_NODE: f64 = 3.2;

/// What one measurement needs.
pub(crate) struct Scene {
    pub(crate) workload: Arc<Workload>,
    /// The whole cluster, for a new instance.
    pub(crate) image: Delta,
    /// Nothing changed since.
    pub(crate) unchanged: [Delta; 1],
    /// A node with jobs stops taking new ones, and takes them again: what a policy that works by change must answer
    /// with a division of that node and a search for places. The second leads back to where the first starts.
    pub(crate) changing: [Delta; 2],
}

/// A cluster of so many nodes with so many waiting jobs.
pub(crate) fn scene(nodes: u32, waiting: u32) -> Result<Scene, Error> {
    let running = (f64::from(nodes) * JOBS_PER_NODE) as u32;
    let options = GenerateOptions { jobs: running + waiting, servers: nodes, ..GenerateOptions::default() };
    let workload = Arc::new(generate(&options)?);
    let mut state = State::new();
    describe(&mut state, &workload)?;
    submit(&mut state, &workload, 0..running)?;
    start_all(&mut state);
    withdraw_waiting(&mut state)?;
    submit(&mut state, &workload, running..running + waiting)?;
    let mut cursor = Cursor::new();
    let image = cursor.delta(&state, Trigger::IMAGE, &[]);
    let unchanged = [cursor.delta(&state, Trigger::TIMER, &[])];
    let node = NodeId(nodes / 2);
    let mut turn = |to: NodeState| {
        apply(&mut state, &Event::NodeStateSet { id: node, state: to })?;
        Ok::<_, Error>(cursor.delta(&state, Trigger::CAPACITY, &[]))
    };
    let mut changing = [turn(NodeState::Cordoned)?, turn(NodeState::Schedulable)?];
    changing[1].revision = changing[0].base_revision;
    Ok(Scene { workload, image, unchanged, changing })
}

fn describe(state: &mut State, workload: &Workload) -> Result<(), Error> {
    for (id, spec) in (0..).zip(&workload.queues) {
        apply(state, &Event::QueueSet { id: QueueId(id), spec: spec.clone() })?;
    }
    for (id, spec) in (0..).zip(&workload.nodes) {
        apply(state, &Event::NodeSet { id: NodeId(id), spec: spec.clone() })?;
    }
    for (id, nodes) in (0..).zip(&workload.classes) {
        apply(state, &Event::ClassSet { id: ClassId(id), nodes: nodes.clone() })?;
    }
    Ok(())
}

fn submit(state: &mut State, workload: &Workload, range: std::ops::Range<u32>) -> Result<(), Error> {
    for id in range {
        if let Some(job) = workload.jobs.get(id as usize) {
            let mut spec = job.spec.clone();
            spec.submit_ns = 0;
            apply(state, &Event::JobSubmitted { id: JobId(id), spec })?;
        }
    }
    Ok(())
}

/// The fallback looks at a bounded number of jobs per plan.
fn start_all(state: &mut State) {
    while state.judge(0, &fallback::plan(state)).accepted > 0 {}
}

/// What found no place leaves, so that only the jobs submitted next wait.
fn withdraw_waiting(state: &mut State) -> Result<(), Error> {
    let waiting: Vec<JobId> = state.waiting().collect();
    for id in waiting {
        let reason = coretuner_core::event::RemovalReason::Withdrawn;
        apply(state, &Event::JobRemoved { id, reason })?;
    }
    Ok(())
}

fn apply(state: &mut State, event: &Event) -> Result<(), Error> {
    state.apply(0, event).map_err(|error| Error::Cluster(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_gpus_of_the_scene_are_taken() {
        // More jobs than one plan of the fallback starts.
        let image = scene(400, 4).unwrap().image;
        let taken: u32 = image.allocations.unwrap().gpu_milli.iter().sum();
        let share = f64::from(taken) / (400.0 * 8.0 * 1000.0);
        assert!((0.7..0.9).contains(&share), "{share}");
        assert_eq!(image.job_states.unwrap().state.iter().filter(|phase| **phase == 0).count(), 4);
    }
}
