//! At a tick the jobs that go first take the places of running ones that go later.

use std::iter::Peekable;

use coretuner_sdk::Job;

use crate::admit::Admission;
use crate::berth::Resident;
use crate::desk::Desk;
use crate::draft::Draft;
use crate::place::Seeker;
use crate::profile::ProfileId;
use crate::reasons::{Cause, Wait};
use crate::roster::Ticket;
use crate::targets::Market;

/// A running gang that may be preempted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Runner {
    pub(crate) ticket: Ticket,
    pub(crate) profile: ProfileId,
    pub(crate) gpus: u32,
}

/// Chooses anew who runs: all in order while GPUs last. Then stops as few as the chosen need.
pub(crate) fn tick(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    market: &mut Market,
    admission: &mut Admission<'_>,
    mut runners: Vec<Runner>,
) {
    runners.sort_unstable_by_key(|runner| runner.ticket);
    let Choice { admitted, first, victims } = choose(desk, draft, admission, runners);
    if admitted.is_empty() {
        return;
    }
    for victim in &victims {
        if let Some(job) = desk.cluster.job(victim.job) {
            draft.take_off(job);
        }
    }
    admission.place_all(desk, draft, market, admitted);
    for victim in victims {
        let Some(job) = desk.cluster.job(victim.job) else { continue };
        if !put_back(desk, draft, job) {
            draft.changes.stopped.insert(victim.job);
            draft.changes.causes.insert(victim.job, Cause::Order { key: victim.told(), first });
        }
    }
}

/// Who runs from now on, as far as it changes.
#[derive(Debug, Default)]
struct Choice {
    /// Waiting jobs that get GPUs, in order.
    admitted: Vec<Seeker>,
    /// Key of the last of them.
    first: f64,
    /// Running jobs that do not, in order.
    victims: Vec<Ticket>,
}

/// Goes through waiting and running jobs in order while GPUs last.
fn choose(desk: &Desk<'_, '_>, draft: &Draft<'_>, admission: &mut Admission<'_>, runners: Vec<Runner>) -> Choice {
    let mut budget = draft.gpus_free + runners.iter().map(|runner| u64::from(runner.gpus)).sum::<u64>();
    let mut choice = Choice::default();
    let mut line = admission.roster.line();
    let mut runners = runners.into_iter().peekable();
    while let Some((ticket, profile)) = line.pop() {
        if admission.is_placed(ticket.job) {
            line.advance(profile);
            continue;
        }
        keep(&mut runners, Some(ticket), &mut budget, &mut choice.victims);
        let gpus = desk.profile(profile).gpus();
        if gpus == 0 {
            continue;
        }
        if u64::from(gpus) <= budget {
            budget -= u64::from(gpus);
            choice.admitted.push(Seeker { job: ticket.job, profile, gpus });
            choice.first = ticket.told();
            line.advance(profile);
        } else {
            admission.short.insert(profile, Wait::Gpus { needed: gpus, free: budget });
        }
    }
    keep(&mut runners, None, &mut budget, &mut choice.victims);
    choice
}

/// Keeps the running jobs that go before `until`, as far as GPUs last.
fn keep(
    runners: &mut Peekable<std::vec::IntoIter<Runner>>,
    until: Option<Ticket>,
    budget: &mut u64,
    victims: &mut Vec<Ticket>,
) {
    while let Some(runner) = runners.next_if(|runner| until.is_none_or(|until| runner.ticket < until)) {
        if u64::from(runner.gpus) <= *budget {
            *budget -= u64::from(runner.gpus);
        } else {
            victims.push(runner.ticket);
        }
    }
}

/// Gives a job that was taken off its place back, if nobody took it.
fn put_back(desk: &Desk<'_, '_>, draft: &mut Draft<'_>, job: &Job) -> bool {
    let fits = job.allocations.iter().all(|row| {
        let gang = resident(draft, job, row.node);
        draft.get(row.node).is_some_and(|berth| {
            let Some(shape) = berth.shape else { return false };
            let lattice = desk.shapes.get(shape).lattice;
            let base = berth.base_units();
            let more = gang.map_or((0, 0), |gang| gang.base_units);
            let reserved = if gang.is_some() { (0, 0) } else { (row.cpu_milli, row.memory_mib) };
            berth.gpus_free >= row.gpu_milli / 1000
                && lattice.cpu.units_within(berth.capacity.cpu.saturating_sub(reserved.0)) >= base.0 + more.0
                && lattice.memory.units_within(berth.capacity.memory.saturating_sub(reserved.1)) >= base.1 + more.1
        })
    });
    if !fits {
        return false;
    }
    for row in &job.allocations {
        match resident(draft, job, row.node) {
            Some(gang) => draft.add_gang(row.node, gang),
            None => draft.restore(row),
        }
    }
    true
}

fn resident(draft: &Draft<'_>, job: &Job, node: coretuner_sdk::NodeId) -> Option<Resident> {
    draft.original(node)?.gangs.iter().find(|gang| gang.job == job.id).copied()
}
