//! The report: one HTML file that needs nothing else, no script to be read and no network.

mod bars;
mod cdf;
mod compare;
mod division;
mod escape;
mod facts;
mod loads;
mod page;
mod plot;
mod run;
mod sampling;
mod timeline;
mod usage;

pub(crate) use compare::comparison_page;
pub(crate) use run::run_page;
