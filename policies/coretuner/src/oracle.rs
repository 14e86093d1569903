//! Asking the host for predicted speeds.

use coretuner_sdk::predict::CurveRequest;
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

/// The host's predictor. A job speaks for all of its kind.
pub(crate) struct Oracle<'a, 'h> {
    pub(crate) host: &'a mut HostHandle<'h>,
    pub(crate) speaker: Option<JobId>,
    /// Questions left unanswered in this cycle.
    pub(crate) failures: u32,
}

impl Oracle<'_, '_> {
    /// Iterations per second, row-major `[cpu][memory]`; none when the host has no answer.
    pub(crate) fn ask(&mut self, question: &Question) -> Option<Vec<f32>> {
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
                let whole = curves.mean.len() == question.cpu.len() * question.memory.len();
                whole.then_some(curves.mean)
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
