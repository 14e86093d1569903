//! The figures there are.

/// One figure.
pub(crate) struct Figure {
    /// Name on the command line, also of the measurement in `coretuner-bench`.
    pub(crate) name: &'static str,
    /// One line for the list.
    pub(crate) about: &'static str,
    /// How it is measured, for `docs/figures.md`.
    pub(crate) method: &'static str,
    /// Whether values named `ROW: COLUMN` stand as a matrix in `docs/figures.md`.
    pub(crate) matrix: bool,
    /// Whether a part of it can be measured (`--seeds`, `--cells`).
    pub(crate) in_parts: bool,
    /// Whether it needs ONNX Runtime.
    pub(crate) predicts: bool,
}

/// Every figure, in the order of `docs/figures.md`.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "decision-cost",
        about: "one decision in WebAssembly against the identical policy code natively; cost of crossing per cycle",
        method: "A cluster of 8-GPU servers with about four of five GPUs taken and four jobs waiting; `best-fit` \
            (in `examples/`) sees an unchanged cluster and looks at every node for every job; `coretuner`, the shipped \
            policy with its default configuration, sees a node with jobs being closed and opened again in \
            turns. Production metering (epoch deadlines). Both sides answer the same deltas with the same plans (checked), run in turns in one process, and the \
            fastest of 60 batches counts. The crossing is `best-fit` with nothing waiting, native time taken off.",
        matrix: false,
        in_parts: false,
        predicts: false,
    },
    Figure {
        name: "decision-latency",
        about: "time of a coretuner decision in WebAssembly against nodes and jobs, while jobs come and go",
        method: "The shipped policy with its default configuration as a component, production metering (epoch deadlines), \
            predictions by the simulator's truth. The cluster of 8-GPU servers has been at work for long: its jobs are \
            those of an endless run of Synergy's workload (gangs of 1, 2, 4, 8), each with the work that is left; with 4 \
            jobs per node they take 95 % of the GPUs, with more the rest waits. Then jobs come as fast as they end, and \
            each arrival, end and tick (300 s) is a decision: 400 to settle, then some 2,000 that count. The first \
            decision, which sees the whole cluster, does not. Time is that of the whole call: delta in, plan out. The \
            run is made three times with the same decisions, and each counts with its fastest time. Growth is the \
            exponent of a power law by least squares on logarithms.",
        matrix: true,
        in_parts: true,
        predicts: false,
    },
    Figure {
        name: "simulate-scale",
        about: "events per second, wall time and peak memory of simulations up to 10,000 nodes and 100,000 jobs",
        method: "`fifo` as a component with fuel metering, on the Philly-derived trace (82,247 jobs, when CORETUNER_DATA \
            has it) and on generated Synergy workloads that ask for 80 % of the GPU time. Events are what the backend \
            tells the controller. Each run is a process of its own; peak memory is the system's high-water mark of it. \
            Reading the trace is not in the wall time.",
        matrix: false,
        in_parts: false,
        predicts: false,
    },
    Figure {
        name: "jct-synergy",
        about: "job completion times of coretuner against Synergy-Tune and proportional shares, perfect predictions",
        method: "Synergy's workload (OSDI '22) on 16 servers of 8 GPUs, 24 cores and 500 GB. Cells: mix of image, language \
            and speech models, GPUs per job, load and order. rho is the arrival rate in units of that at which \
            Synergy-Tune saturates with first in, first out. Values are ratios of job completion times, mean and 99th \
            percentile over jobs 2,000 to 2,999; below 1 `coretuner` is better. All policies see the same jobs; each \
            number is the geometric mean over 6 seeds with its 95 % confidence interval (Student's t on logarithms). \
            Durations are heavy-tailed, so intervals are wide at high load, and ratios above rho 1 grow with the \
            length of the run. The rules are Synergy's: moving and stopping jobs is free. Synergy-Tune decides every \
            300 s, `coretuner` when something happens or, where it says so, every 300 s too (starting at once alone \
            is worth about 1 %); `proportional` when something happens. Predictions are the simulator's own truth, for \
            everybody. All policies run as components, with fuel metering.",
        matrix: true,
        in_parts: true,
        predicts: false,
    },
    Figure {
        name: "jct-predicted",
        about: "the same at rho 0.95 with predictions of models that the predictor has never seen",
        method: "Cells, seeds and window of `jct-synergy` at rho 0.95. The predictor is the shipped form, one file per model \
            of the workload, trained without any row of that model (`models/heldout`). Calibrated: speeds of running \
            jobs teach it, and the policy may probe. As trained: it learns nothing, and the policy does not probe. The \
            configuration is the shipped one. Synergy-Tune has exact demands, as after its profiling of every job.",
        matrix: true,
        in_parts: true,
        predicts: true,
    },
    Figure {
        name: "lp-share",
        about: "share of Synergy-Opt's bound that coretuner and Synergy-Tune reach at saturation",
        method: "The workload of `jct-synergy` at rho 1.6: an endless backlog, first in, first out. Every hour while jobs \
            2,000 to 2,999 come, the speeds of the running jobs (GPUs times speed relative to the proportional share) \
            are summed up and divided by the optimum of Synergy-Opt's linear programme for these jobs: any division of \
            the whole cluster's CPU and memory, mixed in time, nobody below the proportional share. No placement or \
            division of the same jobs can add more than the rest. Geometric means over 4 seeds with 95 % confidence \
            intervals; throughput is the sum of speeds over time.",
        matrix: true,
        in_parts: true,
        predicts: false,
    },
    Figure {
        name: "jct-order",
        about: "every order of coretuner against Synergy-Tune with shortest remaining time first, at rho 1.05",
        method: "The workload and window of `jct-synergy`, mix (33,33,33), at rho 1.05: beyond Synergy-Tune's capacity, \
            within ours, so that ratios grow with the length of the run. Order and allocation together: each order of \
            `coretuner` against Synergy-Tune's SRTF, where moves and restarts are free and where each costs 60 s \
            (Synergy-Tune as released places all jobs anew every round). Geometric means over 6 seeds with 95 % \
            confidence intervals; the best order is that with the least mean over all seeds.",
        matrix: true,
        in_parts: true,
        predicts: false,
    },
    Figure {
        name: "ingredients",
        about: "what each part of coretuner is worth: throughput at saturation, share of the bound, mean time",
        method: "The policy with one or more parts switched off, mix (33,33,33). Throughput and share of the bound as in \
            `lp-share` (rho 1.6, first in, first out), with moves per finished job; mean job completion time as in \
            `jct-synergy` (rho 0.95, SRTF). Geometric means over 5 seeds with 95 % confidence intervals.",
        matrix: true,
        in_parts: true,
        predicts: false,
    },
];

/// The figure of that name.
pub(crate) fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}
