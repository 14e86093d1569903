//! Reading any known trace into a workload.

use std::path::{Path, PathBuf};

use super::detect::Format;
use super::error::TraceError;
use super::{coretuner, gavel, itp, openb, philly, synergy};
use crate::workload::{Draft, FillOptions, Workload, complete};

/// How to read a trace.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// `None` = by content.
    pub format: Option<Format>,
    /// File with the nodes, in the trace's own cluster format or in ours.
    pub cluster: Option<PathBuf>,
    pub fill: FillOptions,
}

/// Reads the trace at `path` and fills its gaps.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Workload, TraceError> {
    complete(read_draft(path, options)?, path, &options.fill)
}

/// Reads the trace as it is, without filling gaps.
fn read_draft(path: &Path, options: &ReadOptions) -> Result<Draft, TraceError> {
    let format = match options.format {
        Some(format) => format,
        None => Format::detect(path)?,
    };
    let cluster = options.cluster.as_deref();
    match format {
        Format::Synergy => synergy::read(path, cluster),
        Format::Coretuner => coretuner::read(path, cluster),
        Format::Gavel => gavel::read(path, cluster),
        Format::Openb => openb::read(path, cluster),
        Format::Itp => itp::read(path, cluster),
        Format::Philly => philly::read(path, cluster),
    }
}

/// Name of the trace for a person.
pub(crate) fn display_name(format: Format, path: &Path) -> String {
    let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    format!("{} {file}", format.name())
}
