//! An ONNX Runtime session for a throughput model: built on the provider asked for, run in batches of a fixed size.

use std::sync::{Mutex, PoisonError};

use ort::ep::ExecutionProvider;
use ort::logging::LogLevel;
use ort::session::Session;
use ort::session::builder::SessionBuilder;
use ort::value::{DynValue, TensorRef};

use crate::assignment;
use crate::interface::{INPUTS, Output, Row};
use crate::runtime::OnnxRuntime;

/// Rows of every run. Shorter requests are padded, so that a row's answer does not depend on what else is asked.
pub(crate) const BATCH: usize = 256;

const CUDA_NAME: &str = "CUDAExecutionProvider";

/// Where inference runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    #[default]
    Cpu,
    /// The first CUDA device. `require`: opening fails without one; otherwise the CPU is used with a warning.
    Cuda { require: bool },
    /// CUDA where the library was built with it and a device works, else the CPU.
    Auto,
}

/// Why a session could not be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("{0}")]
    Build(String),
    #[error("CUDA was asked for and is not available: {0}")]
    CudaUnavailable(String),
}

/// Why a batch has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("inference failed: {0}")]
    Inference(String),
    #[error("the model answered {rows} values for output `{output}` of {BATCH} rows")]
    Shape { output: &'static str, rows: usize },
    #[error("the model answered a value that is not finite")]
    NotFinite,
}

/// A session with the provider that really runs it.
#[derive(Debug)]
pub(crate) struct GraphSession {
    session: Mutex<Session>,
    provider: String,
}

impl GraphSession {
    /// Builds a session of the model in `bytes`.
    pub fn build(runtime: &OnnxRuntime, bytes: &[u8], provider: Provider) -> Result<Self, SessionError> {
        let cpu = || build(runtime, bytes, false).map_err(|e| SessionError::Build(e.to_string()));
        let session = match provider {
            Provider::Cpu => cpu()?,
            Provider::Auto if !ort::ep::CUDA::is_available().unwrap_or(false) => {
                tracing::info!(library = %runtime.library().display(), "this ONNX Runtime has no CUDA; using the CPU");
                cpu()?
            }
            Provider::Auto | Provider::Cuda { require: false } => match cuda(runtime, bytes) {
                Ok(session) => session,
                Err(reason) => {
                    tracing::warn!(reason, "CUDA is not available; using the CPU");
                    cpu()?
                }
            },
            Provider::Cuda { require: true } => {
                // A model that is broken anyway should not be reported as a missing GPU.
                cpu()?;
                cuda(runtime, bytes).map_err(SessionError::CudaUnavailable)?
            }
        };
        let provider = provider_of(&session).map_err(|e| SessionError::Build(e.to_string()))?;
        Ok(Self { session: Mutex::new(session), provider })
    }

    /// The provider that runs the model, with node counts where several do.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Calls `look` with the session, between runs.
    pub fn inspect<T>(&self, look: impl FnOnce(&Session) -> T) -> T {
        look(&self.session.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers up to [`BATCH`] rows.
    pub fn run(&self, rows: &[Row]) -> Result<Vec<Output>, RunError> {
        let columns = Columns::of(rows);
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inputs = Vec::with_capacity(INPUTS.len());
        for ((name, width), data) in INPUTS.iter().zip(&columns.0) {
            let tensor = TensorRef::from_array_view(([BATCH, *width], data.as_slice())).map_err(inference)?;
            inputs.push((*name, tensor));
        }
        let outputs = session.run(inputs).map_err(inference)?;
        let read = |name, width| floats(outputs.get(name), name, width);
        let one = (read("log_tput", 1)?, read("sd", 1)?, read("log_lo", 1)?, read("log_hi", 1)?);
        let (prior_mu, prior_l) = (read("prior_mu", 6)?, read("prior_l", 21)?);
        let (mu, lower) = (prior_mu.as_chunks().0, prior_l.as_chunks().0);
        let scalars = one.0.iter().zip(one.1).zip(one.2.iter().zip(one.3));
        let answers = scalars.zip(mu.iter().zip(lower)).take(rows.len());
        let answers = answers.map(|(((&log_tput, &sd), (&log_lo, &log_hi)), (&prior_mu, &prior_l))| {
            let output = Output { log_tput, sd, log_lo, log_hi, prior_mu, prior_l };
            if output.is_finite() { Ok(output) } else { Err(RunError::NotFinite) }
        });
        answers.collect()
    }
}

impl Output {
    fn is_finite(&self) -> bool {
        let scalars = [self.log_tput, self.sd, self.log_lo, self.log_hi];
        scalars.iter().chain(&self.prior_mu).chain(&self.prior_l).all(|v| v.is_finite())
    }
}

/// Input tensors of one batch, in the order of [`INPUTS`].
struct Columns([Vec<f32>; 6]);

impl Columns {
    fn of(rows: &[Row]) -> Self {
        let mut columns = INPUTS.map(|(_, width)| Vec::with_capacity(BATCH * width));
        for row in rows.iter().take(BATCH) {
            let (mu, lower) = row.belief.unwrap_or(([0.0; 6], [0.0; 21]));
            let use_post = [f32::from(row.belief.is_some())];
            let parts: [&[f32]; 6] = [&row.job, &row.gpu, &row.place, &mu, &lower, &use_post];
            for (column, part) in columns.iter_mut().zip(parts) {
                column.extend_from_slice(part);
            }
        }
        for (column, (_, width)) in columns.iter_mut().zip(INPUTS) {
            column.resize(BATCH * width, 0.0);
        }
        Self(columns)
    }
}

fn inference(error: ort::Error) -> RunError {
    RunError::Inference(error.to_string())
}

fn floats<'a>(value: Option<&'a DynValue>, output: &'static str, width: usize) -> Result<&'a [f32], RunError> {
    let value = value.ok_or(RunError::Shape { output, rows: 0 })?;
    let (_, data) = value.try_extract_tensor::<f32>().map_err(inference)?;
    if data.len() == BATCH * width { Ok(data) } else { Err(RunError::Shape { output, rows: data.len() }) }
}

/// A CUDA session in which at least one node really runs there, or why not. Registration and commit fail separately.
fn cuda(runtime: &OnnxRuntime, bytes: &[u8]) -> Result<Session, String> {
    let session = build(runtime, bytes, true).map_err(|e| e.to_string())?;
    match assignment::nodes_by_provider(&session) {
        Ok(nodes) if nodes.contains_key(CUDA_NAME) => Ok(session),
        Ok(_) => Err("no node of the model was given to it".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

/// One thread without spinning: other threads of the host have work to do, and batches are small.
fn build(runtime: &OnnxRuntime, bytes: &[u8], cuda: bool) -> ort::Result<Session> {
    let mut builder: SessionBuilder = Session::builder(runtime.environment())?
        .with_intra_threads(1)?
        .with_inter_threads(1)?
        .with_intra_op_spinning(false)?
        .with_inter_op_spinning(false)?
        .with_deterministic_compute(true)?
        .with_log_level(LogLevel::Warning)?
        .with_config_entry(assignment::RECORD_KEY, "1")?;
    if cuda {
        let provider = ort::ep::CUDA::default().with_device_id(0).build().error_on_failure();
        builder = builder.with_execution_providers([provider])?;
    }
    builder.commit_from_memory(bytes)
}

/// `CPUExecutionProvider`, or `CUDAExecutionProvider (218 nodes), CPUExecutionProvider (3 nodes)`.
fn provider_of(session: &Session) -> ort::Result<String> {
    let mut nodes: Vec<(String, usize)> = assignment::nodes_by_provider(session)?.into_iter().collect();
    nodes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(match nodes.as_slice() {
        [(name, _)] => name.clone(),
        several => several.iter().map(|(name, n)| format!("{name} ({n} nodes)")).collect::<Vec<_>>().join(", "),
    })
}
