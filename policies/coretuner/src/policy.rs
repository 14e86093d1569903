//! The policy: follows the view, plans, and says why.

use std::collections::BTreeSet;

use coretuner_sdk::solve::Exchanges;
use coretuner_sdk::{Cycle, JobId, NodeId, Policy, Reason};

use crate::admit::Admission;
use crate::config::Config;
use crate::desk::Desk;
use crate::draft::Draft;
use crate::elastic::Elastic;
use crate::emit::emit;
use crate::follow::{Book, News};
use crate::kinds::trade;
use crate::members::Scene;
use crate::mix::Typical;
use crate::oracle::Oracle;
use crate::rank::{rank_anew, runners};
use crate::reasons::REASONS;
use crate::reserve::{Reservations, Waiting};
use crate::room::drain;
use crate::share_out::share_out;
use crate::span::join;
use crate::swaps::swap;
use crate::targets::Market;
use crate::tick::tick;

const SECOND_NS: f64 = 1e9;

/// Joint CPU, memory and placement by predicted gain.
pub struct CoreTuner {
    config: Config,
    book: Book,
    market: Market,
    exchanges: Exchanges,
    /// Nodes where the last plan may have left exchanges undone.
    unfinished: BTreeSet<NodeId>,
    next_tick_ns: u64,
    /// When a waiting job may be placed although nothing happens until then.
    again_ns: Option<u64>,
    elastic: Elastic,
    reservations: Reservations,
}

impl Policy for CoreTuner {
    type Config = Config;

    const NAME: &'static str = "coretuner";
    const SUMMARY: &'static str = "divides every node's CPU and memory by predicted gain, exactly; balanced, sticky \
                                   placement; nobody below the speed of its proportional share";
    const REASONS: &'static [Reason] = REASONS;

    fn new(config: Config) -> Result<Self, String> {
        config.check()?;
        Ok(Self {
            config,
            book: Book::default(),
            market: Market::default(),
            exchanges: Exchanges::default(),
            unfinished: BTreeSet::new(),
            next_tick_ns: 0,
            again_ns: None,
            elastic: Elastic::default(),
            reservations: Reservations::default(),
        })
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        let mut news = self.book.follow(&self.config, cycle);
        if news.classes_void {
            self.market.clear();
            self.exchanges.clear();
        }
        let due = self.tick_due(cycle.now_ns());
        if self.again_ns.is_some_and(|at_ns| at_ns <= cycle.now_ns()) {
            self.again_ns = None;
            news.places = true;
        }
        if due || news.places || !news.stale.is_empty() {
            self.plan(cycle, due, &news);
        }
        self.book.tell_waits(&self.config, cycle);
        self.ask_to_wake(cycle);
    }
}

impl CoreTuner {
    fn plan(&mut self, cycle: &mut Cycle<'_>, due: bool, news: &News) {
        let Self { config, book, market, exchanges, unfinished, again_ns, elastic, reservations, .. } = self;
        let Book {
            shapes,
            profiles,
            classes,
            fleet,
            roster,
            jobs,
            probes,
            apart,
            mix,
            paces,
            tenure,
            elastic: elastic_jobs,
            ..
        } = &mut *book;
        let oracle = Oracle { host: &mut cycle.host, speaker: None, failures: 0 };
        let (cluster, home) = (cycle.cluster, fleet.commonest_shape());
        let mut desk = Desk { config, cluster, shapes, profiles, classes, oracle, home };
        let mut draft = Draft::new(fleet);
        if config.spare_cpu && (due || news.places) {
            draft.typical = Typical::new(&desk, mix);
        }
        let profile_of = |job: JobId| jobs.get(&job).copied();
        if due {
            rank_anew(&mut desk, market, paces, roster);
        }
        let mut admission = Admission::new(roster, &profile_of);
        reservations.begin(&mut desk, &mut draft, market, &mut admission, Waiting { jobs, tenure });
        drain(&mut desk, &mut draft, market, &profile_of);
        let scene = Scene { jobs, paces, elastic: elastic_jobs };
        elastic.begin(config.elastic_moves_max, &cycle.changes.removed);
        if (due || news.places) && !elastic_jobs.is_empty() {
            admission.run(&mut desk, &mut draft, market);
            elastic.reclaim(&mut desk, &mut draft, &mut admission, scene);
        }
        if due && !admission.roster.is_empty() {
            let mut runners = runners(&mut desk, &draft, paces, jobs, tenure);
            runners.retain(|runner| !draft.changes.causes.contains_key(&runner.ticket.job));
            runners.retain(|runner| !reservations.spares(&desk, &draft, runner));
            tick(&mut desk, &mut draft, market, &mut admission, runners);
        }
        if due || news.places {
            admission.run(&mut desk, &mut draft, market);
            reservations.backfill(&mut desk, &mut draft, &mut admission);
            if config.span_speed_min > 0.0 {
                join(&mut desk, &mut draft, market, apart.iter().copied(), &profile_of);
            }
        }
        if due || news.places {
            trade(&mut desk, &mut draft, &profile_of, &admission);
        }
        let changed = &(&*unfinished | &news.moved);
        *unfinished = swap(&mut desk, &mut draft, exchanges, changed, &profile_of);
        if due || news.places {
            if config.elastic {
                elastic.grow(&mut desk, &mut draft, &admission, scene);
            }
            *again_ns = draft.again_ns;
        }
        let grants = share_out(&mut desk, &draft, &news.stale);
        let refused = emit(&desk, &draft, &grants, (market.price(), probes), &mut cycle.plan);
        let waits = (admission.into_waits(), reservations.waits(&desk));
        drop(draft);
        book.planned(config, cycle, waits, &refused);
    }

    /// Whether running jobs may be preempted now.
    fn tick_due(&mut self, now_ns: u64) -> bool {
        if !self.config.order.preempts() || now_ns < self.next_tick_ns {
            return false;
        }
        let tick_ns = (self.config.tick_s * SECOND_NS) as u64;
        self.next_tick_ns = (now_ns / tick_ns.max(1) + 1).saturating_mul(tick_ns);
        true
    }

    /// A tick matters only while jobs wait.
    fn ask_to_wake(&self, cycle: &mut Cycle<'_>) {
        if self.config.order.preempts() && !self.book.roster.is_empty() {
            cycle.plan.wake_at(self.next_tick_ns);
        }
        let wakes = [self.book.next_retry_ns(), self.book.probes.next_end_ns(), self.again_ns];
        for at_ns in wakes.into_iter().flatten() {
            cycle.plan.wake_at(at_ns);
        }
    }
}
