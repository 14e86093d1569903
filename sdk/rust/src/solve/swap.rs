//! Which job of one node to exchange with one of another, so that both nodes divide better.

use std::collections::{BTreeMap, BTreeSet};

use super::divide::Lattice;
use super::options::Amount;
use super::values::{Book, NodeValues};

/// Least gain that counts.
const GAIN_MIN: f64 = 1e-6;

/// Pairs remembered; the memory starts anew beyond.
const TRIED_MAX: usize = 500_000;

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

impl Side {
    /// Sorted classes with tenant `out` replaced by a job of class `by`; either may be none.
    fn classes_with(&self, out: Option<usize>, by: Option<u32>) -> Vec<u32> {
        let kept = self.tenants.iter().enumerate().filter(|(at, _)| Some(*at) != out);
        let mut classes: Vec<u32> = kept.map(|(_, tenant)| tenant.class).chain(by).collect();
        classes.sort_unstable();
        classes
    }
}

/// Two nodes' jobs changing places, or one moving into free GPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// Tenant of the first side that goes to the second; none: nobody does.
    pub there: Option<usize>,
    /// Tenant of the second side that comes to the first; none: nobody does.
    pub back: Option<usize>,
    /// What the values of both nodes gain together.
    pub gain: f64,
}

/// A side with the values that it was found to have, for looking at many partners.
#[derive(Clone, Debug)]
pub struct Candidate {
    side: Side,
    lattice: Lattice,
    /// By the tenant that left and the class that came.
    values: BTreeMap<(Option<usize>, Option<u32>), Option<f64>>,
}

impl Candidate {
    /// A node with the steps of `lattice`.
    pub fn new(side: Side, lattice: Lattice) -> Self {
        Self { side, lattice, values: BTreeMap::new() }
    }

    /// The side given.
    pub fn side(&self) -> &Side {
        &self.side
    }

    /// Value of the node as it is; none when its bases do not fit.
    pub fn value(&mut self, book: &Book, values: &mut NodeValues) -> Option<f64> {
        self.value_with(book, values, None, None)
    }

    fn value_with(&mut self, book: &Book, values: &mut NodeValues, out: Option<usize>, by: Option<u32>) -> Option<f64> {
        if let Some(known) = self.values.get(&(out, by)) {
            return *known;
        }
        let classes = self.side.classes_with(out, by);
        let value = values.get(book, &classes, self.lattice, self.side.capacity).map(|division| division.value);
        self.values.insert((out, by), value);
        value
    }
}

/// Looks for exchanges between nodes of one kind and remembers where there are none.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    signatures: BTreeMap<Vec<u32>, u32>,
    tried: BTreeSet<(u32, u32)>,
}

impl Exchanges {
    /// The best exchange between `a` and `b` that `pays(exchange)`: jobs with as many GPUs change places, or one moves into
    /// free GPUs. Both nodes have the same steps, and their classes are of `book`.
    pub fn best(
        &mut self,
        (book, values): (&Book, &mut NodeValues),
        (a, b): (&mut Candidate, &mut Candidate),
        pays: &mut dyn FnMut(&Exchange) -> bool,
    ) -> Option<Exchange> {
        let pair = (self.signature(a), self.signature(b));
        if self.tried.contains(&pair) {
            return None;
        }
        let before = a.value(book, values)? + b.value(book, values)?;
        let mut best: Option<Exchange> = None;
        let mut any = false;
        for (there, back) in moves(&a.side, &b.side) {
            let class = |side: &Side, at: Option<usize>| at.map(|at| side.tenants[at].class);
            let (goes, comes) = (class(&a.side, there), class(&b.side, back));
            let Some(at_a) = a.value_with(book, values, there, comes) else { continue };
            let Some(at_b) = b.value_with(book, values, back, goes) else { continue };
            let gain = at_a + at_b - before;
            if gain <= GAIN_MIN {
                continue;
            }
            any = true;
            let exchange = Exchange { there, back, gain };
            let better = best.is_none_or(|best| gain > best.gain + GAIN_MIN);
            if better && pays(&exchange) {
                best = Some(exchange);
            }
        }
        if !any {
            self.remember(pair);
        }
        best
    }

    /// Class numbers got another meaning.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn remember(&mut self, pair: (u32, u32)) {
        if self.tried.len() >= TRIED_MAX {
            self.clear();
        } else {
            self.tried.insert(pair);
        }
    }

    /// Number of what matters about a side.
    fn signature(&mut self, candidate: &Candidate) -> u32 {
        let (side, lattice) = (&candidate.side, candidate.lattice);
        let mut tenants: Vec<Tenant> = side.tenants.clone();
        tenants.sort_unstable();
        let mut key: Vec<u32> =
            tenants.iter().flat_map(|tenant| [tenant.class, tenant.gpus, u32::from(tenant.movable)]).collect();
        key.push(side.gpus_free);
        key.push(lattice.cpu.units_within(side.capacity.cpu));
        key.push(lattice.memory.units_within(side.capacity.memory));
        let next = self.signatures.len() as u32;
        *self.signatures.entry(key).or_insert(next)
    }
}

/// Movable tenants, one of each class.
fn distinct(side: &Side) -> Vec<usize> {
    let first = |at: &usize| {
        let tenant = side.tenants[*at];
        tenant.movable && !side.tenants[..*at].contains(&tenant)
    };
    (0..side.tenants.len()).filter(first).collect()
}

/// All pairs that change places, and all moves into free GPUs.
fn moves(a: &Side, b: &Side) -> Vec<(Option<usize>, Option<usize>)> {
    let (from_a, from_b) = (distinct(a), distinct(b));
    let mut moves = Vec::new();
    for &there in &from_a {
        let goes = a.tenants[there];
        let equal = |back: &&usize| b.tenants[**back].gpus == goes.gpus && b.tenants[**back].class != goes.class;
        moves.extend(from_b.iter().filter(equal).map(|back| (Some(there), Some(*back))));
        if b.gpus_free >= goes.gpus {
            moves.push((Some(there), None));
        }
    }
    let fits = |back: &&usize| a.gpus_free >= b.tenants[**back].gpus;
    moves.extend(from_b.iter().filter(fits).map(|back| (None, Some(*back))));
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::options::Floor;
    use crate::solve::synergy::{SERVER, options_of};

    struct Case {
        book: Book,
        values: NodeValues,
        names: Vec<(String, u32)>,
        exchanges: Exchanges,
    }

    impl Case {
        fn new() -> Self {
            let (book, values) = (Book::default(), NodeValues::default());
            Self { book, values, names: Vec::new(), exchanges: Exchanges::default() }
        }

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

        fn best(&mut self, a: &Side, b: &Side) -> Option<Exchange> {
            self.best_that_pays(a, b, true)
        }

        fn best_that_pays(&mut self, a: &Side, b: &Side, pays: bool) -> Option<Exchange> {
            let candidate = |side: &Side| Candidate::new(side.clone(), Lattice::unit(SERVER));
            let sides = (&mut candidate(a), &mut candidate(b));
            self.exchanges.best((&self.book, &mut self.values), sides, &mut |_| pays)
        }
    }

    #[test]
    fn the_study_case_c3_reaches_the_optimum_in_one_exchange() {
        let mut case = Case::new();
        let a = case.side(&[("alexnet", 1), ("alexnet", 1), ("res18", 4), ("res50", 2)], 0);
        let b = case.side(&[("gnmt", 1), ("gnmt", 1), ("gnmt", 4), ("gnmt", 2)], 0);
        let found = case.best(&a, &b).unwrap();
        assert!((found.gain - 3.92).abs() < 1e-6, "{found:?}");
        assert_eq!((found.there, found.back), (Some(2), Some(2)));
    }

    #[test]
    fn a_pair_without_gain_is_not_searched_again() {
        let mut case = Case::new();
        let a = case.side(&[("alexnet", 1), ("gnmt", 1)], 6);
        assert_eq!(case.best(&a.clone(), &a), None);
        let computed = case.values.computed();
        case.values.clear();
        assert_eq!(case.best(&a.clone(), &a), None);
        assert_eq!(case.values.computed(), computed);
    }

    #[test]
    fn a_hungry_job_moves_into_free_gpus() {
        let mut case = Case::new();
        let a = case.side(&[("alexnet", 1), ("alexnet", 1), ("alexnet", 1)], 5);
        let b = case.side(&[("gnmt", 1)], 7);
        let found = case.best(&a, &b).unwrap();
        assert_eq!((found.there, found.back), (Some(0), None));
        let found = case.best(&b, &a).unwrap();
        assert_eq!((found.there, found.back), (None, Some(0)));
    }

    #[test]
    fn what_may_not_move_or_does_not_pay_stays() {
        let mut case = Case::new();
        let mut a = case.side(&[("alexnet", 1), ("alexnet", 1), ("alexnet", 1)], 5);
        let b = case.side(&[("gnmt", 1)], 7);
        assert_eq!(case.best_that_pays(&a, &b, false), None);
        a.tenants.iter_mut().for_each(|tenant| tenant.movable = false);
        assert_eq!(case.best(&a, &b), None);
    }
}
