//! Making a plan.

mod builder;
mod check;
mod error;
mod table;

pub use builder::{Noted, PlanBuilder};
pub use error::PlanError;
pub use table::{Placement, Resize};
