//! Node shapes and plain queues.

use coretuner_core::model::{NodeSpec, QueueSpec};

/// Synergy's server: 8 V100, 24 cores, 500 GB, 500 MB/s (OSDI '22).
pub fn synergy_server(index: usize) -> NodeSpec {
    NodeSpec {
        name: format!("server-{index:04}"),
        gpu_kind: "V100".to_owned(),
        cpu_milli: 24_000,
        memory_mib: 512_000,
        storage_mib_per_s: 500,
        devices: 8,
        device_memory_mib: 0,
        zone: None,
        rack: None,
        link_domain: None,
    }
}

/// A queue of weight 1 without bounds.
pub fn named_queue(name: &str) -> QueueSpec {
    QueueSpec {
        name: name.to_owned(),
        parent: None,
        weight_milli: 1000,
        guaranteed_gpu_milli: None,
        maximum_gpu_milli: None,
        guaranteed_cpu_milli: None,
        maximum_cpu_milli: None,
    }
}
