//! Synergy's own workload, and who runs on it.

mod batch;
mod contender;
mod load;
mod run;
mod stage;

pub(crate) use batch::all;
pub(crate) use contender::{Contender, Time};
pub(crate) use load::{Cell, ORDERS, Order, SERVERS};
pub(crate) use run::{Costs, Outcome, WINDOW, job_times, job_times_predicted, no_predictor, run};
pub(crate) use stage::Stage;
