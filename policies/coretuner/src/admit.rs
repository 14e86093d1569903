//! Who gets a place now.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::JobId;

use crate::classes::{ClassNo, Pin};
use crate::desk::Desk;
use crate::draft::{Changes, Draft};
use crate::fixed::place_fixed;
use crate::kinds::Claims;
use crate::place::{Seeker, place_gang, split_gang};
use crate::profile::{Form, ProfileId};
use crate::reasons::{Cause, Wait};
use crate::room::{ProfileOf, make_room};
use crate::roster::Roster;
use crate::span::split;
use crate::targets::Market;

/// Searches for room per plan: of each profile that finds no place at most one fails, and those that move jobs are dear.
const ROOM_SEARCHES_MAX: u32 = 512;

/// Jobs without GPUs of one profile that are placed in one go.
const FIXED_AT_ONCE_MAX: usize = 256;

/// Starts as many waiting jobs as fit, in order; what does not fit is skipped.
pub(crate) struct Admission<'a> {
    pub(crate) roster: &'a Roster,
    pub(crate) profile_of: ProfileOf<'a>,
    /// Profiles that found no place, and why: not tried again in this plan.
    failed: BTreeMap<ProfileId, Wait>,
    /// Profiles whose next job came when too few GPUs were left; those of it that were admitted before may still be placed.
    pub(crate) short: BTreeMap<ProfileId, Wait>,
    placed: BTreeSet<JobId>,
    extra: BTreeMap<ClassNo, u32>,
    room_searches: u32,
}

impl<'a> Admission<'a> {
    pub(crate) fn new(roster: &'a Roster, profile_of: ProfileOf<'a>) -> Self {
        Self {
            roster,
            profile_of,
            failed: BTreeMap::new(),
            short: BTreeMap::new(),
            placed: BTreeSet::new(),
            extra: BTreeMap::new(),
            room_searches: 0,
        }
    }

    /// Whether a waiting job has a place in this plan.
    pub(crate) fn is_placed(&self, job: JobId) -> bool {
        self.placed.contains(&job)
    }

    /// Waiting jobs that have a place in this plan.
    pub(crate) fn placed(&self) -> impl Iterator<Item = JobId> {
        self.placed.iter().copied()
    }

    /// A waiting job got a place by other means.
    pub(crate) fn note_placed(&mut self, job: JobId, changes: &mut Changes) {
        self.placed.insert(job);
        changes.causes.insert(job, Cause::Start);
    }

    /// Why the jobs of each profile that still wait do so.
    pub(crate) fn into_waits(self) -> BTreeMap<ProfileId, Wait> {
        let mut waits = self.short;
        waits.extend(self.failed);
        waits
    }

    /// Admits by free GPUs, places, and admits again what the failures leave, until nothing more fits.
    pub(crate) fn run(&mut self, desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, market: &mut Market) {
        loop {
            let admitted = self.admit(desk, draft);
            if admitted.is_empty() {
                return;
            }
            self.place_all(desk, draft, market, admitted);
        }
    }

    /// The next jobs in order whose GPUs are free in all.
    fn admit(&mut self, desk: &Desk<'_, '_>, draft: &Draft<'_>) -> Vec<Seeker> {
        self.short.clear();
        let mut free = draft.gpus_free;
        let mut admitted = Vec::new();
        let mut fixed: BTreeMap<ProfileId, usize> = BTreeMap::new();
        let mut line = self.roster.line();
        while let Some((ticket, profile)) = line.pop() {
            if self.failed.contains_key(&profile) {
                continue;
            }
            if self.placed.contains(&ticket.job) {
                line.advance(profile);
                continue;
            }
            let gpus = desk.profile(profile).gpus();
            if u64::from(gpus) > free {
                self.short.insert(profile, Wait::Gpus { needed: gpus, free });
                continue;
            }
            free -= u64::from(gpus);
            admitted.push(Seeker { job: ticket.job, profile, gpus });
            let without_gpus = fixed.entry(profile).or_insert(0);
            *without_gpus += usize::from(gpus == 0);
            if *without_gpus < FIXED_AT_ONCE_MAX {
                line.advance(profile);
            }
        }
        admitted
    }

    /// Places admitted jobs, gangs of many GPUs and hungry ones first.
    pub(crate) fn place_all(
        &mut self,
        desk: &mut Desk<'_, '_>,
        draft: &mut Draft<'_>,
        market: &mut Market,
        admitted: Vec<Seeker>,
    ) {
        let classes = self.settle_market(desk, draft, market, &admitted);
        let rank = |seeker: &Seeker| {
            let target = classes.get(&seeker.job).map(|class| market.target(&desk.classes.book, *class));
            let (cpu, memory) = target.unwrap_or((0.0, 0.0));
            let gang = desk.profile(seeker.profile).gang().is_some();
            (!gang, Reverse(seeker.gpus), Reverse((cpu * 1e3) as u64), Reverse((memory * 1e3) as u64), seeker.job)
        };
        let mut order: Vec<_> = admitted.into_iter().map(|seeker| (rank(&seeker), seeker)).collect();
        order.sort_by_key(|(rank, _)| *rank);
        let seekers: Vec<Seeker> = order.into_iter().map(|(_, seeker)| seeker).collect();
        let mut claims = Claims::new(desk, &seekers);
        for seeker in seekers {
            if self.failed.contains_key(&seeker.profile) {
                continue;
            }
            draft.spoken_for = claims.spoken_for(desk, draft, seeker);
            claims.settle(seeker.job);
            match self.place(desk, draft, market, seeker) {
                Ok(()) => {
                    self.placed.insert(seeker.job);
                    draft.changes.causes.insert(seeker.job, Cause::Start);
                }
                Err(wait) => {
                    self.failed.insert(seeker.profile, wait);
                }
            }
        }
        draft.spoken_for.clear();
    }

    /// Targets for all that runs and is admitted. Returns the class that each admitted gang is counted in.
    fn settle_market(
        &mut self,
        desk: &mut Desk<'_, '_>,
        draft: &Draft<'_>,
        market: &mut Market,
        admitted: &[Seeker],
    ) -> BTreeMap<JobId, ClassNo> {
        let mut classes = BTreeMap::new();
        let Some(shape) = desk.home else { return classes };
        for seeker in admitted {
            if desk.profile(seeker.profile).gang().is_some() {
                let class = desk.class(seeker.job, seeker.profile, shape, Pin::FREE);
                classes.insert(seeker.job, class);
                *self.extra.entry(class).or_insert(0) += 1;
            }
        }
        let mut crowd = draft.fleet.crowd().clone();
        for (class, jobs) in &self.extra {
            *crowd.entry(*class).or_insert(0) += jobs;
        }
        market.settle(&desk.classes.book, crowd, draft.fleet.capacity());
        classes
    }

    fn place(
        &mut self,
        desk: &mut Desk<'_, '_>,
        draft: &mut Draft<'_>,
        market: &Market,
        seeker: Seeker,
    ) -> Result<(), Wait> {
        if let Form::Fixed(crews) = desk.profiles.get(seeker.profile).form.clone() {
            let placed = place_fixed(desk, draft, seeker.job, seeker.profile, &crews);
            return if placed { Ok(()) } else { Err(why(draft, seeker)) };
        }
        if place_gang(desk, draft, market, seeker) {
            return Ok(());
        }
        if desk.config.room && seeker.gpus > 1 && self.room_searches < ROOM_SEARCHES_MAX {
            self.room_searches += 1;
            if make_room(desk, draft, market, seeker, self.profile_of) {
                return Ok(());
            }
        }
        if u64::from(seeker.gpus) > draft.gpus_free {
            return Err(why(draft, seeker));
        }
        if desk.config.span_speed_min > 0.0 {
            return split(desk, draft, seeker);
        }
        if split_gang(desk, draft, seeker) { Ok(()) } else { Err(why(draft, seeker)) }
    }
}

fn why(draft: &Draft<'_>, seeker: Seeker) -> Wait {
    if u64::from(seeker.gpus) > draft.gpus_free {
        Wait::Gpus { needed: seeker.gpus, free: draft.gpus_free }
    } else {
        Wait::Beside { gpus: seeker.gpus }
    }
}
