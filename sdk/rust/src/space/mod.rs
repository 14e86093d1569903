//! What is free while a plan is made: starts as the host's view, changes with every action, and goes back after the plan.

mod index;
mod room;
mod tree;

pub(crate) use room::{Lack, Space};
