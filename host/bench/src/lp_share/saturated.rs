//! A cluster with an endless backlog: what runs, how fast, and how fast it could.

use super::bound::bound;
use super::response::Class;
use crate::error::Error;
use crate::synergy::{Contender, SERVERS, Stage, WINDOW, run};
use coretuner_simulator::result::{RunResult, Segment};
use coretuner_simulator::workload::Workload;
use coretuner_simulator::{Settings, truth::TruthId};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The load of an endless backlog, rho.
pub(crate) const RHO: f64 = 1.6;
/// Cores and memory units of the cluster.
const CAPACITY: f64 = 24.0 * SERVERS as f64;
const GPUS: f64 = 8.0 * SERVERS as f64;
/// Between two looks at the cluster.
const EVERY_S: f64 = 3_600.0;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Saturated {
    /// Sum over running jobs of GPUs × speed relative to the proportional share, per GPU of the cluster, over time.
    pub(crate) throughput: f64,
    /// The same sum in parts of its bound, mean over looks.
    pub(crate) lp_share: f64,
    /// Moves and restarts per job that has finished.
    pub(crate) moves: f64,
}

/// Runs until the window's last job has come, and looks at the time in which the window's jobs come.
pub(crate) fn saturated(stage: &Stage, contender: &Contender, workload: &Workload) -> Result<Saturated, Error> {
    let came_s = |index: u64| workload.jobs.get(index as usize).map_or(0.0, |job| job.spec.submit_ns as f64 / 1e9);
    let (from_s, to_s) = (came_s(WINDOW.0), came_s(WINDOW.1));
    let settings = Settings {
        mode: contender.mode(),
        restart_s: 0.0,
        horizon_s: Some(to_s),
        segments_max: usize::MAX,
        ..Settings::default()
    };
    let result = run(stage, contender, workload, &settings)?;
    let seen_s = |segment: &Segment| (segment.to_s.min(to_s) - segment.from_s.max(from_s)).max(0.0);
    let work: f64 = result.segments.iter().map(|part| part.gpus * part.relative_speed * seen_s(part)).sum();
    let finished = result.jobs.iter().filter(|job| job.finish_s.is_some()).count();
    let restarts: u32 = result.jobs.iter().map(|job| job.restarts).sum();
    Ok(Saturated {
        throughput: work / (GPUS * (to_s - from_s)),
        lp_share: lp_share(&result, workload, from_s, to_s).ok_or(Error::Bound)?,
        moves: f64::from(restarts) / finished as f64,
    })
}

/// Mean over looks; none when a bound cannot be found.
fn lp_share(result: &RunResult, workload: &Workload, from_s: f64, to_s: f64) -> Option<f64> {
    let mut classes = BTreeMap::new();
    let (mut sum, mut looks) = (0.0, 0_u32);
    let mut at_s = from_s;
    while at_s < to_s {
        let open: Vec<&Segment> =
            result.segments.iter().filter(|part| part.from_s <= at_s && at_s < part.to_s).collect();
        let value: f64 = open.iter().map(|part| part.gpus * part.relative_speed).sum();
        sum += value / bound(&crowd(&open, workload, &mut classes)?, CAPACITY, CAPACITY)?;
        looks += 1;
        at_s += EVERY_S;
    }
    Some(sum / f64::from(looks)).filter(|_| looks > 0)
}

type Classes = BTreeMap<(TruthId, u32), Class>;

/// Running jobs by model and number of GPUs.
fn crowd(open: &[&Segment], workload: &Workload, classes: &mut Classes) -> Option<Vec<(Class, f64)>> {
    let jobs: std::collections::BTreeSet<u32> = open.iter().map(|part| part.job).collect();
    let mut counts = BTreeMap::new();
    for job in jobs {
        let job = workload.jobs.get(job as usize)?;
        let key = (job.truth, job.gpus());
        *counts.entry(key).or_insert(0.0) += 1.0;
        if let Entry::Vacant(place) = classes.entry(key) {
            place.insert(Class::of(&workload.truth, key.0, workload.reference_gpu(job), key.1)?);
        }
    }
    counts.into_iter().map(|(key, jobs)| Some((classes.get(&key)?.clone(), jobs))).collect()
}
