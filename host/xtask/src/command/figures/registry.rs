//! The figures there are.

/// One figure.
pub(crate) struct Figure {
    /// Name on the command line, also of the measurement in `coretuner-bench`.
    pub(crate) name: &'static str,
    /// One line for the list.
    pub(crate) about: &'static str,
    /// How it is measured, for `docs/figures.md`.
    pub(crate) method: &'static str,
}

/// Every figure, in the order of `docs/figures.md`.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "decision-cost",
        about: "one decision in WebAssembly against the identical policy code natively; cost of crossing per cycle",
        method: "A cluster of 8-GPU servers with about four of five GPUs taken and four jobs waiting; each decision sees \
            an unchanged cluster and decides again. `best-fit` (in `examples/`) looks at every node for every job; \
            `coretuner` is the shipped policy with its default configuration. Production metering (epoch deadlines). \
            Both sides answer the same deltas with the same plans (checked), run in turns in one process, and the \
            fastest of 60 batches counts. The crossing is `best-fit` with nothing waiting, native time taken off.",
    },
    Figure {
        name: "simulate-scale",
        about: "events per second, wall time and peak memory of simulations up to 10,000 nodes and 100,000 jobs",
        method: "`fifo` as a component with fuel metering, on the Philly-derived trace (82,247 jobs, when CORETUNER_DATA \
            has it) and on generated Synergy workloads that ask for 80 % of the GPU time. Events are what the backend \
            tells the controller. Each run is a process of its own; peak memory is the system's high-water mark of it. \
            Reading the trace is not in the wall time.",
    },
];

/// The figure of that name.
pub(crate) fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}
