//! `jct-order`: order and allocation together, beyond Synergy-Tune's capacity.

mod measure;
mod table;

pub(crate) use measure::measure;
