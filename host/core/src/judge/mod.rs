//! What makes a plan legal: each action is checked against live state, each bundle is all or nothing.

mod bundle;
mod placement;
mod prepare;
mod shape;
#[cfg(test)]
mod tests;
mod verdict;

pub use shape::{PlanDefect, check_shape};
pub use verdict::{Hold, Judgement, Verdict};

pub(crate) use placement::is_whole;

/// Most actions of one plan that are judged; the first one beyond gets a verdict, the rest are not looked at.
pub const PLAN_ACTIONS_MAX: usize = 65_536;
