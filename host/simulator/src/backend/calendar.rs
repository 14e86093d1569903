//! What will happen to jobs, by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use coretuner_core::model::TimeNs;

/// What happens to a job; at equal times in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    Completes,
    /// It has restarted and makes progress again.
    Resumes,
}

/// An appointment: time, kind, job, and the job's generation at which it was made.
pub(crate) type Entry = (TimeNs, Happening, u32, u32);

/// Appointments by time. Those of an older generation of their job are void; they are dropped when met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calendar {
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Calendar {
    pub(crate) fn add(&mut self, entry: Entry) {
        self.heap.push(Reverse(entry));
    }

    /// Time of the first valid appointment.
    pub(crate) fn next_ns(&mut self, generation_of: impl Fn(u32) -> u32) -> Option<TimeNs> {
        while let Some(Reverse((at_ns, _, job, generation))) = self.heap.peek() {
            if generation_of(*job) == *generation {
                return Some(*at_ns);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes the first appointment; call after [`Calendar::next_ns`] found one.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_time_then_kind_then_job() {
        let mut calendar = Calendar::default();
        for entry in [(5, Happening::Resumes, 0, 0), (5, Happening::Completes, 9, 0), (5, Happening::Completes, 2, 0)] {
            calendar.add(entry);
        }
        calendar.add((3, Happening::Completes, 1, 0));
        // Job 1 changed since.
        let generation = |job| u32::from(job == 1);
        let mut jobs = Vec::new();
        while calendar.next_ns(generation).is_some() {
            jobs.extend(calendar.pop().map(|entry| entry.2));
        }
        assert_eq!(jobs, [2, 9, 0]);
    }
}
