use std::collections::BTreeMap;

use crate::model::{Allocation, QueueId, QueueSpec};

use super::StateError;

/// Deepest hierarchy of queues.
pub(crate) const DEPTH_MAX: usize = 16;

/// What the jobs of a queue and of the queues below it hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub gpu_milli: u64,
    pub cpu_milli: u64,
}

impl Usage {
    pub(crate) fn of(rows: &[Allocation]) -> Self {
        rows.iter().fold(Self::default(), |sum, row| Self {
            gpu_milli: sum.gpu_milli + u64::from(row.gpu_milli),
            cpu_milli: sum.cpu_milli + u64::from(row.cpu_milli),
        })
    }

    fn plus(self, other: Self) -> Self {
        Self { gpu_milli: self.gpu_milli + other.gpu_milli, cpu_milli: self.cpu_milli + other.cpu_milli }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            gpu_milli: self.gpu_milli.saturating_sub(other.gpu_milli),
            cpu_milli: self.cpu_milli.saturating_sub(other.cpu_milli),
        }
    }
}

/// A queue and its use.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueView {
    pub id: QueueId,
    pub spec: QueueSpec,
    pub usage: Usage,
    /// The ceiling was lowered below the use; cleared when the use is below it again.
    pub(crate) lowered: bool,
}

impl QueueView {
    /// Whether the use is within the ceiling.
    pub(crate) fn within(&self) -> bool {
        let below = |used: u64, maximum: Option<u32>| maximum.is_none_or(|maximum| used <= u64::from(maximum));
        below(self.usage.gpu_milli, self.spec.maximum_gpu_milli)
            && below(self.usage.cpu_milli, self.spec.maximum_cpu_milli)
    }
}

/// All queues with their use.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueBook {
    queues: BTreeMap<QueueId, QueueView>,
}

impl QueueBook {
    pub(crate) fn get(&self, id: QueueId) -> Option<&QueueView> {
        self.queues.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &QueueView> {
        self.queues.values()
    }

    /// The queue and its ancestors. Ends by itself: [`QueueBook::set`] lets in no cycle.
    pub(crate) fn line(&self, id: QueueId) -> impl Iterator<Item = &QueueView> {
        std::iter::successors(self.queues.get(&id), |queue| queue.spec.parent.and_then(|up| self.queues.get(&up)))
    }

    /// Adds or re-describes a queue. Its use moves along when its parent changes.
    pub(crate) fn set(&mut self, id: QueueId, spec: QueueSpec) -> Result<(), StateError> {
        self.check_parent(id, &spec)?;
        let usage = self.queues.get(&id).map(|queue| queue.usage).unwrap_or_default();
        if let Some(parent) = self.queues.get(&id).and_then(|queue| queue.spec.parent) {
            self.give(parent, usage);
        }
        let parent = spec.parent;
        self.queues.insert(id, QueueView { id, spec, usage, lowered: false });
        if let Some(parent) = parent {
            self.take(parent, usage);
        }
        self.excuse(id);
        Ok(())
    }

    fn check_parent(&self, id: QueueId, spec: &QueueSpec) -> Result<(), StateError> {
        let Some(parent) = spec.parent else { return Ok(()) };
        if parent == id || self.line(parent).any(|queue| queue.id == id) {
            return Err(StateError::QueueDepth(id));
        }
        if !self.queues.contains_key(&parent) {
            return Err(StateError::UnknownParent { queue: id, parent });
        }
        if self.line(parent).count() + self.height(id) > DEPTH_MAX {
            return Err(StateError::QueueDepth(id));
        }
        Ok(())
    }

    /// Levels from `id` down to its deepest descendant, itself included.
    fn height(&self, id: QueueId) -> usize {
        if !self.queues.contains_key(&id) {
            return 1;
        }
        let above = |queue: &QueueView| self.line(queue.id).position(|up| up.id == id);
        self.queues.values().filter_map(above).max().map_or(1, |steps| steps + 1)
    }

    pub(crate) fn take(&mut self, id: QueueId, amount: Usage) {
        self.each_up(id, |queue| queue.usage = queue.usage.plus(amount));
    }

    pub(crate) fn give(&mut self, id: QueueId, amount: Usage) {
        self.each_up(id, |queue| queue.usage = queue.usage.minus(amount));
    }

    /// After use changed for good: a queue that is within its ceiling again must stay there.
    pub(crate) fn settle(&mut self, id: QueueId) {
        self.each_up(id, |queue| queue.lowered = queue.lowered && !queue.within());
    }

    /// A use above the ceiling that no plan caused is not a broken invariant.
    pub(crate) fn excuse(&mut self, id: QueueId) {
        self.each_up(id, |queue| queue.lowered = !queue.within());
    }

    /// Whether `amount` more keeps each queue of the line at or below its ceiling, or below the use `before` that it
    /// had already (a ceiling that was lowered stops growth, it does not stop shrinking in steps).
    pub(crate) fn allows(&self, id: QueueId, amount: Usage, before: impl Fn(&QueueView) -> Usage) -> bool {
        let fits = |used: u64, more: u64, maximum: Option<u32>, before: u64| {
            more == 0 || maximum.is_none_or(|maximum| used + more <= u64::from(maximum).max(before))
        };
        self.line(id).all(|queue| {
            let before = before(queue);
            fits(queue.usage.gpu_milli, amount.gpu_milli, queue.spec.maximum_gpu_milli, before.gpu_milli)
                && fits(queue.usage.cpu_milli, amount.cpu_milli, queue.spec.maximum_cpu_milli, before.cpu_milli)
        })
    }

    /// Puts back the use that a queue had.
    pub(crate) fn restore(&mut self, id: QueueId, usage: Usage) {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.usage = usage;
        }
    }

    fn each_up(&mut self, id: QueueId, mut change: impl FnMut(&mut QueueView)) {
        let mut next = Some(id);
        while let Some(queue) = next.and_then(|id| self.queues.get_mut(&id)) {
            change(queue);
            next = queue.spec.parent;
        }
    }
}
