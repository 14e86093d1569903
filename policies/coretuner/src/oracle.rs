//! Asking the host for predicted speeds.

use coretuner_sdk::predict::{CurveRequest, Curves};
use coretuner_sdk::solve::Band;
use coretuner_sdk::{GpuKind, HostHandle, JobId, Level};

/// A grid of totals for one kind of job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) gpu_kind: GpuKind,
    pub(crate) gpus: u32,
    pub(crate) nodes_spanned: u32,
    pub(crate) cpu: Vec<u32>,
    pub(crate) memory: Vec<u32>,
}

/// Iterations per second, row-major `[cpu][memory]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) mean: Vec<f32>,
    pub(crate) low: Vec<f32>,
    pub(crate) high: Vec<f32>,
}

impl Answer {
    pub(crate) fn band(&self) -> Band<'_> {
        Band { mean: &self.mean, low: &self.low, high: &self.high }
    }
}

/// The host's predictor. A job speaks for all of its kind.
pub(crate) struct Oracle<'a, 'h> {
    pub(crate) host: &'a mut HostHandle<'h>,
    pub(crate) speaker: Option<JobId>,
    /// Questions left unanswered in this cycle.
    pub(crate) failures: u32,
}

impl Oracle<'_, '_> {
    /// None when the host has no answer.
    pub(crate) fn ask(&mut self, question: &Question) -> Option<Answer> {
        let job = self.speaker?;
        let request = CurveRequest {
            model: String::new(),
            jobs: vec![job],
            gpu_kind: question.gpu_kind.0,
            gpus: vec![question.gpus],
            nodes_spanned: vec![question.nodes_spanned],
            cpu_milli: question.cpu.clone(),
            memory_mib: question.memory.clone(),
        };
        match self.host.curves(&request) {
            Ok(curves) => {
                let points = question.cpu.len() * question.memory.len();
                let Curves { mean, low, high, .. } = curves;
                let whole = [&mean, &low, &high].iter().all(|column| column.len() == points);
                whole.then_some(Answer { mean, low, high })
            }
            Err(error) => {
                self.failures += 1;
                if self.failures == 1 {
                    let line = format!("no prediction for job {job}: {error}; it gets its proportional share");
                    self.host.log(Level::Warn, &line);
                }
                None
            }
        }
    }
}
