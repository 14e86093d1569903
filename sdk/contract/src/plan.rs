//! What the policy says: the tables of `coretuner:policy/plan` as plain Rust.

/// What an action does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Verb {
    /// Start a waiting job with its placement rows; the gang is whole.
    Start,
    /// New CPU or memory for running workers where they are.
    Resize,
    /// New placement, worker count or batch for a running job: costs a restart.
    Rescale,
    /// Stop a running job; it waits again.
    Preempt,
    /// Say why a job waits (no effect on the cluster).
    Hold,
}

impl Verb {
    /// Every verb in the order of the WIT file, which is that of the discriminants.
    pub const ALL: [Self; 5] = [Self::Start, Self::Resize, Self::Rescale, Self::Preempt, Self::Hold];

    /// Called by generated bindings with a discriminant that the canonical ABI has checked.
    #[doc(hidden)]
    pub fn _lift(value: u8) -> Self {
        Self::ALL[value as usize % Self::ALL.len()]
    }
}
/// What shall be done, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionRows {
    pub verb: Vec<Verb>,
    pub job: Vec<u32>,
    /// Actions with one bundle number stand or fall together; numbers never fall from row to row. A bundle is
    /// judged by its net effect: all that it gives back is given back before anything of it is taken.
    pub bundle: Vec<u32>,
    /// Rows of `placement-rows`; for `resize`, the rows replace cpu and memory of the same (group, node).
    pub placement_start: Vec<u32>,
    pub placement_count: Vec<u32>,
    /// Chosen batch per GPU for `rescale`; 0 = unchanged.
    pub batch_per_gpu: Vec<u32>,
    /// Index into `reasons`; `none` = no reason given.
    pub reason: Vec<u32>,
}

/// Where workers shall be and what they get: totals of one group on one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementRows {
    pub group: Vec<u32>,
    pub node: Vec<u32>,
    pub workers: Vec<u32>,
    pub cpu_milli: Vec<u32>,
    pub memory_mib: Vec<u32>,
    pub gpu_milli: Vec<u32>,
    /// 0 = the host picks devices.
    pub device_mask: Vec<u32>,
}

/// Why an action was chosen, for people.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reason {
    /// From the policy's own list in `describe`.
    pub code: String,
    /// Numbers behind it, in the order that `describe` documents (gain, price, threshold, expected time, …).
    pub arguments: Vec<f64>,
    /// Node or job that it speaks of; `none` = none.
    pub node: u32,
    pub other_job: u32,
}

/// An answer to one cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Revision of the view it was made from.
    pub revision: u64,
    pub actions: ActionRows,
    pub placements: PlacementRows,
    pub reasons: Vec<Reason>,
    /// Ask for a cycle at this time even if nothing happens; 0 = no.
    pub wake_at_ns: u64,
}
