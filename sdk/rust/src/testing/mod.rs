//! Tests of policies, natively: a small cluster in a few lines, and a host that checks and carries out plans.
//!
//! ```
//! use coretuner_sdk::testing::{Bed, job};
//! # use coretuner_sdk::{Cycle, Policy, place};
//! # struct Fifo;
//! # impl Policy for Fifo {
//! #     type Config = ();
//! #     const NAME: &'static str = "fifo";
//! #     const SUMMARY: &'static str = "";
//! #     fn new(_: ()) -> Result<Self, String> { Ok(Self) }
//! #     fn decide(&mut self, cycle: &mut Cycle<'_>) {
//! #         for job in cycle.cluster.waiting() {
//! #             let Some(rows) = place::gang(&mut cycle.plan, job, Default::default()) else { return };
//! #             if cycle.plan.start(job.id, &rows).is_err() { return }
//! #         }
//! #     }
//! # }
//! let mut bed = Bed::<Fifo>::new("null");
//! bed.nodes(2, 8, 24, 512_000);
//! bed.submit(job(1).gpus(4).cores(3));
//! assert_eq!(bed.cycle().started, [1]);
//! ```

mod bed;
mod delta;
mod job;
mod world;

pub use bed::{Bed, Outcome};
pub use job::{JobBuilder, job};
