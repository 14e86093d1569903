//! Eligibility classes: which nodes a job may use that names GPU kinds.

use std::collections::BTreeMap;

use coretuner_core::model::{ClassId, Eligibility, NodeId, NodeSpec};

/// The classes that jobs of one cluster need. What depends on all nodes is worked out once per class, not per job.
pub(crate) struct Classes<'a> {
    nodes: &'a [NodeSpec],
    by_kinds: BTreeMap<Vec<String>, ClassId>,
    known: Vec<Class<'a>>,
}

struct Class<'a> {
    nodes: Eligibility,
    gpu_kinds: Vec<&'a str>,
}

impl<'a> Classes<'a> {
    /// Class 0 is every node.
    pub(crate) fn new(nodes: &'a [NodeSpec]) -> Self {
        let all = Class { nodes: Eligibility::All, gpu_kinds: gpu_kinds(nodes.iter()) };
        Self { nodes, by_kinds: BTreeMap::from([(Vec::new(), ClassId(0))]), known: vec![all] }
    }

    /// The class of jobs that run on these GPU kinds only; on all nodes where none is named.
    pub(crate) fn of(&mut self, kinds: &[String]) -> ClassId {
        let mut key = kinds.to_vec();
        key.sort();
        key.dedup();
        if let Some(id) = self.by_kinds.get(&key) {
            return *id;
        }
        let here = || self.nodes.iter().zip(0..).filter(|(node, _)| key.contains(&node.gpu_kind));
        let class = Class {
            nodes: Eligibility::Nodes(here().map(|(_, id)| NodeId(id)).collect()),
            gpu_kinds: gpu_kinds(here().map(|(node, _)| node)),
        };
        let id = ClassId(self.known.len() as u32);
        self.known.push(class);
        self.by_kinds.insert(key, id);
        id
    }

    /// GPU kinds of the class's nodes; the first node's kind leads, as "the request" refers to it.
    pub(crate) fn gpu_kinds(&self, class: ClassId) -> &[&'a str] {
        self.known.get(class.0 as usize).map_or(&[], |class| &class.gpu_kinds)
    }

    /// All classes, by id.
    pub(crate) fn into_nodes(self) -> Vec<Eligibility> {
        self.known.into_iter().map(|class| class.nodes).collect()
    }
}

fn gpu_kinds<'a>(nodes: impl Iterator<Item = &'a NodeSpec>) -> Vec<&'a str> {
    let mut kinds: Vec<&str> = nodes.filter(|node| node.devices > 0).map(|node| node.gpu_kind.as_str()).collect();
    let first = kinds.first().copied();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.sort_by_key(|kind| Some(*kind) != first);
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::synergy_server;

    fn cluster(kinds: &[&str]) -> Vec<NodeSpec> {
        let node = |(index, kind): (usize, &&str)| NodeSpec {
            gpu_kind: (*kind).to_owned(),
            devices: if kind.is_empty() { 0 } else { 8 },
            ..synergy_server(index)
        };
        kinds.iter().enumerate().map(node).collect()
    }

    #[test]
    fn classes_know_their_nodes_and_kinds() {
        let nodes = cluster(&["", "T4", "P100", "V100", "P100"]);
        let check = |kinds: &[&str], expected: Option<&[u32]>, expected_kinds: &[&str]| {
            let mut classes = Classes::new(&nodes);
            let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            let id = classes.of(&kinds);
            assert_eq!(classes.gpu_kinds(id), expected_kinds);
            let ids = |ids: &[u32]| Eligibility::Nodes(ids.iter().map(|id| NodeId(*id)).collect());
            let expected = expected.map_or(Eligibility::All, ids);
            assert_eq!(classes.into_nodes().swap_remove(id.0 as usize), expected);
        };
        check(&[], None, &["T4", "P100", "V100"]);
        check(&["P100"], Some(&[2, 4]), &["P100"]);
        check(&["V100", "P100", "V100"], Some(&[2, 3, 4]), &["P100", "V100"]);
        check(&["A100"], Some(&[]), &[]);
    }

    #[test]
    fn the_same_kinds_are_the_same_class() {
        let nodes = cluster(&["T4"]);
        let mut classes = Classes::new(&nodes);
        let kinds = |names: [&str; 2]| names.map(str::to_owned);
        assert_eq!(classes.of(&[]), ClassId(0));
        assert_eq!(classes.of(&kinds(["T4", "P100"])), ClassId(1));
        assert_eq!(classes.of(&kinds(["P100", "T4"])), ClassId(1));
    }
}
