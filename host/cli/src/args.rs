//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use coretuner_simulator::trace::Format;
use coretuner_simulator::workload::Mix;

/// Simulate and compare scheduling policies for GPU training clusters.
///
/// Policies are WebAssembly components; workloads are published traces or generated ones; the speed of jobs comes from
/// published measurements. Results go to standard output, everything about the run itself to standard error.
///
/// Exit codes: 0 ok, 1 failed, 2 wrong usage, 64 bad configuration or input.
#[derive(Debug, Parser)]
#[command(name = "coretuner", version, max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Simulate(crate::commands::simulate::SimulateArgs),
    Compare(crate::commands::compare::CompareArgs),
    /// Look at policies: what they are, whether they are acceptable, which there are
    #[command(subcommand)]
    Policy(crate::commands::policy::PolicyCommand),
    /// Look at traces, convert them, download published ones
    #[command(subcommand)]
    Trace(crate::commands::trace::TraceCommand),
    Predict(crate::commands::predict::PredictArgs),
    Limits(crate::commands::limits::LimitsArgs),
    Completions(crate::commands::completions::CompletionsArgs),
}

/// Which jobs, on which cluster.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WorkloadArgs {
    /// A trace file, the name of a published trace that was fetched or lies under CORETUNER_DATA, or `generated`
    #[arg(long, value_name = "FILE|NAME", default_value = "generated")]
    pub(crate) trace: String,
    /// Format of the trace: coretuner, synergy, gavel, openb, itp or philly [default: by its content]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// File with the nodes, in the trace's own cluster format or in ours [default: what the trace says, or a rule]
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) cluster: Option<String>,
    /// Run on so many 8-GPU servers instead
    #[arg(long, value_name = "N", conflicts_with = "cluster")]
    pub(crate) nodes: Option<u32>,
    /// Cores of each server of a generated workload
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) cores_per_node: u32,
    /// Only the first so many jobs; of a generated workload, so many [default: all; 1000 generated]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<u32>,
    /// Weights of image, language and speech models where a trace names none
    #[arg(long, value_name = "I,L,S", default_value = "20,70,10")]
    pub(crate) mix: Mix,
    /// GPUs of generated jobs: the published mix of 1, 2, 4 and 8, or one each
    #[arg(long, value_enum, default_value_t = GangsArg::Published)]
    pub(crate) gangs: GangsArg,
    /// Which published figures give a job's true speed
    #[arg(long, value_enum, default_value_t = TruthArg::Tables)]
    pub(crate) truth: TruthArg,
    /// Factor on speed of jobs that span nodes and have no measurement of that; 1 = none
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) placement_penalty: f64,
    /// Folder of fetched traces
    #[arg(long, value_name = "DIR", env = "CORETUNER_CACHE_DIR", hide_env_values = true)]
    pub(crate) cache_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GangsArg {
    Published,
    Single,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TruthArg {
    /// Synergy's tables over cores and memory
    Tables,
    /// The smooth curves of Synergy's Figure 2 over cores
    Figure,
    /// One speed-up with the full ideal demand, as Synergy's released simulator
    Scalar,
}

/// How time and cost are modelled.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Time and cost")]
pub(crate) struct TimeArgs {
    /// When the policy is asked: at every event, or at the boundaries of rounds only
    #[arg(long, value_enum, default_value_t = ModeArg::Events)]
    pub(crate) mode: ModeArg,
    /// Length of a round
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0)]
    pub(crate) round_s: f64,
    /// First boundary of rounds [default: the first multiple of the round not before the first arrival]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) first_round_s: Option<f64>,
    /// Rounds do whole iterations and jobs end at the end of a round, as in Synergy's simulator
    #[arg(long)]
    pub(crate) whole_iterations: bool,
    /// No progress for so long after a restart
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub(crate) restart_s: f64,
    /// No progress for so long after a change of CPU or memory in place
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub(crate) resize_s: f64,
    /// End the simulation at this time at the latest
    #[arg(long, value_name = "SECONDS")]
    pub(crate) horizon_s: Option<f64>,
    /// Count only these jobs, by order of submission from 0, both included: 4000..5000
    #[arg(long, value_name = "A..B", value_parser = parse_window)]
    pub(crate) window: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    Events,
    Rounds,
}

/// What policies are told about speeds.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Prediction")]
pub(crate) struct PredictorArgs {
    /// onnx: the trained model; profile: the workload's own ground truth, as after profiling every job
    /// [default: onnx, opened only for policies that ask for predictions]
    #[arg(long, value_enum)]
    pub(crate) predictor: Option<PredictorKind>,
    /// Whether the model learns from the speeds that jobs show during the run; each run starts anew
    #[arg(long, value_enum, default_value_t = LearnArg::On)]
    pub(crate) learn: LearnArg,
    /// An ONNX throughput model [default: the built-in one]
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Option<PathBuf>,
    /// Where the model runs: cuda fails clearly when there is none, auto takes it when there is one
    #[arg(long, value_enum, default_value_t = ProviderArg::Cpu)]
    pub(crate) provider: ProviderArg,
    /// The ONNX Runtime library, or its folder [default: ORT_DYLIB_PATH, or beside the program]
    #[arg(long, value_name = "PATH")]
    pub(crate) onnxruntime: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PredictorKind {
    Onnx,
    Profile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LearnArg {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProviderArg {
    Cpu,
    Cuda,
    Auto,
}

/// Where policies are found.
#[derive(Clone, Debug, Args)]
pub(crate) struct PolicyFolderArgs {
    /// Folder with policy components, asked before those beside the program
    #[arg(long, value_name = "DIR", env = "CORETUNER_POLICY_DIR", hide_env_values = true)]
    pub(crate) policy_dir: Option<PathBuf>,
}

/// Where results go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print the result as JSON instead of tables; two runs of the same inputs give the same bytes
    #[arg(long)]
    pub(crate) json: bool,
    /// Write result.json, CSV files and report.html into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write the report, one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

fn parse_window(text: &str) -> Result<(u64, u64), String> {
    let number = |part: &str| part.trim().parse::<u64>().map_err(|_| format!("`{part}` is not a whole number"));
    let (first, last) = text.split_once("..").ok_or("give two numbers as A..B")?;
    let window = (number(first)?, number(last.trim_start_matches('='))?);
    if window.0 <= window.1 { Ok(window) } else { Err("the first number must not be above the last".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn reads_windows() {
        assert_eq!(parse_window("4000..5000"), Ok((4000, 5000)));
        assert_eq!(parse_window("0..=9"), Ok((0, 9)));
        for bad in ["5..4", "5", "a..b", ""] {
            assert!(parse_window(bad).is_err(), "{bad}");
        }
    }
}
