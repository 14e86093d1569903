//! Measures what the project claims. `cargo xtask figures` runs this; it prints one JSON list of values per figure.
#![forbid(unsafe_code)]

mod decision;
mod error;
mod ingredients;
mod jct_order;
mod jct_predicted;
mod jct_synergy;
mod latency;
mod lp_share;
mod native;
mod part;
mod scale;
mod statistics;
mod synergy;
mod value;

use clap::Parser;
use error::Error;
use part::Part;
use std::path::PathBuf;
use std::process::ExitCode;
use value::Value;

/// Measures figures; `cargo xtask figures` calls it.
#[derive(Parser)]
enum Figure {
    /// One decision in WebAssembly against the same code natively.
    DecisionCost { guests: PathBuf },
    /// Decisions while jobs come and go.
    DecisionLatency {
        guests: PathBuf,
        #[command(flatten)]
        part: Part,
    },
    /// Speed and size of simulations.
    SimulateScale { guests: PathBuf },
    /// One run of `simulate-scale`, as JSON.
    OneRun { run: String },
    /// Job completion times on Synergy's workload.
    JctSynergy {
        guests: PathBuf,
        #[command(flatten)]
        part: Part,
    },
    /// The same with predictions of models that the predictor has never seen.
    JctPredicted {
        guests: PathBuf,
        #[command(flatten)]
        part: Part,
    },
    /// Order and allocation together, beyond Synergy-Tune's capacity.
    JctOrder {
        guests: PathBuf,
        #[command(flatten)]
        part: Part,
    },
    /// The policy without one or more of its parts.
    Ingredients {
        guests: PathBuf,
        #[command(flatten)]
        part: Part,
    },
    /// Share of the linear programme's bound at saturation.
    LpShare {
        guests: PathBuf,
        #[command(flatten)]
        part: Part,
    },
}

impl Figure {
    fn measure(&self) -> Result<Vec<Value>, Error> {
        match self {
            Self::DecisionCost { guests } => decision::measure(guests),
            Self::DecisionLatency { guests, part } => latency::measure(guests, part),
            Self::SimulateScale { guests } => scale::measure(guests),
            Self::OneRun { run } => scale::one_run(run),
            Self::JctSynergy { guests, part } => jct_synergy::measure(guests, part),
            Self::JctPredicted { guests, part } => jct_predicted::measure(guests, part),
            Self::JctOrder { guests, part } => jct_order::measure(guests, part),
            Self::Ingredients { guests, part } => ingredients::measure(guests, part),
            Self::LpShare { guests, part } => lp_share::measure(guests, part),
        }
    }
}

fn main() -> ExitCode {
    match Figure::parse().measure().and_then(|values| value::print(&values)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
