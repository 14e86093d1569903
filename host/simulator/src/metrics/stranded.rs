//! Idle GPUs that waiting jobs cannot use only because their node lacks CPU or memory.
//!
//! Nodes with idle GPUs are counted by what they have free, waiting jobs by what one worker needs at least, so a change
//! of one node costs as much as there are different needs, and a new need as much as there are different rooms.

use std::collections::BTreeMap;

use coretuner_core::model::{ClassId, Eligibility, GroupSpec};

use crate::workload::Workload;

/// What a node has free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeRoom {
    /// Wholly idle devices.
    pub(crate) idle: u32,
    pub(crate) cpu_milli: u32,
    pub(crate) memory_mib: u32,
}

/// Rooms are told apart by the set of classes that may use the node.
type Room = (u32, NodeRoom);

/// Least needs of one GPU worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    cpu_milli: u32,
    memory_mib: u32,
    gpu_milli: u32,
    class: ClassId,
}

/// Counts stranded GPUs.
#[derive(Clone, Debug)]
pub(crate) struct Stranded {
    /// Set of classes by node, and the classes of each set.
    set_of_node: Vec<u32>,
    sets: Vec<Vec<ClassId>>,
    rooms: BTreeMap<Room, u64>,
    needs: BTreeMap<Need, u64>,
    total: u64,
    stale: bool,
}

impl Stranded {
    /// All nodes empty, no job waiting.
    pub(crate) fn new(workload: &Workload) -> Self {
        let mut set_ids: BTreeMap<Vec<ClassId>, u32> = BTreeMap::new();
        let set_of_node = classes_by_node(workload)
            .into_iter()
            .map(|classes| {
                let next = set_ids.len() as u32;
                *set_ids.entry(classes).or_insert(next)
            })
            .collect();
        let mut sets = vec![Vec::new(); set_ids.len()];
        for (classes, id) in set_ids {
            sets[id as usize] = classes;
        }
        let mut stranded =
            Self { set_of_node, sets, rooms: BTreeMap::new(), needs: BTreeMap::new(), total: 0, stale: false };
        for (index, node) in workload.nodes.iter().enumerate() {
            let room = NodeRoom { idle: node.devices, cpu_milli: node.cpu_milli, memory_mib: node.memory_mib };
            stranded.add_room(index, room);
        }
        stranded
    }

    /// A node's room changed.
    pub(crate) fn node_changed(&mut self, node: usize, old: NodeRoom, new: NodeRoom) {
        self.remove_room(node, old);
        self.add_room(node, new);
    }

    fn add_room(&mut self, node: usize, room: NodeRoom) {
        if room.idle == 0 {
            return;
        }
        let room = (self.set_of_node[node], room);
        *self.rooms.entry(room).or_insert(0) += 1;
        if !self.stale {
            self.total += self.lost(&room);
        }
    }

    fn remove_room(&mut self, node: usize, room: NodeRoom) {
        if room.idle == 0 {
            return;
        }
        let room = (self.set_of_node[node], room);
        if !self.stale {
            self.total -= self.lost(&room);
        }
        if let Some(count) = self.rooms.get_mut(&room) {
            *count -= 1;
            if *count == 0 {
                self.rooms.remove(&room);
            }
        }
    }

    /// A job began to wait.
    pub(crate) fn waits(&mut self, class: ClassId, groups: &[GroupSpec]) {
        for need in needs(class, groups) {
            let count = self.needs.entry(need).or_insert(0);
            *count += 1;
            self.stale |= *count == 1;
        }
    }

    /// A job waits no more.
    pub(crate) fn waits_no_more(&mut self, class: ClassId, groups: &[GroupSpec]) {
        for need in needs(class, groups) {
            if let Some(count) = self.needs.get_mut(&need) {
                *count -= 1;
                if *count == 0 {
                    self.needs.remove(&need);
                    self.stale = true;
                }
            }
        }
    }

    /// GPUs stranded now.
    pub(crate) fn gpus(&mut self) -> u64 {
        if self.stale {
            self.total = self.rooms.iter().map(|(room, count)| self.lost(room) * count).sum();
            self.stale = false;
        }
        self.total
    }

    /// GPUs of a node that every need which its GPUs alone could serve must leave idle.
    fn lost(&self, room: &Room) -> u64 {
        let (set, free) = room;
        let classes = self.sets.get(*set as usize).map_or(&[][..], Vec::as_slice);
        let mut least: Option<u64> = None;
        for need in self.needs.keys().filter(|need| classes.contains(&need.class)) {
            let (by_gpu, gpus) = by_gpu(free.idle, need.gpu_milli);
            if by_gpu == 0 {
                continue;
            }
            let fits = by_gpu.min(ratio(free.cpu_milli, need.cpu_milli)).min(ratio(free.memory_mib, need.memory_mib));
            let lost = gpus(by_gpu) - gpus(fits);
            least = Some(least.map_or(lost, |least| least.min(lost)));
            if lost == 0 {
                break;
            }
        }
        least.unwrap_or(0)
    }
}

fn classes_by_node(workload: &Workload) -> Vec<Vec<ClassId>> {
    let mut classes = vec![Vec::new(); workload.nodes.len()];
    for (index, eligibility) in workload.classes.iter().enumerate() {
        let class = ClassId(index as u32);
        match eligibility {
            Eligibility::All => classes.iter_mut().for_each(|of: &mut Vec<ClassId>| of.push(class)),
            Eligibility::Nodes(nodes) => {
                nodes.iter().filter_map(|node| classes.get_mut(node.0 as usize).map(|of| of.push(class))).count();
            }
        }
    }
    classes
}

fn needs(class: ClassId, groups: &[GroupSpec]) -> impl Iterator<Item = Need> + '_ {
    groups.iter().filter(|group| group.gpu_milli > 0).map(move |group| Need {
        cpu_milli: group.cpu_milli_min,
        memory_mib: group.memory_mib_min,
        gpu_milli: group.gpu_milli,
        class,
    })
}

/// Workers that `idle` devices take, and how many devices so many workers fill.
fn by_gpu(idle: u32, gpu_milli: u32) -> (u64, impl Fn(u64) -> u64) {
    let (per_worker, per_device) =
        if gpu_milli < 1000 { (1, u64::from(1000 / gpu_milli.max(1))) } else { (u64::from(gpu_milli / 1000), 1) };
    let workers = u64::from(idle) / per_worker * per_device;
    (workers, move |workers: u64| workers.div_ceil(per_device) * per_worker)
}

fn ratio(have: u32, need: u32) -> u64 {
    have.checked_div(need).map_or(u64::MAX, u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{GenerateOptions, generate};

    fn group(gpu_milli: u32, cpu_milli_min: u32, memory_mib_min: u32) -> GroupSpec {
        let workload = generate(&GenerateOptions { jobs: 1, ..GenerateOptions::default() }).expect("valid");
        GroupSpec { gpu_milli, cpu_milli_min, memory_mib_min, ..workload.jobs[0].spec.groups[0].clone() }
    }

    fn one_node() -> Stranded {
        let options = GenerateOptions { jobs: 1, servers: 1, ..GenerateOptions::default() };
        Stranded::new(&generate(&options).expect("valid"))
    }

    const FULL: NodeRoom = NodeRoom { idle: 8, cpu_milli: 24_000, memory_mib: 512_000 };

    fn check(room: NodeRoom, waiting: &[GroupSpec], expected: u64) {
        let mut stranded = one_node();
        stranded.node_changed(0, FULL, room);
        waiting.iter().for_each(|group| stranded.waits(ClassId(0), std::slice::from_ref(group)));
        assert_eq!(stranded.gpus(), expected, "{room:?} {waiting:?}");
        stranded.node_changed(0, room, FULL);
        stranded.node_changed(0, FULL, room);
        assert_eq!(stranded.gpus(), expected, "incremental {room:?} {waiting:?}");
        waiting.iter().for_each(|group| stranded.waits_no_more(ClassId(0), std::slice::from_ref(group)));
        assert_eq!(stranded.gpus(), 0);
    }

    #[test]
    fn only_lack_of_cpu_or_memory_strands() {
        let room = |idle, cpu_milli, memory_mib| NodeRoom { idle, cpu_milli, memory_mib };
        check(room(4, 0, 100_000), &[group(1000, 1000, 1000)], 4);
        check(room(4, 3000, 100_000), &[group(1000, 1000, 1000)], 1);
        check(room(4, 9000, 100_000), &[group(1000, 1000, 1000)], 0);
        check(room(4, 9000, 2000), &[group(1000, 1000, 1000)], 2);
        check(room(4, 0, 100_000), &[], 0);
        check(room(0, 0, 0), &[group(1000, 1000, 1000)], 0);
        // Too few GPUs for the worker: not for lack of CPU.
        check(room(4, 0, 100_000), &[group(8000, 1000, 1000)], 0);
        // One need that fits is enough.
        check(room(4, 4000, 100_000), &[group(1000, 1000, 1000), group(1000, 6000, 1000)], 0);
        // Shares fill devices.
        check(room(2, 3000, 100_000), &[group(500, 1000, 1000)], 0);
        check(room(2, 2000, 100_000), &[group(500, 1000, 1000)], 1);
    }
}
