//! What the cluster does at every moment, and its integrals over time.

use std::ops::{AddAssign, SubAssign};

use coretuner_core::model::TimeNs;

use super::series::Series;
use crate::result::Sample;

/// What one job holds, in whole units so that sums never drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) gpu_milli: i64,
    /// GPUs weighted by speed / best speed, in millionths.
    pub(crate) gpu_effective_micro: i64,
    pub(crate) cpu_milli: i64,
    /// Of the CPU, what the job turns into speed.
    pub(crate) cpu_useful_milli: i64,
    pub(crate) memory_mib: i64,
}

impl AddAssign for Holding {
    fn add_assign(&mut self, other: Self) {
        self.gpu_milli += other.gpu_milli;
        self.gpu_effective_micro += other.gpu_effective_micro;
        self.cpu_milli += other.cpu_milli;
        self.cpu_useful_milli += other.cpu_useful_milli;
        self.memory_mib += other.memory_mib;
    }
}

impl SubAssign for Holding {
    fn sub_assign(&mut self, other: Self) {
        self.gpu_milli -= other.gpu_milli;
        self.gpu_effective_micro -= other.gpu_effective_micro;
        self.cpu_milli -= other.cpu_milli;
        self.cpu_useful_milli -= other.cpu_useful_milli;
        self.memory_mib -= other.memory_mib;
    }
}

/// Integrals since the start, in units × seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) at_ns: TimeNs,
    pub(crate) gpus: f64,
    pub(crate) gpus_effective: f64,
    pub(crate) cores: f64,
    pub(crate) cores_useful: f64,
    pub(crate) memory_mib: f64,
    pub(crate) stranded: f64,
    /// Jobs in the cluster, running or waiting.
    pub(crate) jobs: f64,
}

/// Keeps the present sums and their integrals; every change is told at its time.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    held: Holding,
    running: i64,
    waiting: i64,
    totals: Totals,
    series: Series,
    window_start: Option<Totals>,
    window_end: Option<Totals>,
}

impl Ledger {
    pub(crate) fn new(start_ns: TimeNs) -> Self {
        Self {
            held: Holding::default(),
            running: 0,
            waiting: 0,
            totals: Totals { at_ns: start_ns, ..Totals::default() },
            series: Series::new(start_ns),
            window_start: None,
            window_end: None,
        }
    }

    /// Lets time pass with all as it is; `stranded` GPUs are those of this stretch.
    pub(crate) fn advance(&mut self, now_ns: TimeNs, stranded: impl FnOnce() -> u64) {
        if now_ns <= self.totals.at_ns {
            return;
        }
        let dt_s = (now_ns - self.totals.at_ns) as f64 / 1e9;
        let values = self.values();
        let [gpus, effective, cores, useful, running, waiting] = values;
        self.series.add(self.totals.at_ns, now_ns, &values);
        let stranded = if self.waiting > 0 { stranded() as f64 } else { 0.0 };
        let totals = &mut self.totals;
        totals.at_ns = now_ns;
        totals.gpus += gpus * dt_s;
        totals.gpus_effective += effective * dt_s;
        totals.cores += cores * dt_s;
        totals.cores_useful += useful * dt_s;
        totals.memory_mib += self.held.memory_mib as f64 * dt_s;
        totals.stranded += stranded * dt_s;
        totals.jobs += (running + waiting) * dt_s;
    }

    fn values(&self) -> [f64; 6] {
        [
            self.held.gpu_milli as f64 / 1e3,
            self.held.gpu_effective_micro as f64 / 1e6,
            self.held.cpu_milli as f64 / 1e3,
            self.held.cpu_useful_milli as f64 / 1e3,
            self.running as f64,
            self.waiting as f64,
        ]
    }

    /// A job's holding changed.
    pub(crate) fn replace(&mut self, old: Holding, new: Holding) {
        self.held -= old;
        self.held += new;
    }

    /// Jobs came or went.
    pub(crate) fn count(&mut self, running: i64, waiting: i64) {
        self.running += running;
        self.waiting += waiting;
    }

    /// Integrals until the last [`Ledger::advance`].
    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// A counted job came.
    pub(crate) fn open_window(&mut self) {
        self.window_start.get_or_insert(self.totals);
    }

    /// A counted job ended; the window lasts at least until now.
    pub(crate) fn extend_window(&mut self) {
        self.window_end = Some(self.totals);
    }

    /// First and last integrals that count.
    pub(crate) fn window(&self) -> (Totals, Totals) {
        (self.window_start.unwrap_or_default(), self.window_end.unwrap_or(self.totals))
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.series.samples()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrals_and_windows() {
        let mut ledger = Ledger::new(0);
        let one = Holding { gpu_milli: 1000, cpu_milli: 3000, ..Holding::default() };
        ledger.count(1, 1);
        ledger.replace(Holding::default(), one);
        ledger.advance(2_000_000_000, || 3);
        ledger.open_window();
        ledger.count(0, -1);
        ledger.advance(5_000_000_000, || 3);
        ledger.extend_window();
        ledger.advance(9_000_000_000, || 3);
        let (start, end) = ledger.window();
        assert_eq!((end.gpus - start.gpus, end.cores - start.cores, start.stranded), (3.0, 9.0, 6.0));
        assert_eq!((end.stranded, end.jobs, ledger.totals().jobs), (6.0, 7.0, 11.0));
    }
}
