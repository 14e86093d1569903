//! `jct-predicted`: job completion times with predictions of models that the predictor has never seen.

mod held_out;
mod measure;
mod table;

pub(crate) use measure::measure;
