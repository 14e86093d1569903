//! `coretuner simulate`.

use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use crate::args::{OutputArgs, PolicyFolderArgs, PredictorArgs, TimeArgs, WorkloadArgs};
use crate::error::CliError;
use crate::output::{self, OutFolder};
use crate::policy_config;
use crate::policy_file::PolicyFolders;
use crate::predictor::PredictorSource;
use crate::progress::Bar;
use crate::simulation::{self, PreparedPolicy, RunError};
use crate::{csv_files, report, table, workload};

/// Run one policy on one workload and show what came of it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  coretuner simulate --policy coretuner --jobs 200 --nodes 4 --load 20
  coretuner trace fetch synergy-static
  coretuner simulate --trace synergy-static --nodes 4 --policy synergy-tune --mode rounds --report tune.html
  coretuner simulate --trace my.csv --cluster nodes.csv --policy ./mine.wasm --policy-config '{\"backfill\": true}'")]
pub(crate) struct SimulateArgs {
    /// The policy: a name, or a component's file (with a `/`, or ending in `.wasm`)
    #[arg(long, value_name = "NAME|FILE", default_value = "coretuner")]
    policy: String,
    /// The policy's configuration: a JSON object, or @FILE
    #[arg(long, value_name = "JSON|@FILE")]
    policy_config: Option<String>,
    #[command(flatten)]
    folders: PolicyFolderArgs,
    /// Seeds everything that is drawn: generated jobs and what fills a trace's gaps
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Stretch or squeeze arrivals to so many jobs per hour [default: as in the trace; 9 generated]
    #[arg(long, value_name = "JOBS/H", value_parser = super::compare::parse_load)]
    load: Option<f64>,
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    predictor: PredictorArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Everything is checked before the run starts: policy, configuration, trace, model, places to write.
pub(crate) fn run(args: &SimulateArgs) -> Result<(), CliError> {
    let config = policy_config::read(args.policy_config.as_deref())?;
    let path = PolicyFolders::new(args.folders.policy_dir.as_deref()).find(&args.policy)?;
    let places = Places::prepare(&args.output)?;
    let workload = Arc::new(workload::build(&args.workload, args.seed, args.load)?);
    let engine = simulation::metered_engine()?;
    let policy = PreparedPolicy::load(&engine, &path, config)?;
    let predictors = PredictorSource::open(&args.predictor, policy.wants_predictions())?;
    let settings = simulation::settings(&args.time);
    let started = Instant::now();
    let bar = Bar::new(workload.info.jobs - workload.info.never_schedulable);
    let mut seen = 0;
    let result = simulation::run(&policy, &workload, &settings, &predictors, &mut |progress| {
        bar.advance(progress.finished - seen);
        seen = progress.finished;
    });
    bar.finish();
    let result = result?;
    output::note(&format!("run took {:.1} s", started.elapsed().as_secs_f64()));
    let json = serde_json::to_string(&result).map_err(RunError::from)? + "\n";
    if let Some(folder) = &places.folder {
        folder.write("result.json", json.as_bytes())?;
        folder.write("jobs.csv", &csv_files::jobs(&result))?;
        folder.write("series.csv", &csv_files::series(&result))?;
    }
    places.write_report(|| report::run_page(&result))?;
    if args.output.json {
        // The table has them in it; who only keeps the JSON must hear of them too.
        output::warn(&table::warnings(&result.policy.name, &result));
    }
    output::print(&if args.output.json { json } else { table::print_run(&result) })?;
    Ok(())
}

/// Where results go, proven writable.
pub(crate) struct Places<'a> {
    pub(crate) folder: Option<OutFolder>,
    args: &'a OutputArgs,
}

impl<'a> Places<'a> {
    /// Checks folder and report file before anything is run.
    pub(crate) fn prepare(args: &'a OutputArgs) -> Result<Self, CliError> {
        let folder = args.out.as_deref().map(OutFolder::prepare).transpose()?;
        if let Some(report) = &args.report {
            output::check_file(report)?;
        }
        Ok(Self { folder, args })
    }

    /// Writes the report to each place that was asked for and says where.
    pub(crate) fn write_report(&self, page: impl FnOnce() -> String) -> Result<(), CliError> {
        if self.folder.is_none() && self.args.report.is_none() {
            return Ok(());
        }
        let page = page();
        let mut written = Vec::new();
        if let Some(folder) = &self.folder {
            written.push(folder.write("report.html", page.as_bytes())?);
        }
        if let Some(path) = &self.args.report {
            output::write_file(path, page.as_bytes())?;
            written.push(path.clone());
        }
        for path in written {
            output::note(&format!("report: {}", path.display()));
        }
        Ok(())
    }
}
