//! Opens a throughput model: reads the file, checks its interface and metadata, and replays its self-test.

use std::path::{Path, PathBuf};

use ort::session::Session;
use ort::value::{Outlet, TensorElementType, ValueType};

use crate::interface::{Card, Case, FEATURES, INPUTS, OUTPUTS, Output, Row, SelfTest};
use crate::runtime::OnnxRuntime;
use crate::session::{BATCH, GraphSession, Provider, RunError, SessionError};

/// The model that comes with the program.
static EMBEDDED: &[u8] = include_bytes!("../../../models/throughput.onnx");
/// Largest file that is taken for a throughput model.
const BYTES_MAX: u64 = 64 << 20;

/// Which model to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ModelSource {
    /// The model that comes with the program (`models/throughput.onnx`).
    #[default]
    Embedded,
    File(PathBuf),
}

impl std::fmt::Display for ModelSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Embedded => f.write_str("the built-in model"),
            Self::File(path) => write!(f, "model {}", path.display()),
        }
    }
}

/// A model that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{model} cannot be read: {reason}")]
    Read { model: ModelSource, reason: String },
    #[error("{model} has {bytes} bytes; a throughput model has 1 to {BYTES_MAX}")]
    Size { model: ModelSource, bytes: u64 },
    #[error("{model} does not load (is the file whole, and ONNX?): {reason}")]
    Load { model: ModelSource, reason: String },
    #[error("{model} cannot run on the GPU: {reason}; check the driver and the CUDA libraries, or use the CPU")]
    CudaUnavailable { model: ModelSource, reason: String },
    #[error(
        "{model} has the wrong interface: {problem}; a throughput model has the tensors listed in models/README.md"
    )]
    Interface { model: ModelSource, problem: String },
    #[error("{model} was trained for other features: it says `{found}`, this program gives `{FEATURES}`")]
    Features { model: ModelSource, found: String },
    #[error("{model} lacks usable metadata `{key}`: {problem}; export it with models/train.py")]
    Metadata { model: ModelSource, key: &'static str, problem: String },
    #[error(
        "{model} fails its own test `{case}`: {output} = {found} where {expected} is expected (tolerance {tolerance}); \
         the file is damaged or the engine computes something else"
    )]
    SelfTest { model: ModelSource, case: String, output: &'static str, found: f64, expected: f64, tolerance: f64 },
    #[error("{model} does not run: {reason}")]
    Run { model: ModelSource, reason: String },
}

/// A model that passed every check.
#[derive(Debug)]
pub(crate) struct LoadedModel {
    session: GraphSession,
    pub card: Card,
    /// `blake3:` + hex of the file.
    pub digest: String,
    /// Engine with version and provider.
    pub engine: String,
}

impl LoadedModel {
    /// Opens a model and checks that it can be used.
    pub fn open(runtime: &OnnxRuntime, source: &ModelSource, provider: Provider) -> Result<Self, ModelError> {
        let model = || source.clone();
        let bytes = match source {
            ModelSource::Embedded => EMBEDDED.to_vec(),
            ModelSource::File(path) => read(path, source)?,
        };
        let session = GraphSession::build(runtime, &bytes, provider).map_err(|e| match e {
            SessionError::Build(reason) => ModelError::Load { model: model(), reason },
            SessionError::CudaUnavailable(reason) => ModelError::CudaUnavailable { model: model(), reason },
        })?;
        let card = session.inspect(|session| {
            check_interface(session).map_err(|problem| ModelError::Interface { model: model(), problem })?;
            read_card(session, source)
        })?;
        let engine = format!("onnxruntime {} {}", runtime.version(), session.provider());
        let loaded = Self { session, card, digest: format!("blake3:{}", blake3::hash(&bytes).to_hex()), engine };
        for case in &loaded.card.self_test.cases {
            loaded.replay(case, source)?;
        }
        Ok(loaded)
    }

    /// Answers any number of rows, in batches of a fixed size.
    pub fn run(&self, rows: &[Row]) -> Result<Vec<Output>, RunError> {
        let mut answers = Vec::with_capacity(rows.len());
        for batch in rows.chunks(BATCH) {
            answers.extend(self.session.run(batch)?);
        }
        Ok(answers)
    }

    fn replay(&self, case: &Case, source: &ModelSource) -> Result<(), ModelError> {
        let broken = || ModelError::Metadata {
            model: source.clone(),
            key: "self_test",
            problem: format!("case `{}` is incomplete", case.name),
        };
        let (rows, expected) = (case.rows().ok_or_else(broken)?, case.expected().ok_or_else(broken)?);
        let answers = self.run(&rows).map_err(|e| ModelError::Run { model: source.clone(), reason: e.to_string() })?;
        for (answer, wanted) in answers.iter().zip(&expected) {
            let found = [answer.log_tput, answer.sd, answer.log_lo, answer.log_hi].map(f64::from);
            for ((output, found), expected) in
                ["log_tput", "sd", "log_lo", "log_hi"].into_iter().zip(found).zip(*wanted)
            {
                let tolerance = self.card.self_test.tolerance;
                if (found - expected).abs().partial_cmp(&tolerance).is_none_or(std::cmp::Ordering::is_gt) {
                    let (model, case) = (source.clone(), case.name.clone());
                    return Err(ModelError::SelfTest { model, case, output, found, expected, tolerance });
                }
            }
        }
        Ok(())
    }
}

fn read(path: &Path, source: &ModelSource) -> Result<Vec<u8>, ModelError> {
    let unreadable = |e: std::io::Error| ModelError::Read { model: source.clone(), reason: e.to_string() };
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if !(1..=BYTES_MAX).contains(&bytes) {
        return Err(ModelError::Size { model: source.clone(), bytes });
    }
    std::fs::read(path).map_err(unreadable)
}

/// The first way in which the session's tensors differ from what the host feeds and reads.
fn check_interface(session: &Session) -> Result<(), String> {
    check_tensors("input", session.inputs(), &INPUTS)?;
    check_tensors("output", session.outputs(), &OUTPUTS)
}

fn check_tensors(side: &str, found: &[Outlet], expected: &[(&str, usize)]) -> Result<(), String> {
    for (name, width) in expected {
        let outlet =
            found.iter().find(|outlet| outlet.name() == *name).ok_or_else(|| format!("{side} `{name}` is missing"))?;
        let fits = |shape: &[i64]| matches!(shape, [-1, columns] if *columns == *width as i64);
        match outlet.dtype() {
            ValueType::Tensor { ty: TensorElementType::Float32, shape, .. } if fits(shape) => {}
            other => return Err(format!("{side} `{name}` is {other}, expected float32 [N, {width}]")),
        }
    }
    match found.iter().find(|outlet| !expected.iter().any(|(name, _)| outlet.name() == *name)) {
        Some(extra) if side == "input" => Err(format!("unknown input `{}`", extra.name())),
        _ => Ok(()),
    }
}

fn read_card(session: &Session, source: &ModelSource) -> Result<Card, ModelError> {
    let metadata = |key: &'static str, problem: String| ModelError::Metadata { model: source.clone(), key, problem };
    let properties = session.metadata().map_err(|e| metadata("features", e.to_string()))?;
    let text = |key| properties.custom(key).ok_or_else(|| metadata(key, "it is not there".to_owned()));
    let features = text("features")?;
    if features != FEATURES {
        return Err(ModelError::Features { model: source.clone(), found: features });
    }
    let self_test: SelfTest = parse(&text("self_test")?).map_err(|e| metadata("self_test", e))?;
    if self_test.cases.is_empty() {
        return Err(metadata("self_test", "it has no case".to_owned()));
    }
    Ok(Card {
        version: text("version")?,
        form: parse(&text("form")?).map_err(|e| metadata("form", e))?,
        held_out: parse(&text("held_out")?).map_err(|e| metadata("held_out", e))?,
        self_test,
    })
}

fn parse<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|e| e.to_string())
}
