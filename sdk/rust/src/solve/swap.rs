//! Which job of one node to exchange with one of another, so that both nodes divide better.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::divide::Lattice;
use super::options::Amount;
use super::values::{Book, NodeValues};

/// Least gain that counts; gains that differ by less count as equal.
const GAIN_MIN: f64 = 1e-6;

/// Mixes and pairs of them remembered; see [`Exchanges::trim`].
const MIXES_MAX: usize = 100_000;
const PAIRS_MAX: usize = 200_000;

/// Exchanges remembered of a pair, the best ones.
const EXCHANGES_MAX: usize = 16;

/// A job on a node, as far as exchanges look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenant {
    pub class: u32,
    pub gpus: u32,
    /// Whether it may be moved.
    pub movable: bool,
}

/// A node that may take part in an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// In any order.
    pub tenants: Vec<Tenant>,
    pub gpus_free: u32,
    /// CPU and memory that its tenants divide.
    pub capacity: Amount,
}

/// Two nodes' jobs changing places, or one moving into free GPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// Tenant of the first side that goes to the second; none: nobody does.
    pub there: Option<Tenant>,
    /// Tenant of the second side that comes to the first; none: nobody does.
    pub back: Option<Tenant>,
    /// What the values of both nodes gain together.
    pub gain: f64,
}

/// Number of a mix: what sides that are alike share.
pub type MixId = u32;

#[derive(Clone, Debug)]
struct Mix {
    /// Sorted.
    tenants: Vec<Tenant>,
    gpus_free: u32,
    capacity: Amount,
    lattice: Lattice,
    /// None when the bases do not fit.
    value: Option<f64>,
    /// What the tenants would be worth if each had all that it can use.
    peak: f64,
}

impl Mix {
    fn new(mut side: Side, lattice: Lattice, book: &Book, values: &mut NodeValues) -> Self {
        side.tenants.sort_unstable();
        let peak = side.tenants.iter().map(|tenant| book.get(tenant.class).peak().value).sum();
        let Side { tenants, gpus_free, capacity } = side;
        let mut mix = Self { tenants, gpus_free, capacity, lattice, value: None, peak };
        mix.value = mix.value_with(book, values, None, None);
        mix
    }

    /// Value of the node with one tenant replaced by another; either may be none.
    fn value_with(&self, book: &Book, values: &mut NodeValues, out: Option<Tenant>, by: Option<Tenant>) -> Option<f64> {
        let mut classes: Vec<u32> = self.tenants.iter().map(|tenant| tenant.class).collect();
        if let Some(at) = out.and_then(|out| classes.binary_search(&out.class).ok()) {
            classes.remove(at);
        }
        if let Some(by) = by {
            classes.insert(classes.partition_point(|class| *class < by.class), by.class);
        }
        values.get(book, &classes, self.lattice, self.capacity).map(|division| division.value)
    }

    /// Movable tenants, one of each class.
    fn movable(&self) -> Vec<Tenant> {
        let mut movable: Vec<Tenant> = self.tenants.iter().copied().filter(|tenant| tenant.movable).collect();
        movable.dedup();
        movable
    }
}

/// Looks for exchanges between nodes of one kind; what alike nodes gain is computed once.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    numbers: FxHashMap<Vec<u32>, MixId>,
    mixes: Vec<Mix>,
    pairs: FxHashMap<(MixId, MixId), Rc<[Exchange]>>,
}

impl Exchanges {
    /// Number of a side's mix. It holds until the next [`Exchanges::trim`] or [`Exchanges::clear`].
    pub fn mix(&mut self, (book, values): (&Book, &mut NodeValues), side: Side, lattice: Lattice) -> MixId {
        let key = key(&side, lattice);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.mixes.len() as MixId;
        self.mixes.push(Mix::new(side, lattice, book, values));
        self.numbers.insert(key, number);
        number
    }

    /// What the tenants of a mix would gain if each had all that it can use; none when their bases do not fit.
    ///
    /// # Panics
    /// When the number does not hold any more, as all functions that take one.
    pub fn unmet(&self, mix: MixId) -> Option<f64> {
        let mix = &self.mixes[mix as usize];
        mix.value.map(|value| mix.peak - value)
    }

    /// Whether [`Exchanges::between`] is a look-up.
    pub fn knows(&self, a: MixId, b: MixId) -> bool {
        self.pairs.contains_key(&(a, b))
    }

    /// Exchanges that gain, the best first: jobs with as many GPUs change places, or one moves into free GPUs. Both nodes
    /// have the same steps, and their classes are of `book`.
    pub fn between(&mut self, (book, values): (&Book, &mut NodeValues), a: MixId, b: MixId) -> Rc<[Exchange]> {
        if let Some(known) = self.pairs.get(&(a, b)) {
            return Rc::clone(known);
        }
        let found: Rc<[Exchange]> = search(book, values, &self.mixes[a as usize], &self.mixes[b as usize]).into();
        self.pairs.insert((a, b), Rc::clone(&found));
        found
    }

    /// Forgets all when so much is remembered that memory matters. To be called while no number is held.
    pub fn trim(&mut self) {
        if self.mixes.len() > MIXES_MAX || self.pairs.len() > PAIRS_MAX {
            self.clear();
        }
    }

    /// Class numbers got another meaning.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// What matters about a side.
fn key(side: &Side, lattice: Lattice) -> Vec<u32> {
    let mut tenants = side.tenants.clone();
    tenants.sort_unstable();
    let Lattice { cpu, memory } = lattice;
    let mut key = Vec::with_capacity(tenants.len() * 2 + 7);
    key.extend(tenants.iter().flat_map(|tenant| [tenant.class, tenant.gpus << 1 | u32::from(tenant.movable)]));
    key.extend([side.gpus_free, cpu.units_within(side.capacity.cpu), memory.units_within(side.capacity.memory)]);
    key.extend([cpu.total, cpu.units, memory.total, memory.units]);
    key
}

fn search(book: &Book, values: &mut NodeValues, a: &Mix, b: &Mix) -> Vec<Exchange> {
    let Some((value_a, value_b)) = a.value.zip(b.value) else { return Vec::new() };
    let mut found = Vec::new();
    for (there, back) in moves(a, b) {
        let Some(at_a) = a.value_with(book, values, there, back) else { continue };
        let Some(at_b) = b.value_with(book, values, back, there) else { continue };
        let gain = at_a + at_b - value_a - value_b;
        if gain > GAIN_MIN {
            found.push(Exchange { there, back, gain });
        }
    }
    // Stable: of equal gains the first found stays first.
    found.sort_by_key(|exchange| std::cmp::Reverse((exchange.gain / GAIN_MIN) as u64));
    found.truncate(EXCHANGES_MAX);
    found
}

/// All pairs that change places, and all moves into free GPUs.
fn moves(a: &Mix, b: &Mix) -> Vec<(Option<Tenant>, Option<Tenant>)> {
    let (from_a, from_b) = (a.movable(), b.movable());
    let mut moves = Vec::new();
    for there in from_a {
        let equal = |back: &&Tenant| back.gpus == there.gpus && back.class != there.class;
        moves.extend(from_b.iter().filter(equal).map(|back| (Some(there), Some(*back))));
        if b.gpus_free >= there.gpus {
            moves.push((Some(there), None));
        }
    }
    moves.extend(from_b.iter().filter(|back| a.gpus_free >= back.gpus).map(|back| (None, Some(*back))));
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::options::Floor;
    use crate::solve::synergy::{SERVER, options_of};

    #[derive(Default)]
    struct Case {
        book: Book,
        values: NodeValues,
        names: Vec<(String, u32)>,
        exchanges: Exchanges,
    }

    impl Case {
        fn side(&mut self, jobs: &[(&str, u32)], gpus_free: u32) -> Side {
            let tenant = |&(name, gpus): &(&str, u32)| {
                let key = (name.to_owned(), gpus);
                let known = self.names.iter().position(|other| *other == key);
                let class = known.map_or_else(
                    || {
                        self.names.push(key);
                        self.book.add(options_of(name, gpus, Floor::Share))
                    },
                    |at| at as u32,
                );
                Tenant { class, gpus, movable: true }
            };
            Side { tenants: jobs.iter().map(tenant).collect(), gpus_free, capacity: SERVER }
        }

        fn mix(&mut self, side: &Side) -> MixId {
            self.exchanges.mix((&self.book, &mut self.values), side.clone(), Lattice::unit(SERVER))
        }

        fn between(&mut self, a: &Side, b: &Side) -> Rc<[Exchange]> {
            let (a, b) = (self.mix(a), self.mix(b));
            self.exchanges.between((&self.book, &mut self.values), a, b)
        }

        /// Names of the jobs that move.
        fn best(&mut self, a: &Side, b: &Side) -> Option<(Option<&str>, Option<&str>, f64)> {
            let best = *self.between(a, b).first()?;
            let name = |tenant: Option<Tenant>| tenant.map(|tenant| self.names[tenant.class as usize].0.as_str());
            Some((name(best.there), name(best.back), best.gain))
        }
    }

    #[test]
    fn the_study_case_c3_reaches_the_optimum_in_one_exchange() {
        let mut case = Case::default();
        let a = case.side(&[("alexnet", 1), ("alexnet", 1), ("res18", 4), ("res50", 2)], 0);
        let b = case.side(&[("gnmt", 1), ("gnmt", 1), ("gnmt", 4), ("gnmt", 2)], 0);
        let (there, back, gain) = case.best(&a, &b).unwrap();
        assert_eq!((there, back), (Some("res18"), Some("gnmt")));
        assert!((gain - 3.92).abs() < 1e-6, "{gain}");
        let all = case.between(&a, &b);
        assert!(all.len() > 1 && all.is_sorted_by(|one, next| one.gain >= next.gain - GAIN_MIN), "{all:?}");
    }

    #[test]
    fn a_pair_is_searched_once_whatever_the_order_of_its_jobs() {
        let mut case = Case::default();
        let a = case.side(&[("alexnet", 1), ("gnmt", 1)], 6);
        let turned = case.side(&[("gnmt", 1), ("alexnet", 1)], 6);
        assert_eq!(case.best(&a, &a), None);
        let computed = case.values.computed();
        case.values.clear();
        let (one, other) = (case.mix(&a), case.mix(&turned));
        assert!(one == other && case.exchanges.knows(one, other));
        assert_eq!(case.best(&a, &turned), None);
        assert_eq!(case.values.computed(), computed);
    }

    #[test]
    fn a_hungry_job_moves_into_free_gpus() {
        let mut case = Case::default();
        let a = case.side(&[("alexnet", 1), ("alexnet", 1), ("alexnet", 1)], 5);
        let b = case.side(&[("gnmt", 1)], 7);
        assert!(matches!(case.best(&a, &b), Some((Some("alexnet"), None, _))));
        assert!(matches!(case.best(&b, &a), Some((None, Some("alexnet"), _))));
    }

    #[test]
    fn what_may_not_move_stays() {
        let mut case = Case::default();
        let mut a = case.side(&[("alexnet", 1), ("alexnet", 1), ("alexnet", 1)], 5);
        let b = case.side(&[("gnmt", 1)], 7);
        a.tenants.iter_mut().for_each(|tenant| tenant.movable = false);
        assert_eq!(case.best(&a, &b), None);
    }

    #[test]
    fn unmet_wishes_are_what_lacks_to_the_peaks() {
        let mut case = Case::default();
        let check = |case: &mut Case, jobs: &[(&str, u32)], expected: Option<f64>| {
            let side = case.side(jobs, 0);
            let mix = case.mix(&side);
            let unmet = case.exchanges.unmet(mix);
            assert!(unmet.zip(expected).is_none_or(|(unmet, expected)| (unmet - expected).abs() < 1e-6), "{unmet:?}");
            assert_eq!(unmet.is_some(), expected.is_some());
        };
        check(&mut case, &[("gnmt", 1); 8], Some(0.0));
        check(&mut case, &[("alexnet", 1); 8], Some(8.0 * 1.94));
        check(&mut case, &[("alexnet", 1); 9], None);
    }

    #[test]
    fn nodes_with_other_steps_are_other_mixes() {
        let mut case = Case::default();
        let side = Side { tenants: Vec::new(), gpus_free: 8, capacity: SERVER };
        let coarse = Lattice { cpu: super::super::Axis { total: 48, units: 24 }, ..Lattice::unit(SERVER) };
        let one = case.mix(&side);
        let capacity = Amount { cpu: 48, ..SERVER };
        let parts = (&case.book, &mut case.values);
        let other = case.exchanges.mix(parts, Side { capacity, ..side }, coarse);
        assert_ne!(one, other);
    }
}
