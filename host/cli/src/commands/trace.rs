//! `coretuner trace inspect|convert|fetch|models`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use coretuner_simulator::trace::{self, TraceError};
use coretuner_simulator::truth::known_models;
use coretuner_simulator::workload::Workload;

use crate::args::WorkloadArgs;
use crate::error::CliError;
use crate::fetch;
use crate::format::{TimeUnit, bytes, count, percent, plain};
use crate::output::{self, OutputError, Staging};
use crate::simulation::RunError;
use crate::stats;
use crate::table::{Section, printable, render};
use crate::workload::{self, WorkloadError};

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Show what a trace holds and what has to be assumed
    Inspect(InspectArgs),
    /// Write a trace in our own format, gaps filled
    Convert(ConvertArgs),
    /// Download a published trace and check its digest; without a name, list them
    Fetch(FetchArgs),
    /// List the models whose true speed is known
    Models,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The trace, as --trace
    #[arg(value_name = "FILE|NAME", conflicts_with = "trace")]
    named: Option<String>,
    #[command(flatten)]
    workload: WorkloadArgs,
    /// Seeds what fills the trace's gaps
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The trace, as --trace
    #[arg(value_name = "FILE|NAME", conflicts_with = "trace")]
    named: Option<String>,
    #[command(flatten)]
    workload: WorkloadArgs,
    /// Seeds what fills the trace's gaps
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Stretch or squeeze arrivals to so many jobs per hour
    #[arg(long, value_name = "JOBS/H", value_parser = super::compare::parse_load)]
    load: Option<f64>,
    /// The file to write: NAME.json holds everything; NAME.csv the jobs, with the nodes in a second file beside it
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// The digest is checked before anything is kept. The public homes themselves are untried: where one has moved, --from
/// names another
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  coretuner trace fetch
  coretuner trace fetch philly
  coretuner trace fetch philly --from http://mirror.example/philly.csv")]
pub(crate) struct FetchArgs {
    /// Name of a published trace
    name: Option<String>,
    /// Another address of the same file; its digest is checked all the same
    #[arg(long, value_name = "URL", requires = "name")]
    from: Option<String>,
    /// Folder of fetched traces [default: coretuner/traces in the user's cache folder]
    #[arg(long, value_name = "DIR", env = "CORETUNER_CACHE_DIR", hide_env_values = true)]
    cache_dir: Option<PathBuf>,
}

pub(crate) fn run(command: &TraceCommand) -> Result<(), CliError> {
    match command {
        TraceCommand::Inspect(args) => inspect(args),
        TraceCommand::Convert(args) => convert(args),
        TraceCommand::Fetch(args) => fetch(args),
        TraceCommand::Models => Ok(output::print(&(known_models().join("\n") + "\n"))?),
    }
}

fn fetch(args: &FetchArgs) -> Result<(), CliError> {
    let Some(name) = &args.name else { return list(args) };
    let trace = fetch::find(name)?;
    let cache = fetch::cache_folder(args.cache_dir.as_deref())?;
    let from = args.from.as_deref();
    output::note(&format!("{name}: {}, licence {}", bytes(trace.bytes), trace.licence));
    let (path, new) = fetch::fetch(trace, from, &cache)?;
    let what = if new { format!("fetched from {}", from.unwrap_or(&trace.url)) } else { "was here already".to_owned() };
    output::note(&format!("{name}: {what}; sha256 {} as published", trace.sha256));
    Ok(output::print(&format!("{}\n", path.display()))?)
}

fn list(args: &FetchArgs) -> Result<(), CliError> {
    let mut section = Section::of_words(&["name", "format", "size", "here", "licence", "what it is"]);
    for trace in fetch::published() {
        let here = if fetch::present(trace, args.cache_dir.as_deref()).is_some() { "yes" } else { "no" };
        section.row([
            trace.name.clone(),
            trace.format.clone(),
            bytes(trace.bytes),
            here.to_owned(),
            trace.licence.clone(),
            trace.about.clone(),
        ]);
    }
    Ok(output::print(&render(&section))?)
}

fn inspect(args: &InspectArgs) -> Result<(), CliError> {
    let workload = workload::build(&named(&args.workload, args.named.as_ref()), args.seed, None)?;
    if args.json {
        let json = serde_json::to_string(&workload.info).map_err(RunError::from)?;
        return Ok(output::print(&format!("{json}\n"))?);
    }
    Ok(output::print(&describe(&workload))?)
}

/// The workload with the trace that stands without a flag.
fn named(workload: &WorkloadArgs, name: Option<&String>) -> WorkloadArgs {
    let trace = name.unwrap_or(&workload.trace).clone();
    WorkloadArgs { trace, ..workload.clone() }
}

fn describe(workload: &Workload) -> String {
    let info = &workload.info;
    let mut facts = Section::of_words(&["workload", &info.name]);
    let mut fact = |name: &str, value: String| facts.row([name.to_owned(), value]);
    fact("format", info.format.clone());
    fact("digest", info.digest.clone());
    fact("jobs", format!("{}, never schedulable {}", count(info.jobs), count(info.never_schedulable)));
    fact("cluster", format!("{} nodes, {} GPUs, {} cores", count(info.nodes), count(info.gpus), plain(info.cpu_cores)));
    fact("GPU kinds", gpu_kinds(workload));
    fact("submissions", submissions(workload));
    for rule in &info.assigned {
        fact("assumption", rule.clone());
    }
    let never: Vec<String> = workload
        .jobs
        .iter()
        .filter_map(|job| job.never.as_ref().map(|why| format!("{}: {why}", job.spec.name)))
        .collect();
    for line in never.iter().take(5) {
        fact("never runs", line.clone());
    }
    format!("{}\n{}\n{}", render(&facts), render(&durations(workload)), render(&demands(workload)))
}

fn gpu_kinds(workload: &Workload) -> String {
    let mut kinds: Vec<&str> = workload.nodes.iter().map(|node| node.gpu_kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.retain(|kind| !kind.is_empty());
    if kinds.is_empty() { "none".to_owned() } else { printable(&kinds.join(", ")) }
}

fn submissions(workload: &Workload) -> String {
    let times = || workload.jobs.iter().map(|job| job.spec.submit_ns);
    let (Some(first), Some(last)) = (times().min(), times().max()) else { return "none".to_owned() };
    let span_s = (last - first) as f64 / 1e9;
    let unit = TimeUnit::for_max(span_s);
    format!("over {} {}", unit.show(span_s), unit.symbol())
}

fn durations(workload: &Workload) -> Section {
    let mut alone: Vec<f64> = workload.jobs.iter().map(|job| workload.alone_s(job)).collect();
    alone.sort_by(f64::total_cmp);
    let at = |q| stats::quantile(&alone, q).unwrap_or(f64::NAN);
    let unit = TimeUnit::for_max(stats::mean(&alone));
    let head = format!("run time alone at the request [{}]", unit.symbol());
    let mut section = Section::new(&[&head, "mean", "median", "p95", "p99", "max"]);
    let values = [stats::mean(&alone), at(0.5), at(0.95), at(0.99), at(1.0)];
    section.row(std::iter::once("all jobs".to_owned()).chain(values.map(|value| unit.show(value))));
    section
}

fn demands(workload: &Workload) -> Section {
    let mut by_gpus = std::collections::BTreeMap::<u32, u64>::new();
    for job in &workload.jobs {
        *by_gpus.entry(job.gpus()).or_default() += 1;
    }
    let mut section = Section::new(&["GPUs of a job", "jobs", "share [%]"]);
    for (gpus, jobs) in by_gpus {
        section.row([gpus.to_string(), count(jobs), percent(jobs as f64 / workload.jobs.len() as f64)]);
    }
    section
}

/// Both files are written aside first and then renamed, so that no half of a trace is ever seen.
fn convert(args: &ConvertArgs) -> Result<(), CliError> {
    let known = args.to.extension().is_some_and(|end| end == "json" || end == "csv");
    let (true, Some(name)) = (known, args.to.file_name()) else {
        return Err(CliError::Usage(format!("--to {}: name a .json or a .csv file", args.to.display())));
    };
    output::check_file(&args.to)?;
    let workload = workload::build(&named(&args.workload, args.named.as_ref()), args.seed, args.load)?;
    let staging = Staging::beside(&args.to)?;
    trace::write(&workload, &staging.path().join(name)).map_err(|error| match error {
        TraceError::Write { source, .. } => CliError::Output(OutputError::Write { path: args.to.clone(), source }),
        other => CliError::Workload(WorkloadError::Trace(Box::new(other))),
    })?;
    for path in staging.publish()? {
        output::note(&format!("{} jobs: {}", count(workload.info.jobs), path.display()));
    }
    Ok(())
}
