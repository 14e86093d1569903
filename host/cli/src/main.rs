//! The `coretuner` command.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod comparison;
mod csv_files;
mod error;
mod fetch;
#[cfg(test)]
mod fixture;
mod format;
mod metric;
mod output;
mod policy_config;
mod policy_file;
mod predictor;
mod progress;
mod report;
mod simulation;
mod stats;
mod table;
mod workload;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use error::CliError;

fn main() -> ExitCode {
    let cli = Cli::parse();
    output::log_to_stderr();
    match run(&cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

fn run(command: &Command) -> Result<(), CliError> {
    match command {
        Command::Simulate(args) => commands::simulate::run(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::Policy(command) => commands::policy::run(command),
        Command::Trace(command) => commands::trace::run(command),
        Command::Predict(args) => commands::predict::run(args),
        Command::Limits(args) => commands::limits::run(args),
        Command::Completions(args) => commands::completions::run(args),
    }
}
