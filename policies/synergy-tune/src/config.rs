//! What an operator can set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::allocate::Placement;

/// Which job goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By submission.
    #[default]
    Fifo,
    /// Shortest remaining time at the speed of the last round first.
    Srtf,
    /// Least attained service (GPU-seconds) first; among those admitted, gangs of many GPUs are placed first.
    Las,
}

/// Configuration of Synergy-Tune.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub order: Order,
    /// Seconds between rounds. Nothing is decided in between.
    pub round_s: f64,
    /// Time of the first round, seconds since the host's epoch; none = rounds are at multiples of `round_s`.
    pub first_round_s: Option<f64>,
    /// How one-GPU jobs choose a server.
    pub placement: Placement,
    /// Most reasons for waiting told per round.
    pub holds_max: u32,
}

impl Default for Config {
    fn default() -> Self {
        let (order, placement) = (Order::default(), Placement::default());
        Self { order, round_s: 300.0, first_round_s: None, placement, holds_max: 64 }
    }
}

impl Config {
    /// What is wrong with it, for a person.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.round_s.is_finite() || self.round_s <= 0.0 {
            return Err(format!("`round_s` is {}, but must be a number above 0", self.round_s));
        }
        match self.first_round_s {
            Some(first_s) if !first_s.is_finite() || first_s < 0.0 => {
                Err(format!("`first_round_s` is {first_s}, but must not be below 0"))
            }
            _ => Ok(()),
        }
    }
}
