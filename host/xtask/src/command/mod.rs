//! One file per command.

mod demo;
mod figures;
mod guests;
mod onnxruntime;
mod test;

use crate::error::Error;
use clap::Subcommand;

/// Every command of `cargo xtask`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Set up, build, and compare CoreTuner's policy with four others on a real or generated workload.
    Demo(demo::Arguments),
    /// List the figures, or measure one.
    Figures(figures::Arguments),
    /// Build policies and test guests as WebAssembly components into `target/guests/`.
    Guests(guests::Arguments),
    /// Fetch the ONNX Runtime library into `target/onnxruntime/`.
    Onnxruntime(onnxruntime::Arguments),
    /// Set up, then run every check and test.
    Test(test::Arguments),
}

impl Command {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<(), Error> {
        match self {
            Self::Demo(arguments) => arguments.run(),
            Self::Figures(arguments) => arguments.run(),
            Self::Guests(arguments) => arguments.run(),
            Self::Onnxruntime(arguments) => arguments.run(),
            Self::Test(arguments) => arguments.run(),
        }
    }
}
