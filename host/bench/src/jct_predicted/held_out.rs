//! A predictor that answers for each model of the workload by a file that was trained without it.

use crate::error::Error;
use coretuner_core::catalog::KindCatalog;
use coretuner_core::model::KindId;
use coretuner_core::port::{CurveQuery, Curves, PredictError, Predictor, PredictorIdentity};
use coretuner_predictor::{ModelSource, Observation, OnnxPredictor, OnnxRuntime, Options, Provider};
use coretuner_simulator::Measured;
use coretuner_simulator::workload::Workload;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Files by the model that they were trained without, as `models/train.py` writes them.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/heldout");

/// All files, opened once.
pub(super) struct HeldOutModels {
    opened: BTreeMap<String, OnnxPredictor>,
}

impl HeldOutModels {
    /// Opens every file of the folder.
    pub(super) fn open() -> Result<Self, Error> {
        let failed = |detail: String| Error::HeldOut(format!("{FOLDER}: {detail}"));
        let runtime = OnnxRuntime::load(None).map_err(|error| failed(error.to_string()))?;
        let mut opened = BTreeMap::new();
        for entry in Path::new(FOLDER).read_dir().map_err(|error| failed(error.to_string()))? {
            let path = entry.map_err(|error| failed(error.to_string()))?.path();
            let Some(name) = path.file_stem().map(|name| name.to_string_lossy().into_owned()) else { continue };
            let (source, none) = (ModelSource::File(path), Arc::new(KindCatalog::default()));
            let predictor = OnnxPredictor::open(&runtime, &source, Provider::Cpu, none, Options::default());
            opened.insert(name, predictor.map_err(|error| failed(error.to_string()))?);
        }
        Ok(Self { opened })
    }

    /// A predictor for one run: runs must not teach each other.
    pub(super) fn for_run(&self, workload: &Workload) -> HeldOut {
        let fork = |(name, opened): (&String, &OnnxPredictor)| (name.clone(), opened.fork(Arc::clone(&workload.kinds)));
        HeldOut { kinds: Arc::clone(&workload.kinds), models: self.opened.iter().map(fork).collect() }
    }
}

/// Answers during one run.
pub(super) struct HeldOut {
    kinds: Arc<KindCatalog>,
    models: BTreeMap<String, OnnxPredictor>,
}

impl HeldOut {
    /// What was trained without this kind's model.
    fn without(&self, kind: KindId) -> Option<&OnnxPredictor> {
        self.models.get(&self.kinds.get(kind)?.name)
    }

    /// Learns from a measured speed; whether predictions changed by it.
    pub(super) fn learn(&self, measured: &Measured) -> bool {
        let observation = Observation {
            kind: measured.kind,
            gpu_kind: measured.gpu_kind.clone(),
            gpus: measured.gpus,
            nodes_spanned: measured.nodes_spanned,
            cpu_milli: measured.cpu_milli,
            memory_mib: measured.memory_mib,
            iterations_per_s: measured.iterations_per_s,
        };
        self.without(measured.kind).is_some_and(|model| model.observe(&observation).is_ok())
    }
}

impl Predictor for HeldOut {
    fn identity(&self) -> PredictorIdentity {
        let engine = self.models.values().next().map_or_else(String::new, |model| model.identity().engine);
        PredictorIdentity { name: "throughput, each model held out".into(), digest: "-".into(), engine }
    }

    fn curves(&self, query: &CurveQuery) -> Result<Curves, PredictError> {
        let mut all = Curves { mean: Vec::new(), low: Vec::new(), high: Vec::new(), version: Vec::new() };
        for kind in &query.kinds {
            let model = kind.and_then(|kind| self.without(kind));
            let model = model.ok_or_else(|| PredictError::Unavailable(format!("no model without {kind:?}")))?;
            let one = model.curves(&CurveQuery { kinds: vec![*kind], ..query.clone() })?;
            all.mean.extend(one.mean);
            all.low.extend(one.low);
            all.high.extend(one.high);
            all.version.extend(one.version);
        }
        Ok(all)
    }

    fn next_probe(&self, kind: KindId) -> Option<u32> {
        self.without(kind)?.next_probe(kind)
    }
}
