//! Free resources node by node, with undo.

use std::collections::BTreeMap;

use coretuner_contract::GPU_MILLI;

use crate::changes::Changes;
use crate::cluster::{Allocation, Class, Cluster, Free, Share};
use crate::id::{NodeId, QueueId};
use crate::space::index::{Index, Place};
use crate::table::Table;

/// What there is not enough of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    Node,
    Cpu,
    Memory,
    Gpu,
}

#[derive(Clone, Debug)]
struct Spot {
    free: Free,
    open: bool,
    place: Place,
}

#[derive(Clone, Debug)]
enum Undo {
    Node(NodeId, Free),
    Queue(QueueId, Use),
}

/// A queue's use on top of what the host said: (GPU, CPU) in thousandths.
type Use = (i64, i64);

/// Free resources as a plan in the making leaves them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    spots: Table<Spot>,
    index: Index,
    undo: Vec<Undo>,
    queues: BTreeMap<QueueId, Use>,
}

impl Space {
    /// Takes over what a delta changed.
    pub(crate) fn sync(&mut self, cluster: &Cluster, changes: &Changes) {
        if changes.image || changes.described_nodes || changes.classes {
            self.rebuild(cluster);
            return;
        }
        for id in &changes.nodes {
            if let Some(node) = cluster.node(*id)
                && let Some(spot) = self.spots.get_mut(id.0)
            {
                let old = spot.open.then_some(&spot.free);
                self.index.update(spot.place, old, node.is_schedulable().then_some(&node.free));
                spot.free.clone_from(&node.free);
                spot.open = node.is_schedulable();
            }
        }
    }

    /// The cluster without any job, every node open.
    pub(crate) fn empty(cluster: &Cluster) -> Self {
        let mut space = Self::default();
        for (id, place) in space.index.rebuild(cluster) {
            let Some(node) = cluster.node(id) else { continue };
            let devices = u32::MAX.checked_shr(u32::BITS.saturating_sub(node.devices)).unwrap_or(0);
            let (cpu_milli, memory_mib) = (node.cpu_milli, node.memory_mib);
            let free = Free { cpu_milli, memory_mib, devices, shares: Vec::new() };
            space.index.update(place, None, Some(&free));
            space.spots.insert(id.0, Spot { free, open: true, place });
        }
        space
    }

    fn rebuild(&mut self, cluster: &Cluster) {
        self.spots = Table::default();
        for (id, place) in self.index.rebuild(cluster) {
            if let Some(node) = cluster.node(id) {
                let open = node.is_schedulable();
                self.index.update(place, None, open.then_some(&node.free));
                self.spots.insert(id.0, Spot { free: node.free.clone(), open, place });
            }
        }
    }

    #[inline]
    pub(crate) fn free(&self, node: NodeId) -> Option<&Free> {
        self.spots.get(node.0).map(|spot| &spot.free)
    }

    /// A mark to come back to.
    pub(crate) fn savepoint(&self) -> usize {
        self.undo.len()
    }

    /// Forgets everything since `mark`.
    pub(crate) fn rollback(&mut self, mark: usize) {
        while self.undo.len() > mark {
            match self.undo.pop() {
                Some(Undo::Node(node, free)) => self.put(node, free),
                Some(Undo::Queue(queue, used)) => _ = self.queues.insert(queue, used),
                None => break,
            }
        }
        if mark == 0 {
            self.queues.clear();
        }
    }

    fn put(&mut self, node: NodeId, free: Free) {
        if let Some(spot) = self.spots.get_mut(node.0) {
            if spot.open {
                self.index.update(spot.place, Some(&spot.free), Some(&free));
            }
            spot.free = free;
        }
    }

    fn change(&mut self, node: NodeId, free: Free) {
        if let Some(old) = self.free(node).cloned() {
            self.undo.push(Undo::Node(node, old));
            self.put(node, free);
        }
    }

    /// Takes a row off its node; picks devices where the mask is 0. Returns the mask.
    pub(crate) fn take(&mut self, row: &Allocation) -> Result<u32, Lack> {
        let mut free = self.free(row.node).ok_or(Lack::Node)?.clone();
        free.cpu_milli = free.cpu_milli.checked_sub(row.cpu_milli).ok_or(Lack::Cpu)?;
        free.memory_mib = free.memory_mib.checked_sub(row.memory_mib).ok_or(Lack::Memory)?;
        let mask = if row.device_mask != 0 || row.gpu_milli == 0 {
            row.device_mask
        } else {
            pick_devices(&free, row.gpu_milli).ok_or(Lack::Gpu)?
        };
        take_devices(&mut free, mask, row.gpu_milli)?;
        self.change(row.node, free);
        Ok(mask)
    }

    /// Gives back what a row holds.
    pub(crate) fn give(&mut self, row: &Allocation) {
        let Some(free) = self.free(row.node) else { return };
        let mut free = free.clone();
        free.cpu_milli = free.cpu_milli.saturating_add(row.cpu_milli);
        free.memory_mib = free.memory_mib.saturating_add(row.memory_mib);
        give_devices(&mut free, row.device_mask, row.gpu_milli);
        self.change(row.node, free);
    }

    /// Adds (GPU, CPU) to the use of a queue and those above; the error names the queue whose ceiling is in the way. A
    /// use above a lowered ceiling may stay as it was at `mark`, where the bundle began.
    pub(crate) fn take_quota(
        &mut self,
        cluster: &Cluster,
        queue: QueueId,
        (gpu, cpu): (u64, u64),
        mark: usize,
    ) -> Result<(), QueueId> {
        for queue in cluster.ancestry(queue) {
            let (now_gpu, now_cpu) = self.queues.get(&queue.id).copied().unwrap_or_default();
            let (old_gpu, old_cpu) = self.queue_at(queue.id, mark);
            let fits = |said: u64, now: i64, old: i64, add: u64, maximum: Option<u32>| {
                let before = said.saturating_add_signed(old);
                let ceiling = maximum.map(|maximum| u64::from(maximum).max(before));
                add == 0 || ceiling.is_none_or(|ceiling| said.saturating_add_signed(now) + add <= ceiling)
            };
            if !fits(queue.used_gpu_milli, now_gpu, old_gpu, gpu, queue.maximum_gpu_milli)
                || !fits(queue.used_cpu_milli, now_cpu, old_cpu, cpu, queue.maximum_cpu_milli)
            {
                return Err(queue.id);
            }
        }
        self.add_quota(cluster, queue, gpu as i64, cpu as i64);
        Ok(())
    }

    /// A queue's use as it was at `mark`.
    fn queue_at(&self, queue: QueueId, mark: usize) -> Use {
        let first = self.undo.iter().skip(mark).find_map(|undo| match undo {
            Undo::Queue(id, used) if *id == queue => Some(*used),
            _ => None,
        });
        first.or_else(|| self.queues.get(&queue).copied()).unwrap_or_default()
    }

    pub(crate) fn give_quota(&mut self, cluster: &Cluster, queue: QueueId, gpu: u64, cpu: u64) {
        self.add_quota(cluster, queue, -(gpu as i64), -(cpu as i64));
    }

    fn add_quota(&mut self, cluster: &Cluster, queue: QueueId, gpu: i64, cpu: i64) {
        for queue in cluster.ancestry(queue) {
            let used = self.queues.entry(queue.id).or_default();
            self.undo.push(Undo::Queue(queue.id, *used));
            *used = (used.0 + gpu, used.1 + cpu);
        }
    }

    pub(crate) fn gpus_max(&self) -> u32 {
        self.index.gpus_max()
    }

    /// Lowest id among open nodes of `class` with exactly `gpus` free devices and at least `cpu_milli` free, that
    /// `accept` takes.
    pub(crate) fn first(
        &self,
        class: &Class,
        gpus: u32,
        cpu_milli: u32,
        mut accept: impl FnMut(NodeId, &Free) -> bool,
    ) -> Option<NodeId> {
        let mut accept = |node| self.free(node).is_some_and(|free| accept(node, free));
        self.index.first(class, gpus, cpu_milli, &mut accept)
    }

    /// Lowest id among open nodes of `class` with `gpu_milli` free on a partly used device, that `accept` takes.
    pub(crate) fn first_share(
        &self,
        class: &Class,
        gpu_milli: u32,
        mut accept: impl FnMut(NodeId, &Free) -> bool,
    ) -> Option<NodeId> {
        let mut accept = |node| self.free(node).is_some_and(|free| accept(node, free));
        self.index.first_share(class, gpu_milli, &mut accept)
    }
}

/// The lowest wholly free devices, or for a share the most used device that still fits it: as the host picks.
fn pick_devices(free: &Free, gpu_milli: u32) -> Option<u32> {
    if gpu_milli.is_multiple_of(GPU_MILLI) {
        let count = gpu_milli / GPU_MILLI;
        let mut left = free.devices;
        for _ in 0..count {
            left &= left.checked_sub(1)?;
        }
        return Some(free.devices & !left);
    }
    let fits = free.shares.iter().filter(|share| share.gpu_milli_free >= gpu_milli);
    let share = fits.min_by_key(|share| (share.gpu_milli_free, share.device)).map(|share| 1 << share.device);
    share.or_else(|| (free.devices != 0).then(|| 1 << free.devices.trailing_zeros()))
}

fn take_devices(free: &mut Free, mask: u32, gpu_milli: u32) -> Result<(), Lack> {
    let each = gpu_milli.checked_div(mask.count_ones()).unwrap_or(0);
    if each >= GPU_MILLI {
        if free.devices & mask != mask {
            return Err(Lack::Gpu);
        }
        free.devices &= !mask;
        return Ok(());
    }
    if mask == 0 {
        return if gpu_milli == 0 { Ok(()) } else { Err(Lack::Gpu) };
    }
    let device = mask.trailing_zeros() as u8;
    if free.devices & mask != 0 {
        free.devices &= !mask;
        set_share(free, device, GPU_MILLI - each);
        return Ok(());
    }
    let share = free.shares.iter().find(|share| share.device == device).ok_or(Lack::Gpu)?;
    let left = share.gpu_milli_free.checked_sub(each).ok_or(Lack::Gpu)?;
    set_share(free, device, left);
    Ok(())
}

fn give_devices(free: &mut Free, mask: u32, gpu_milli: u32) {
    let each = gpu_milli.checked_div(mask.count_ones()).unwrap_or(0);
    if each >= GPU_MILLI {
        free.devices |= mask;
    } else if mask != 0 {
        let device = mask.trailing_zeros() as u8;
        let had = free.shares.iter().find(|share| share.device == device).map_or(0, |share| share.gpu_milli_free);
        set_share(free, device, had + each);
    }
}

/// A share is neither empty nor whole: those are said by the device mask alone.
fn set_share(free: &mut Free, device: u8, gpu_milli_free: u32) {
    free.shares.retain(|share| share.device != device);
    if gpu_milli_free >= GPU_MILLI {
        free.devices |= 1 << device;
    } else if gpu_milli_free > 0 {
        let place = free.shares.partition_point(|share| share.device < device);
        free.shares.insert(place, Share { device, gpu_milli_free });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(gpu_milli: u32, device_mask: u32) -> Allocation {
        Allocation { group: 0, node: NodeId(1), workers: 1, cpu_milli: 0, memory_mib: 0, gpu_milli, device_mask }
    }

    /// Free devices and shares after taking and giving rows.
    fn check(take: &[(u32, u32)], give: &[(u32, u32)], devices: u32, shares: &[(u8, u32)]) {
        let mut free = Free { devices: 0b1111, ..Free::default() };
        for (gpu_milli, mask) in take {
            let mask = if *mask == 0 { pick_devices(&free, *gpu_milli).unwrap() } else { *mask };
            take_devices(&mut free, mask, *gpu_milli).unwrap();
        }
        give.iter().map(|(gpu_milli, mask)| row(*gpu_milli, *mask)).for_each(|row| {
            give_devices(&mut free, row.device_mask, row.gpu_milli);
        });
        let found: Vec<_> = free.shares.iter().map(|share| (share.device, share.gpu_milli_free)).collect();
        assert_eq!((free.devices, &found[..]), (devices, shares));
    }

    #[test]
    fn devices_are_picked_low_first_and_shares_pack() {
        check(&[(2000, 0)], &[], 0b1100, &[]);
        check(&[(300, 0), (300, 0), (1000, 0)], &[], 0b1100, &[(0, 400)]);
        check(&[(600, 0), (600, 0), (300, 0)], &[], 0b1100, &[(0, 100), (1, 400)]);
        check(&[(600, 0), (400, 0)], &[], 0b1110, &[]);
        check(&[(600, 0), (400, 0)], &[(600, 1)], 0b1110, &[(0, 600)]);
        check(&[(600, 0)], &[(600, 1)], 0b1111, &[]);
        check(&[(1000, 0b100), (3000, 0)], &[(1000, 0b100)], 0b0100, &[]);
    }

    #[test]
    fn what_is_not_there_is_not_taken() {
        let mut free = Free { devices: 0b1, ..Free::default() };
        assert_eq!(pick_devices(&free, 2000), None);
        assert_eq!(take_devices(&mut free, 0b10, 1000), Err(Lack::Gpu));
        assert_eq!(take_devices(&mut free, 0b1, 700), Ok(()));
        assert_eq!(take_devices(&mut free, 0b1, 400), Err(Lack::Gpu));
        assert_eq!(pick_devices(&free, 400), None);
    }
}
