//! Waiting jobs in the order in which they go, by profile: where one of a profile does not fit, none of it does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use coretuner_sdk::JobId;

use crate::profile::ProfileId;

/// Position of a job: less goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    key: u64,
    submit_ns: u64,
    pub(crate) job: JobId,
}

impl Ticket {
    /// `key` by the order in force; not a number goes last.
    pub(crate) fn new(key: f64, submit_ns: u64, job: JobId) -> Self {
        Self { key: sortable(key), submit_ns, job }
    }

    /// The key, for people; -1 where it is unknown.
    pub(crate) fn told(self) -> f64 {
        let bits = if self.key >> 63 == 1 { self.key & !(1 << 63) } else { !self.key };
        let key = f64::from_bits(bits);
        if key.is_finite() { key } else { -1.0 }
    }
}

/// Bits that sort as the numbers do.
fn sortable(key: f64) -> u64 {
    let key = if key.is_nan() { f64::INFINITY } else { key };
    let bits = key.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// Jobs that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster {
    queues: BTreeMap<ProfileId, BTreeSet<Ticket>>,
    tickets: BTreeMap<JobId, (ProfileId, Ticket)>,
}

impl Roster {
    pub(crate) fn set(&mut self, profile: ProfileId, ticket: Ticket) {
        self.remove(ticket.job);
        self.queues.entry(profile).or_default().insert(ticket);
        self.tickets.insert(ticket.job, (profile, ticket));
    }

    pub(crate) fn remove(&mut self, job: JobId) {
        let Some((profile, ticket)) = self.tickets.remove(&job) else { return };
        if let Some(queue) = self.queues.get_mut(&profile) {
            queue.remove(&ticket);
            if queue.is_empty() {
                self.queues.remove(&profile);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }

    /// Waiting jobs of a profile, in order.
    pub(crate) fn of(&self, profile: ProfileId) -> impl Iterator<Item = JobId> {
        self.queues.get(&profile).into_iter().flatten().map(|ticket| ticket.job)
    }

    /// All waiting jobs.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.tickets.keys().copied()
    }

    /// Whether a job waits in line.
    pub(crate) fn has(&self, job: JobId) -> bool {
        self.tickets.contains_key(&job)
    }

    /// Profiles with waiting jobs.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = ProfileId> {
        self.queues.keys().copied()
    }

    /// Goes through the waiting jobs in order.
    pub(crate) fn line(&self) -> Line<'_> {
        let mut line = Line { heads: BinaryHeap::new(), rests: BTreeMap::new() };
        for (profile, queue) in &self.queues {
            line.rests.insert(*profile, queue.iter());
            line.advance(*profile);
        }
        line
    }
}

/// Waiting jobs in order, as far as they are asked for.
pub(crate) struct Line<'a> {
    heads: BinaryHeap<Reverse<(Ticket, ProfileId)>>,
    rests: BTreeMap<ProfileId, std::collections::btree_set::Iter<'a, Ticket>>,
}

impl Line<'_> {
    /// The next job, which stays at the head of its profile until [`Line::advance`].
    pub(crate) fn pop(&mut self) -> Option<(Ticket, ProfileId)> {
        self.heads.pop().map(|Reverse(head)| head)
    }

    /// Lets the next job of that profile come.
    pub(crate) fn advance(&mut self, profile: ProfileId) {
        if let Some(ticket) = self.rests.get_mut(&profile).and_then(Iterator::next) {
            self.heads.push(Reverse((*ticket, profile)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_by_key_then_submission_and_a_skipped_profile_does_not_come_again() {
        let mut roster = Roster::default();
        let tickets = [(0, 5.0, 1, 10), (0, 5.0, 0, 11), (1, -1.0, 9, 12), (1, f64::NAN, 0, 13), (0, 7.0, 0, 14)];
        for (profile, key, submit_ns, job) in tickets {
            roster.set(profile, Ticket::new(key, submit_ns, JobId(job)));
        }
        roster.set(0, Ticket::new(6.0, 0, JobId(14)));
        let mut line = roster.line();
        let mut seen = Vec::new();
        while let Some((ticket, profile)) = line.pop() {
            seen.push(ticket.job.0);
            if profile == 0 {
                line.advance(0);
            }
        }
        assert_eq!(seen, [12, 11, 10, 14]);
        let told = |key: f64| Ticket::new(key, 0, JobId(0)).told();
        assert_eq!([told(7.5), told(-2.0), told(0.0), told(f64::NAN)], [7.5, -2.0, 0.0, -1.0]);
        roster.remove(JobId(11));
        assert_eq!(roster.of(0).collect::<Vec<_>>(), [JobId(10), JobId(14)]);
    }
}
