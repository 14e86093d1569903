//! Rules that host and guest compute in the same way: progress between change points and the view's checksum.

use crate::cluster::{AllocationRows, JobStateRows, NodeStateRows};

/// Value at `now_ns` of a quantity that was `value` at `since_ns` and grows by `rate_per_s` (contract: change points).
///
/// ```
/// assert_eq!(coretuner_contract::rules::value_at(10.0, 2.0, 1_000_000_000, 3_000_000_000), 14.0);
/// ```
pub fn value_at(value: f64, rate_per_s: f64, since_ns: u64, now_ns: u64) -> f64 {
    value + rate_per_s * (now_ns.saturating_sub(since_ns) as f64 / 1e9)
}

/// Mixes 32-bit words into a row hash (FNV-1a over words with a final avalanche). Not for security: it notices drift.
pub fn hash_words(tag: u32, words: &[u32]) -> u32 {
    let mut hash = 0x811c_9dc5_u32 ^ tag.wrapping_mul(0x9e37_79b9);
    for word in words {
        hash = (hash ^ word).wrapping_mul(0x0100_0193).rotate_left(13);
    }
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^ (hash >> 13)
}

const NODE_STATE: u32 = 1;
const JOB_STATE: u32 = 2;
const ALLOCATION: u32 = 3;

/// Hash of one node state row: id, state, free CPU, free memory, mask of wholly free devices.
pub fn node_hash(words: [u32; 5]) -> u32 {
    hash_words(NODE_STATE, &words)
}

/// Hash of one job state row (id, state, mine, restarts) without its allocation rows, which are added to it.
pub fn job_hash(words: [u32; 4]) -> u32 {
    hash_words(JOB_STATE, &words)
}

/// Hash of one allocation row, columns in the contract's order.
pub fn allocation_hash(words: [u32; 8]) -> u32 {
    hash_words(ALLOCATION, &words)
}

/// Hash of row `i` of the node state table.
pub fn node_state_hash(rows: &NodeStateRows, i: usize) -> u32 {
    node_hash([
        rows.id[i],
        u32::from(rows.state[i]),
        rows.cpu_milli_free[i],
        rows.memory_mib_free[i],
        rows.devices_free_mask[i],
    ])
}

/// Hash of row `i` of the job state table together with the allocation rows that it names.
pub fn job_state_hash(rows: &JobStateRows, allocations: &AllocationRows, i: usize) -> u32 {
    let own = job_hash([rows.id[i], u32::from(rows.state[i]), u32::from(rows.mine[i]), rows.restarts[i]]);
    let start = rows.allocation_start[i] as usize;
    (start..start + rows.allocation_count[i] as usize)
        .map(|row| allocation_row_hash(allocations, row))
        .fold(own, u32::wrapping_add)
}

fn allocation_row_hash(rows: &AllocationRows, i: usize) -> u32 {
    allocation_hash([
        rows.job[i],
        rows.group[i],
        rows.node[i],
        rows.workers[i],
        rows.cpu_milli[i],
        rows.memory_mib[i],
        rows.gpu_milli[i],
        rows.device_mask[i],
    ])
}
