//! One cycle of a queueing policy.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{Allocation, Job, Phase};
use crate::id::JobId;
use crate::order::{Order, remaining_ns};
use crate::place::gang;
use crate::plan::{Placement, PlanBuilder, PlanError};
use crate::policy::Cycle;
use crate::queueing::backlog::{Backlog, LaneId};
use crate::queueing::rates::Rates;
use crate::queueing::settings::{Mode, Preemption, Settings};
use crate::queueing::standing::{Running, Standing};
use crate::space::Space;

/// Serves jobs in an order: keeps waiting and running jobs sorted, follows the changes, and plans.
#[derive(Clone, Debug)]
pub struct Queueing {
    settings: Settings,
    backlog: Backlog,
    running: Running,
    rates: Rates,
    /// Times at which a job's queue of attained service changes.
    timers: BTreeSet<(u64, JobId)>,
    timer_of: BTreeMap<JobId, u64>,
    /// Since when a job waits, and attained service that does not count any more.
    waits_since: BTreeMap<JobId, u64>,
    /// The cluster without jobs, made when a shape is first checked against it.
    empty: Option<Space>,
    forgiven: BTreeMap<JobId, f64>,
}

/// Most holds of one plan: a full image need not explain every job.
const HOLDS_MAX: usize = 1000;

impl Queueing {
    /// An engine with checked settings; the error names the first senseless one.
    pub fn new(settings: Settings) -> Result<Self, String> {
        settings.las.check()?;
        settings.preemption.map_or(Ok(()), |preemption| preemption.check())?;
        Ok(Self {
            settings,
            backlog: Backlog::default(),
            running: Running::default(),
            rates: Rates::default(),
            timers: BTreeSet::new(),
            timer_of: BTreeMap::new(),
            waits_since: BTreeMap::new(),
            empty: None,
            forgiven: BTreeMap::new(),
        })
    }

    /// Asks the host how fast jobs run that never ran, for orders that need it; before [`Queueing::run`]. Apart from it,
    /// so that a policy that never calls it needs no predictions granted.
    pub fn predict(&mut self, cycle: &mut Cycle<'_>) {
        if matches!(self.settings.order, Order::Srtf | Order::Srsf) {
            self.rates.predict(cycle);
        }
    }

    /// Follows the changes and plans.
    pub fn run(&mut self, cycle: &mut Cycle<'_>) {
        self.follow(cycle);
        self.ring(cycle);
        if !self.backlog.is_shut() {
            self.serve(cycle);
        }
        let next = self.timers.first().filter(|_| self.may_gain_by_waiting(&cycle.plan));
        if let Some((at_ns, _)) = next {
            cycle.plan.wake_at(*at_ns);
        }
        self.explain(cycle);
    }

    /// Whether a job still waits after this plan that a change of places in line may start. Without preemption such a
    /// change frees nothing, and what never fits gains nothing by it.
    fn may_gain_by_waiting(&self, plan: &PlanBuilder<'_>) -> bool {
        let waits = || self.backlog.jobs_that_may_fit().any(|job| !plan.has_acted_on(job));
        self.settings.preemption.is_some() && (plan.stops_any() || waits())
    }

    fn follow(&mut self, cycle: &Cycle<'_>) {
        let changes = cycle.changes;
        if changes.image {
            self.forget_all(cycle);
        }
        changes.removed.iter().for_each(|job| self.forget(*job));
        let mut fell = false;
        for id in [&changes.arrived, &changes.changed, &changes.progressed, &changes.estimates].into_iter().flatten() {
            if let Some(job) = cycle.cluster.job(*id) {
                fell |= self.refresh(job, cycle.now_ns());
            }
        }
        if changes.image || changes.classes || changes.described_nodes {
            self.empty = None;
            self.backlog.forget_possible();
        }
        if changes.released || changes.classes || changes.queues || (fell && self.settings.preemption.is_some()) {
            self.backlog.open_all();
        }
    }

    fn forget_all(&mut self, cycle: &Cycle<'_>) {
        self.backlog.clear();
        self.running.clear();
        self.rates.retain(|job| cycle.cluster.job(job).is_some());
        self.timers.clear();
        self.timer_of.clear();
        self.waits_since.clear();
        self.forgiven.clear();
    }

    fn forget(&mut self, job: JobId) {
        self.backlog.remove(job);
        self.running.remove(job);
        self.rates.remove(job);
        self.waits_since.remove(&job);
        self.forgiven.remove(&job);
        self.set_timer(job, None);
    }

    /// Sorts a job in anew; says whether a running one stands lower than before.
    fn refresh(&mut self, job: &Job, now_ns: u64) -> bool {
        if !job.mine || job.phase == Phase::Stopping {
            self.backlog.remove(job.id);
            self.running.remove(job.id);
            self.set_timer(job.id, None);
            return false;
        }
        if job.is_running() {
            self.backlog.remove(job.id);
            self.waits_since.remove(&job.id);
            return self.refresh_running(job, now_ns);
        }
        self.running.remove(job.id);
        self.waits_since.entry(job.id).or_insert(now_ns);
        self.refresh_waiting(job, now_ns);
        false
    }

    fn refresh_running(&mut self, job: &Job, now_ns: u64) -> bool {
        self.rates.observe(job, now_ns);
        let submit_ns = job.submit_ns;
        let standing = match self.settings.order {
            Order::Fifo => return false,
            Order::Las => {
                let forgiven = self.forgiven_of(job.id);
                let at = self.settings.las.next_demotion_ns(job, now_ns, forgiven);
                self.set_timer(job.id, at);
                Standing { weight: 1, major: u64::from(self.level(job, now_ns)), submit_ns }
            }
            Order::Srtf | Order::Srsf => {
                let left = remaining_ns(job, now_ns, self.rates.get(job.id));
                Standing { weight: self.weight(job), major: left.saturating_add(now_ns), submit_ns }
            }
        };
        self.running.insert(job.id, standing)
    }

    fn refresh_waiting(&mut self, job: &Job, now_ns: u64) {
        let key = match self.settings.order {
            Order::Fifo => 0,
            Order::Las => {
                self.set_timer(job.id, self.promotion_ns(job, now_ns));
                u64::from(self.level(job, now_ns))
            }
            Order::Srtf | Order::Srsf => {
                remaining_ns(job, now_ns, self.rates.get(job.id)).saturating_mul(self.weight(job))
            }
        };
        self.backlog.insert(job, key);
    }

    /// GPUs in thousandths where the order counts service, else 1.
    fn weight(&self, job: &Job) -> u64 {
        if self.settings.order == Order::Srsf { job.gpu_milli_min().div_ceil(1000).max(1) } else { 1 }
    }

    fn forgiven_of(&self, job: JobId) -> f64 {
        self.forgiven.get(&job).copied().unwrap_or(0.0)
    }

    fn level(&self, job: &Job, now_ns: u64) -> u32 {
        self.settings.las.level(job.progress(now_ns).service_gpu_s - self.forgiven_of(job.id))
    }

    /// When a waiting job goes back to the first queue: after `promote_after` times the time that it ran.
    fn promotion_ns(&self, job: &Job, now_ns: u64) -> Option<u64> {
        let ratio = self.settings.las.promote_after?;
        if self.level(job, now_ns) == 0 {
            return None;
        }
        let gpus = (job.gpu_milli_min() as f64 / 1000.0).max(1e-3);
        let ran_s = (job.progress(now_ns).service_gpu_s - self.forgiven_of(job.id)) / gpus;
        let since = self.waits_since.get(&job.id).copied().unwrap_or(now_ns);
        Some(since.saturating_add(libm::ceil(ran_s * ratio * 1e9) as u64))
    }

    fn set_timer(&mut self, job: JobId, at_ns: Option<u64>) {
        let old = match at_ns {
            Some(at_ns) => self.timer_of.insert(job, at_ns),
            None => self.timer_of.remove(&job),
        };
        if let Some(old) = old {
            self.timers.remove(&(old, job));
        }
        if let Some(at_ns) = at_ns {
            self.timers.insert((at_ns, job));
        }
    }

    /// Handles the times that have come: demotions of running jobs, promotions of waiting ones.
    fn ring(&mut self, cycle: &Cycle<'_>) {
        let now_ns = cycle.now_ns();
        while let Some((at_ns, id)) = self.timers.first().copied().filter(|(at_ns, _)| *at_ns <= now_ns) {
            self.set_timer(id, None);
            let Some(job) = cycle.cluster.job(id) else { continue };
            if job.is_waiting() {
                self.forgiven.insert(id, job.progress(now_ns).service_gpu_s);
                self.refresh(job, at_ns.max(now_ns));
                self.backlog.open(id);
            } else if self.refresh(job, now_ns) && self.settings.preemption.is_some() {
                self.backlog.open_all();
            }
        }
    }

    fn serve(&mut self, cycle: &mut Cycle<'_>) {
        match self.settings.mode {
            Mode::Strict => self.serve_strictly(cycle),
            Mode::Backfill { searches_max } => self.serve_with_backfill(cycle, searches_max),
        }
    }

    fn serve_strictly(&mut self, cycle: &mut Cycle<'_>) {
        let mut heads = self.backlog.all_heads();
        while let Some((rank, lane)) = heads.pop_first() {
            if !self.backlog.is_open(lane) || !self.start(cycle, rank.job) {
                self.backlog.close(lane);
                if self.is_possible(cycle, rank.job, lane) {
                    return;
                }
                // What never fits must not stop everybody behind it.
                continue;
            }
            heads.extend(self.backlog.after(lane, rank).map(|next| (next, lane)));
        }
    }

    fn serve_with_backfill(&mut self, cycle: &mut Cycle<'_>, searches_max: u32) {
        let mut heads = self.backlog.heads();
        let mut failed = 0;
        while let Some((rank, lane)) = heads.pop_first() {
            if self.start(cycle, rank.job) {
                heads.extend(self.backlog.after(lane, rank).map(|next| (next, lane)));
            } else {
                self.backlog.close(lane);
                self.is_possible(cycle, rank.job, lane);
                failed += 1;
            }
            if failed >= searches_max {
                return;
            }
        }
    }

    /// Whether a lane's job fits on the cluster without any other job.
    fn is_possible(&mut self, cycle: &Cycle<'_>, job: JobId, lane: LaneId) -> bool {
        if let Some(possible) = self.backlog.possible(lane) {
            return possible;
        }
        let cluster = cycle.cluster;
        let space = self.empty.get_or_insert_with(|| Space::empty(cluster));
        let mut plan = PlanBuilder::new(cluster, space);
        let possible = cluster.job(job).is_some_and(|job| gang(&mut plan, job, self.settings.gang).is_some());
        self.backlog.set_possible(lane, possible);
        possible
    }

    fn start(&self, cycle: &mut Cycle<'_>, id: JobId) -> bool {
        let Some(job) = cycle.cluster.job(id) else { return false };
        if let Some(rows) = gang(&mut cycle.plan, job, self.settings.gang) {
            return cycle.plan.start(id, &rows).is_ok();
        }
        match self.settings.preemption {
            Some(preemption) if self.settings.order != Order::Fifo => self.preempt_for(cycle, job, preemption),
            _ => false,
        }
    }

    /// Stops jobs that are served later until `job` fits: the last first, and none that is not needed.
    fn preempt_for(&self, cycle: &mut Cycle<'_>, job: &Job, preemption: Preemption) -> bool {
        let candidates = self.candidates(cycle, job, preemption);
        let mut victims = Vec::new();
        let rows = cycle.plan.try_out(|plan| {
            for victim in candidates {
                if plan.has_acted_on(victim.id) {
                    continue;
                }
                if victims.len() >= preemption.victims_max as usize {
                    return None;
                }
                plan.give_back(victim, &victim.allocations);
                victims.push(victim);
                if let Some(rows) = gang(plan, job, self.settings.gang) {
                    return keep_needed(plan, job, rows, &mut victims);
                }
            }
            None
        });
        let Some(rows) = rows else { return false };
        let stopped = victims.len() as f64;
        let exchange = cycle.plan.bundle(|plan| {
            for victim in &victims {
                plan.preempt(victim.id)?.because("yields", &[]).about_job(job.id);
            }
            plan.start(job.id, &rows)?.because("preempts", &[stopped]);
            Ok::<_, PlanError>(())
        });
        exchange.is_ok()
    }

    /// Running jobs that may be stopped for `job`, the one served last first.
    fn candidates<'s, 'c>(
        &'s self,
        cycle: &Cycle<'c>,
        job: &Job,
        preemption: Preemption,
    ) -> impl Iterator<Item = &'c Job> + use<'s, 'c> {
        let (cluster, now_ns, order) = (cycle.cluster, cycle.now_ns(), self.settings.order);
        let least = self.least_standing(job, preemption);
        let value = move |standing: Standing| match order {
            Order::Fifo | Order::Las => standing.major,
            Order::Srtf | Order::Srsf if standing.major == u64::MAX => u64::MAX,
            Order::Srtf | Order::Srsf => standing.major.saturating_sub(now_ns).saturating_mul(standing.weight),
        };
        let class = job.class;
        self.running
            .last_first(value)
            .take_while(move |(_, standing)| value(*standing) > least)
            .filter_map(move |(id, _)| cluster.job(id))
            .filter(move |victim| victim.preemptible)
            .filter(move |victim| victim.allocations.iter().any(|row| cluster.is_eligible(class, row.node)))
    }

    /// A running job must stand lower than this to be stopped for `job`.
    fn least_standing(&self, job: &Job, preemption: Preemption) -> u64 {
        let key = self.backlog.rank(job.id).map_or(u64::MAX, |rank| rank.key);
        match self.settings.order {
            Order::Fifo | Order::Las => key,
            Order::Srtf | Order::Srsf => {
                let longer = key as f64 * (1.0 + preemption.hysteresis);
                let restart = preemption.restart_s * 1e9 * self.weight(job) as f64;
                (longer + restart) as u64
            }
        }
    }

    /// Gives the reason to jobs that came, or were stopped, and wait on.
    fn explain(&self, cycle: &mut Cycle<'_>) {
        let changes = cycle.changes;
        for id in changes.arrived.iter().chain(&changes.changed).take(HOLDS_MAX) {
            let waits = |job: &&Job| job.is_waiting() && job.mine && !cycle.plan.has_acted_on(*id);
            let Some(job) = cycle.cluster.job(*id).filter(waits) else { continue };
            let gpus = job.gpu_milli_min() as f64 / 1000.0;
            let never = self.backlog.lane(*id).is_some_and(|lane| self.backlog.possible(lane) == Some(false));
            let (code, arguments): (_, &[f64]) = match (never, self.backlog.is_closed(*id)) {
                (true, _) => ("never-fits", &[gpus]),
                (false, true) => ("no-room", &[gpus]),
                (false, false) => ("behind", &[]),
            };
            // It waits and the plan has nothing on it yet, so a hold is always noted.
            let noted = cycle.plan.hold(*id, code, arguments).is_ok();
            debug_assert!(noted, "job {id} could not be held");
        }
    }
}

/// Places `job` and lets those victims run on, the one served first first, whose place is not needed after all.
fn keep_needed(
    plan: &mut PlanBuilder<'_>,
    job: &Job,
    rows: Vec<Placement>,
    victims: &mut Vec<&Job>,
) -> Option<Vec<Placement>> {
    let mut taken: Vec<Allocation> = rows.iter().map(|row| row.allocation(job)).collect();
    plan.take(job, &mut taken).ok()?;
    let mut needed = Vec::new();
    while let Some(victim) = victims.pop() {
        let mut back = victim.allocations.clone();
        if !plan.take_or_leave(victim, &mut back) {
            needed.push(victim);
        }
    }
    needed.reverse();
    *victims = needed;
    Some(rows)
}
