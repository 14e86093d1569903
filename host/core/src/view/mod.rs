//! What a policy instance is told: a full image at first, then what changed.

mod cursor;
mod strings;
mod tables;
#[cfg(test)]
mod tests;

pub use cursor::{CHECKSUM_EVERY, Cursor};
