//! What a policy instance is told: a full image at first, then what changed.

mod cursor;
mod strings;
mod tables;

pub use cursor::{CHECKSUM_EVERY, Cursor};
