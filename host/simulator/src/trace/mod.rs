//! Readers of published traces and of our own format (`docs/trace-format.md`).

mod detect;
mod error;
mod read;
mod rows;
mod source;
mod synergy;

pub use detect::Format;
pub use error::TraceError;
pub use read::{ReadOptions, read};
