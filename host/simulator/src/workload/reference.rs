//! What a job asks for that says nothing: the GPU's share of its node.

use coretuner_core::model::NodeSpec;

use super::draft::Extent;

/// The first GPU node's proportional share, and the largest node.
pub(crate) struct Reference {
    pub(crate) cpu: Proportion,
    pub(crate) memory: Proportion,
}

/// One resource of it.
pub(crate) struct Proportion {
    per_gpu: f64,
    most: u32,
}

impl Reference {
    pub(crate) fn new(nodes: &[NodeSpec]) -> Self {
        let gpu_node = nodes.iter().find(|node| node.devices > 0);
        let of = |get: fn(&NodeSpec) -> u32| Proportion {
            per_gpu: gpu_node.map_or(0.0, |node| f64::from(get(node)) / f64::from(node.devices)),
            most: nodes.iter().map(get).max().unwrap_or(0),
        };
        Self { cpu: of(|node| node.cpu_milli), memory: of(|node| node.memory_mib) }
    }
}

impl Proportion {
    /// Request, least and most of one worker; `least` does not exceed the request.
    pub(crate) fn fill(&self, said: Extent, gpus_per_worker: f64, least: u32) -> [u32; 3] {
        let request = said.request.unwrap_or((self.per_gpu * gpus_per_worker) as u32);
        let min = said.min.unwrap_or(least.min(request));
        let max = said.max.unwrap_or(if least == u32::MAX { request } else { self.most.max(request) });
        [request, min, max]
    }
}
