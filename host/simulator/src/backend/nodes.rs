//! What is used of each node.

use coretuner_core::model::{Allocation, NodeId};

use super::error::SimError;
use crate::metrics::{NodeRoom, Stranded};
use crate::workload::Workload;

/// Use of one node. Signed, because within one cycle takes may come before gives.
#[derive(Clone, Debug)]
struct NodeUse {
    cpu_milli: i64,
    memory_mib: i64,
    /// Used thousandths by device.
    devices: Vec<i32>,
}

/// Use of all nodes, checked after every cycle: the simulator does not take the judge's word.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    used: Vec<NodeUse>,
    touched: Vec<usize>,
    known: Vec<NodeRoom>,
}

impl Nodes {
    pub(crate) fn new(workload: &Workload) -> Self {
        let used = workload.nodes.iter().map(|node| NodeUse {
            cpu_milli: 0,
            memory_mib: 0,
            devices: vec![0; node.devices as usize],
        });
        let known = workload.nodes.iter().map(|node| NodeRoom {
            idle: node.devices,
            cpu_milli: node.cpu_milli,
            memory_mib: node.memory_mib,
        });
        Self { used: used.collect(), touched: Vec::new(), known: known.collect() }
    }

    pub(crate) fn take(&mut self, rows: &[Allocation]) {
        self.change(rows, 1);
    }

    pub(crate) fn give(&mut self, rows: &[Allocation]) {
        self.change(rows, -1);
    }

    fn change(&mut self, rows: &[Allocation], sign: i32) {
        for row in rows {
            let index = row.node.0 as usize;
            let Some(node) = self.used.get_mut(index) else { continue };
            node.cpu_milli += i64::from(sign) * i64::from(row.cpu_milli);
            node.memory_mib += i64::from(sign) * i64::from(row.memory_mib);
            // Whole devices, or one device that is shared.
            let count = row.device_mask.count_ones().max(1);
            let each = (row.gpu_milli / count) as i32;
            for (bit, device) in node.devices.iter_mut().enumerate() {
                if row.device_mask >> bit & 1 == 1 {
                    *device += sign * each;
                }
            }
            self.touched.push(index);
        }
    }

    /// Checks the nodes changed since the last call and tells `stranded` about them.
    pub(crate) fn settle(&mut self, workload: &Workload, stranded: &mut Stranded) -> Result<(), SimError> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for index in touched.drain(..) {
            let (Some(used), Some(spec)) = (self.used.get(index), workload.nodes.get(index)) else { continue };
            let over = |what| SimError::Overcommit { node: NodeId(index as u32), what };
            let free = |have: u32, used: i64| u32::try_from(i64::from(have) - used).ok().filter(|free| *free <= have);
            if used.devices.iter().any(|milli| !(0..=1000).contains(milli)) {
                return Err(over("GPU"));
            }
            let room = NodeRoom {
                idle: used.devices.iter().filter(|milli| **milli == 0).count() as u32,
                cpu_milli: free(spec.cpu_milli, used.cpu_milli).ok_or_else(|| over("CPU"))?,
                memory_mib: free(spec.memory_mib, used.memory_mib).ok_or_else(|| over("memory"))?,
            };
            stranded.node_changed(index, self.known[index], room);
            self.known[index] = room;
        }
        self.touched = touched;
        Ok(())
    }
}
