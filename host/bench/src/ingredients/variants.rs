//! The policy without one or more of its parts.

use crate::synergy::{Contender, Order, Time};
use serde_json::{Value as Json, json};

/// A row of the table.
pub(super) struct Variant {
    pub(super) name: &'static str,
    time: Time,
    settings: fn() -> Json,
}

impl Variant {
    /// The contender of a row.
    pub(super) fn contender(&self, order: Order) -> Contender {
        Contender::coretuner(order, self.time, 0.0).with(&(self.settings)())
    }
}

/// Rows beside Synergy-Tune, the whole policy last.
pub(super) const VARIANTS: [Variant; 7] = [
    Variant { name: "in rounds, no swaps", time: Time::Rounds, settings: || json!({ "swaps_max": 0 }) },
    Variant { name: "in rounds", time: Time::Rounds, settings: || json!({}) },
    Variant { name: "no swaps", time: Time::Events, settings: || json!({ "swaps_max": 0 }) },
    Variant { name: "no room for gangs", time: Time::Events, settings: || json!({ "room": false }) },
    Variant {
        name: "no memory below the share",
        time: Time::Events,
        settings: || json!({ "memory_levels": [1, 2, 3, 4] }),
    },
    Variant { name: "no floor", time: Time::Events, settings: || json!({ "floor": false }) },
    Variant { name: "all of it", time: Time::Events, settings: || json!({}) },
];
