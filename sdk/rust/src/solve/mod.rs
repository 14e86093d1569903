//! Solvers that policies share: pure functions on plain structs, without a view of the cluster.
//!
//! Amounts are whole numbers in any unit that the caller likes (`cpu_milli` and `memory_mib` in policies, cores and
//! 24ths of a node in tests). The pieces build on each other:
//!
//! 0. [`doubt`]: predicted speeds, discounted where the prediction is unsure;
//! 1. [`mod@options`]: a job's predicted speeds over CPU × memory → a base and the few allocations worth having above it;
//! 2. [`price`]: what every job would hold if the cluster were one big node, and the price of resources there;
//! 3. [`mod@divide`]: the best division of one node among the jobs on it, exactly; [`values`] remembers them;
//! 4. [`swap`]: which two jobs of two nodes to exchange so that both nodes divide better.

pub mod divide;
pub mod doubt;
pub mod options;
pub mod price;
pub mod swap;
pub mod values;

#[cfg(any(test, feature = "fixtures"))]
pub mod synergy;

pub use divide::{Axis, Division, Lattice, divide};
pub use doubt::Band;
pub use options::{Amount, Filter, Floor, Options, Point, Surface, options};
pub use price::{Crowd, Targets, targets};
pub use swap::{Exchange, Exchanges, MixId, Side, Tenant};
pub use values::{Book, NodeValues};
