//! `lp-share`: how much of what is possible at all a policy reaches at saturation.

mod bound;
mod measure;
mod response;
mod saturated;

pub(crate) use measure::measure;
pub(crate) use saturated::{RHO, Saturated, saturated};
