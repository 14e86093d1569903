//! The ground truth of one workload.

use std::collections::BTreeMap;

use coretuner_core::catalog::KindCatalog;
use coretuner_core::model::KindId;
use serde::{Deserialize, Serialize};

use super::catalog::{self, Measured, TruthError};
use super::gavel::GavelKind;

/// Index of a model in a [`GroundTruth`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TruthId(pub u32);

/// Which published figures answer for models that were measured several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TruthMode {
    /// Synergy's tables over cores and memory (Figure 2's curves for models without a table).
    #[default]
    Tables,
    /// Figure 2's smooth curves over cores, memory without effect (the tables for models without a curve).
    Figure,
    /// As Synergy's released simulator: one speed-up with the full ideal demand, else none.
    Scalar,
}

/// Options of the ground truth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthOptions {
    pub mode: TruthMode,
    /// Factor on speed when a job spans nodes and its model has no measurement of that; 1 = no penalty.
    pub placement_penalty: f64,
}

impl Default for TruthOptions {
    fn default() -> Self {
        Self { mode: TruthMode::default(), placement_penalty: 1.0 }
    }
}

/// What a job holds on one node, per GPU. CPU and memory of a gang count where they are least: the slowest worker sets
/// the pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share<'a> {
    pub gpu_kind: &'a str,
    /// GPUs of the whole job; a share of one counts as one.
    pub gpus: u32,
    /// Nodes that the whole job spans.
    pub nodes: u32,
    pub cores_per_gpu: f64,
    pub memory_mib_per_gpu: u32,
}

/// Speed of GPU kinds relative to V100 where only the V100 was measured: ResNet-50, batch 64, one GPU, in Gavel's
/// tables (4.39, 2.62, 0.62 steps/s).
const GPU_SPEED: [(&str, f64); 5] =
    [("V100", 1.0), ("V100M16", 1.0), ("V100M32", 1.0), ("P100", 0.597), ("K80", 0.141)];

/// How fast one model runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KindTruth {
    Measured(Box<Measured>),
    Gavel(&'static GavelKind),
    /// No GPUs: one iteration is one second of run time.
    CpuOnly,
}

#[derive(Clone, Debug)]
struct Entry {
    key: String,
    kind: Option<KindId>,
    truth: KindTruth,
}

/// All models of a workload.
#[derive(Clone, Debug, Default)]
pub struct GroundTruth {
    pub options: TruthOptions,
    entries: Vec<Entry>,
    by_key: BTreeMap<String, TruthId>,
    by_kind: BTreeMap<KindId, TruthId>,
}

impl GroundTruth {
    /// No models yet.
    pub fn new(options: TruthOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Adds the model that `key` names (see `catalog.rs`); the same ids for the same key.
    pub fn intern(&mut self, key: &str, kinds: &KindCatalog) -> Result<(TruthId, Option<KindId>), TruthError> {
        if let Some(id) = self.by_key.get(key) {
            return Ok((*id, self.kind(*id)));
        }
        let known = catalog::lookup(key)?;
        let kind = known.descriptor.map(|descriptor| kinds.intern(descriptor));
        let id = TruthId(self.entries.len() as u32);
        self.entries.push(Entry { key: key.to_owned(), kind, truth: known.truth });
        self.by_key.insert(key.to_owned(), id);
        if let Some(kind) = kind {
            self.by_kind.entry(kind).or_insert(id);
        }
        Ok((id, kind))
    }

    /// Key under which the model was added.
    pub fn key(&self, id: TruthId) -> &str {
        self.entry(id).map_or("", |entry| entry.key.as_str())
    }

    /// The model that predictors know as `kind`.
    pub fn of_kind(&self, kind: KindId) -> Option<TruthId> {
        self.by_kind.get(&kind).copied()
    }

    /// Kind of the model; `None` without GPUs.
    pub fn kind(&self, id: TruthId) -> Option<KindId> {
        self.entry(id).and_then(|entry| entry.kind)
    }

    /// For reports.
    pub fn describe(&self) -> String {
        let mode = match self.options.mode {
            TruthMode::Tables => "published tables over cores and memory",
            TruthMode::Figure => "published curves over cores (Figure 2 of Synergy)",
            TruthMode::Scalar => "one published speed-up at the full ideal demand",
        };
        mode.to_owned()
    }

    /// Fails unless the model's speed on `gpu_kind` is known.
    pub fn check_gpu(&self, id: TruthId, gpu_kind: &str) -> Result<(), TruthError> {
        let known = match self.truth(id) {
            Some(KindTruth::Measured(measured)) => gpu_speed(measured, gpu_kind).is_some(),
            Some(KindTruth::Gavel(kind)) => kind.knows_gpu(gpu_kind),
            Some(KindTruth::CpuOnly) => true,
            None => false,
        };
        let error = || TruthError::UnknownGpuKind { model: self.key(id).to_owned(), gpu_kind: gpu_kind.to_owned() };
        if known { Ok(()) } else { Err(error()) }
    }

    /// Fails unless the model was measured on several numbers of GPUs, in steps that mean the same work on each.
    pub fn check_elastic(&self, id: TruthId) -> Result<(), TruthError> {
        match self.truth(id) {
            Some(KindTruth::Gavel(_)) => Ok(()),
            _ => Err(TruthError::NotElastic { model: self.key(id).to_owned() }),
        }
    }

    /// Seconds per iteration of the whole job; `None` on an unknown GPU kind.
    pub fn iteration_s(&self, id: TruthId, share: &Share<'_>) -> Option<f64> {
        match self.truth(id)? {
            KindTruth::Measured(measured) => self.measured_s(measured, share),
            KindTruth::Gavel(kind) => {
                let surface = kind.surface(share.gpu_kind, share.gpus, share.nodes <= 1)?;
                Some(surface.iteration_s(share.cores_per_gpu))
            }
            KindTruth::CpuOnly => Some(1.0),
        }
    }

    /// Seconds per iteration with all the CPU and memory that the model can use.
    pub fn best_iteration_s(&self, id: TruthId, share: &Share<'_>) -> Option<f64> {
        let plenty = Share { cores_per_gpu: 1e6, memory_mib_per_gpu: u32::MAX, ..*share };
        self.iteration_s(id, &plenty)
    }

    /// Cores per GPU beyond which the job is no faster with this memory.
    pub fn useful_cores(&self, id: TruthId, share: &Share<'_>) -> f64 {
        match self.truth(id) {
            Some(KindTruth::Measured(measured)) => self.measured_useful(measured, share),
            Some(KindTruth::Gavel(kind)) => kind
                .surface(share.gpu_kind, share.gpus, share.nodes <= 1)
                .map_or(share.cores_per_gpu, |surface| surface.useful_cores()),
            Some(KindTruth::CpuOnly) | None => share.cores_per_gpu,
        }
    }

    fn measured_s(&self, measured: &Measured, share: &Share<'_>) -> Option<f64> {
        let gpu = gpu_speed(measured, share.gpu_kind)?;
        let penalty = if share.nodes > 1 { self.options.placement_penalty } else { 1.0 };
        let memory = if measured.portable { u32::MAX } else { share.memory_mib_per_gpu };
        let alone = match (self.options.mode, &measured.table, &measured.figure, &measured.demand) {
            (TruthMode::Scalar, _, _, Some(demand)) => {
                let full = share.cores_per_gpu >= demand.cores && memory >= demand.memory_mib;
                measured.iteration_s / if full { demand.speedup } else { 1.0 } / gpu
            }
            (TruthMode::Figure, _, Some(surface), _) | (_, None, Some(surface), _) => {
                surface.on_gpu(gpu).iteration_s(share.cores_per_gpu)
            }
            (_, Some(table), _, _) => {
                measured.iteration_s / table.relative(share.cores_per_gpu, memory).min(table.best() * gpu)
            }
            (_, None, None, _) => measured.iteration_s / gpu,
        };
        Some(alone / penalty)
    }

    fn measured_useful(&self, measured: &Measured, share: &Share<'_>) -> f64 {
        let memory = if measured.portable { u32::MAX } else { share.memory_mib_per_gpu };
        match (self.options.mode, &measured.table, &measured.figure, &measured.demand) {
            (TruthMode::Scalar, _, _, Some(demand)) => demand.cores,
            (TruthMode::Figure, _, Some(surface), _) | (_, None, Some(surface), _) => surface.useful_cores(),
            (_, Some(table), _, _) => table.useful_cores(memory),
            (_, None, None, _) => share.cores_per_gpu,
        }
    }

    fn truth(&self, id: TruthId) -> Option<&KindTruth> {
        self.entry(id).map(|entry| &entry.truth)
    }

    fn entry(&self, id: TruthId) -> Option<&Entry> {
        self.entries.get(id.0 as usize)
    }
}

fn gpu_speed(measured: &Measured, gpu_kind: &str) -> Option<f64> {
    if measured.portable {
        return Some(1.0);
    }
    GPU_SPEED.iter().find(|(name, _)| *name == gpu_kind).map(|(_, speed)| *speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(cores_per_gpu: f64, memory_mib_per_gpu: u32) -> Share<'static> {
        Share { gpu_kind: "V100", gpus: 1, nodes: 1, cores_per_gpu, memory_mib_per_gpu }
    }

    fn truth(key: &str, mode: TruthMode) -> (GroundTruth, TruthId) {
        let mut truth = GroundTruth::new(TruthOptions { mode, placement_penalty: 0.8 });
        let (id, _) = truth.intern(key, &KindCatalog::default()).expect("known");
        (truth, id)
    }

    fn check(key: &str, mode: TruthMode, share: Share<'_>, expected: Option<f64>) {
        let (truth, id) = truth(key, mode);
        let got = truth.iteration_s(id, &share);
        let close = match (got, expected) {
            (Some(got), Some(expected)) => (got / expected - 1.0).abs() < 1e-9,
            (got, expected) => got == expected,
        };
        assert!(close, "{key} {share:?}: {got:?}, not {expected:?}");
    }

    #[test]
    fn modes_answer_from_their_source() {
        check("alexnet", TruthMode::Tables, share(12.0, 128_000), Some(0.6 / 2.94));
        check("alexnet", TruthMode::Tables, share(9.0, 64_000), Some(0.3));
        check("alexnet", TruthMode::Scalar, share(9.0, 128_000), Some(0.6));
        check("alexnet", TruthMode::Scalar, share(12.0, 128_000), Some(0.6 / 2.94));
        check("alexnet", TruthMode::Figure, share(3.0, 0), Some(0.6));
        check("gnmt", TruthMode::Figure, share(1.0, 0), Some(0.12));
        check("audio_m5", TruthMode::Figure, share(6.0, 192_000), Some(0.6 / 2.5));
    }

    #[test]
    fn gpu_kinds_and_placement_count() {
        let slower = Share { gpu_kind: "P100", ..share(12.0, 128_000) };
        check("alexnet", TruthMode::Tables, slower, Some(0.6 / (2.94 * 0.597)));
        check("alexnet", TruthMode::Tables, Share { gpu_kind: "H200", ..slower }, None);
        check("portable/alexnet", TruthMode::Tables, Share { gpu_kind: "G2", ..share(3.0, 0) }, Some(0.6));
        check("gnmt", TruthMode::Tables, Share { nodes: 2, ..share(1.0, 21_330) }, Some(0.12 / 0.8));
        check("cpu-only", TruthMode::Tables, share(0.0, 0), Some(1.0));
    }

    #[test]
    fn an_elastic_job_needs_a_model_that_was_measured_on_several_gpus() {
        let check = |key: &str| truth(key, TruthMode::Tables).0.check_elastic(TruthId(0));
        assert_eq!(check("gavel/LM (batch size 80)"), Ok(()));
        assert!(check("alexnet").is_err_and(|error| error.to_string().contains("gavel/")));
    }

    #[test]
    fn useful_cores_follow_memory() {
        let (truth, id) = truth("alexnet", TruthMode::Tables);
        assert_eq!(truth.useful_cores(id, &share(24.0, 64_000)), 9.0);
        assert_eq!(truth.useful_cores(id, &share(24.0, 128_000)), 12.0);
        assert_eq!(truth.best_iteration_s(id, &share(1.0, 0)), Some(0.6 / 2.94));
    }
}
