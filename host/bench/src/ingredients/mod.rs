//! `ingredients`: what each part of the policy is worth.

mod measure;
mod variants;

pub(crate) use measure::measure;
