//! `decision-latency`: how long a decision of `coretuner` takes while jobs come and go.

mod measure;
mod stream;
mod timed;

pub(crate) use measure::measure;
