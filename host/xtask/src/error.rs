//! Every way in which a command of xtask fails.

use std::io;
use std::path::PathBuf;

/// A failed step: what was tried, why it failed, and what to do where that is known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to start `{command}`: {source}")]
    Start { command: String, source: io::Error },
    #[error("`{command}` failed ({status}){output}")]
    Failed { command: String, status: String, output: String },
    #[error("failed to {what} {}: {source}", path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },
    #[error("`{command}` printed what cannot be read: {detail}")]
    Output { command: String, detail: String },
    #[error("failed to encode {} as a component: {detail}", path.display())]
    Component { path: PathBuf, detail: String },
    #[error("{count} checks failed; the table above names them")]
    Checks { count: usize },
    #[error("{what}\n  tried: {}\n  what you can do: {advice}", tried.join("\n         "))]
    Step { what: String, tried: Vec<String>, advice: String },
}
