//! Who runs: a shipped policy with a configuration, and when its cycles are.

use super::load::Order;
use coretuner_simulator::Mode;
use serde_json::{Value as Json, json};

/// Synergy's rounds.
const ROUND_S: f64 = 300.0;

/// Amounts of memory per GPU, in proportional shares: the columns of Synergy's table.
const MEMORY_LEVELS: [f64; 5] = [1.0 / 3.0, 1.0, 2.0, 3.0, 4.0];

/// When cycles are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// Whenever something happens.
    Events,
    /// Every 300 s, whole iterations only.
    Rounds,
}

/// A policy with its configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Contender {
    /// Component.
    pub(crate) policy: &'static str,
    pub(crate) config: Json,
    pub(crate) time: Time,
}

impl Contender {
    /// Synergy-Tune under Synergy's rules.
    pub(crate) fn tune(order: Order) -> Self {
        let config = json!({ "order": order.key(), "round_s": ROUND_S });
        Self { policy: "synergy-tune", config, time: Time::Rounds }
    }

    /// CPU and memory in proportion to GPUs; stopping a job is as free as it is for the others.
    pub(crate) fn proportional(order: Order) -> Self {
        let preemption = json!({ "hysteresis": 0.0, "restart_s": 0.0 });
        let las = json!({ "thresholds_gpu_s": attained_service() });
        let config = json!({ "order": order.key(), "preemption": preemption, "las": las });
        Self { policy: "proportional", config, time: Time::Events }
    }

    /// The policy of this project where moves cost `restart_s`.
    pub(crate) fn coretuner(order: Order, time: Time, restart_s: f64) -> Self {
        let config = json!({
            "order": order.key(),
            "restart_cost_s": restart_s,
            "memory_levels": MEMORY_LEVELS,
            "las_thresholds_gpu_s": attained_service(),
        });
        Self { policy: "coretuner", config, time }
    }

    /// The same with other settings.
    pub(crate) fn with(mut self, settings: &Json) -> Self {
        if let (Some(own), Some(other)) = (self.config.as_object_mut(), settings.as_object()) {
            own.extend(other.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        self
    }

    /// For the simulator.
    pub(crate) fn mode(&self) -> Mode {
        match self.time {
            Time::Events => Mode::Events,
            Time::Rounds => Mode::Rounds { round_s: ROUND_S, first_round_s: None, whole_iterations: true },
        }
    }
}

/// Queues of attained service so fine that they come to the continuous order that Synergy takes: a tenth apart, from one
/// GPU for one round to eight GPUs for a week.
fn attained_service() -> Vec<f64> {
    let grow = |threshold: &f64| Some(threshold * 1.1).filter(|next| *next < 8.0 * 7.0 * 86_400.0);
    std::iter::successors(Some(ROUND_S), grow).map(f64::round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_replaced() {
        let plain = Contender::coretuner(Order::Fifo, Time::Events, 0.0);
        let other = plain.clone().with(&json!({ "swaps_max": 0 }));
        assert_eq!((other.config["swaps_max"].clone(), other.config["order"].clone()), (json!(0), json!("fifo")));
        assert!(plain.config.get("swaps_max").is_none());
    }

    #[test]
    fn queues_rise() {
        let queues = attained_service();
        assert!(queues.windows(2).all(|pair| pair[0] < pair[1]) && (90..110).contains(&queues.len()), "{queues:?}");
    }
}
