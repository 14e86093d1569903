//! Why a trace cannot be read.

use std::path::PathBuf;

use crate::truth::TruthError;

/// Every error names the file; errors of content name line, column and reason as well.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("cannot open `{path}`: {source}")]
    Open { path: PathBuf, source: std::io::Error },
    #[error("cannot read `{path}`: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write `{path}`: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("`{path}` looks like none of the known trace formats: name one with --format")]
    UnknownFormat { path: PathBuf },
    #[error("`{path}`: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("`{path}` line {line}: {reason}")]
    Line { path: PathBuf, line: u64, reason: String },
    #[error("`{path}` line {line}, column {column} ({field}): {reason}")]
    Cell { path: PathBuf, line: u64, column: usize, field: String, reason: String },
    #[error("`{path}` line {line} (job `{job}`): {source}")]
    Truth { path: PathBuf, line: u64, job: String, source: TruthError },
    #[error("`{path}` has no jobs")]
    NoJobs { path: PathBuf },
    #[error("{0}")]
    Options(String),
}
