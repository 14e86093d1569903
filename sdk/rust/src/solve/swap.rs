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
    fn classes(&self) -> Vec<u32> {
        let mut classes: Vec<u32> = self.tenants.iter().map(|tenant| tenant.class).collect();
        classes.sort_unstable();
        classes
    }

    fn value(&self, worth: &mut Worth<'_>) -> Option<f64> {
        worth.of(&self.classes(), self.capacity)
    }

    /// Value with tenant `out` replaced by a job of class `by`; either may be none.
    fn value_with(&self, worth: &mut Worth<'_>, out: Option<usize>, by: Option<u32>) -> Option<f64> {
        let kept = self.tenants.iter().enumerate().filter(|(at, _)| Some(*at) != out);
        let mut classes: Vec<u32> = kept.map(|(_, tenant)| tenant.class).chain(by).collect();
        classes.sort_unstable();
        worth.of(&classes, self.capacity)
    }
}

/// Two nodes' jobs changing places, or one moving into free GPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// Tenant of the first side that goes to the second.
    pub there: usize,
    /// Tenant of the second side that comes to the first; none: it moves into free GPUs.
    pub back: Option<usize>,
    /// What the values of both nodes gain together.
    pub gain: f64,
}

/// Looks for exchanges between nodes of one kind and remembers where there are none.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    signatures: BTreeMap<Vec<u32>, u32>,
    tried: BTreeSet<(u32, u32)>,
}

/// Where values come from.
struct Worth<'a> {
    book: &'a Book,
    values: &'a mut NodeValues,
    lattice: Lattice,
}

impl Worth<'_> {
    fn of(&mut self, classes: &[u32], capacity: Amount) -> Option<f64> {
        self.values.get(self.book, classes, self.lattice, capacity).map(|division| division.value)
    }
}

impl Exchanges {
    /// The best exchange from `a` to `b` that `pays(exchange)`, all pairs of equal numbers of GPUs considered. Both
    /// nodes have the steps of `lattice`, and their classes are of `book`.
    pub fn best(
        &mut self,
        (book, values, lattice): (&Book, &mut NodeValues, Lattice),
        (a, b): (&Side, &Side),
        pays: &mut dyn FnMut(&Exchange) -> bool,
    ) -> Option<Exchange> {
        let pair = (self.signature(a, lattice), self.signature(b, lattice));
        if self.tried.contains(&pair) {
            return None;
        }
        let mut worth = Worth { book, values, lattice };
        let before = a.value(&mut worth)? + b.value(&mut worth)?;
        let mut best: Option<Exchange> = None;
        let mut any = false;
        for there in distinct(a) {
            let backs = distinct(b).into_iter().map(Some).chain([None]);
            for back in backs.filter(|back| fits(a, b, there, *back)) {
                let Some(gain) = gain(&mut worth, (a, b), there, back, before) else { continue };
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
    fn signature(&mut self, side: &Side, lattice: Lattice) -> u32 {
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

fn fits(a: &Side, b: &Side, there: usize, back: Option<usize>) -> bool {
    let goes = a.tenants[there];
    match back {
        Some(back) => b.tenants[back].gpus == goes.gpus && b.tenants[back].class != goes.class,
        None => b.gpus_free >= goes.gpus,
    }
}

fn gain(worth: &mut Worth<'_>, (a, b): (&Side, &Side), there: usize, back: Option<usize>, before: f64) -> Option<f64> {
    let comes = back.map(|back| b.tenants[back].class);
    let at_a = a.value_with(worth, Some(there), comes)?;
    let at_b = b.value_with(worth, back, Some(a.tenants[there].class))?;
    Some(at_a + at_b - before)
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
            let with = (&self.book, &mut self.values, Lattice::unit(SERVER));
            self.exchanges.best(with, (a, b), &mut |_| true)
        }
    }

    #[test]
    fn the_study_case_c3_reaches_the_optimum_in_one_exchange() {
        let mut case = Case::new();
        let a = case.side(&[("alexnet", 1), ("alexnet", 1), ("res18", 4), ("res50", 2)], 0);
        let b = case.side(&[("gnmt", 1), ("gnmt", 1), ("gnmt", 4), ("gnmt", 2)], 0);
        let found = case.best(&a, &b).unwrap();
        assert!((found.gain - 3.92).abs() < 1e-6, "{found:?}");
        assert_eq!((a.tenants[found.there].gpus, found.back.map(|back| b.tenants[back].gpus)), (4, Some(4)));
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
        assert_eq!((found.there, found.back), (0, None));
    }

    #[test]
    fn what_may_not_move_or_does_not_pay_stays() {
        let mut case = Case::new();
        let mut a = case.side(&[("alexnet", 1), ("alexnet", 1), ("alexnet", 1)], 5);
        let b = case.side(&[("gnmt", 1)], 7);
        let with = (&case.book, &mut case.values, Lattice::unit(SERVER));
        assert_eq!(case.exchanges.best(with, (&a, &b), &mut |_| false), None);
        a.tenants.iter_mut().for_each(|tenant| tenant.movable = false);
        assert_eq!(case.best(&a, &b), None);
    }
}
