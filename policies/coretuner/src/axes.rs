//! The amounts of CPU and memory that are considered for a gang.

use coretuner_sdk::solve::{Amount, Axis};

use crate::classes::Pin;
use crate::config::Config;
use crate::profile::Gang;
use crate::shape::Shape;

/// Least and most that a gang may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ranges {
    cpu_milli: (u32, u32),
    memory_mib: (u32, u32),
}

impl Ranges {
    /// What the job's own ranges and the pin of a running one leave.
    pub(crate) fn of(gang: &Gang, pin: Pin) -> Self {
        let memory_min = gang.memory_mib.0.max(pin.memory_mib_min);
        let memory_max = gang.memory_mib.1.min(pin.memory_mib_max).max(memory_min);
        let cpu_milli = pin.cpu_milli.map_or(gang.cpu_milli, |held| (held, held));
        Self { cpu_milli, memory_mib: (memory_min, memory_max) }
    }

    /// The nearest allowed amount.
    pub(crate) fn nearest(&self, amount: Amount) -> Amount {
        Amount { cpu: clamp(amount.cpu, self.cpu_milli), memory: clamp(amount.memory, self.memory_mib) }
    }
}

fn clamp(amount: u32, (least, most): (u32, u32)) -> u32 {
    amount.max(least).min(most.max(least))
}

/// Totals of CPU and memory to predict for: never empty, ascending.
///
/// CPU: every step from one per GPU to a whole node (or the share, if that is more). Memory: the configured multiples of
/// the share and, where they go below it, the least that the job may hold. Both within the job's ranges.
pub(crate) fn axes(shape: &Shape, gpus: u32, ranges: Ranges, config: &Config) -> (Vec<u32>, Vec<u32>) {
    let (share_cpu, share_memory) = shape.share_units(gpus);
    let share = shape.share(gpus);
    let cpu_axis = shape.lattice.cpu;
    let cpu = (gpus.min(share_cpu)..=cpu_axis.units.max(share_cpu)).map(|units| cpu_axis.amount(units));
    let memory_axis = shape.lattice.memory;
    let memory_max = memory_axis.units.max(share_memory);
    let levels = config.memory_levels.iter().map(|level| (level * f64::from(share_memory) + 1e-6) as u32);
    let least = memory_axis.units_for(ranges.memory_mib.0);
    let least = config.goes_below_share().then_some(least);
    let memory = levels.chain([share_memory]).chain(least).map(|units| memory_axis.amount(units.clamp(1, memory_max)));
    (within(cpu, ranges.cpu_milli, share.cpu), within(memory, ranges.memory_mib, share.memory))
}

fn within(amounts: impl Iterator<Item = u32>, range: (u32, u32), share: u32) -> Vec<u32> {
    let mut axis: Vec<u32> = amounts.filter(|amount| (range.0..=range.1).contains(amount)).collect();
    if axis.is_empty() {
        axis.push(clamp(share, range));
    }
    axis.sort_unstable();
    axis.dedup();
    axis
}

/// Steps of an amount on each axis, rounded up.
pub(crate) fn units(lattice: &coretuner_sdk::solve::Lattice, amount: Amount) -> (u32, u32) {
    let steps = |axis: Axis, amount| axis.units_for(amount);
    (steps(lattice.cpu, amount.cpu), steps(lattice.memory, amount.memory))
}
