//! CPU, memory and storage rate together.

/// Totals; the storage rate in thousandths of a MiB/s, so that shares of a server stay exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    pub(crate) cpu_milli: u64,
    pub(crate) memory_mib: u64,
    pub(crate) storage_milli: u64,
}

impl Amounts {
    /// Whether `demand` is within this in every component.
    pub(crate) fn covers(&self, demand: &Self) -> bool {
        self.cpu_milli >= demand.cpu_milli
            && self.memory_mib >= demand.memory_mib
            && self.storage_milli >= demand.storage_milli
    }

    /// Whether this is more than `share` of CPU or memory.
    pub(crate) fn exceeds(&self, share: &Self) -> bool {
        self.cpu_milli > share.cpu_milli || self.memory_mib > share.memory_mib
    }

    pub(crate) fn take(&mut self, demand: &Self) {
        *self = self.map2(demand, u64::saturating_sub);
    }

    pub(crate) fn give(&mut self, demand: &Self) {
        *self = self.map2(demand, u64::saturating_add);
    }

    /// What belongs to `part` of `whole` equal pieces, rounded down.
    pub(crate) fn portion(&self, part: u32, whole: u32) -> Self {
        self.map(|amount| amount * u64::from(part) / u64::from(whole.max(1)))
    }

    pub(crate) fn times(&self, count: u32) -> Self {
        self.map(|amount| amount * u64::from(count))
    }

    fn map(&self, change: impl Fn(u64) -> u64) -> Self {
        Self {
            cpu_milli: change(self.cpu_milli),
            memory_mib: change(self.memory_mib),
            storage_milli: change(self.storage_milli),
        }
    }

    fn map2(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            cpu_milli: combine(self.cpu_milli, other.cpu_milli),
            memory_mib: combine(self.memory_mib, other.memory_mib),
            storage_milli: combine(self.storage_milli, other.storage_milli),
        }
    }
}
