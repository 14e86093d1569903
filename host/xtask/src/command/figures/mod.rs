//! `cargo xtask figures`: one home for every number that the project claims.

mod machine;
mod matrix;
mod page;
mod registry;
mod result;
mod run;

pub(crate) use run::Arguments;
