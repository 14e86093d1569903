//! `coretuner policy inspect|check|list`.

use clap::{Args, Subcommand};
use coretuner_policy_host::{Capability, ImportKind, Inspection, Limits};

use crate::args::PolicyFolderArgs;
use crate::error::CliError;
use crate::format::{bytes, percent};
use crate::output;
use crate::policy_file::PolicyFolders;
use crate::simulation::{self, RunError};
use crate::table::{Section, printable, render};

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show what a policy is: contract version, digest, capabilities, size, reasons, configuration
    Inspect(InspectArgs),
    /// Say whether a policy is acceptable; exit code 1 and one sentence when it is not
    Check(CheckArgs),
    /// List the policies that names stand for
    List(ListArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A name, or a component's file (with a `/`, or ending in `.wasm`)
    #[arg(value_name = "NAME|FILE")]
    policy: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folders: PolicyFolderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A name, or a component's file (with a `/`, or ending in `.wasm`)
    #[arg(value_name = "NAME|FILE")]
    policy: String,
    #[command(flatten)]
    folders: PolicyFolderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    folders: PolicyFolderArgs,
}

pub(crate) fn run(command: &PolicyCommand) -> Result<(), CliError> {
    match command {
        PolicyCommand::Inspect(args) => inspect(args),
        PolicyCommand::Check(args) => check(args),
        PolicyCommand::List(args) => list(args),
    }
}

fn inspect(args: &InspectArgs) -> Result<(), CliError> {
    let inspection = look(&args.policy, &args.folders)?;
    if args.json {
        let json = serde_json::to_string_pretty(&inspection).map_err(RunError::from)?;
        return Ok(output::print(&format!("{json}\n"))?);
    }
    Ok(output::print(&describe(&inspection))?)
}

fn check(args: &CheckArgs) -> Result<(), CliError> {
    let inspection = match look(&args.policy, &args.folders) {
        Ok(inspection) => inspection,
        Err(CliError::Load { source, .. }) => return Err(CliError::NotAcceptable(source.to_string())),
        Err(other) => return Err(other),
    };
    Ok(output::print(&format!(
        "{} {} is acceptable: contract {}, {}, imports {}\n",
        printable(&inspection.name),
        printable(&inspection.version),
        inspection.contract,
        bytes(inspection.size_bytes),
        capabilities(&inspection)
    ))?)
}

fn list(args: &ListArgs) -> Result<(), CliError> {
    let folders = PolicyFolders::new(args.folders.policy_dir.as_deref());
    let mut section = Section::of_words(&["policy", "size", "file"]);
    for (name, path) in folders.list() {
        let size = std::fs::metadata(&path).map_or(0, |found| found.len());
        section.row([name, bytes(size), path.display().to_string()]);
    }
    if section.rows.is_empty() {
        let looked: Vec<String> = folders.folders().iter().map(|folder| folder.display().to_string()).collect();
        output::note(&format!("no policies found in {}; build them with `cargo xtask guests`", looked.join(", ")));
    }
    Ok(output::print(&render(&section))?)
}

fn look(policy: &str, folders: &PolicyFolderArgs) -> Result<Inspection, CliError> {
    let path = PolicyFolders::new(folders.policy_dir.as_deref()).find(policy)?;
    let engine = simulation::metered_engine()?;
    Ok(simulation::load(&engine, &path)?.inspection().clone())
}

fn describe(inspection: &Inspection) -> String {
    let limit = Limits::default().component_bytes;
    let share = inspection.size_bytes as f64 / limit as f64;
    let mut facts = Section::of_words(&["policy", &inspection.name]);
    let mut fact = |name: &str, value: String| facts.row([name.to_owned(), value]);
    fact("version", inspection.version.clone());
    fact("what it does", inspection.summary.clone());
    fact("contract", inspection.contract.to_string());
    fact("digest", inspection.digest.clone());
    fact("size", format!("{} ({} % of the limit of {})", bytes(inspection.size_bytes), percent(share), bytes(limit)));
    fact("memory at start", bytes(inspection.memory_bytes_at_start));
    fact("capabilities", capabilities(inspection));
    fact("exports", inspection.shape.exports.join(", "));
    fact("state version", inspection.state_version.to_string());
    let mut out = render(&facts);
    if !inspection.reasons.is_empty() {
        let mut reasons = Section::of_words(&["reason code", "text", "arguments"]);
        for reason in &inspection.reasons {
            reasons.row([reason.code.clone(), reason.text.clone(), reason.arguments.join(", ")]);
        }
        out.push('\n');
        out.push_str(&render(&reasons));
    }
    out.push_str("\nconfiguration schema\n");
    out.push_str(&schema(&inspection.configuration_schema));
    out.push('\n');
    out
}

/// The schema on many lines; as it is when it is no JSON.
fn schema(text: &str) -> String {
    serde_json::from_str::<serde_json::Value>(text)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_| printable(text))
}

fn capabilities(inspection: &Inspection) -> String {
    let names: Vec<&str> = inspection
        .shape
        .imports
        .iter()
        .filter_map(|import| match import.kind {
            ImportKind::Capability(capability) => Some(Capability::name(capability)),
            _ => None,
        })
        .collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
