//! What cargo cannot do by itself: set-up, demo, tests in one go, figures. `cargo xtask help` lists the commands.
#![forbid(unsafe_code)]

mod cargo;
mod command;
mod error;
mod files;
mod model;
mod process;
mod setup;
mod step;

use clap::Parser;
use command::Command;
use std::process::ExitCode;

/// Work on CoreTuner's source tree.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    match Arguments::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
