//! Which predictor answers the policies.

use std::sync::Arc;

use coretuner_core::catalog::KindCatalog;
use coretuner_core::port::{PredictError, Predictor, PredictorIdentity};
use coretuner_policy_host::{Capability, ImportKind, Inspection};
use coretuner_predictor::{
    ModelError, ModelSource, Observation, OnnxPredictor, OnnxRuntime, Options, Provider, RuntimeError,
};
use coretuner_simulator::workload::Workload;
use coretuner_simulator::{Measured, ProfilePredictor};

use crate::args::{LearnArg, PredictorArgs, PredictorKind, ProviderArg};

/// Why there is no predictor.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum PredictorError {
    #[error(transparent)]
    #[diagnostic(help("--predictor profile needs no ONNX Runtime"))]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("--model and --predictor profile exclude each other: the profile is the workload's own ground truth")]
    ModelOfProfile,
    #[error("unknown model `{name}`; known are {}", known.join(", "))]
    UnknownKind { name: String, known: Vec<String> },
    #[error("the model does not answer: {0}")]
    Answer(#[from] PredictError),
}

impl PredictorError {
    /// Whether the user gave something unusable, rather than the machine lacking something.
    pub(crate) fn is_input(&self) -> bool {
        !matches!(self, Self::Runtime(_) | Self::Answer(_))
    }
}

/// Opened once, used by every run.
pub(crate) enum PredictorSource {
    Onnx {
        opened: Box<OnnxPredictor>,
        learn: bool,
    },
    Profile,
    /// No policy asks for predictions.
    Unused,
}

/// What answers the policy during one run.
pub(crate) struct RunPredictor {
    pub(crate) answers: Arc<dyn Predictor>,
    /// The same, where it learns from measured speeds.
    pub(crate) learns: Option<Arc<OnnxPredictor>>,
}

impl PredictorSource {
    /// Opens what the command line asks for. The model is not opened when nobody wants it and nobody named it.
    pub(crate) fn open(args: &PredictorArgs, wanted: bool) -> Result<Self, PredictorError> {
        match args.predictor {
            Some(PredictorKind::Profile) if args.model.is_some() => Err(PredictorError::ModelOfProfile),
            Some(PredictorKind::Profile) => Ok(Self::Profile),
            None if !wanted && args.model.is_none() && args.provider == ProviderArg::Cpu => Ok(Self::Unused),
            _ => {
                let opened = Box::new(open_onnx(args, Arc::new(KindCatalog::default()))?);
                Ok(Self::Onnx { opened, learn: args.learn == LearnArg::On })
            }
        }
    }

    /// A predictor of its own for one run on `workload`: runs must not teach each other.
    pub(crate) fn for_run(&self, workload: &Workload) -> Option<RunPredictor> {
        match self {
            Self::Onnx { opened, learn } => {
                let own = Arc::new(opened.fork(Arc::clone(&workload.kinds)));
                Some(RunPredictor { learns: learn.then(|| Arc::clone(&own)), answers: own })
            }
            Self::Profile => Some(RunPredictor { answers: Arc::new(ProfilePredictor::new(workload)), learns: None }),
            Self::Unused => None,
        }
    }
}

impl RunPredictor {
    /// For results: a model that learns gives other answers than one that does not.
    pub(crate) fn identity(&self) -> PredictorIdentity {
        let mut identity = self.answers.identity();
        if self.learns.is_some() {
            identity.name.push_str(", learning from measured speeds");
        }
        identity
    }
}

/// Teaches `predictor` a measured speed; says whether its answers changed. What it cannot learn from leaves it as it is.
pub(crate) fn learn(predictor: &OnnxPredictor, measured: &Measured) -> bool {
    let observation = Observation {
        kind: measured.kind,
        gpu_kind: measured.gpu_kind.clone(),
        gpus: measured.gpus,
        nodes_spanned: measured.nodes_spanned,
        cpu_milli: measured.cpu_milli,
        memory_mib: measured.memory_mib,
        iterations_per_s: measured.iterations_per_s,
    };
    match predictor.observe(&observation) {
        Ok(()) => true,
        Err(error) => {
            tracing::debug!(?measured, "a measured speed teaches nothing: {error}");
            false
        }
    }
}

/// Opens the model that the command line names.
pub(crate) fn open_onnx(args: &PredictorArgs, kinds: Arc<KindCatalog>) -> Result<OnnxPredictor, PredictorError> {
    let runtime = OnnxRuntime::load(args.onnxruntime.as_deref())?;
    let source = args.model.clone().map_or(ModelSource::Embedded, ModelSource::File);
    let provider = match args.provider {
        ProviderArg::Cpu => Provider::Cpu,
        ProviderArg::Cuda => Provider::Cuda { require: true },
        ProviderArg::Auto => Provider::Auto,
    };
    Ok(OnnxPredictor::open(&runtime, &source, provider, kinds, Options::default())?)
}

/// Whether a policy imports predictions.
pub(crate) fn is_wanted(inspection: &Inspection) -> bool {
    inspection.shape.imports.iter().any(|import| import.kind == ImportKind::Capability(Capability::Predict))
}

/// What a result says where the policy asks for no predictions.
pub(crate) fn unused() -> PredictorIdentity {
    PredictorIdentity {
        name: "none".to_owned(),
        digest: "-".to_owned(),
        engine: "the policy asks for no predictions".to_owned(),
    }
}

/// Whether a result's policy asked for no predictions.
pub(crate) fn is_unused(predictor: &PredictorIdentity) -> bool {
    *predictor == unused()
}
