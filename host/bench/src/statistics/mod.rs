//! The little statistics that figures need.

mod interval;

pub(crate) use interval::{Estimate, geometric_mean, of_ratios};
