//! Where a gang fits: pure searches on what a plan in the making has left.

mod search;
#[cfg(test)]
mod tests;

pub use search::{Demand, Fit, Gang, gang};
