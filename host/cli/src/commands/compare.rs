//! `coretuner compare`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use coretuner_simulator::result::RunResult;
use coretuner_simulator::workload::Workload;
use rayon::prelude::*;

use super::simulate::Places;
use crate::args::{OutputArgs, PolicyFolderArgs, PredictorArgs, TimeArgs, WorkloadArgs};
use crate::comparison::{Cell, Comparison};
use crate::error::CliError;
use crate::format::count;
use crate::output;
use crate::policy_config;
use crate::policy_file::PolicyFolders;
use crate::predictor::PredictorSource;
use crate::progress::Bar;
use crate::simulation::{self, PreparedPolicy, RunError};
use crate::{csv_files, report, table, workload};

/// Most runs at once: the engine has slots for so many live policies, with room for the loading of others.
const THREADS_MAX: usize = 48;

/// Run several policies on the same workloads and compare them
///
/// Every policy meets the same jobs at every load and seed, so differences are paired: by seed, and with one seed job
/// by job. Runs go in parallel; the result does not depend on how many threads there are.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  coretuner compare --policies fifo,las,synergy-tune,coretuner --seeds 1..5 --jobs 300 --nodes 4 --load 20
  coretuner compare --policies proportional,coretuner --loads 10,15,20,25 --seeds 1..3 --out results
  coretuner compare --trace philly --jobs 2000 --policies fifo,coretuner --policy-config coretuner=@slow.json")]
pub(crate) struct CompareArgs {
    /// Policies: names, or component files (with a `/`, or ending in `.wasm`)
    #[arg(
        long,
        value_name = "NAME|FILE,...",
        value_delimiter = ',',
        default_value = "fifo,las,proportional,synergy-tune,coretuner"
    )]
    policies: Vec<String>,
    /// The policy that differences are relative to [default: the first]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Configuration of one policy; may be given several times
    #[arg(long, value_name = "NAME=JSON|NAME=@FILE")]
    policy_config: Vec<String>,
    #[command(flatten)]
    folders: PolicyFolderArgs,
    /// Seeds: numbers or ranges, 1,2,3 or 1..5 (both included)
    #[arg(long, value_name = "N,...", default_value = "1", value_parser = parse_seeds)]
    seeds: Seeds,
    /// Arrival rates in jobs per hour [default: as in the trace; 9 generated]
    #[arg(long, visible_alias = "load", value_name = "JOBS/H,...", value_delimiter = ',', value_parser = parse_load)]
    loads: Vec<f64>,
    /// Runs at once [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX as u64))]
    threads: Option<u64>,
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    predictor: PredictorArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The seeds of a comparison, in the order given, unique.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seeds(Vec<u64>);

/// Everything is checked before the first run starts.
pub(crate) fn run(args: &CompareArgs) -> Result<(), CliError> {
    let mut comparison = grid(args)?;
    let configs = configs(&args.policy_config, &comparison.labels)?;
    let folders = PolicyFolders::new(args.folders.policy_dir.as_deref());
    let paths = args.policies.iter().map(|policy| folders.find(policy)).collect::<Result<Vec<_>, _>>()?;
    let places = Places::prepare(&args.output)?;
    let engine = simulation::metered_engine()?;
    let mut policies = Vec::new();
    for (path, label) in paths.iter().zip(&comparison.labels) {
        let config = configs.get(label).cloned().unwrap_or_else(|| serde_json::json!({}));
        policies.push(PreparedPolicy::load(&engine, path, config)?);
    }
    let wanted = policies.iter().any(PreparedPolicy::wants_predictions);
    let predictors = PredictorSource::open(&args.predictor, wanted)?;
    let started = Instant::now();
    let threads = args.threads.map_or_else(cores, |threads| threads as usize).min(THREADS_MAX);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| RunError::Threads { threads, reason: error.to_string() })?;
    comparison.cells = pool.install(|| run_all(args, &comparison, &policies, &predictors))?;
    let runs = count(comparison.cells.len() as u64);
    output::note(&format!("{runs} runs took {:.1} s on {threads} threads", started.elapsed().as_secs_f64()));
    write(args, &places, &comparison)
}

/// The empty comparison: labels, baseline, loads and seeds.
fn grid(args: &CompareArgs) -> Result<Comparison, CliError> {
    let labels = labels(&args.policies);
    let baseline = match &args.baseline {
        None => 0,
        Some(name) => {
            let found = labels.iter().zip(&args.policies).position(|(label, spec)| label == name || spec == name);
            found.ok_or_else(|| CliError::Usage(format!("the baseline {name} is not among the policies")))?
        }
    };
    let loads = if args.loads.is_empty() { vec![None] } else { args.loads.iter().copied().map(Some).collect() };
    Ok(Comparison { labels, baseline, loads, seeds: args.seeds.0.clone(), cells: Vec::new() })
}

/// Runs the grid in parallel; cells come in the order of loads, policies, seeds.
fn run_all(
    args: &CompareArgs,
    grid: &Comparison,
    policies: &[PreparedPolicy],
    predictors: &PredictorSource,
) -> Result<Vec<Cell>, CliError> {
    let worlds: Vec<(usize, u64)> =
        (0..grid.loads.len()).flat_map(|load| grid.seeds.iter().map(move |seed| (load, *seed))).collect();
    let workloads: BTreeMap<(usize, u64), Arc<Workload>> = worlds
        .par_iter()
        .map(|(load, seed)| {
            let jobs_per_hour = grid.loads.get(*load).copied().flatten();
            Ok(((*load, *seed), Arc::new(workload::build(&args.workload, *seed, jobs_per_hour)?)))
        })
        .collect::<Result<_, CliError>>()?;
    let jobs: u64 = workloads.values().map(|world| world.info.jobs - world.info.never_schedulable).sum();
    let bar = Bar::new(jobs * policies.len() as u64);
    let mut plan = Vec::new();
    for load in 0..grid.loads.len() {
        for (at, policy) in policies.iter().enumerate() {
            plan.extend(grid.seeds.iter().map(|seed| (load, at, policy, *seed)));
        }
    }
    let settings = simulation::settings(&args.time);
    let cells = plan
        .par_iter()
        .filter_map(|(load, at, policy, seed)| {
            let workload = workloads.get(&(*load, *seed))?;
            let mut seen = 0;
            let result: Result<RunResult, CliError> =
                simulation::run(policy, workload, &settings, predictors, &mut |progress| {
                    bar.advance(progress.finished - seen);
                    seen = progress.finished;
                });
            Some(result.map(|result| Cell { policy: *at, load: *load, seed: *seed, result }))
        })
        .collect();
    bar.finish();
    cells
}

fn write(args: &CompareArgs, places: &Places<'_>, comparison: &Comparison) -> Result<(), CliError> {
    let json = serde_json::to_string(&comparison.document()).map_err(RunError::from)? + "\n";
    if let Some(folder) = &places.folder {
        folder.write("result.json", json.as_bytes())?;
        folder.write("summary.csv", &csv_files::summary(comparison))?;
        folder.write("runs.csv", &csv_files::runs(comparison))?;
        folder.write("jobs.csv", &csv_files::all_jobs(comparison))?;
    }
    places.write_report(|| report::comparison_page(comparison))?;
    if args.output.json {
        output::warn(&table::comparison_warnings(comparison));
    }
    output::print(&if args.output.json { json } else { table::print_comparison(comparison) })?;
    Ok(())
}

/// Short names of the policies; a repeated one gets a number.
fn labels(policies: &[String]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for policy in policies {
        let path = std::path::Path::new(policy);
        let stem = path.file_stem().map_or_else(|| policy.clone(), |stem| stem.to_string_lossy().into_owned());
        let mut label = stem.clone();
        let mut number = 2;
        while labels.contains(&label) {
            label = format!("{stem}#{number}");
            number += 1;
        }
        labels.push(label);
    }
    labels
}

/// `NAME=JSON` and `NAME=@FILE` by label.
fn configs(given: &[String], labels: &[String]) -> Result<BTreeMap<String, serde_json::Value>, CliError> {
    let mut configs = BTreeMap::new();
    for entry in given {
        let Some((name, config)) = entry.split_once('=') else {
            return Err(CliError::Usage(format!("--policy-config `{entry}`: give NAME=JSON or NAME=@FILE")));
        };
        if !labels.iter().any(|label| label == name) {
            let known = labels.join(", ");
            return Err(CliError::Usage(format!("--policy-config names `{name}`; the policies are {known}")));
        }
        configs.insert(name.to_owned(), policy_config::read(Some(config))?);
    }
    Ok(configs)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Jobs per hour: a number above zero.
pub(crate) fn parse_load(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(load) if load > 0.0 && load.is_finite() => Ok(load),
        _ => Err("give a number of jobs per hour above zero".to_owned()),
    }
}

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    const MOST: u64 = 10_000;
    let number = |part: &str| part.trim().parse::<u64>().map_err(|_| format!("`{part}` is not a seed"));
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once("..") {
            Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
            None => (number(part)?, number(part)?),
        };
        if first > last || last - first >= MOST {
            return Err(format!("`{part}` is no range of at most {MOST} seeds"));
        }
        for seed in first..=last {
            if !seeds.contains(&seed) {
                seeds.push(seed);
            }
        }
    }
    Ok(Seeds(seeds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_seeds() {
        let check = |text: &str, expected: &[u64]| assert_eq!(parse_seeds(text), Ok(Seeds(expected.to_vec())));
        check("1", &[1]);
        check("3,1,3", &[3, 1]);
        check("1..3,7", &[1, 2, 3, 7]);
        for bad in ["", "x", "3..1", "1..99999999"] {
            assert!(parse_seeds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn labels_are_unique() {
        let policies = ["fifo", "a/fifo.wasm", "las", "b/fifo.wasm"].map(str::to_owned);
        assert_eq!(labels(&policies), ["fifo", "fifo#2", "las", "fifo#3"]);
    }

    #[test]
    fn loads_are_above_zero() {
        assert_eq!(parse_load("2.5"), Ok(2.5));
        for bad in ["0", "-1", "inf", "x"] {
            assert!(parse_load(bad).is_err(), "{bad}");
        }
    }
}
