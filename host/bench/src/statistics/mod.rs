//! The little statistics that figures need.

mod fit;
mod interval;

pub(crate) use fit::exponent;
pub(crate) use interval::{Estimate, geometric_mean, of_ratios};
