//! One file per subcommand.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod limits;
pub(crate) mod policy;
pub(crate) mod predict;
pub(crate) mod simulate;
pub(crate) mod trace;
