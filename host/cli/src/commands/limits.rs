//! `coretuner limits`.

use clap::Args;
use coretuner_policy_host::{LimitOwner, Limits};

use crate::error::CliError;
use crate::format::count;
use crate::output;
use crate::simulation::RunError;
use crate::table::{Section, render};

/// Print every limit on policies: its value, who may change it, and the metric that shows how close one is
#[derive(Debug, Args)]
pub(crate) struct LimitsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &LimitsArgs) -> Result<(), CliError> {
    let limits = Limits::default().table();
    if args.json {
        let json = serde_json::to_string_pretty(&limits).map_err(RunError::from)?;
        return Ok(output::print(&format!("{json}\n"))?);
    }
    let mut section = Section::of_words(&["limit", "value", "unit", "changed by", "metric", "what it bounds"]);
    for limit in limits {
        let owner = match limit.owner {
            LimitOwner::Operator => "operator",
            LimitOwner::Fixed => "nobody",
        };
        section.row([
            limit.name.to_owned(),
            count(limit.value),
            limit.unit.to_owned(),
            owner.to_owned(),
            limit.metric.to_owned(),
            limit.meaning.to_owned(),
        ]);
    }
    Ok(output::print(&render(&section))?)
}
