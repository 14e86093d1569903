//! Option classes: what a job of a profile may hold on a node of a shape, from predictions asked once.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::KindId;
use coretuner_sdk::solve::{Amount, Book, Filter, Floor, NodeValues, Options, Surface, options};

use crate::axes::{Ranges, axes};
use crate::config::Config;
use crate::oracle::{Oracle, Question};
use crate::profile::{Gang, ProfileId, Profiles};
use crate::shape::{Shape, ShapeId, Shapes};
use crate::span::Spans;

/// Number of a class: an index into the book.
pub(crate) type ClassNo = u32;

/// Classes of a book beyond which all are forgotten and made anew.
const CLASSES_MAX: usize = 50_000;

/// What a running job cannot change, by the backend's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pin {
    pub(crate) cpu_milli: Option<u32>,
    pub(crate) memory_mib_min: u32,
    pub(crate) memory_mib_max: u32,
}

impl Pin {
    /// A job that has not started may take anything in its range.
    pub(crate) const FREE: Self = Self { cpu_milli: None, memory_mib_min: 0, memory_mib_max: u32::MAX };

    /// A job that stays at what it holds.
    pub(crate) fn at(held: Amount) -> Self {
        Self { cpu_milli: Some(held.cpu), memory_mib_min: held.memory, memory_mib_max: held.memory }
    }

    /// What the rights of a running gang leave open.
    pub(crate) fn of(gang: &Gang, held: Amount) -> Self {
        Self {
            cpu_milli: (!gang.rights.cpu).then_some(held.cpu),
            memory_mib_min: if gang.rights.memory_shrink { 0 } else { held.memory },
            memory_mib_max: if gang.rights.memory_grow { u32::MAX } else { held.memory },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) profile: ProfileId,
    pub(crate) shape: ShapeId,
    pub(crate) pin: Pin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SurfaceKey {
    kind: KindId,
    shape: ShapeId,
    gpus: u32,
    /// Fewer only for an elastic job with more than its least.
    gpus_least: u32,
    ranges: Ranges,
}

/// What is read off a surface.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    options: Options,
    /// Iterations per second for each unit of value; unknown where nothing was predicted.
    speed_per_value: Option<f64>,
    /// Largest doubt of any ratio to the speed at the share.
    doubt: f64,
}

/// What classes are made from.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) config: &'a Config,
    pub(crate) shapes: &'a Shapes,
    pub(crate) profiles: &'a Profiles,
}

/// All classes, and the node values that depend on them.
#[derive(Default)]
pub(crate) struct Classes {
    pub(crate) book: Book,
    pub(crate) values: NodeValues,
    pub(crate) spans: Spans,
    by_key: BTreeMap<Key, ClassNo>,
    /// Classes of kinds whose predictions changed: taken up again where the options turn out the same.
    retired: BTreeMap<Key, ClassNo>,
    surfaces: BTreeMap<SurfaceKey, Reading>,
    /// Kinds for which the host failed to answer: to be asked again.
    unanswered: BTreeSet<KindId>,
    speed_per_value: Vec<Option<f64>>,
    doubts: Vec<f64>,
}

impl Classes {
    /// Class of a gang; the host is asked when its predictions are not known yet.
    pub(crate) fn class(&mut self, sources: Sources<'_>, key: Key, oracle: &mut Oracle<'_, '_>) -> ClassNo {
        if let Some(&class) = self.by_key.get(&key) {
            return class;
        }
        let reading = self.read(sources, key, oracle);
        let class = match self.retired.remove(&key) {
            Some(old) if *self.book.get(old) == reading.options => old,
            _ => {
                self.speed_per_value.push(None);
                self.doubts.push(0.0);
                self.book.add(reading.options)
            }
        };
        self.speed_per_value[class as usize] = reading.speed_per_value;
        self.doubts[class as usize] = reading.doubt;
        self.by_key.insert(key, class);
        class
    }

    /// The class, if its predictions are known already.
    pub(crate) fn known(&self, key: Key) -> Option<ClassNo> {
        self.by_key.get(&key).copied()
    }

    fn read(&mut self, sources: Sources<'_>, key: Key, oracle: &mut Oracle<'_, '_>) -> Reading {
        let profile = sources.profiles.get(key.profile);
        let Some(gang) = profile.gang() else {
            return Reading { options: Options::fixed(Amount::default(), 0.0), speed_per_value: None, doubt: 0.0 };
        };
        let ranges = Ranges::of(gang, key.pin);
        let Some(kind) = profile.kind else { return at_share(sources, key.shape, gang, ranges) };
        let surface = SurfaceKey { kind, shape: key.shape, gpus: gang.gpus(), gpus_least: gang.gpus_least(), ranges };
        if let Some(reading) = self.surfaces.get(&surface) {
            return reading.clone();
        }
        let failures = oracle.failures;
        let reading = predict(sources, surface, oracle).unwrap_or_else(|| at_share(sources, key.shape, gang, ranges));
        if oracle.failures > failures {
            self.unanswered.insert(kind);
        }
        self.surfaces.insert(surface, reading.clone());
        reading
    }

    /// Iterations per second of a job of that class at `value`, where predicted.
    pub(crate) fn speed(&self, class: ClassNo, value: f64) -> Option<f64> {
        let per_value = (*self.speed_per_value.get(class as usize)?)?;
        Some(per_value * value)
    }

    /// How unsure the predictions behind a class are; see [`coretuner_sdk::solve::Band::doubt`].
    pub(crate) fn doubt(&self, class: ClassNo) -> f64 {
        self.doubts.get(class as usize).copied().unwrap_or(0.0)
    }

    /// Kinds to ask for again, because the host failed to answer; they are not told twice.
    pub(crate) fn take_unanswered(&mut self) -> BTreeSet<KindId> {
        std::mem::take(&mut self.unanswered)
    }

    /// Forgets what was predicted of `kind`. Whether anything was.
    pub(crate) fn forget_kind(&mut self, kind: KindId, profiles: &Profiles) -> bool {
        let before = self.surfaces.len();
        self.spans.forget_kind(kind);
        self.surfaces.retain(|key, _| key.kind != kind);
        let of_kind = |key: &Key| profiles.get(key.profile).kind == Some(kind);
        let gone: Vec<_> = self.by_key.iter().filter(|(key, _)| of_kind(key)).map(|(key, no)| (*key, *no)).collect();
        for (key, class) in gone {
            self.by_key.remove(&key);
            self.retired.insert(key, class);
        }
        self.surfaces.len() < before
    }

    /// Whether so many classes were made that it is time to begin anew.
    pub(crate) fn is_full(&self) -> bool {
        self.speed_per_value.len() > CLASSES_MAX
    }
}

/// A job of which nothing is known gets its proportional share.
fn at_share(sources: Sources<'_>, shape: ShapeId, gang: &Gang, ranges: Ranges) -> Reading {
    let share = sources.shapes.get(shape).share(gang.gpus());
    let amount = ranges.nearest(share);
    Reading { options: Options::fixed(amount, f64::from(gang.gpus())), speed_per_value: None, doubt: 0.0 }
}

fn predict(sources: Sources<'_>, key: SurfaceKey, oracle: &mut Oracle<'_, '_>) -> Option<Reading> {
    let shape = sources.shapes.get(key.shape);
    let (cpu, memory) = axes(shape, key.gpus, key.ranges, sources.config);
    let share = shape.share(key.gpus);
    let share = Amount { cpu: share.cpu.max(*cpu.first()?), memory: share.memory.max(*memory.first()?) };
    let nodes_spanned = key.gpus.div_ceil(shape.devices).max(1);
    let question = Question { gpu_kind: shape.gpu_kind, gpus: key.gpus, nodes_spanned, cpu, memory };
    let answer = oracle.ask(&question)?;
    let floor = if sources.config.floor { Floor::Share } else { Floor::LeastCpu };
    let means = Surface { cpu: &question.cpu, memory: &question.memory, speed: &answer.mean };
    let at_share = index_within(&means, share)?;
    let doubt = (0..answer.mean.len()).map(|at| answer.band().doubt(at, at_share)).fold(0.0, f64::max);
    let speed = answer.band().cautious(at_share, sources.config.caution);
    let surface = Surface { speed: &speed, ..means };
    let filter = Filter { floor, tolerance: sources.config.tolerance };
    let options = options(surface, share, weight(shape, key, *answer.mean.get(at_share)?, oracle)?, filter)?;
    let at_base = speed_at(&surface, options.base().amount())?;
    let speed_per_value = Some(f64::from(at_base) / options.base().value);
    Some(Reading { options, speed_per_value, doubt })
}

/// Value at the share: its GPUs; of an elastic job its least GPUs times how much faster it is than with those, so that
/// values with any number of workers compare.
fn weight(shape: &Shape, key: SurfaceKey, at_share: f32, oracle: &mut Oracle<'_, '_>) -> Option<f64> {
    let least = f64::from(key.gpus_least);
    if key.gpus == key.gpus_least {
        return Some(least);
    }
    let share = shape.share(key.gpus_least);
    let (cpu, memory) = (vec![share.cpu], vec![share.memory]);
    let nodes_spanned = key.gpus_least.div_ceil(shape.devices).max(1);
    let question = Question { gpu_kind: shape.gpu_kind, gpus: key.gpus_least, nodes_spanned, cpu, memory };
    let at_least = f64::from(*oracle.ask(&question)?.mean.first()?);
    Some(least * f64::from(at_share) / at_least).filter(|weight| weight.is_finite() && *weight > 0.0)
}

/// The largest point within an amount.
fn index_within(surface: &Surface<'_>, amount: Amount) -> Option<usize> {
    let last = |axis: &[u32], limit: u32| axis.partition_point(|amount| *amount <= limit).checked_sub(1);
    Some(last(surface.cpu, amount.cpu)? * surface.memory.len() + last(surface.memory, amount.memory)?)
}

fn speed_at(surface: &Surface<'_>, amount: Amount) -> Option<f32> {
    let row = surface.cpu.binary_search(&amount.cpu).ok()?;
    let column = surface.memory.binary_search(&amount.memory).ok()?;
    surface.speed.get(row * surface.memory.len() + column).copied()
}
