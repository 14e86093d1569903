//! Making a plan.

mod builder;
mod check;
mod error;
mod table;
mod trade;

pub use builder::{Noted, PlanBuilder};
pub use error::PlanError;
pub use table::{Placement, Resize};
pub use trade::{Change, Step, Why};

#[cfg(test)]
mod tests;
