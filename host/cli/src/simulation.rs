//! One policy on one workload.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use coretuner_core::model::JobId;
use coretuner_policy_host::{
    CodeCache, Grants, JobDetails, Limits, LoadError, LoadedPolicy, Mode as Metering, PolicyEngine, Services,
    WasmPolicy,
};
use coretuner_simulator::result::RunResult;
use coretuner_simulator::workload::Workload;
use coretuner_simulator::{
    Hooks, Measured, Mode, Progress, RunLabels, Settings, SimulateError, simulate, simulate_with_feedback,
};
use serde_json::Value;

use crate::args::{ModeArg, TimeArgs};
use crate::error::CliError;
use crate::policy_config::ConfigError;
use crate::predictor::{self, PredictorSource, RunPredictor};

/// A run did not reach its end.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum RunError {
    #[error("the run of policy {policy} failed: {source}")]
    Simulate { policy: String, source: Box<SimulateError> },
    #[error("cannot start {threads} threads: {reason}")]
    Threads { threads: usize, reason: String },
    #[error("the result cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A component, compiled once, with a configuration that it takes.
pub(crate) struct PreparedPolicy {
    pub(crate) loaded: LoadedPolicy,
    pub(crate) config: Value,
    path: PathBuf,
}

impl PreparedPolicy {
    /// Loads a component and lets a first instance check the configuration.
    pub(crate) fn load(engine: &PolicyEngine, path: &Path, config: Value) -> Result<Self, CliError> {
        let loaded = load(engine, path)?;
        let policy = Self { loaded, config, path: path.to_owned() };
        policy.instantiate(Services::default())?;
        Ok(policy)
    }

    /// An instance with its configuration.
    fn instantiate(&self, services: Services) -> Result<WasmPolicy, CliError> {
        self.loaded.instantiate(&self.config.to_string(), services).map_err(|source| match source {
            LoadError::Configuration { policy, message } => ConfigError::Refused { policy, reason: message }.into(),
            source => CliError::Load { path: self.path.clone(), source: Box::new(source) },
        })
    }

    /// Whether it imports predictions.
    pub(crate) fn wants_predictions(&self) -> bool {
        predictor::is_wanted(self.loaded.inspection())
    }
}

/// Loads a component with everything granted that the contract offers.
pub(crate) fn load(engine: &PolicyEngine, path: &Path) -> Result<LoadedPolicy, CliError> {
    let refused = |source: LoadError| CliError::Load { path: path.to_owned(), source: Box::new(source) };
    LoadedPolicy::from_file(engine, path, &Grants::all(), &code_cache()).map_err(refused)
}

/// The engine of simulations: fuel instead of clocks, so that results do not depend on the machine's speed.
pub(crate) fn metered_engine() -> Result<PolicyEngine, CliError> {
    Ok(PolicyEngine::new(Metering::Metered, Limits::default())?)
}

/// How time is modelled, from the command line.
pub(crate) fn settings(args: &TimeArgs) -> Settings {
    let mode = match args.mode {
        ModeArg::Events => Mode::Events,
        ModeArg::Rounds => Mode::Rounds {
            round_s: args.round_s,
            first_round_s: args.first_round_s,
            whole_iterations: args.whole_iterations,
        },
    };
    Settings {
        mode,
        restart_s: args.restart_s,
        resize_s: args.resize_s,
        window: args.window,
        horizon_s: args.horizon_s,
        ..Settings::default()
    }
}

/// Runs a policy to the end of the workload.
pub(crate) fn run(
    policy: &PreparedPolicy,
    workload: &Arc<Workload>,
    settings: &Settings,
    predictors: &PredictorSource,
    progress: &mut dyn FnMut(Progress),
) -> Result<RunResult, CliError> {
    let predictor = predictors.for_run(workload).filter(|_| policy.wants_predictions());
    let identity = predictor.as_ref().map_or_else(predictor::unused, RunPredictor::identity);
    let labels = RunLabels { policy_config: policy.config.clone(), predictor: identity };
    let details: Arc<dyn JobDetails> = Arc::new(Details(Arc::clone(workload)));
    let answers = predictor.as_ref().map(|found| Arc::clone(&found.answers));
    let instance =
        policy.instantiate(Services { predictor: answers, job_details: Some(details), ..Services::default() })?;
    let mut hooks = Hooks { progress, cycle: &mut |_| {} };
    let result = match predictor.and_then(|found| found.learns) {
        Some(learner) => {
            let learn = &mut |measured: &Measured| predictor::learn(&learner, measured);
            simulate_with_feedback(workload, settings, instance, labels, &mut hooks, learn)
        }
        None => simulate(workload, settings, instance, labels, &mut hooks),
    };
    result.map_err(|source| {
        let policy = policy.loaded.identity().name.clone();
        CliError::Run(RunError::Simulate { policy, source: Box::new(source) })
    })
}

/// Answers what policies rarely ask about jobs.
struct Details(Arc<Workload>);

impl JobDetails for Details {
    fn labels(&self, job: JobId) -> Vec<(String, String)> {
        self.0.jobs.get(job.0 as usize).map_or_else(Vec::new, |job| job.spec.labels.clone())
    }

    fn model(&self, job: JobId) -> Option<String> {
        self.0.jobs.get(job.0 as usize).map(|job| job.model.clone())
    }
}

/// Compiled code is kept in the user's cache; without one it is compiled each time.
fn code_cache() -> CodeCache {
    let from_env = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = from_env("XDG_CACHE_HOME").or_else(|| from_env("HOME").map(|home| home.join(".cache")));
    folder.map_or_else(CodeCache::disabled, |folder| CodeCache::open(&folder.join("coretuner/code")))
}
