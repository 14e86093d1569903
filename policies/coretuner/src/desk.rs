//! What every step of a plan reads.

use coretuner_sdk::solve::{Amount, Options};
use coretuner_sdk::{Cluster, Job, JobId, NodeId};

use crate::axes::units;
use crate::berth::Resident;
use crate::classes::{ClassNo, Classes, Key, Pin, Sources};
use crate::config::Config;
use crate::oracle::Oracle;
use crate::profile::{Profile, ProfileId, Profiles};
use crate::shape::{ShapeId, Shapes};

pub(crate) struct Desk<'a, 'h> {
    pub(crate) config: &'a Config,
    pub(crate) cluster: &'a Cluster,
    pub(crate) shapes: &'a Shapes,
    pub(crate) profiles: &'a Profiles,
    pub(crate) classes: &'a mut Classes,
    pub(crate) oracle: Oracle<'a, 'h>,
    /// The shape with most GPUs: where lengths and targets of jobs are compared.
    pub(crate) home: Option<ShapeId>,
}

impl Desk<'_, '_> {
    pub(crate) fn profile(&self, profile: ProfileId) -> &Profile {
        self.profiles.get(profile)
    }

    /// Class of a job's gang on nodes of `shape`.
    pub(crate) fn class(&mut self, job: JobId, profile: ProfileId, shape: ShapeId, pin: Pin) -> ClassNo {
        let sources = Sources { config: self.config, shapes: self.shapes, profiles: self.profiles };
        self.oracle.speaker = Some(job);
        self.classes.class(sources, Key { profile, shape, pin }, &mut self.oracle)
    }

    pub(crate) fn options(&self, class: ClassNo) -> &Options {
        self.classes.book.get(class)
    }

    /// A gang of `class` as it would be on a node of `shape`.
    pub(crate) fn resident(
        &self,
        job: JobId,
        class: ClassNo,
        shape: ShapeId,
        gpus: u32,
        held: Option<Amount>,
    ) -> Resident {
        let options = self.options(class);
        let base_units = units(&self.shapes.get(shape).lattice, options.base().amount());
        Resident { job, class, gpus, base_units, peak: options.peak().amount(), held, movable: self.may_move(job) }
    }

    /// A job that was only just placed moves freely, a running one if it may be interrupted.
    pub(crate) fn may_move(&self, job: JobId) -> bool {
        self.cluster.job(job).is_some_and(|job| job.is_waiting() || job.preemptible && only_node(job).is_some())
    }

    /// Whether a job may use a node.
    pub(crate) fn allows(&self, profile: ProfileId, node: NodeId) -> bool {
        self.cluster.is_eligible(self.profiles.get(profile).class, node)
    }
}

/// The one node of a job that is whole on a node.
pub(crate) fn only_node(job: &Job) -> Option<NodeId> {
    match &job.allocations[..] {
        [row] => Some(row.node),
        _ => None,
    }
}
