//! What the host offers to a policy beyond the delta.

pub(crate) mod predict;
mod services;

pub use services::{JobDetails, Services};
