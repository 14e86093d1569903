//! The workload: what every figure about Synergy's cluster draws its jobs from.
//!
//! Cluster, durations, GPU demand and model mixes are those of the publication (OSDI '22; `docs/traces.md`). The load is
//! told as rho: arrivals per hour in units of the rate at which Synergy-Tune saturates with first in, first out.

use crate::error::Error;
use coretuner_simulator::workload::{Gangs, GenerateOptions, Mix, Workload, generate};
use serde_json::Value as Json;

/// Servers of 8 GPUs, 24 cores and 500 GB.
pub(crate) const SERVERS: u32 = 16;

/// Jobs of a run; more than the window needs, so that the cluster stays loaded until the window's last job has ended.
const JOBS: u32 = 9_000;

/// The mixes (image, language, speech), with the jobs per hour at which Synergy-Tune with first in, first out saturates
/// the cluster: with one-GPU jobs, and with 1, 2, 4 and 8 GPUs. Measured once, on an endless backlog.
pub(crate) const MIXES: [(Mix, [f64; 2]); 3] = [
    (Mix { image: 20, language: 70, speech: 10 }, [8.47, 4.24]),
    (Mix { image: 33, language: 33, speech: 33 }, [8.48, 4.28]),
    (Mix { image: 50, language: 0, speech: 50 }, [7.63, 4.02]),
];

/// GPU demands, in the order of the rates in [`MIXES`].
pub(crate) const GANGS: [Gangs; 2] = [Gangs::Single, Gangs::Published];

/// Orders that all contenders know.
pub(crate) const ORDERS: [Order; 3] = [Order::Fifo, Order::Las, Order::Srtf];

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    Fifo,
    Las,
    Srtf,
    Srsf,
}

impl Order {
    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fifo => "FIFO",
            Self::Las => "LAS",
            Self::Srtf => "SRTF",
            Self::Srsf => "SRSF",
        }
    }

    /// In configurations.
    pub(crate) fn key(self) -> Json {
        Json::String(self.name().to_lowercase())
    }
}

/// One load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) mix: Mix,
    pub(crate) gangs: Gangs,
    /// Saturation of the mix and GPU demand, jobs per hour.
    pub(crate) saturation: f64,
    pub(crate) rho: f64,
    pub(crate) order: Order,
}

impl Cell {
    /// Mix and GPU demand with everything else.
    pub(crate) fn every(rhos: &[f64], orders: &[Order]) -> Vec<Self> {
        let mut cells = Vec::new();
        for (mix, saturations) in MIXES {
            for (gangs, saturation) in GANGS.into_iter().zip(saturations) {
                for &rho in rhos {
                    cells.extend(orders.iter().map(|&order| Self { mix, gangs, saturation, rho, order }));
                }
            }
        }
        cells
    }

    /// Whether all three classes come equally often: where a choice of what to give whom is widest.
    pub(crate) fn is_balanced(&self) -> bool {
        self.mix.image == self.mix.language && self.mix.image == self.mix.speech
    }

    /// Mix and GPU demand.
    pub(crate) fn jobs_name(&self) -> String {
        let gangs = if self.gangs == Gangs::Single { "1 GPU" } else { "1/2/4/8 GPUs" };
        format!("{}, {gangs}", self.mix)
    }

    /// Everything, unique.
    pub(crate) fn name(&self) -> String {
        format!("{}, rho {}, {}", self.jobs_name(), self.rho, self.order.name())
    }
}

/// Draws the jobs of a cell; the order does not change them.
pub(crate) fn workload(cell: &Cell, seed: u64) -> Result<Workload, Error> {
    Ok(generate(&GenerateOptions {
        jobs: JOBS,
        load_jobs_per_hour: cell.rho * cell.saturation,
        mix: cell.mix,
        gangs: cell.gangs,
        servers: SERVERS,
        seed,
        ..GenerateOptions::default()
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_name_of_its_own() {
        let cells = Cell::every(&[0.5, 0.95], &ORDERS);
        let names: std::collections::BTreeSet<String> = cells.iter().map(Cell::name).collect();
        assert_eq!((cells.len(), names.len()), (36, 36));
        assert!(names.contains("(33,33,33), 1 GPU, rho 0.95, FIFO"), "{names:?}");
    }

    #[test]
    fn jobs_come_at_the_load_of_the_cell() {
        let cell = Cell::every(&[0.95], &[Order::Fifo])[2];
        let workload = workload(&cell, 3).expect("valid");
        let hours = workload.jobs.last().expect("jobs").spec.submit_ns as f64 / 3.6e12;
        assert!((f64::from(JOBS) / hours / (0.95 * 8.48) - 1.0).abs() < 0.05, "{hours}");
        assert!(workload.jobs.iter().all(|job| job.gpus() == 1));
    }
}
