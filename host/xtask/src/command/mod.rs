//! One file per command.

mod guests;
mod onnxruntime;
mod test;

use crate::error::Error;
use clap::Subcommand;

/// Every command of `cargo xtask`.
#[derive(Subcommand)]
pub(crate) enum Command {
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
            Self::Guests(arguments) => arguments.run(),
            Self::Onnxruntime(arguments) => arguments.run(),
            Self::Test(arguments) => arguments.run(),
        }
    }
}
