//! What every job would hold if the cluster were one node: the measure of placement.

use std::collections::BTreeMap;

use coretuner_sdk::solve::{Book, Crowd, Targets, targets};

use crate::classes::ClassNo;

/// Targets of the last crowd, kept while it is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Market {
    crowd: BTreeMap<ClassNo, u32>,
    capacity: (u64, u64),
    targets: Targets,
    /// By class: what a job of it should hold; none where nobody of it is in the crowd.
    means: Vec<Option<(f64, f64)>>,
}

impl Market {
    /// Finds targets for jobs by class on `capacity` of CPU and memory.
    pub(crate) fn settle(&mut self, book: &Book, crowd: BTreeMap<ClassNo, u32>, capacity: (u64, u64)) {
        if self.crowd == crowd && self.capacity == capacity {
            return;
        }
        let crowds: Vec<_> =
            crowd.iter().map(|(class, jobs)| Crowd { options: book.get(*class), jobs: *jobs }).collect();
        self.targets = targets(&crowds, capacity.0, capacity.1);
        self.means.clear();
        self.means.resize(crowd.keys().next_back().map_or(0, |last| *last as usize + 1), None);
        for ((at, of), class) in crowds.iter().enumerate().zip(crowd.keys()) {
            self.means[*class as usize] = Some(self.targets.mean(at, of.options));
        }
        (self.crowd, self.capacity) = (crowd, capacity);
    }

    /// CPU and memory that a job of the class should hold.
    pub(crate) fn target(&self, book: &Book, class: ClassNo) -> (f64, f64) {
        if let Some(Some(mean)) = self.means.get(class as usize) {
            return *mean;
        }
        let point = self.targets.best_response(book.get(class));
        (f64::from(point.cpu), f64::from(point.memory))
    }

    /// Value per normalised cost at which resources run out; 0 = they do not.
    pub(crate) fn price(&self) -> f64 {
        self.targets.price
    }

    /// Prices without the targets they came from.
    pub(crate) fn prices(&self) -> Targets {
        Targets { stops: Vec::new(), ..self.targets }
    }

    /// Class numbers changed their meaning.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
