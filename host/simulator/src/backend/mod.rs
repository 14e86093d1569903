//! The simulated cluster: a backend on virtual time.

mod calendar;
mod error;
mod execute;
mod job;
mod measure;
mod nodes;
mod rounds;
mod settings;
mod sim;
mod speed;
#[cfg(test)]
mod tests;

pub use error::SimError;
pub(crate) use job::{JobRun, Phase};
pub use measure::Measured;
pub use settings::{Mode, Settings};
pub use sim::SimBackend;
