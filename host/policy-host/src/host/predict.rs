//! The `predict` capability: from job ids to kinds, each distinct kind computed once, answers remembered.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use coretuner_contract::NONE;
use coretuner_contract::cluster::Delta;
use coretuner_core::model::KindId;
use coretuner_core::port::{self, CurveQuery, Predictor};

use crate::bindings::coretuner::policy::predict::{CurveRequest, Curves, PredictError};
use crate::limits::Limits;

/// What one instance needs for `predict`, learnt from the deltas that passed through.
pub(crate) struct PredictSession {
    predictor: Option<Arc<dyn Predictor>>,
    /// The component imports `predict`; else nothing is kept.
    wanted: bool,
    strings: StringTable,
    /// Job → kind; only looked up, never walked.
    kinds: HashMap<u32, u32>,
    memo: Memo,
    spent: Duration,
}

/// What answering costs in metered mode, before it is multiplied with the limits' rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryCost {
    /// Grid points of distinct kinds, remembered or not: the charge must not depend on what was asked before.
    pub(crate) rows: u64,
    pub(crate) answer_bytes: u64,
}

impl PredictSession {
    pub(crate) fn new(predictor: Option<Arc<dyn Predictor>>, wanted: bool) -> Self {
        let (strings, kinds, memo) = (StringTable::default(), HashMap::new(), Memo::default());
        Self { predictor, wanted, strings, kinds, memo, spent: Duration::ZERO }
    }

    pub(crate) fn begin_cycle(&mut self) {
        self.spent = Duration::ZERO;
    }

    /// Learns job kinds and names from a delta on its way to the guest.
    pub(crate) fn observe(&mut self, delta: &Delta) {
        if !self.wanted {
            return;
        }
        if delta.base_revision == 0 {
            self.strings.clear();
            self.kinds.clear();
        }
        self.strings.extend(&delta.strings);
        if let Some(jobs) = &delta.jobs {
            self.kinds.extend(jobs.id.iter().copied().zip(jobs.kind.iter().copied()));
        }
        let changed: BTreeSet<u32> =
            delta.estimates_changed.iter().filter_map(|job| self.kinds.get(job)).copied().collect();
        self.memo.forget(&changed);
        for job in &delta.removed_jobs {
            self.kinds.remove(job);
        }
    }

    /// Answers a query. `wall` = the budget of wall time in force (production mode only: elsewhere no clock is read).
    pub(crate) fn query(
        &mut self,
        limits: &Limits,
        wall: Option<Duration>,
        request: &CurveRequest,
    ) -> (Result<Curves, PredictError>, QueryCost) {
        let mut cost = QueryCost::default();
        let answer = self.answer(limits, wall, request, &mut cost);
        (answer, cost)
    }

    /// Core count at which an observation would tell most.
    pub(crate) fn next_probe(&self, job: u32) -> Option<u32> {
        let kind = self.kinds.get(&job).copied().filter(|kind| *kind != NONE)?;
        self.predictor.as_ref()?.next_probe(KindId(kind))
    }

    fn answer(
        &mut self,
        limits: &Limits,
        wall: Option<Duration>,
        request: &CurveRequest,
        cost: &mut QueryCost,
    ) -> Result<Curves, PredictError> {
        let kinds = self.kinds_of(&request.jobs)?;
        let grid = self.grid(request)?;
        let points = grid.points().ok_or(PredictError::TooManyRows)?;
        let rows = points.checked_mul(kinds.len() as u64).ok_or(PredictError::TooManyRows)?;
        if rows > limits.predict_rows {
            return Err(PredictError::TooManyRows);
        }
        let distinct: BTreeSet<u32> = kinds.iter().copied().filter(|kind| *kind != NONE).collect();
        cost.rows = points * distinct.len() as u64;
        cost.answer_bytes = rows * 12 + kinds.len() as u64 * 4;
        self.compute(wall, &grid, points, &distinct)?;
        let curves = self.memo.expand(&grid, Limits::size(points), &kinds);
        self.memo.bound(limits.predict_memo_points);
        Ok(curves)
    }

    fn kinds_of(&self, jobs: &[u32]) -> Result<Vec<u32>, PredictError> {
        let known = jobs.iter().map(|job| self.kinds.get(job).copied().ok_or(PredictError::UnknownJob));
        known.collect()
    }

    fn grid(&self, request: &CurveRequest) -> Result<Grid, PredictError> {
        if request.gpus.len() != request.nodes_spanned.len() {
            return Err(PredictError::Unavailable);
        }
        let gpu_kind = self.strings.get(request.gpu_kind_name).ok_or(PredictError::Unavailable)?;
        Ok(Grid {
            model: request.model.clone(),
            gpu_kind: gpu_kind.to_owned(),
            gpus: request.gpus.clone(),
            nodes_spanned: request.nodes_spanned.clone(),
            cpu_milli: request.cpu_milli.clone(),
            memory_mib: request.memory_mib.clone(),
        })
    }

    /// Makes the memo hold every distinct kind of the grid.
    fn compute(
        &mut self,
        wall: Option<Duration>,
        grid: &Grid,
        points: u64,
        distinct: &BTreeSet<u32>,
    ) -> Result<(), PredictError> {
        let missing = self.memo.missing(grid, distinct);
        if missing.is_empty() {
            return Ok(());
        }
        if wall.is_some_and(|budget| self.spent >= budget) {
            return Err(PredictError::Late);
        }
        let predictor = self.predictor.as_ref().ok_or(PredictError::Unavailable)?;
        let started = wall.map(|_| Instant::now());
        let answer = predictor.curves(&grid.query(&missing));
        self.spent += started.map_or(Duration::ZERO, |at| at.elapsed());
        let curves = answer.map_err(refusal)?;
        self.memo.insert(grid, &missing, Limits::size(points), &curves).ok_or(PredictError::Unavailable)?;
        // A late answer is remembered: the next cycle has it at once.
        if wall.is_some_and(|budget| self.spent > budget) { Err(PredictError::Late) } else { Ok(()) }
    }
}

fn refusal(error: port::PredictError) -> PredictError {
    tracing::warn!("a prediction was refused: {error}");
    match error {
        port::PredictError::UnknownModel(_) => PredictError::UnknownModel,
        port::PredictError::TooManyRows { .. } => PredictError::TooManyRows,
        port::PredictError::Unavailable(_) => PredictError::Unavailable,
        port::PredictError::Late { .. } => PredictError::Late,
    }
}

/// The instance's strings, end to end.
#[derive(Default)]
struct StringTable {
    text: String,
    ends: Vec<usize>,
}

impl StringTable {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn extend(&mut self, strings: &[String]) {
        for string in strings {
            self.text.push_str(string);
            self.ends.push(self.text.len());
        }
    }

    fn get(&self, index: u32) -> Option<&str> {
        let index = index as usize;
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        self.text.get(start..end)
    }
}

/// A query without its jobs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grid {
    model: String,
    gpu_kind: String,
    gpus: Vec<u32>,
    nodes_spanned: Vec<u32>,
    cpu_milli: Vec<u32>,
    memory_mib: Vec<u32>,
}

impl Grid {
    fn points(&self) -> Option<u64> {
        let sizes = [self.gpus.len(), self.cpu_milli.len(), self.memory_mib.len()];
        sizes.into_iter().try_fold(1_u64, |points, size| points.checked_mul(size as u64))
    }

    fn query(&self, kinds: &[u32]) -> CurveQuery {
        CurveQuery {
            model: self.model.clone(),
            kinds: kinds.iter().map(|kind| Some(KindId(*kind))).collect(),
            gpu_kind: self.gpu_kind.clone(),
            gpus: self.gpus.clone(),
            nodes_spanned: self.nodes_spanned.clone(),
            cpu_milli: self.cpu_milli.clone(),
            memory_mib: self.memory_mib.clone(),
        }
    }
}

/// One kind's answer on a grid.
struct Surface {
    mean: Vec<f32>,
    low: Vec<f32>,
    high: Vec<f32>,
    version: u32,
}

/// Answers by grid and kind.
#[derive(Default)]
struct Memo {
    grids: BTreeMap<Grid, BTreeMap<u32, Surface>>,
    points: u64,
}

impl Memo {
    fn missing(&self, grid: &Grid, distinct: &BTreeSet<u32>) -> Vec<u32> {
        let known = self.grids.get(grid);
        distinct.iter().copied().filter(|kind| !known.is_some_and(|known| known.contains_key(kind))).collect()
    }

    /// `None` when the predictor's answer has not the promised shape.
    fn insert(&mut self, grid: &Grid, kinds: &[u32], points: usize, curves: &port::Curves) -> Option<()> {
        let size = points.checked_mul(kinds.len())?;
        let whole = [&curves.mean, &curves.low, &curves.high].iter().all(|list| list.len() == size);
        if !whole || curves.version.len() != kinds.len() {
            tracing::error!("the predictor answered {} points where {size} were asked", curves.mean.len());
            return None;
        }
        let surfaces = self.grids.entry(grid.clone()).or_default();
        for (i, (kind, version)) in kinds.iter().zip(&curves.version).enumerate() {
            let slice = |list: &[f32]| list.get(i * points..(i + 1) * points).map(<[f32]>::to_vec);
            let (mean, low, high) = (slice(&curves.mean)?, slice(&curves.low)?, slice(&curves.high)?);
            surfaces.insert(*kind, Surface { mean, low, high, version: *version });
            self.points += points as u64;
        }
        Some(())
    }

    /// One row of the answer per job.
    fn expand(&self, grid: &Grid, points: usize, kinds: &[u32]) -> Curves {
        let room = || Vec::with_capacity(points * kinds.len());
        let mut curves = Curves { mean: room(), low: room(), high: room(), version: Vec::with_capacity(kinds.len()) };
        let known = self.grids.get(grid);
        for kind in kinds {
            match known.and_then(|known| known.get(kind)) {
                Some(surface) => {
                    curves.mean.extend_from_slice(&surface.mean);
                    curves.low.extend_from_slice(&surface.low);
                    curves.high.extend_from_slice(&surface.high);
                    curves.version.push(surface.version);
                }
                None => {
                    for list in [&mut curves.mean, &mut curves.low, &mut curves.high] {
                        list.resize(list.len() + points, f32::NAN);
                    }
                    curves.version.push(0);
                }
            }
        }
        curves
    }

    fn forget(&mut self, kinds: &BTreeSet<u32>) {
        if kinds.is_empty() {
            return;
        }
        for surfaces in self.grids.values_mut() {
            let points = &mut self.points;
            surfaces.retain(|kind, surface| {
                let keep = !kinds.contains(kind);
                *points -= if keep { 0 } else { surface.mean.len() as u64 };
                keep
            });
        }
    }

    fn bound(&mut self, limit: u64) {
        if self.points > limit {
            self.grids.clear();
            self.points = 0;
        }
    }
}

#[cfg(test)]
mod tests;
