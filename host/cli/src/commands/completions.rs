//! `coretuner completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::CliError;
use crate::output;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:
  coretuner completions bash > ~/.local/share/bash-completion/completions/coretuner")]
pub(crate) struct CompletionsArgs {
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "coretuner", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(())
}
