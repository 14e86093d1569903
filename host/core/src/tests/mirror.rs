//! A guest's view, rebuilt from deltas as the contract says, to compare with what the host has.

use std::collections::BTreeMap;

use crate::contract::cluster::{AllocationRows, Delta, JobStateRows, NodeStateRows};
use crate::contract::{NONE, rules};

/// Rows by id; texts resolved, so that two string tables may differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Mirror {
    pub(super) revision: u64,
    strings: Vec<String>,
    nodes: BTreeMap<u32, (Vec<String>, Vec<u32>)>,
    node_states: BTreeMap<u32, Vec<u32>>,
    shares: BTreeMap<u32, Vec<(u8, u32)>>,
    classes: BTreeMap<u32, Option<Vec<u32>>>,
    queues: BTreeMap<u32, Vec<u32>>,
    jobs: BTreeMap<u32, (Vec<String>, Vec<u64>)>,
    job_states: BTreeMap<u32, (Vec<u32>, Vec<[u32; 8]>)>,
    progress: BTreeMap<u32, (u64, [f64; 4])>,
    latest: BTreeMap<(u32, String), (u64, f64)>,
}

impl Mirror {
    pub(super) fn apply(&mut self, delta: &Delta) {
        if delta.base_revision == 0 {
            *self = Self::default();
        } else {
            assert_eq!(delta.base_revision, self.revision, "the delta is for another view");
        }
        self.revision = delta.revision;
        self.strings.extend(delta.strings.iter().cloned());
        self.apply_nodes(delta);
        self.apply_queues(delta);
        self.apply_jobs(delta);
        self.apply_reports(delta);
        if delta.checksum != 0 {
            assert_eq!(delta.checksum, self.checksum(), "the view has drifted");
        }
    }

    /// Everything but how it came about.
    pub(super) fn without_strings(&self) -> Self {
        Self { strings: Vec::new(), ..self.clone() }
    }

    fn text(&self, index: u32) -> String {
        if index == NONE { "-".to_owned() } else { self.strings[index as usize].clone() }
    }

    fn apply_nodes(&mut self, delta: &Delta) {
        for id in &delta.removed_nodes {
            assert!(self.nodes.remove(id).is_some(), "removed node {id} was never there");
            self.node_states.remove(id);
            self.shares.remove(id);
        }
        if let Some(rows) = &delta.nodes {
            for (i, id) in rows.id.iter().enumerate() {
                let names = [rows.name[i], rows.gpu_kind_name[i], rows.zone_name[i], rows.rack_name[i]];
                let texts = names.map(|name| self.text(name)).to_vec();
                let numbers = vec![rows.cpu_milli[i], rows.memory_mib[i], rows.device_count[i]];
                self.nodes.insert(*id, (texts, numbers));
            }
        }
        if let Some(rows) = &delta.node_states {
            for (i, id) in rows.id.iter().enumerate() {
                assert!(self.nodes.contains_key(id), "state of unknown node {id}");
                let numbers = vec![
                    u32::from(rows.state[i]),
                    rows.cpu_milli_free[i],
                    rows.memory_mib_free[i],
                    rows.devices_free_mask[i],
                ];
                self.node_states.insert(*id, numbers);
                self.shares.remove(id);
            }
        }
        if let Some(rows) = &delta.device_shares {
            for (i, node) in rows.node.iter().enumerate() {
                self.shares.entry(*node).or_default().push((rows.device[i], rows.gpu_milli_free[i]));
            }
        }
    }

    fn apply_queues(&mut self, delta: &Delta) {
        if let Some(rows) = &delta.eligibility {
            for (i, id) in rows.id.iter().enumerate() {
                let start = rows.node_start[i] as usize;
                let nodes = rows.nodes[start..start + rows.node_count[i] as usize].to_vec();
                self.classes.insert(*id, (rows.all[i] == 0).then_some(nodes));
            }
        }
        if let Some(rows) = &delta.queues {
            for (i, id) in rows.id.iter().enumerate() {
                self.queues.insert(*id, vec![rows.parent[i], rows.weight_milli[i], rows.maximum_gpu_milli[i]]);
            }
        }
    }

    fn apply_jobs(&mut self, delta: &Delta) {
        for id in &delta.removed_jobs {
            assert!(self.jobs.remove(id).is_some(), "removed job {id} was never there");
            self.job_states.remove(id);
            self.progress.remove(id);
            self.latest.retain(|(job, _), _| job != id);
        }
        if let (Some(rows), Some(groups)) = (&delta.jobs, &delta.groups) {
            for (i, id) in rows.id.iter().enumerate() {
                let group = rows.group_start[i] as usize;
                let texts = vec![self.text(rows.name[i]), self.text(groups.role_name[group])];
                let numbers = vec![rows.submit_ns[i], u64::from(groups.workers_min[group])];
                self.jobs.insert(*id, (texts, numbers));
            }
        }
        let none = AllocationRows::default();
        let allocations = delta.allocations.as_ref().unwrap_or(&none);
        if let Some(rows) = &delta.job_states {
            for (i, id) in rows.id.iter().enumerate() {
                assert!(self.jobs.contains_key(id), "state of unknown job {id}");
                let start = rows.allocation_start[i] as usize;
                let held = (start..start + rows.allocation_count[i] as usize).map(|k| row(allocations, k)).collect();
                let own = vec![u32::from(rows.state[i]), u32::from(rows.mine[i]), rows.restarts[i]];
                self.job_states.insert(*id, (own, held));
            }
        }
    }

    fn apply_reports(&mut self, delta: &Delta) {
        if let Some(rows) = &delta.progress {
            for (i, job) in rows.job.iter().enumerate() {
                assert!(self.jobs.contains_key(job), "progress of unknown job {job}");
                let values =
                    [rows.iterations[i], rows.iterations_per_s[i], rows.service_gpu_s[i], rows.service_gpu_s_per_s[i]];
                self.progress.insert(*job, (rows.since_ns[i], values));
            }
        }
        self.progress.retain(|_, point| *point != (0, [0.0; 4]));
        if let Some(rows) = &delta.observations {
            for (i, job) in rows.job.iter().enumerate() {
                let key = (*job, self.text(rows.metric_name[i]));
                self.latest.insert(key, (rows.at_ns[i], rows.value[i]));
            }
        }
    }

    /// By the contract's functions over tables, independent of the host's running sum.
    fn checksum(&self) -> u32 {
        let mut nodes = NodeStateRows::default();
        for (id, row) in &self.node_states {
            nodes.id.push(*id);
            nodes.state.push(row[0] as u8);
            nodes.cpu_milli_free.push(row[1]);
            nodes.memory_mib_free.push(row[2]);
            nodes.devices_free_mask.push(row[3]);
        }
        let (mut jobs, mut held) = (JobStateRows::default(), AllocationRows::default());
        for (id, (own, rows)) in &self.job_states {
            jobs.id.push(*id);
            jobs.state.push(own[0] as u8);
            jobs.mine.push(own[1] as u8);
            jobs.restarts.push(own[2]);
            jobs.allocation_start.push(held.job.len() as u32);
            jobs.allocation_count.push(rows.len() as u32);
            rows.iter().for_each(|row| push(&mut held, *row));
        }
        let nodes = (0..nodes.id.len()).map(|i| rules::node_state_hash(&nodes, i));
        let jobs = (0..jobs.id.len()).map(|i| rules::job_state_hash(&jobs, &held, i));
        nodes.chain(jobs).fold(0, u32::wrapping_add)
    }
}

fn row(rows: &AllocationRows, i: usize) -> [u32; 8] {
    [
        rows.job[i],
        rows.group[i],
        rows.node[i],
        rows.workers[i],
        rows.cpu_milli[i],
        rows.memory_mib[i],
        rows.gpu_milli[i],
        rows.device_mask[i],
    ]
}

fn push(rows: &mut AllocationRows, row: [u32; 8]) {
    let [job, group, node, workers, cpu_milli, memory_mib, gpu_milli, device_mask] = row;
    rows.job.push(job);
    rows.group.push(group);
    rows.node.push(node);
    rows.workers.push(workers);
    rows.cpu_milli.push(cpu_milli);
    rows.memory_mib.push(memory_mib);
    rows.gpu_milli.push(gpu_milli);
    rows.device_mask.push(device_mask);
}
