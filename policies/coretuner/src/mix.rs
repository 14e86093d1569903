//! Which GPUs of a node become useless when its CPU or memory is taken, for the jobs that usually come.
//!
//! The measure follows fragmentation gradient descent (Weng et al., ATC '23), reduced to whole GPUs that lack CPU or memory
//! beside them: a node's loss is the mean, over the jobs that came lately, of the free GPUs that such jobs could use if
//! only GPUs counted, less those that they can use.

use std::collections::BTreeMap;

use coretuner_sdk::solve::Amount;

use crate::axes::units;
use crate::berth::Berth;
use crate::classes::{Key, Pin};
use crate::desk::Desk;
use crate::profile::ProfileId;
use crate::shape::ShapeId;

/// Arrivals after which all counts are halved.
const COUNTED_MAX: u32 = 512;

/// Commonest requests that are looked at.
const TYPICAL_MAX: usize = 8;

/// How many gangs of each profile came lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mix {
    counts: BTreeMap<ProfileId, u32>,
    all: u32,
}

impl Mix {
    /// A gang came.
    pub(crate) fn note(&mut self, profile: ProfileId) {
        *self.counts.entry(profile).or_insert(0) += 1;
        self.all += 1;
        if self.all >= COUNTED_MAX {
            self.counts.values_mut().for_each(|count| *count /= 2);
            self.counts.retain(|_, count| *count > 0);
            self.all = self.counts.values().sum();
        }
    }

    /// The commonest profiles, with their counts.
    fn commonest(&self) -> Vec<(ProfileId, u32)> {
        let mut all: Vec<_> = self.counts.iter().map(|(profile, count)| (*profile, *count)).collect();
        all.sort_by_key(|(profile, count)| (std::cmp::Reverse(*count), *profile));
        all.truncate(TYPICAL_MAX);
        all
    }
}

/// What a usual job needs at least on nodes of a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Need {
    gpus: u32,
    base_units: (u32, u32),
    /// Part of the jobs.
    weight: f64,
}

/// What usual jobs need, by shape. Empty: nothing is looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Typical {
    needs: BTreeMap<ShapeId, Vec<Need>>,
}

impl Typical {
    /// Of what is predicted already; nobody is asked for this.
    pub(crate) fn new(desk: &Desk<'_, '_>, mix: &Mix) -> Self {
        let commonest = mix.commonest();
        let mut needs = BTreeMap::new();
        for shape in desk.shapes.ids() {
            let known = commonest.iter().filter_map(|(profile, count)| need(desk, *profile, shape, *count));
            let mut known: Vec<Need> = known.collect();
            let all: f64 = known.iter().map(|need| need.weight).sum();
            known.iter_mut().for_each(|need| need.weight /= all);
            needs.insert(shape, known);
        }
        Self { needs }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// Thousandths of GPUs of a node that become useless when a gang with this base comes; below 0 where it uses such.
    pub(crate) fn strands_gang(&self, desk: &Desk<'_, '_>, berth: &Berth, gang: (u32, (u32, u32))) -> i64 {
        self.change(desk, berth, |left| {
            let (gpus, base) = gang;
            Left {
                gpus: left.gpus.saturating_sub(gpus),
                cpu: left.cpu.saturating_sub(base.0),
                memory: left.memory.saturating_sub(base.1),
            }
        })
    }

    /// The same when `amount` is taken from what gangs share.
    pub(crate) fn strands_amount(&self, desk: &Desk<'_, '_>, berth: &Berth, amount: Amount) -> i64 {
        let Some(shape) = berth.shape else { return 0 };
        let (cpu, memory) = units(&desk.shapes.get(shape).lattice, amount);
        self.change(desk, berth, |left| Left {
            cpu: left.cpu.saturating_sub(cpu),
            memory: left.memory.saturating_sub(memory),
            ..left
        })
    }

    fn change(&self, desk: &Desk<'_, '_>, berth: &Berth, take: impl FnOnce(Left) -> Left) -> i64 {
        let needs = berth.shape.and_then(|shape| Some((shape, self.needs.get(&shape)?)));
        let Some((shape, needs)) = needs else { return 0 };
        let lattice = desk.shapes.get(shape).lattice;
        let base = berth.base_units();
        let left = Left {
            gpus: berth.gpus_free,
            cpu: lattice.cpu.units_within(berth.capacity.cpu).saturating_sub(base.0),
            memory: lattice.memory.units_within(berth.capacity.memory).saturating_sub(base.1),
        };
        let lost = |left: Left| needs.iter().map(|need| need.weight * f64::from(need.lost(left))).sum::<f64>();
        ((lost(take(left)) - lost(left)) * 1e3).round_ties_even() as i64
    }
}

/// GPUs of a node that are free, and steps of CPU and memory beside the bases of its gangs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Left {
    gpus: u32,
    cpu: u32,
    memory: u32,
}

impl Need {
    /// GPUs that only jobs of this kind cannot use for lack of CPU or memory.
    fn lost(&self, left: Left) -> u32 {
        let by_gpus = left.gpus / self.gpus.max(1);
        let beside = (left.cpu / self.base_units.0.max(1)).min(left.memory / self.base_units.1.max(1));
        by_gpus.saturating_sub(beside) * self.gpus
    }
}

fn need(desk: &Desk<'_, '_>, profile: ProfileId, shape: ShapeId, count: u32) -> Option<Need> {
    let gpus = desk.profile(profile).gang()?.gpus();
    let class = desk.classes.known(Key { profile, shape, pin: Pin::FREE })?;
    let base_units = units(&desk.shapes.get(shape).lattice, desk.options(class).base().amount());
    Some(Need { gpus, base_units, weight: f64::from(count) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_arrivals_fade() {
        let mut mix = Mix::default();
        (0..COUNTED_MAX - 1).for_each(|_| mix.note(1));
        (0..3 * COUNTED_MAX).for_each(|_| mix.note(2));
        assert_eq!(mix.commonest()[0].0, 2);
        assert!(mix.all < COUNTED_MAX);
    }

    #[test]
    fn gpus_are_lost_where_the_scarcer_resource_ends() {
        let check = |gpus, base_units, (free, cpu, memory), expected| {
            let need = Need { gpus, base_units, weight: 1.0 };
            assert_eq!(need.lost(Left { gpus: free, cpu, memory }), expected, "{need:?}");
        };
        check(1, (3, 3), (8, 24, 24), 0);
        check(1, (3, 3), (8, 12, 24), 4);
        check(1, (3, 3), (8, 24, 4), 7);
        check(4, (12, 12), (7, 10, 24), 4);
        check(8, (1, 1), (7, 0, 0), 0);
    }
}
