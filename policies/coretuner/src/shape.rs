//! Kinds of nodes: how their CPU and memory are stepped and what belongs to one GPU.

use std::collections::BTreeMap;

use coretuner_sdk::solve::{Amount, Axis, Lattice};
use coretuner_sdk::{GpuKind, Node};

use crate::config::Config;

/// Number of a shape, from [`Shapes::of`].
pub(crate) type ShapeId = u32;

/// Nodes with the same GPUs, CPU and memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) gpu_kind: GpuKind,
    pub(crate) devices: u32,
    pub(crate) lattice: Lattice,
    cpu_units_per_gpu: u32,
    memory_units_per_gpu: u32,
}

impl Shape {
    fn new(key: Key, config: &Config) -> Self {
        let cpu = cpu_units_per_gpu(key.cpu_milli, key.devices, config);
        let memory = config.memory_units.div_ceil(key.devices).max(1);
        let lattice = Lattice {
            cpu: Axis { total: key.cpu_milli, units: cpu * key.devices },
            memory: Axis { total: key.memory_mib, units: memory * key.devices },
        };
        let (gpu_kind, devices) = (key.gpu_kind, key.devices);
        Self { gpu_kind, devices, lattice, cpu_units_per_gpu: cpu, memory_units_per_gpu: memory }
    }

    /// Steps of CPU and memory that belong to `gpus` GPUs.
    pub(crate) fn share_units(&self, gpus: u32) -> (u32, u32) {
        (self.cpu_units_per_gpu.saturating_mul(gpus), self.memory_units_per_gpu.saturating_mul(gpus))
    }

    /// Amounts that belong to `gpus` GPUs; more than a node for gangs larger than one.
    pub(crate) fn share(&self, gpus: u32) -> Amount {
        let (cpu, memory) = self.share_units(gpus);
        Amount { cpu: self.lattice.cpu.amount(cpu), memory: self.lattice.memory.amount(memory) }
    }

    /// All that a node has.
    pub(crate) fn total(&self) -> Amount {
        Amount { cpu: self.lattice.cpu.total, memory: self.lattice.memory.total }
    }
}

/// Whole quanta where a share is a whole number of quanta, else equal parts of the share nearest to the quantum; so
/// that a share is always a whole number of steps.
fn cpu_units_per_gpu(cpu_milli: u32, devices: u32, config: &Config) -> u32 {
    let quantum = config.cpu_quantum_milli.saturating_mul(devices);
    let most = (config.cpu_units_max / devices).max(1);
    let exact = cpu_milli / quantum.max(1);
    if exact > 0 && cpu_milli.is_multiple_of(quantum) {
        (1..=exact.min(most)).rev().find(|units| exact.is_multiple_of(*units)).unwrap_or(1)
    } else {
        ((cpu_milli + quantum / 2) / quantum.max(1)).clamp(1, most)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    gpu_kind: GpuKind,
    devices: u32,
    cpu_milli: u32,
    memory_mib: u32,
}

/// All shapes met so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes {
    shapes: Vec<Shape>,
    by_key: BTreeMap<Key, ShapeId>,
}

impl Shapes {
    /// Shape of a node; none without GPUs.
    pub(crate) fn of(&mut self, node: &Node, config: &Config) -> Option<ShapeId> {
        if node.devices == 0 {
            return None;
        }
        let key = Key {
            gpu_kind: node.gpu_kind,
            devices: node.devices,
            cpu_milli: node.cpu_milli,
            memory_mib: node.memory_mib,
        };
        let next = self.shapes.len() as ShapeId;
        let id = *self.by_key.entry(key).or_insert(next);
        if id == next {
            self.shapes.push(Shape::new(key, config));
        }
        Some(id)
    }

    /// # Panics
    /// When the number is not from [`Shapes::of`].
    pub(crate) fn get(&self, shape: ShapeId) -> &Shape {
        &self.shapes[shape as usize]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ShapeId> {
        0..self.shapes.len() as ShapeId
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(cpu_milli: u32, memory_mib: u32, devices: u32) -> Shape {
        Shape::new(Key { gpu_kind: GpuKind(0), devices, cpu_milli, memory_mib }, &Config::default())
    }

    #[test]
    fn the_published_server_is_24_cores_by_24_parts_of_memory() {
        let shape = shape(24_000, 512_000, 8);
        assert_eq!((shape.lattice.cpu.units, shape.lattice.memory.units), (24, 24));
        assert_eq!(shape.share(1), Amount { cpu: 3000, memory: 64_000 });
        assert_eq!(shape.lattice.memory.amount(1), 21_333);
    }

    fn check(cpu_milli: u32, devices: u32, units: u32, share_milli: u32) {
        let shape = shape(cpu_milli, 256_000, devices);
        assert_eq!((shape.lattice.cpu.units, shape.share(1).cpu), (units, share_milli), "{cpu_milli} on {devices}");
    }

    #[test]
    fn a_share_is_always_a_whole_number_of_steps() {
        check(32_000, 2, 32, 16_000);
        check(96_000, 8, 48, 12_000);
        check(128_000, 8, 64, 16_000);
        check(6000, 4, 8, 1500);
        check(2000, 4, 4, 500);
        check(94_000, 8, 64, 11_750);
    }
}
