//! The predictor: answers curves from the model, calibrated by what was observed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use coretuner_core::catalog::{KindCatalog, ModelDescriptor};
use coretuner_core::model::KindId;
use coretuner_core::port::{CurveQuery, Curves, PredictError, Predictor, PredictorIdentity};

use crate::cache::Cache;
use crate::calibration::{Belief, Calibration, Observation, ObserveError, Sample};
use crate::features::{self, Allocation};
use crate::form::Place;
use crate::interface::{HeldOut, Row};
use crate::model::{LoadedModel, ModelError, ModelSource};
use crate::probe;
use crate::runtime::OnnxRuntime;
use crate::session::{BATCH, Provider};
use crate::surface::{Grid, Plan, Surface, late};

/// Name of the model in queries and reports.
const NAME: &str = "throughput";

/// What an operator may set.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Storage rate of each GPU's share, for jobs whose data does not fit in memory. Default: an eighth of 500 MB/s.
    pub storage_mib_per_s: f64,
    /// Most model rows of one query, before points that share a row are merged.
    pub rows_max: usize,
    /// Most points of one answer, over all its jobs.
    pub points_max: usize,
    /// Most time of one query; `None` = no limit, as a simulation needs to be repeatable.
    pub deadline: Option<Duration>,
    /// Most points kept for later queries.
    pub cache_points: usize,
    /// GPU kind on which a probe would run.
    pub probe_gpu_kind: String,
    /// Total `cpu_milli` at which a one-GPU job may be observed.
    pub probe_cpu_milli: Vec<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            storage_mib_per_s: 62.5e6 / 1_048_576.0,
            rows_max: 262_144,
            points_max: 4_194_304,
            deadline: None,
            cache_points: 4_194_304,
            probe_gpu_kind: "V100".to_owned(),
            probe_cpu_milli: [1, 2, 3, 4, 6, 9, 12, 18, 24].map(|cores| cores * 1000).to_vec(),
        }
    }
}

/// Answers queries from an ONNX model. Clones of the model are shared: see [`OnnxPredictor::fork`].
#[derive(Debug)]
pub struct OnnxPredictor {
    model: Arc<LoadedModel>,
    catalog: Arc<KindCatalog>,
    options: Options,
    calibration: Mutex<Calibration>,
    cache: Mutex<Cache>,
}

impl OnnxPredictor {
    /// Opens `source` after every check, see [`ModelError`].
    pub fn open(
        runtime: &OnnxRuntime,
        source: &ModelSource,
        provider: Provider,
        catalog: Arc<KindCatalog>,
        options: Options,
    ) -> Result<Self, ModelError> {
        let model = Arc::new(LoadedModel::open(runtime, source, provider)?);
        tracing::debug!(model = %source, digest = model.digest, engine = model.engine, "opened throughput model");
        Ok(Self::with(model, catalog, options))
    }

    /// Another predictor on the same model that has observed nothing: runs in parallel must not teach each other.
    pub fn fork(&self, catalog: Arc<KindCatalog>) -> Self {
        Self::with(Arc::clone(&self.model), catalog, self.options.clone())
    }

    fn with(model: Arc<LoadedModel>, catalog: Arc<KindCatalog>, options: Options) -> Self {
        let cache = Mutex::new(Cache::new(options.cache_points));
        Self { model, catalog, options, calibration: Mutex::default(), cache }
    }

    /// The model's error on jobs left out of its training.
    pub fn held_out(&self) -> &[HeldOut] {
        &self.model.card.held_out
    }

    /// Version that the model file gives itself.
    pub fn model_version(&self) -> &str {
        &self.model.card.version
    }

    /// Learns from a measured speed: the kind's curves on that GPU kind change, and so does their version.
    pub fn observe(&self, observation: &Observation) -> Result<(), ObserveError> {
        let kind = observation.kind;
        let descriptor = self.catalog.get(kind).ok_or(ObserveError::UnknownKind(kind))?;
        let speed = observation.iterations_per_s;
        if !(speed.is_finite() && speed > 0.0) {
            return Err(ObserveError::Speed(speed));
        }
        let allocation = Allocation {
            gpus: observation.gpus,
            nodes: observation.nodes_spanned,
            cpu_milli: observation.cpu_milli,
            memory_mib: observation.memory_mib,
        };
        let place = self.place(&descriptor, &allocation).ok_or(ObserveError::NoResources)?;
        let batch = features::batch(&descriptor);
        let sample = Sample { place, log_speed: libm::log(speed * batch * place.gpus) };
        let prior = self.prior(&descriptor, &observation.gpu_kind).map_err(ObserveError::Prior)?;
        let form = &self.model.card.form;
        let added = self.calibration().add(form, kind, &observation.gpu_kind, &prior, sample, batch);
        added.ok_or(ObserveError::NoFit(kind))
    }

    fn place(&self, descriptor: &ModelDescriptor, allocation: &Allocation) -> Option<Place> {
        features::place(descriptor, allocation, self.options.storage_mib_per_s)
    }

    fn calibration(&self) -> MutexGuard<'_, Calibration> {
        self.calibration.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model's belief of a job that nobody has observed.
    fn prior(&self, descriptor: &ModelDescriptor, gpu_kind: &str) -> Result<Belief, String> {
        let row = Row {
            job: features::job(descriptor),
            gpu: features::gpu(gpu_kind),
            place: [1.0, 1.0, 1.0, 0.0],
            belief: None,
        };
        let answers = self.model.run(&[row]).map_err(|e| e.to_string())?;
        let answer = answers.first().ok_or_else(|| "the model gave no answer".to_owned())?;
        Ok(Belief::from_columns(&answer.prior_mu, &answer.prior_l))
    }

    /// Belief and version of a kind on a GPU kind.
    fn belief(&self, kind: KindId, gpu_kind: &str) -> (Option<Belief>, u32) {
        let calibration = self.calibration();
        let learned = calibration.get(kind, gpu_kind);
        (learned.map(|l| l.belief), self.base_version().wrapping_add(learned.map_or(0, |l| l.taken)))
    }

    /// Differs between model files.
    fn base_version(&self) -> u32 {
        let hex = self.model.digest.trim_start_matches("blake3:").get(..6);
        hex.and_then(|h| u32::from_str_radix(h, 16).ok()).unwrap_or(0) << 8
    }

    /// Surfaces of `kinds`, which are distinct, with the version of each.
    fn surfaces(&self, grid: &Grid, kinds: &[KindId]) -> Result<BTreeMap<KindId, (Arc<Surface>, u32)>, PredictError> {
        let mut found = BTreeMap::new();
        let mut missing = Vec::new();
        for &kind in kinds {
            let (belief, version) = self.belief(kind, &grid.gpu_kind);
            match self.cache().get(grid, kind, version) {
                Some(surface) => {
                    found.insert(kind, (surface, version));
                }
                None => missing.extend(self.catalog.get(kind).map(|descriptor| {
                    let plan = Plan::new(grid, &descriptor, belief.as_ref(), self.options.storage_mib_per_s);
                    (kind, version, plan)
                })),
            }
        }
        let rows: Vec<Row> = missing.iter().flat_map(|(_, _, plan)| plan.rows()).copied().collect();
        let answers = self.answer(&rows)?;
        let mut rest = answers.as_slice();
        for (kind, version, plan) in missing {
            let (own, others) = rest.split_at(plan.rows().len().min(rest.len()));
            rest = others;
            let surface = Arc::new(plan.surface(grid, own));
            self.cache().put(grid, kind, version, Arc::clone(&surface));
            found.insert(kind, (surface, version));
        }
        Ok(found)
    }

    fn answer(&self, rows: &[Row]) -> Result<Vec<crate::interface::Output>, PredictError> {
        let deadline = self.options.deadline.map(|limit| Instant::now() + limit);
        let mut answers = Vec::with_capacity(rows.len());
        for batch in rows.chunks(BATCH) {
            if late(deadline) {
                let limit = self.options.deadline.unwrap_or_default();
                return Err(PredictError::Late { deadline_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) });
            }
            answers.extend(self.model.run(batch).map_err(|e| PredictError::Unavailable(e.to_string()))?);
        }
        Ok(answers)
    }

    fn check_size(&self, rows: usize, points: usize) -> Result<(), PredictError> {
        for (rows, limit) in [(rows, self.options.rows_max), (points, self.options.points_max)] {
            if rows > limit {
                return Err(PredictError::TooManyRows { rows, limit });
            }
        }
        Ok(())
    }
}

impl Predictor for OnnxPredictor {
    fn identity(&self) -> PredictorIdentity {
        PredictorIdentity {
            name: NAME.to_owned(),
            digest: self.model.digest.clone(),
            engine: self.model.engine.clone(),
        }
    }

    fn curves(&self, query: &CurveQuery) -> Result<Curves, PredictError> {
        if !query.model.is_empty() && query.model != NAME {
            return Err(PredictError::UnknownModel(query.model.clone()));
        }
        let grid = Grid::of(query).ok_or_else(|| {
            let (gpus, nodes) = (query.gpus.len(), query.nodes_spanned.len());
            PredictError::Unavailable(format!(
                "the query has {gpus} GPU counts and {nodes} node counts; they are one axis"
            ))
        })?;
        let mut kinds: Vec<KindId> = query.kinds.iter().flatten().copied().collect();
        kinds.sort_unstable();
        kinds.dedup();
        let points = grid.points();
        self.check_size(kinds.len().saturating_mul(points), query.kinds.len().saturating_mul(points))?;
        let surfaces = self.surfaces(&grid, &kinds)?;
        let mut curves = Curves::default();
        for kind in &query.kinds {
            match kind.and_then(|kind| surfaces.get(&kind)) {
                Some((surface, version)) => {
                    curves.mean.extend_from_slice(&surface.mean);
                    curves.low.extend_from_slice(&surface.low);
                    curves.high.extend_from_slice(&surface.high);
                    curves.version.push(*version);
                }
                None => {
                    for column in [&mut curves.mean, &mut curves.low, &mut curves.high] {
                        column.resize(column.len() + points, f32::NAN);
                    }
                    curves.version.push(self.base_version());
                }
            }
        }
        Ok(curves)
    }

    fn next_probe(&self, kind: KindId) -> Option<u32> {
        let descriptor = self.catalog.get(kind)?;
        let gpu_kind = &self.options.probe_gpu_kind;
        let belief = match self.belief(kind, gpu_kind).0 {
            Some(belief) => belief,
            None => self.prior(&descriptor, gpu_kind).ok()?,
        };
        let place = |cpu_milli: &u32| {
            let allocation = Allocation { gpus: 1, nodes: 1, cpu_milli: *cpu_milli, memory_mib: u32::MAX };
            self.place(&descriptor, &allocation).map(|place| (*cpu_milli, place))
        };
        let (cpu_milli, grid): (Vec<u32>, Vec<Place>) = self.options.probe_cpu_milli.iter().filter_map(place).unzip();
        let at = probe::best(&self.model.card.form, &belief, &grid, features::batch(&descriptor))?;
        cpu_milli.get(at).copied()
    }
}
