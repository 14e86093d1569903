//! Dividing every node that changed.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::solve::{Amount, Point};
use coretuner_sdk::{JobId, NodeId};

use crate::berth::Berth;
use crate::classes::{ClassNo, Classes};
use crate::desk::Desk;
use crate::draft::Draft;

/// What a gang gets on its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grant {
    pub(crate) node: NodeId,
    pub(crate) amount: Amount,
    /// GPUs × relative speed there.
    pub(crate) value: f64,
}

/// Grants for all gangs of nodes in `stale` or changed by the draft. A node whose bases do not fit any more (others took
/// its CPU, predictions changed) is left as it is.
pub(crate) fn share_out(
    desk: &mut Desk<'_, '_>,
    draft: &Draft<'_>,
    stale: &BTreeSet<NodeId>,
) -> BTreeMap<JobId, Grant> {
    let nodes: BTreeSet<NodeId> = stale.iter().copied().chain(draft.touched().map(|berth| berth.id)).collect();
    let mut grants = BTreeMap::new();
    for berth in nodes.into_iter().filter_map(|node| draft.get(node)) {
        divide_node(desk, berth, &mut grants);
    }
    grants
}

fn divide_node(desk: &mut Desk<'_, '_>, berth: &Berth, grants: &mut BTreeMap<JobId, Grant>) {
    let Some(shape) = berth.shape else { return };
    let lattice = desk.shapes.get(shape).lattice;
    let gangs = berth.by_class();
    let classes: Vec<ClassNo> = gangs.iter().map(|(class, _)| *class).collect();
    let Classes { book, values, .. } = &mut *desk.classes;
    let Some(division) = values.get(book, &classes, lattice, berth.capacity) else { return };
    let held: BTreeMap<JobId, Amount> = berth.gangs.iter().filter_map(|gang| Some((gang.job, gang.held?))).collect();
    let mut from = 0;
    while let Some(&class) = classes.get(from) {
        let to = from + classes[from..].iter().take_while(|other| **other == class).count();
        let options = book.get(class);
        let points: Vec<_> = division.picks[from..to].iter().map(|pick| *options.get(*pick as usize)).collect();
        let amounts: Vec<Amount> = points.iter().map(Point::amount).collect();
        let alike: Vec<JobId> = gangs[from..to].iter().map(|(_, job)| *job).collect();
        for (job, at) in hand_out(&alike, &held, &amounts) {
            let point = points[at];
            grants.insert(job, Grant { node: berth.id, amount: point.amount(), value: point.value });
        }
        from = to;
    }
}

/// Which of alike jobs gets which amount: who holds it already, then by id; so that the fewest are resized.
fn hand_out(jobs: &[JobId], held: &BTreeMap<JobId, Amount>, amounts: &[Amount]) -> Vec<(JobId, usize)> {
    let mut free: Vec<usize> = (0..amounts.len()).collect();
    let mut handed = Vec::new();
    let mut others = Vec::new();
    for job in jobs {
        let kept = held.get(job).and_then(|held| free.iter().position(|at| amounts[*at] == *held));
        match kept {
            Some(at) => handed.push((*job, free.remove(at))),
            None => others.push(*job),
        }
    }
    handed.extend(others.into_iter().zip(free));
    handed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_jobs_keep_what_they_hold_where_someone_gets_that_much() {
        let amount = |cpu| Amount { cpu, memory: 3 };
        let held = BTreeMap::from([(JobId(1), amount(5)), (JobId(2), amount(3)), (JobId(3), amount(5))]);
        let handed =
            hand_out(&[JobId(0), JobId(1), JobId(2), JobId(3)], &held, &[amount(3), amount(4), amount(5), amount(6)]);
        assert_eq!(handed, [(JobId(1), 2), (JobId(2), 0), (JobId(0), 1), (JobId(3), 3)]);
    }
}
