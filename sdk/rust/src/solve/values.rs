//! Values of nodes by what runs on them.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::divide::{Division, Lattice, divide};
use super::options::{Amount, Options};

/// Entries of a value cache; it starts anew beyond.
const CACHED_MAX: usize = 200_000;

/// Options by class number: jobs of one class have the same options, and a class never changes.
#[derive(Clone, Debug, Default)]
pub struct Book {
    classes: Vec<Rc<Options>>,
}

impl Book {
    /// Adds a class.
    pub fn add(&mut self, options: Options) -> u32 {
        self.classes.push(Rc::new(options));
        self.classes.len() as u32 - 1
    }

    /// Options of a class.
    ///
    /// # Panics
    /// When the number was never given by [`Book::add`].
    pub fn get(&self, class: u32) -> &Options {
        &self.classes[class as usize]
    }
}

/// Values of nodes by what runs on them, each computed once.
#[derive(Clone, Debug, Default)]
pub struct NodeValues {
    /// Only looked up, never walked.
    known: FxHashMap<Vec<u32>, Option<Rc<Division>>>,
    computed: u64,
}

impl NodeValues {
    /// Best division of `capacity` among jobs of these `classes`, which must be sorted: the picks are in that order.
    /// `None` when their bases do not fit. What is reserved for others is not in `capacity`.
    ///
    /// All classes of a call must belong to nodes of this `lattice`.
    pub fn get(&mut self, book: &Book, classes: &[u32], lattice: Lattice, capacity: Amount) -> Option<Rc<Division>> {
        debug_assert!(classes.is_sorted(), "classes must be sorted");
        let mut key = Vec::with_capacity(classes.len() + 2);
        key.extend_from_slice(classes);
        key.push(lattice.cpu.units_within(capacity.cpu));
        key.push(lattice.memory.units_within(capacity.memory));
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let jobs: Vec<&Options> = classes.iter().map(|&class| book.get(class)).collect();
        let division = divide(&jobs, lattice, capacity).map(Rc::new);
        if self.known.len() >= CACHED_MAX {
            self.known.clear();
        }
        self.known.insert(key, division.clone());
        self.computed += 1;
        division
    }

    /// Divisions computed so far, not counting those found in the cache.
    pub fn computed(&self) -> u64 {
        self.computed
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::options::Floor;
    use crate::solve::synergy::{SERVER, options_of};

    #[test]
    fn a_node_value_is_computed_once_per_multiset_and_capacity() {
        let (mut book, mut values) = (Book::default(), NodeValues::default());
        let alexnet = book.add(options_of("alexnet", 1, Floor::Share));
        let gnmt = book.add(options_of("gnmt", 1, Floor::Share));
        let mut ask = |classes: &[u32], cpu| {
            let capacity = Amount { cpu, memory: 24 };
            values.get(&book, classes, Lattice::unit(SERVER), capacity).map(|found| (found.value, values.computed()))
        };
        assert_eq!(ask(&[alexnet, gnmt], 24).map(|found| found.1), Some(1));
        assert_eq!(ask(&[alexnet, gnmt], 24).map(|found| found.1), Some(1));
        let (smaller, computed) = ask(&[alexnet, gnmt], 10).unwrap();
        assert!((smaller - 3.0).abs() < 1e-6 && computed == 2, "{smaller} after {computed}");
        assert_eq!(ask(&[alexnet, gnmt], 3), None);
    }
}
