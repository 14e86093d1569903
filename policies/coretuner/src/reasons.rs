//! Why things happen, for people: codes with the numbers behind them.

use coretuner_sdk::{JobId, NodeId, Reason, Why};

/// All codes.
pub(crate) const REASONS: &[Reason] = &[
    Reason {
        code: "start",
        text: "its turn: {0} cores, worth {1} GPUs at the proportional share; price of resources {2}",
        arguments: &["cores", "value in GPUs at the share", "price: value per resources free above all bases"],
    },
    Reason {
        code: "divide",
        text: "its node divides better so: worth {1} instead of {0} GPUs at the share; price of resources {2}",
        arguments: &["value before (0: unknown)", "value after", "price"],
    },
    Reason { code: "room", text: "moved to make room for a gang; worth {0}", arguments: &["value after"] },
    Reason {
        code: "swap",
        text: "moved because both nodes divide better so, by {0}",
        arguments: &["gain in GPUs at the share"],
    },
    Reason {
        code: "probe",
        text: "runs with {0} cores for at most {1} s, to learn the speed of its kind there",
        arguments: &["cores", "seconds"],
    },
    Reason {
        code: "join",
        text: "brought together on one node: {0} faster than over several",
        arguments: &["gain in GPUs at the share"],
    },
    Reason {
        code: "grow",
        text: "{1} workers instead of {0}: nobody waits who could use the GPUs; worth {2}",
        arguments: &["workers before", "workers after", "gain in GPUs at the share of its fewest workers"],
    },
    Reason {
        code: "shrink",
        text: "{1} workers instead of {0}, so that another job starts; the sum of values changes by {2}",
        arguments: &["workers before", "workers after", "gain in GPUs at the share"],
    },
    Reason {
        code: "kind",
        text: "moved to another kind of GPU: worth {0} in all",
        arguments: &["gain in GPUs of the slowest kind, of both jobs of an exchange"],
    },
    Reason { code: "drain", text: "its node is being emptied", arguments: &[] },
    Reason {
        code: "order",
        text: "jobs that go first take its place: its key is {0}, that of the last of them {1}",
        arguments: &[
            "its key, as others have to beat it: seconds, GPU-seconds or queue by `order`; -1: unknown",
            "key of the last job that goes first",
        ],
    },
    Reason {
        code: "aged",
        text: "its turn after {3} h: {0} cores, worth {1} GPUs at the proportional share; price of resources {2}",
        arguments: &[
            "cores",
            "value in GPUs at the share",
            "price",
            "hours since submission, which count by `ageing_h`",
        ],
    },
    Reason {
        code: "wait-gpus",
        text: "waits for {0} GPUs; {1} are free beside those that go first",
        arguments: &["GPUs needed", "GPUs free"],
    },
    Reason {
        code: "wait-beside",
        text: "{0} GPUs are free, but not on one node with the CPU and memory of its base",
        arguments: &["GPUs needed"],
    },
    Reason {
        code: "wait-span",
        text: "would run over {0} nodes at {1} of the speed on as few as can hold it; at least {2} is wanted",
        arguments: &["nodes", "part of the speed", "`span_speed_min`"],
    },
    Reason {
        code: "wait-whole",
        text: "would run over several nodes at {0} of the speed, which costs {1} s; whole nodes are expected in {2} s",
        arguments: &["part of the speed", "seconds lost by a split", "seconds until whole nodes are free"],
    },
    Reason {
        code: "reserved",
        text: "its turn on nodes kept for it, after {3} s: {0} cores, worth {1} GPUs at the proportional share; price {2}",
        arguments: &["cores", "value in GPUs at the share", "price", "seconds that it waited"],
    },
    Reason {
        code: "wait-reserved",
        text: "{0} nodes are kept for it: {2} of {1} GPUs are free there, all are expected in {3} s",
        arguments: &["nodes", "GPUs needed", "GPUs free there", "seconds; -1: unknown"],
    },
    Reason { code: "wait-turn", text: "waits for its turn", arguments: &[] },
    Reason {
        code: "wait-refused",
        text: "the host refused the start; tried again in {0} s",
        arguments: &["seconds until the next try"],
    },
];

/// Why a job gets a place or loses it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cause {
    /// Its turn.
    Start,
    /// Nodes were kept for it.
    Reserved { waited_s: f64 },
    /// Makes room for a gang.
    Room { gang: JobId },
    /// Exchanged or moved because both nodes then divide better.
    Swap { gain: f64, with: Option<JobId> },
    /// Was over several nodes.
    Join { gain: f64 },
    /// Elastic: uses GPUs that nobody waits for.
    Grow { from: u32, to: u32, gain: f64 },
    /// Elastic: gives GPUs to a job that waits.
    Shrink { from: u32, to: u32, gain: f64, starts: JobId },
    /// Another kind of GPU suits it, or the job that it makes way for, better.
    Kind { gain: f64, with: Option<JobId> },
    /// Its node is being emptied.
    Drain { node: NodeId },
    /// Others go first: its key and that of the last of them.
    Order { key: f64, first: f64 },
}

impl Cause {
    pub(crate) fn told(self) -> Why {
        match self {
            Self::Start | Self::Reserved { .. } => Why::new("start", &[]),
            Self::Room { gang } => Why::new("room", &[]).about_job(gang),
            Self::Swap { gain, with } => {
                let why = Why::new("swap", &[gain]);
                with.map_or(why.clone(), |with| why.about_job(with))
            }
            Self::Join { gain } => Why::new("join", &[gain]),
            Self::Grow { from, to, gain } => Why::new("grow", &[f64::from(from), f64::from(to), gain]),
            Self::Shrink { from, to, gain, starts } => {
                Why::new("shrink", &[f64::from(from), f64::from(to), gain]).about_job(starts)
            }
            Self::Kind { gain, with } => {
                let why = Why::new("kind", &[gain]);
                with.map_or(why.clone(), |with| why.about_job(with))
            }
            Self::Drain { node } => Why::new("drain", &[]).about_node(node),
            Self::Order { key, first } => Why::new("order", &[key, first]),
        }
    }
}

/// What a placed job gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Because {
    pub(crate) node: NodeId,
    pub(crate) value: f64,
    pub(crate) price: f64,
}

impl Because {
    pub(crate) fn start(self, cpu_milli: u32) -> Why {
        Why::new("start", &[f64::from(cpu_milli) / 1000.0, self.value, self.price]).about_node(self.node)
    }

    /// As [`Because::start`], of a job that ageing brought forward.
    pub(crate) fn aged(self, cpu_milli: u32, age_h: f64) -> Why {
        let numbers = [f64::from(cpu_milli) / 1000.0, self.value, self.price, age_h];
        Why::new("aged", &numbers).about_node(self.node)
    }

    /// As [`Because::start`], on nodes that were kept for the job.
    pub(crate) fn reserved(self, cpu_milli: u32, waited_s: f64) -> Why {
        let numbers = [f64::from(cpu_milli) / 1000.0, self.value, self.price, waited_s];
        Why::new("reserved", &numbers).about_node(self.node)
    }

    pub(crate) fn divided(self, before: Option<f64>) -> Why {
        Why::new("divide", &[before.unwrap_or(0.0), self.value, self.price]).about_node(self.node)
    }

    pub(crate) fn moved(self, cause: Option<Cause>) -> Why {
        match cause {
            Some(Cause::Room { gang }) => Why::new("room", &[self.value]).about_job(gang),
            Some(cause) => cause.told(),
            None => self.divided(None),
        }
    }
}

/// Why a job waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wait {
    /// Its GPUs are not free beside those of jobs that go first.
    Gpus { needed: u32, free: u64 },
    /// GPUs are free, but the CPU or memory beside them is not enough for its base, or they are scattered.
    Beside { gpus: u32 },
    /// It would run too slowly over as many nodes as have room.
    Span { nodes: u32, speed: f64, least: f64 },
    /// Whole nodes are expected before a split would pay.
    Whole { speed: f64, costs_s: f64, expected_s: f64 },
    /// Nodes are kept for it.
    Reserved { nodes: u32, needed: u32, gpus: u32, expected_s: f64 },
    /// Others of its profile go first.
    Turn,
    /// The host refused it.
    Refused { for_s: f64 },
}

impl Wait {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Gpus { .. } => "wait-gpus",
            Self::Beside { .. } => "wait-beside",
            Self::Span { .. } => "wait-span",
            Self::Whole { .. } => "wait-whole",
            Self::Reserved { .. } => "wait-reserved",
            Self::Turn => "wait-turn",
            Self::Refused { .. } => "wait-refused",
        }
    }

    pub(crate) fn arguments(self) -> Vec<f64> {
        match self {
            Self::Gpus { needed, free } => vec![f64::from(needed), free as f64],
            Self::Beside { gpus } => vec![f64::from(gpus)],
            Self::Span { nodes, speed, least } => vec![f64::from(nodes), speed, least],
            Self::Whole { speed, costs_s, expected_s } => vec![speed, costs_s, expected_s],
            Self::Reserved { nodes, needed, gpus, expected_s } => {
                vec![f64::from(nodes), f64::from(needed), f64::from(gpus), expected_s]
            }
            Self::Turn => Vec::new(),
            Self::Refused { for_s } => vec![for_s],
        }
    }
}
