//! A node as this policy keeps it, and the gangs on it.

use std::cmp::Reverse;

use coretuner_sdk::solve::{Amount, Axis, Lattice};
use coretuner_sdk::{JobId, NodeId};

use crate::classes::ClassNo;
use crate::shape::ShapeId;

/// An own gang that is, or in a draft will be, whole on a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Resident {
    pub(crate) job: JobId,
    pub(crate) class: ClassNo,
    pub(crate) gpus: u32,
    /// Steps of its base.
    pub(crate) base_units: (u32, u32),
    /// What it would hold if nobody else wanted anything.
    pub(crate) peak: Amount,
    /// What it holds there now; none if it is only planned to be there.
    pub(crate) held: Option<Amount>,
    /// Only just placed, or it may be interrupted.
    pub(crate) movable: bool,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Berth {
    pub(crate) id: NodeId,
    /// None without GPUs.
    pub(crate) shape: Option<ShapeId>,
    /// Steps of its CPU and memory; none without GPUs.
    pub(crate) lattice: Option<Lattice>,
    /// It takes new jobs.
    pub(crate) open: bool,
    /// Its jobs must leave.
    pub(crate) draining: bool,
    pub(crate) devices: u32,
    /// Wholly free devices.
    pub(crate) gpus_free: u32,
    /// Free thousandths of partly used devices.
    pub(crate) shares_free: Vec<u32>,
    /// What is free or held by `gangs`.
    pub(crate) capacity: Amount,
    /// Ascending by job.
    pub(crate) gangs: Vec<Resident>,
}

impl Berth {
    /// Steps of the bases of all gangs.
    pub(crate) fn base_units(&self) -> (u32, u32) {
        let add = |sum: (u32, u32), gang: &Resident| {
            (sum.0.saturating_add(gang.base_units.0), sum.1.saturating_add(gang.base_units.1))
        };
        self.gangs.iter().fold((0, 0), add)
    }

    pub(crate) fn add(&mut self, gang: Resident) {
        self.gpus_free = self.gpus_free.saturating_sub(gang.gpus);
        let at = self.gangs.partition_point(|other| other.job < gang.job);
        self.gangs.insert(at, gang);
    }

    /// Whether the same gangs share the same amounts, whatever each holds now.
    pub(crate) fn divides_alike(&self, other: &Self) -> bool {
        let gangs =
            |berth: &Self| -> Vec<(JobId, ClassNo)> { berth.gangs.iter().map(|gang| (gang.job, gang.class)).collect() };
        let rest = |berth: &Self| (berth.open, berth.gpus_free, berth.capacity);
        rest(self) == rest(other) && gangs(self) == gangs(other)
    }

    /// Takes a gang off; its CPU and memory stay in the capacity.
    pub(crate) fn remove(&mut self, job: JobId) -> Option<Resident> {
        let at = self.gangs.iter().position(|gang| gang.job == job)?;
        let gang = self.gangs.remove(at);
        self.gpus_free += gang.gpus;
        Some(gang)
    }

    /// Takes a part of a device: of the fullest partly used one with enough left, else of a new one.
    pub(crate) fn take_share(&mut self, gpu_milli: u32) {
        let enough = self.shares_free.iter_mut().filter(|free| **free >= gpu_milli).min();
        match enough {
            Some(free) => *free -= gpu_milli,
            None => {
                self.gpus_free = self.gpus_free.saturating_sub(1);
                self.shares_free.push(1000_u32.saturating_sub(gpu_milli));
            }
        }
    }

    /// Takes CPU and memory out of what is divided.
    pub(crate) fn reserve(&mut self, amount: Amount) {
        self.capacity.cpu = self.capacity.cpu.saturating_sub(amount.cpu);
        self.capacity.memory = self.capacity.memory.saturating_sub(amount.memory);
    }

    /// Gives it back.
    pub(crate) fn release(&mut self, amount: Amount) {
        self.capacity.cpu = self.capacity.cpu.saturating_add(amount.cpu);
        self.capacity.memory = self.capacity.memory.saturating_add(amount.memory);
    }

    /// Sorted classes of its gangs, with the job of each.
    pub(crate) fn by_class(&self) -> Vec<(ClassNo, JobId)> {
        let mut all: Vec<_> = self.gangs.iter().map(|gang| (gang.class, gang.job)).collect();
        all.sort_unstable();
        all
    }

    /// What is left of the scarcer resource when all have what they want, millionths of the capacity; below 0 where they
    /// cannot.
    pub(crate) fn slack(&self) -> i64 {
        let wanted =
            |amount: fn(&Amount) -> u32| self.gangs.iter().map(|gang| u64::from(amount(&gang.peak))).sum::<u64>();
        let left = |capacity: u32, wanted: u64| {
            ((f64::from(capacity) - wanted as f64) / f64::from(capacity.max(1)) * 1e6) as i64
        };
        let cpu = left(self.capacity.cpu, wanted(|peak| peak.cpu));
        cpu.min(left(self.capacity.memory, wanted(|peak| peak.memory)))
    }

    /// Steps of CPU and memory beside the bases of its gangs; below 0 where those do not fit.
    pub(crate) fn left_units(&self) -> (i64, i64) {
        let Some(lattice) = self.lattice else { return (0, 0) };
        let taken = self.base_units();
        let left = |axis: Axis, capacity, taken| i64::from(axis.units_within(capacity)) - i64::from(taken);
        (left(lattice.cpu, self.capacity.cpu, taken.0), left(lattice.memory, self.capacity.memory, taken.1))
    }

    /// What is left beside the bases of its gangs; rounded, to compare nodes.
    pub(crate) fn spare(&self) -> Amount {
        let Some(lattice) = self.lattice else { return self.capacity };
        let (cpu, memory) = self.base_units();
        Amount {
            cpu: self.capacity.cpu.saturating_sub(lattice.cpu.amount(cpu)),
            memory: self.capacity.memory.saturating_sub(lattice.memory.amount(memory)),
        }
    }

    /// Smaller jobs that may move and whose GPUs are enough for a gang of `gpus`: the largest that the need still covers
    /// first.
    pub(crate) fn movers(&self, gpus: u32) -> Option<Vec<Resident>> {
        if self.devices < gpus {
            return None;
        }
        let mut need = gpus.saturating_sub(self.gpus_free);
        let smaller = || self.gangs.iter().filter(|gang| gang.gpus < gpus && gang.movable);
        if smaller().map(|gang| gang.gpus).sum::<u32>() < need {
            return None;
        }
        let mut left: Vec<Resident> = smaller().copied().collect();
        left.sort_by_key(|gang| (Reverse(gang.gpus), gang.job));
        let mut movers = Vec::new();
        while need > 0 {
            let at = left.iter().position(|gang| gang.gpus <= need).or_else(|| left.len().checked_sub(1))?;
            let mover = left.remove(at);
            need = need.saturating_sub(mover.gpus);
            movers.push(mover);
        }
        Some(movers)
    }
}
