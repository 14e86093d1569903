//! `coretuner predict`.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use coretuner_core::catalog::{InputKind, KindCatalog, ModelDescriptor};
use coretuner_core::model::KindId;
use coretuner_core::port::{CurveQuery, Curves, Predictor, PredictorIdentity};
use coretuner_predictor::OnnxPredictor;
use coretuner_simulator::truth::{GroundTruth, TruthOptions, known_models};
use serde::Serialize;

use crate::args::{PredictorArgs, PredictorKind};
use crate::error::CliError;
use crate::format::{digits, plain};
use crate::output;
use crate::predictor::{PredictorError, open_onnx};
use crate::simulation::RunError;
use crate::table::{Section, printable, render};

/// Memory of one GPU's share where none is given: an eighth of 500 GB, MiB.
const MEMORY_MIB_PER_GPU: u32 = 64_000;

/// Predict how fast a job runs with more or fewer CPU cores
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  coretuner predict --kind resnet18
  coretuner predict --kind resnet50 --gpu-kind A100 --gpus 4 --cores 4,8,16,32
  coretuner predict --input image --activations 2.5 --gmacs 1.8 --params 11.7 --batch 256
  coretuner predict --errors")]
pub(crate) struct PredictArgs {
    /// A known model, see `coretuner trace models`
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    #[command(flatten)]
    descriptor: DescriptorArgs,
    /// GPU product; kinds that the model has never heard of get a wide band
    #[arg(long, value_name = "KIND", default_value = "V100")]
    gpu_kind: String,
    /// GPUs of the job
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    gpus: u32,
    /// Nodes that the job spans
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    nodes: u32,
    /// Total CPU cores to predict for [default: 1 to 24 per GPU]
    #[arg(long, value_name = "C,...", value_delimiter = ',', value_parser = parse_cores)]
    cores: Vec<u32>,
    /// Total memory of the job in MiB [default: 64000 per GPU]
    #[arg(long, value_name = "MIB")]
    memory_mib: Option<u32>,
    /// Print the model's error on jobs that it was not trained on instead
    #[arg(long)]
    errors: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    predictor: PredictorArgs,
}

/// A job that is not among the known ones.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "A job described by numbers")]
pub(crate) struct DescriptorArgs {
    /// What its input pipeline reads
    #[arg(long, value_enum, conflicts_with = "kind")]
    input: Option<InputArg>,
    /// Activations of one sample, millions
    #[arg(long, value_name = "M", requires = "input")]
    activations: Option<f64>,
    /// Multiply-accumulates of one sample's forward pass, billions
    #[arg(long, value_name = "G", requires = "input")]
    gmacs: Option<f64>,
    /// Parameters, millions
    #[arg(long, value_name = "M", requires = "input")]
    params: Option<f64>,
    /// Samples per GPU and iteration
    #[arg(long, value_name = "N", requires = "input")]
    batch: Option<u32>,
    /// Bytes of one sample in storage
    #[arg(long, value_name = "BYTES", requires = "input")]
    bytes_per_sample: Option<f64>,
    /// Size of the data set, MiB
    #[arg(long, value_name = "MIB", requires = "input")]
    dataset_mib: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InputArg {
    Image,
    Audio,
    Text,
    Other,
}

#[derive(Serialize)]
struct Answer<'a> {
    predictor: PredictorIdentity,
    job: &'a ModelDescriptor,
    gpu_kind: &'a str,
    gpus: u32,
    nodes_spanned: u32,
    memory_mib: u32,
    points: Vec<Point>,
}

/// Iterations per second of the whole job.
#[derive(Serialize)]
struct Point {
    cpu_milli: u32,
    mean: f32,
    low: f32,
    high: f32,
}

pub(crate) fn run(args: &PredictArgs) -> Result<(), CliError> {
    if args.predictor.predictor == Some(PredictorKind::Profile) {
        return Err(CliError::Usage("predict asks the ONNX model; the profile belongs to a workload".to_owned()));
    }
    let kinds = Arc::new(KindCatalog::default());
    let (kind, descriptor) = if args.errors { (None, ModelDescriptor::default()) } else { job(args, &kinds)? };
    let model = open_onnx(&args.predictor, Arc::clone(&kinds))?;
    if args.errors {
        return errors(&model, args.json);
    }
    let memory_mib = args.memory_mib.unwrap_or_else(|| args.gpus.saturating_mul(MEMORY_MIB_PER_GPU));
    let query = CurveQuery {
        model: String::new(),
        kinds: vec![kind],
        gpu_kind: args.gpu_kind.clone(),
        gpus: vec![args.gpus],
        nodes_spanned: vec![args.nodes],
        cpu_milli: cores(args),
        memory_mib: vec![memory_mib],
    };
    let curves = model.curves(&query).map_err(PredictorError::from)?;
    let answer = Answer {
        predictor: model.identity(),
        job: &descriptor,
        gpu_kind: &args.gpu_kind,
        gpus: args.gpus,
        nodes_spanned: args.nodes,
        memory_mib,
        points: points(&query, &curves),
    };
    if args.json {
        let json = serde_json::to_string(&answer).map_err(RunError::from)?;
        return Ok(output::print(&format!("{json}\n"))?);
    }
    Ok(output::print(&show(&answer))?)
}

/// The job that the command line describes.
fn job(args: &PredictArgs, kinds: &Arc<KindCatalog>) -> Result<(Option<KindId>, ModelDescriptor), CliError> {
    let kind = match (&args.kind, args.descriptor.input) {
        (Some(name), _) => {
            let unknown = || PredictorError::UnknownKind { name: name.clone(), known: known_models() };
            GroundTruth::new(TruthOptions::default()).intern(name, kinds).map_err(|_| unknown())?.1
        }
        (None, Some(input)) => Some(kinds.intern(described(&args.descriptor, input))),
        (None, None) => {
            let message = "name a job with --kind, or describe one with --input and the numbers known of it";
            return Err(CliError::Usage(message.to_owned()));
        }
    };
    let descriptor = kind.and_then(|kind| kinds.get(kind)).map(|found| (*found).clone()).unwrap_or_default();
    Ok((kind, descriptor))
}

fn described(args: &DescriptorArgs, input: InputArg) -> ModelDescriptor {
    ModelDescriptor {
        name: "described".to_owned(),
        input: match input {
            InputArg::Image => InputKind::Image,
            InputArg::Audio => InputKind::Audio,
            InputArg::Text => InputKind::Text,
            InputArg::Other => InputKind::Other,
        },
        activations_m: args.activations,
        gmacs: args.gmacs,
        params_m: args.params,
        batch_per_gpu: args.batch.unwrap_or(1),
        bytes_per_sample: args.bytes_per_sample,
        dataset_mib: args.dataset_mib,
    }
}

/// Thousandths of cores, as asked or 1 to 24 per GPU.
fn cores(args: &PredictArgs) -> Vec<u32> {
    if !args.cores.is_empty() {
        return args.cores.clone();
    }
    [1, 2, 3, 4, 6, 9, 12, 18, 24].iter().map(|cores: &u32| cores * args.gpus * 1_000).collect()
}

fn points(query: &CurveQuery, curves: &Curves) -> Vec<Point> {
    let columns = curves.mean.iter().zip(&curves.low).zip(&curves.high);
    let rows = query.cpu_milli.iter().zip(columns);
    rows.map(|(cpu_milli, ((mean, low), high))| Point { cpu_milli: *cpu_milli, mean: *mean, low: *low, high: *high })
        .collect()
}

fn show(answer: &Answer<'_>) -> String {
    let batch = f64::from(answer.job.batch_per_gpu.max(1)) * f64::from(answer.gpus);
    let mut section = Section::new(&["cores", "iterations/s", "low", "high", "samples/s", "relative to 3 cores/GPU"]);
    let proportional =
        answer.points.iter().find(|point| point.cpu_milli == 3_000 * answer.gpus).map(|point| point.mean);
    for point in &answer.points {
        let relative = proportional.map_or(f64::NAN, |base| f64::from(point.mean / base));
        section.row([
            plain(f64::from(point.cpu_milli) / 1_000.0),
            digits(f64::from(point.mean)),
            digits(f64::from(point.low)),
            digits(f64::from(point.high)),
            digits(f64::from(point.mean) * batch),
            digits(relative),
        ]);
    }
    format!(
        "{} on {} {} over {} nodes, {} MiB, batch {} per GPU; low and high: 80 % band\n{}model: {} ({}), run by {}\n",
        printable(&answer.job.name),
        answer.gpus,
        printable(answer.gpu_kind),
        answer.nodes_spanned,
        answer.memory_mib,
        answer.job.batch_per_gpu,
        render(&section),
        answer.predictor.name,
        answer.predictor.digest,
        answer.predictor.engine
    )
}

fn errors(model: &OnnxPredictor, json: bool) -> Result<(), CliError> {
    if json {
        let json = serde_json::to_string(model.held_out()).map_err(RunError::from)?;
        return Ok(output::print(&format!("{json}\n"))?);
    }
    let mut section =
        Section::new(&["jobs left out", "curves", "probes", "mean absolute error [%]", "within band [%]"]);
    for row in model.held_out() {
        section.row([
            row.group.clone(),
            row.curves.to_string(),
            row.probes.to_string(),
            digits(row.error_percent),
            digits(row.band_cover_percent),
        ]);
    }
    let identity = model.identity();
    let text = format!(
        "error on jobs that the model was not trained on; probes = observations of the job before predicting\n{}model: {} {} ({}), run by {}\n",
        render(&section),
        identity.name,
        model.model_version(),
        identity.digest,
        identity.engine
    );
    Ok(output::print(&text)?)
}

/// Cores as thousandths.
fn parse_cores(text: &str) -> Result<u32, String> {
    match text.trim().parse::<f64>() {
        Ok(cores) if (0.001..=100_000.0).contains(&cores) => Ok((cores * 1_000.0).round() as u32),
        _ => Err("give a number of cores above zero".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_thousandths() {
        assert_eq!(parse_cores("1.5"), Ok(1_500));
        for bad in ["0", "-1", "x", "1e9"] {
            assert!(parse_cores(bad).is_err(), "{bad}");
        }
    }
}
