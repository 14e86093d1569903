//! The same policy code compiled natively, behind the same port and with the same predictor.

use crate::error::Error;
use coretuner_contract::cluster::Delta;
use coretuner_core::model::JobId;
use coretuner_core::port::{Answer, CurveQuery, FaultKind, Policy, PolicyFault, PolicyIdentity, Predictor};
use coretuner_sdk::predict::{CurveRequest, Curves, PredictError};
use coretuner_sdk::{Host, HostHandle, Instance};
use coretuner_simulator::workload::Workload;
use std::sync::Arc;

/// What the host answers to native code: predictions only.
struct PredictingHost {
    predictor: Arc<dyn Predictor>,
    workload: Arc<Workload>,
    gpu_kind: String,
}

impl Host for PredictingHost {
    fn curves(&mut self, request: &CurveRequest) -> Result<Curves, PredictError> {
        let kind = |job: &coretuner_sdk::JobId| self.workload.jobs.get(JobId(job.0).0 as usize)?.spec.kind;
        let query = CurveQuery {
            model: request.model.clone(),
            kinds: request.jobs.iter().map(kind).collect(),
            gpu_kind: self.gpu_kind.clone(),
            gpus: request.gpus.clone(),
            nodes_spanned: request.nodes_spanned.clone(),
            cpu_milli: request.cpu_milli.clone(),
            memory_mib: request.memory_mib.clone(),
        };
        let found = self.predictor.curves(&query).map_err(|_| PredictError::Unavailable)?;
        Ok(Curves { mean: found.mean, low: found.low, high: found.high, version: found.version })
    }
}

/// One native instance. Not `coretuner_policy_host::NativePolicy`: that one must move between threads, and policies need not.
pub(crate) struct Native<P> {
    identity: PolicyIdentity,
    instance: Instance<P>,
    host: PredictingHost,
    fresh: bool,
}

/// A native instance of policy `P` with its default configuration.
pub(crate) fn on_this_machine<P: coretuner_sdk::Policy>(
    workload: &Arc<Workload>,
    predictor: &Arc<dyn Predictor>,
) -> Result<Native<P>, Error> {
    let gpu_kind = workload.nodes.first().map(|node| node.gpu_kind.clone()).unwrap_or_default();
    let host = PredictingHost { predictor: Arc::clone(predictor), workload: Arc::clone(workload), gpu_kind };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let identity = PolicyIdentity { name: P::NAME.to_owned(), version, digest: "native".to_owned() };
    let mut policy = Native { identity, instance: Instance::new(), host, fresh: true };
    policy.reset()?;
    Ok(policy)
}

impl<P: coretuner_sdk::Policy> Policy for Native<P> {
    fn identity(&self) -> &PolicyIdentity {
        &self.identity
    }

    fn decide(&mut self, delta: &Delta) -> Result<Answer, PolicyFault> {
        self.fresh = false;
        let plan = self.instance.decide(delta, HostHandle::new(&mut self.host));
        let plan = plan.map_err(|error| fault(FaultKind::Trap, error.to_string()))?;
        Ok(Answer { plan, fuel: None, memory_bytes: 0 })
    }

    fn reset(&mut self) -> Result<(), PolicyFault> {
        self.fresh = true;
        self.instance = Instance::new();
        self.instance.configure("{}").map_err(|message| fault(FaultKind::Start, message))
    }

    fn needs_image(&self) -> bool {
        self.fresh
    }
}

fn fault(kind: FaultKind, message: String) -> PolicyFault {
    PolicyFault { kind, message, backtrace: Vec::new(), output_tail: Vec::new() }
}
