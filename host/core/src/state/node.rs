use std::collections::BTreeSet;

use crate::contract::{GPU_MILLI, rules};
use crate::model::{JobId, NodeId, NodeSpec, NodeState};

use super::Room;

/// Use of a node by what we do not manage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    pub cpu_milli: u32,
    pub memory_mib: u32,
    pub device_mask: u32,
}

/// A node and what is free on it.
#[derive(Clone, Debug)]
pub struct NodeView {
    pub id: NodeId,
    pub spec: NodeSpec,
    pub state: NodeState,
    pub foreign: Foreign,
    pub(crate) room: Room,
    pub(crate) jobs: BTreeSet<JobId>,
    /// Checksum part of this node at the last touch.
    pub(crate) hash: u32,
}

impl NodeView {
    pub(crate) fn new(id: NodeId, spec: NodeSpec) -> Self {
        let foreign = Foreign::default();
        let room = Room::empty_node(&spec, &foreign);
        Self { id, spec, state: NodeState::default(), foreign, room, jobs: BTreeSet::new(), hash: 0 }
    }

    /// CPU that a plan may still give, in thousandths of a core.
    pub fn cpu_milli_free(&self) -> u32 {
        clamp(self.room.cpu_milli)
    }

    /// Memory that a plan may still give, MiB.
    pub fn memory_mib_free(&self) -> u32 {
        clamp(self.room.memory_mib)
    }

    /// Bit i = device i is wholly free.
    pub fn devices_free_mask(&self) -> u32 {
        self.room.devices_free_mask()
    }

    /// Free thousandths of one device; 0 for a device that is not there.
    pub fn device_milli_free(&self, device: u32) -> u32 {
        self.room.device_milli_free(device)
    }

    /// Devices that are partly used, with their free thousandths, ascending.
    pub fn shares(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.spec.devices)
            .map(|device| (device, self.room.device_milli_free(device)))
            .filter(|(_, free)| (1..GPU_MILLI).contains(free))
    }

    /// Jobs with an allocation here, ascending.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.jobs.iter().copied()
    }

    /// What our jobs hold here.
    pub(crate) fn used(&self) -> Room {
        self.room.taken_from(&Room::empty_node(&self.spec, &self.foreign))
    }

    /// Others' use as room below zero.
    pub(crate) fn foreign_room(&self) -> Room {
        let whole = Room::empty_node(&self.spec, &Foreign::default());
        Room::empty_node(&self.spec, &self.foreign).less(&whole)
    }

    pub(crate) fn row_hash(&self) -> u32 {
        rules::node_hash([
            self.id.0,
            self.state as u32,
            self.cpu_milli_free(),
            self.memory_mib_free(),
            self.devices_free_mask(),
        ])
    }
}

fn clamp(value: i64) -> u32 {
    value.clamp(0, i64::from(u32::MAX)) as u32
}
