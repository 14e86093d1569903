//! Running other programs: never with a terminal's input, always with the full command in the error.

use crate::error::Error;
use std::process::{Command, Output, Stdio};

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs a command whose output goes to the terminal.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let status =
        command.stdin(Stdio::null()).status().map_err(|source| Error::Start { command: shown(command), source })?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Failed { command: shown(command), status: status.to_string(), output: String::new() })
}

/// Runs a command and gives what it printed to its standard output.
pub(crate) fn capture(command: &mut Command) -> Result<String, Error> {
    let output = collect(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Failed { command: shown(command), status: output.status.to_string(), output: tail(&output) })
}

/// Like [`capture`], but what the command says on its standard error goes to the terminal as it comes.
pub(crate) fn capture_output(command: &mut Command) -> Result<String, Error> {
    let output = collect(command.stderr(Stdio::inherit()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Failed { command: shown(command), status: output.status.to_string(), output: String::new() })
}

fn collect(command: &mut Command) -> Result<Output, Error> {
    command.stdin(Stdio::null()).output().map_err(|source| Error::Start { command: shown(command), source })
}

/// The end of what a failed command said; enough to see why, short enough to read.
fn tail(output: &Output) -> String {
    const LINES: usize = 15;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LINES);
    lines.iter().skip(from).map(|line| format!("\n  | {line}")).collect()
}
