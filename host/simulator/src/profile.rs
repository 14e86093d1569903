//! The workload's own ground truth as a predictor: what Synergy assumes after profiling a job.

use std::sync::Arc;

use coretuner_core::model::KindId;
use coretuner_core::port::{CurveQuery, Curves, PredictError, Predictor, PredictorIdentity};

use crate::truth::{GroundTruth, Share, TruthId, TruthMode};
use crate::workload::Workload;

/// Most values of one answer.
const VALUES_MAX: usize = 4_000_000;

/// Answers curves from the truth, without error bars.
#[derive(Clone, Debug)]
pub struct ProfilePredictor {
    truth: Arc<GroundTruth>,
    digest: String,
}

impl ProfilePredictor {
    /// For the kinds of `workload`. A truth of scalars is predicted by the tables: Synergy finds the demand, which such a
    /// truth rewards, in the whole profile.
    pub fn new(workload: &Workload) -> Self {
        let mut truth = workload.truth.clone();
        if truth.options.mode == TruthMode::Scalar {
            truth.options.mode = TruthMode::Tables;
        }
        let digest = format!("blake3:{}", blake3::hash(format!("{truth:?}").as_bytes()).to_hex());
        Self { truth: Arc::new(truth), digest }
    }

    /// Iterations per second; NaN where the truth has no answer, 0 where the job makes no progress.
    fn rate(&self, id: Option<TruthId>, share: &Share<'_>) -> f32 {
        let iteration_s = id.and_then(|id| self.truth.iteration_s(id, share));
        iteration_s.map_or(f32::NAN, |iteration_s| (1.0 / iteration_s) as f32)
    }

    fn surface(&self, query: &CurveQuery, kind: Option<KindId>, out: &mut Vec<f32>) {
        let id = kind.and_then(|kind| self.truth.of_kind(kind));
        for (gpus, nodes) in query.gpus.iter().zip(&query.nodes_spanned) {
            let per = f64::from((*gpus).max(1));
            for cpu_milli in &query.cpu_milli {
                for memory_mib in &query.memory_mib {
                    let share = Share {
                        gpu_kind: &query.gpu_kind,
                        gpus: *gpus,
                        nodes: *nodes,
                        cores_per_gpu: f64::from(*cpu_milli) / 1000.0 / per,
                        memory_mib_per_gpu: memory_mib / (*gpus).max(1),
                    };
                    out.push(self.rate(id, &share));
                }
            }
        }
    }
}

impl Predictor for ProfilePredictor {
    fn identity(&self) -> PredictorIdentity {
        PredictorIdentity {
            name: "profile".to_owned(),
            digest: self.digest.clone(),
            engine: "ground truth of the workload".to_owned(),
        }
    }

    fn curves(&self, query: &CurveQuery) -> Result<Curves, PredictError> {
        if !matches!(query.model.as_str(), "" | "throughput") {
            return Err(PredictError::UnknownModel(query.model.clone()));
        }
        let rows = query.points().saturating_mul(query.kinds.len());
        if rows > VALUES_MAX {
            return Err(PredictError::TooManyRows { rows, limit: VALUES_MAX });
        }
        let mut mean = Vec::with_capacity(rows);
        query.kinds.iter().for_each(|kind| self.surface(query, *kind, &mut mean));
        Ok(Curves { low: mean.clone(), high: mean.clone(), mean, version: vec![1; query.kinds.len()] })
    }

    /// Nothing is left to learn.
    fn next_probe(&self, _: KindId) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{GenerateOptions, generate};

    #[test]
    fn curves_are_the_truth() {
        let workload = generate(&GenerateOptions { jobs: 1, ..GenerateOptions::default() }).expect("valid");
        let mut workload = workload;
        let kinds = Arc::clone(&workload.kinds);
        let (_, kind) = workload.truth.intern("alexnet", &kinds).expect("known");
        let query = CurveQuery {
            model: String::new(),
            kinds: vec![kind, None],
            gpu_kind: "V100".to_owned(),
            gpus: vec![1, 4],
            nodes_spanned: vec![1, 1],
            cpu_milli: vec![4_000, 12_000],
            memory_mib: vec![64_000, 256_000],
        };
        let curves = ProfilePredictor::new(&workload).curves(&query).expect("answer");
        let relative: Vec<f32> = curves.mean[..8].iter().map(|rate| (rate * 0.6 * 100.0).round() / 100.0).collect();
        assert_eq!(relative, [1.25, 1.25, 2.0, 2.94, 0.1, 0.3, 0.1, 1.0]);
        assert!(curves.mean[8..].iter().all(|rate| rate.is_nan()));
    }
}
