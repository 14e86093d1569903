//! Running jobs, the one served last first.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::JobId;

/// How a running job compares. Its value at a time is `weight` × (`major` − time) for orders by remaining time, and
/// `major` otherwise; so the set's order holds while time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) weight: u64,
    pub(super) major: u64,
    pub(super) submit_ns: u64,
}

/// Running jobs by standing.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    by_weight: BTreeMap<u64, BTreeSet<(u64, u64, JobId)>>,
    places: BTreeMap<JobId, Standing>,
}

impl Running {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a job or moves it; says whether it stands lower than before.
    pub(super) fn insert(&mut self, job: JobId, standing: Standing) -> bool {
        let old = self.places.insert(job, standing);
        if old == Some(standing) {
            return false;
        }
        if let Some(old) = old {
            self.unlist(job, old);
        }
        let set = self.by_weight.entry(standing.weight).or_default();
        set.insert((standing.major, standing.submit_ns, job));
        old.is_some_and(|old| standing.major > old.major || standing.weight > old.weight)
    }

    pub(super) fn remove(&mut self, job: JobId) {
        if let Some(old) = self.places.remove(&job) {
            self.unlist(job, old);
        }
    }

    fn unlist(&mut self, job: JobId, standing: Standing) {
        if let Some(set) = self.by_weight.get_mut(&standing.weight) {
            set.remove(&(standing.major, standing.submit_ns, job));
            if set.is_empty() {
                self.by_weight.remove(&standing.weight);
            }
        }
    }

    /// Jobs with their standings, those with the largest `value` first; later submissions first among equals.
    pub(super) fn last_first<'a>(
        &'a self,
        value: impl Fn(Standing) -> u64 + 'a,
    ) -> impl Iterator<Item = (JobId, Standing)> + 'a {
        let mut sets: Vec<_> =
            self.by_weight.iter().map(|(weight, set)| (*weight, set.iter().rev().peekable())).collect();
        std::iter::from_fn(move || {
            let peek = |(i, (weight, set)): (usize, &mut (u64, std::iter::Peekable<_>))| {
                let (major, submit_ns, job): &(u64, u64, JobId) = *set.peek()?;
                let standing = Standing { weight: *weight, major: *major, submit_ns: *submit_ns };
                Some((value(standing), standing.submit_ns, *job, i, standing))
            };
            let best = sets
                .iter_mut()
                .enumerate()
                .filter_map(peek)
                .max_by_key(|(value, submit, job, ..)| (*value, *submit, *job));
            let (_, _, job, i, standing) = best?;
            sets[i].1.next();
            Some((job, standing))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_served_comes_first_whatever_the_weights() {
        let mut running = Running::default();
        for (job, weight, major, submit_ns) in
            [(1, 1, 100, 0), (2, 4, 60, 1), (3, 1, 100, 5), (4, 8, 20, 2), (5, 1, 40, 3)]
        {
            running.insert(JobId(job), Standing { weight, major, submit_ns });
        }
        let at = |now: u64| -> Vec<u32> {
            let value = move |standing: Standing| standing.weight * standing.major.saturating_sub(now);
            running.last_first(value).map(|(job, _)| job.0).collect()
        };
        assert_eq!(at(0), [2, 4, 3, 1, 5]);
        assert_eq!(at(15), [2, 3, 1, 4, 5]);
    }

    #[test]
    fn moving_says_whether_it_fell() {
        let mut running = Running::default();
        let standing = |major| Standing { weight: 1, major, submit_ns: 0 };
        assert!(!running.insert(JobId(1), standing(5)));
        assert!(!running.insert(JobId(1), standing(5)));
        assert!(!running.insert(JobId(1), standing(4)));
        assert!(running.insert(JobId(1), standing(6)));
        running.remove(JobId(1));
        assert_eq!(running.last_first(|standing| standing.major).count(), 0);
        assert!(running.by_weight.is_empty());
    }
}
