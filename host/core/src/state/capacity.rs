//! What is free on one node, and how a placement row takes from it.

use crate::contract::cluster::Refusal;
use crate::contract::{DEVICES_MAX, GPU_MILLI};
use crate::model::{Allocation, NodeSpec};

use super::Foreign;

const DEVICES: usize = DEVICES_MAX as usize;

/// Free resources of a node. Signed: what others use may overlap what our jobs hold, and must not be lost on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) cpu_milli: i64,
    pub(crate) memory_mib: i64,
    device_milli: [i32; DEVICES],
}

impl Room {
    pub(crate) const ZERO: Self = Self { cpu_milli: 0, memory_mib: 0, device_milli: [0; DEVICES] };

    /// Room of an empty node: its capacity less what others use.
    pub(crate) fn empty_node(spec: &NodeSpec, foreign: &Foreign) -> Self {
        let mut device_milli = [0; DEVICES];
        for (device, free) in device_milli.iter_mut().enumerate().take(spec.devices as usize) {
            *free = if foreign.device_mask >> device & 1 == 1 { 0 } else { GPU_MILLI as i32 };
        }
        Self {
            cpu_milli: i64::from(spec.cpu_milli) - i64::from(foreign.cpu_milli),
            memory_mib: i64::from(spec.memory_mib) - i64::from(foreign.memory_mib),
            device_milli,
        }
    }

    /// What was taken from `gross` to leave this.
    pub(crate) fn taken_from(&self, gross: &Self) -> Self {
        gross.combine(self, |gross, left| gross - left)
    }

    /// What is left when `taken` is taken.
    pub(crate) fn less(&self, taken: &Self) -> Self {
        self.combine(taken, |free, taken| free - taken)
    }

    fn combine(&self, other: &Self, with: impl Fn(i64, i64) -> i64) -> Self {
        let mut device_milli = self.device_milli;
        for (value, other) in device_milli.iter_mut().zip(other.device_milli) {
            *value = with(i64::from(*value), i64::from(other)) as i32;
        }
        Self {
            cpu_milli: with(self.cpu_milli, other.cpu_milli),
            memory_mib: with(self.memory_mib, other.memory_mib),
            device_milli,
        }
    }

    /// Whether nothing is below zero.
    pub(crate) fn is_legal(&self) -> bool {
        self.cpu_milli >= 0 && self.memory_mib >= 0 && self.device_milli.iter().all(|free| *free >= 0)
    }

    /// Thousandths of `device` that are free.
    pub(crate) fn device_milli_free(&self, device: u32) -> u32 {
        self.device_milli.get(device as usize).map_or(0, |free| (*free).max(0) as u32)
    }

    /// Bit i = device i is wholly free.
    pub(crate) fn devices_free_mask(&self) -> u32 {
        let whole = |free: &i32| u32::from(*free == GPU_MILLI as i32);
        self.device_milli.iter().enumerate().fold(0, |mask, (device, free)| mask | whole(free) << device)
    }

    /// What is overdrawn: the part below zero.
    pub(crate) fn overdrawn(&self) -> Self {
        self.combine(&Self::ZERO, i64::min)
    }

    /// Takes CPU and memory of `row`, leaving at least `floor`.
    pub(crate) fn take_host(&mut self, row: &Allocation, floor: &Self) -> Result<(), Refusal> {
        let (cpu, memory) = (i64::from(row.cpu_milli), i64::from(row.memory_mib));
        if self.cpu_milli - cpu < floor.cpu_milli {
            return Err(Refusal::NoCpu);
        }
        if self.memory_mib - memory < floor.memory_mib {
            return Err(Refusal::NoMemory);
        }
        self.cpu_milli -= cpu;
        self.memory_mib -= memory;
        Ok(())
    }

    /// Takes the devices that `row` names, leaving at least `floor`.
    pub(crate) fn take_devices(&mut self, row: &Allocation, floor: &Self) -> Result<(), Refusal> {
        let each = milli_per_device(row);
        if devices_of(row.device_mask).any(|device| self.device_milli[device] - each < floor.device_milli[device]) {
            return Err(Refusal::NoGpu);
        }
        devices_of(row.device_mask).for_each(|device| self.device_milli[device] -= each);
        Ok(())
    }

    /// Devices for a row that leaves the choice to the host: the lowest wholly free ones, or for a share the most used
    /// device that still fits it.
    pub(crate) fn pick_devices(&self, gpu_milli: u32, whole: bool) -> Result<u32, Refusal> {
        if whole { self.pick_whole(gpu_milli / GPU_MILLI) } else { self.pick_share(gpu_milli) }
    }

    /// Workers with `gpu_milli` each that find devices here; those of a share all on one device.
    pub(crate) fn workers_fitting(&self, gpu_milli: u32) -> u32 {
        match gpu_milli {
            0 => u32::MAX,
            GPU_MILLI.. => self.devices_free_mask().count_ones() / (gpu_milli / GPU_MILLI),
            share => self.device_milli.iter().map(|free| (*free).max(0) as u32 / share).max().unwrap_or(0),
        }
    }

    fn pick_whole(&self, count: u32) -> Result<u32, Refusal> {
        let free = self.devices_free_mask();
        if free.count_ones() < count {
            return Err(Refusal::NoGpu);
        }
        Ok(devices_of(free).take(count as usize).fold(0, |mask, device| mask | 1 << device))
    }

    fn pick_share(&self, gpu_milli: u32) -> Result<u32, Refusal> {
        let fits = self.device_milli.iter().enumerate().filter(|(_, free)| **free >= gpu_milli as i32);
        let (device, _) = fits.min_by_key(|(device, free)| (**free, *device)).ok_or(Refusal::NoGpu)?;
        Ok(1 << device)
    }

    /// Gives back all that `row` holds.
    pub(crate) fn give(&mut self, row: &Allocation) {
        let each = milli_per_device(row);
        self.cpu_milli += i64::from(row.cpu_milli);
        self.memory_mib += i64::from(row.memory_mib);
        devices_of(row.device_mask).for_each(|device| self.device_milli[device] += each);
    }
}

fn milli_per_device(row: &Allocation) -> i32 {
    row.gpu_milli.checked_div(row.device_mask.count_ones()).unwrap_or(0) as i32
}

/// Devices of a mask, ascending; always below [`DEVICES_MAX`].
pub(crate) fn devices_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..DEVICES).filter(move |device| mask >> device & 1 == 1)
}
