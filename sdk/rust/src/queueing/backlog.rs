//! Waiting jobs by shape and rank.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::Job;
use crate::id::{ClassId, JobId, QueueId};

/// Place in the order: lower is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// What the order sorts by: a queue's level, remaining nanoseconds, …
    pub(super) key: u64,
    pub(super) submit_ns: u64,
    pub(super) job: JobId,
}

/// Jobs of one shape fit or do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    class: ClassId,
    queue: QueueId,
    /// Per group: gang, GPU, CPU and memory per worker, and their ranges.
    groups: Vec<[u32; 8]>,
}

impl Shape {
    fn of(job: &Job) -> Self {
        let groups = job.groups.iter().map(|group| {
            [
                group.workers_min,
                group.gpu_milli,
                group.cpu_milli,
                group.memory_mib,
                group.cpu_milli_min,
                group.cpu_milli_max,
                group.memory_mib_min,
                group.memory_mib_max,
            ]
        });
        Self { class: job.class, queue: job.queue, groups: groups.collect() }
    }
}

#[derive(Clone, Debug, Default)]
struct Lane {
    jobs: BTreeSet<Rank>,
    shape: Option<Shape>,
    /// Whether its jobs fit on the cluster without any other job; none = not looked at.
    possible: Option<bool>,
}

/// Number of a lane.
pub(super) type LaneId = u32;

/// Waiting jobs. Lanes are open until told that their first job does not fit.
#[derive(Clone, Debug, Default)]
pub(super) struct Backlog {
    lanes: Vec<Lane>,
    unused: Vec<LaneId>,
    by_shape: BTreeMap<Shape, LaneId>,
    open: BTreeSet<LaneId>,
    places: BTreeMap<JobId, (LaneId, Rank)>,
}

impl Backlog {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// All jobs but those of which it is known that they never fit.
    pub(super) fn jobs_that_may_fit(&self) -> impl Iterator<Item = JobId> {
        let lanes = self.by_shape.values().map(|lane| &self.lanes[*lane as usize]);
        let hopeful = lanes.filter(|lane| lane.possible != Some(false));
        hopeful.flat_map(|lane| lane.jobs.iter().map(|rank| rank.job))
    }

    pub(super) fn rank(&self, job: JobId) -> Option<Rank> {
        self.places.get(&job).map(|(_, rank)| *rank)
    }

    /// Adds a job or moves it. A lane that gets a new first job is not opened for it: all its jobs are alike.
    pub(super) fn insert(&mut self, job: &Job, key: u64) {
        let rank = Rank { key, submit_ns: job.submit_ns, job: job.id };
        let shape = Shape::of(job);
        if let Some((lane, old)) = self.places.get(&job.id).copied() {
            if old == rank && self.lanes[lane as usize].shape.as_ref() == Some(&shape) {
                return;
            }
            self.remove(job.id);
        }
        let lane = match self.by_shape.get(&shape) {
            Some(lane) => *lane,
            None => self.add_lane(shape),
        };
        self.lanes[lane as usize].jobs.insert(rank);
        self.places.insert(job.id, (lane, rank));
    }

    fn add_lane(&mut self, shape: Shape) -> LaneId {
        let lane = Lane { jobs: BTreeSet::new(), shape: Some(shape.clone()), possible: None };
        let id = match self.unused.pop() {
            Some(id) => {
                self.lanes[id as usize] = lane;
                id
            }
            None => {
                self.lanes.push(lane);
                self.lanes.len() as u32 - 1
            }
        };
        self.by_shape.insert(shape, id);
        self.open.insert(id);
        id
    }

    pub(super) fn remove(&mut self, job: JobId) {
        let Some((id, rank)) = self.places.remove(&job) else { return };
        let lane = &mut self.lanes[id as usize];
        lane.jobs.remove(&rank);
        if lane.jobs.is_empty() {
            if let Some(shape) = lane.shape.take() {
                self.by_shape.remove(&shape);
            }
            self.open.remove(&id);
            self.unused.push(id);
        }
    }

    /// Nodes or classes changed: what never fitted may fit.
    pub(super) fn forget_possible(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.possible = None);
    }

    pub(super) fn possible(&self, lane: LaneId) -> Option<bool> {
        self.lanes[lane as usize].possible
    }

    pub(super) fn set_possible(&mut self, lane: LaneId, possible: bool) {
        self.lanes[lane as usize].possible = Some(possible);
    }

    pub(super) fn lane(&self, job: JobId) -> Option<LaneId> {
        self.places.get(&job).map(|(lane, _)| *lane)
    }

    /// What did not fit may fit now.
    pub(super) fn open_all(&mut self) {
        self.open = self.by_shape.values().copied().collect();
    }

    /// Opens the lane of a job.
    pub(super) fn open(&mut self, job: JobId) {
        if let Some((lane, _)) = self.places.get(&job) {
            self.open.insert(*lane);
        }
    }

    /// The lane does not fit.
    pub(super) fn close(&mut self, lane: LaneId) {
        self.open.remove(&lane);
    }

    pub(super) fn is_closed(&self, job: JobId) -> bool {
        self.places.get(&job).is_some_and(|(lane, _)| !self.open.contains(lane))
    }

    /// Whether nothing can start.
    pub(super) fn is_shut(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn is_open(&self, lane: LaneId) -> bool {
        self.open.contains(&lane)
    }

    /// First jobs of all lanes, open or not.
    pub(super) fn all_heads(&self) -> BTreeSet<(Rank, LaneId)> {
        self.by_shape.values().filter_map(|lane| self.first(*lane)).collect()
    }

    /// First jobs of the open lanes.
    pub(super) fn heads(&self) -> BTreeSet<(Rank, LaneId)> {
        self.open.iter().filter_map(|lane| self.first(*lane)).collect()
    }

    fn first(&self, lane: LaneId) -> Option<(Rank, LaneId)> {
        Some((*self.lanes[lane as usize].jobs.first()?, lane))
    }

    /// The job after `rank` in a lane.
    pub(super) fn after(&self, lane: LaneId, rank: Rank) -> Option<Rank> {
        let bounds = (std::ops::Bound::Excluded(rank), std::ops::Bound::Unbounded);
        self.lanes[lane as usize].jobs.range(bounds).next().copied()
    }
}
