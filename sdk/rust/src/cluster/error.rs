//! Why a delta does not fit the view.

/// A delta that does not fit the view: the host and this instance no longer agree, so the instance must be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// The delta builds on another revision than the one that the view is at.
    Gap { view: u64, base: u64 },
    /// A column is shorter than its table, or a range leaves the table that it points into.
    Table { table: &'static str, row: usize },
    /// A row names something that the view does not have.
    Unknown { what: &'static str, id: u32 },
    /// The sums of row hashes differ.
    Drift { view: u32, host: u32, revision: u64 },
}

impl std::fmt::Display for ApplyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gap { view, base } => {
                write!(f, "the delta builds on revision {base}, but the view is at {view}; send a full image")
            }
            Self::Table { table, row } => write!(f, "row {row} of table `{table}` of the delta is incomplete"),
            Self::Unknown { what, id } => write!(f, "the delta speaks of {what} {id}, which the view does not have"),
            Self::Drift { view, host, revision } => write!(
                f,
                "the view drifted from the host's state at revision {revision}: checksum {view:08x}, host {host:08x}; \
                 send a full image"
            ),
        }
    }
}

impl std::error::Error for ApplyError {}
