//! `decision-cost`: one decision in WebAssembly against the identical code natively.

mod cluster;
mod timing;

pub(crate) use timing::measure;
