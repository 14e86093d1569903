//! Results as aligned text.

mod compare;
mod run;
mod text;

pub(crate) use compare::{comparison_sections, comparison_warnings, interval_note, print_comparison};
pub(crate) use run::{print_run, run_sections, warnings};
pub(crate) use text::{Section, printable, render};
