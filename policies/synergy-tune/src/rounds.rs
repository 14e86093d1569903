//! When rounds are.

use crate::config::Config;

const SECOND_NS: f64 = 1e9;

/// Times of rounds: the first, then every so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    first_ns: u64,
    every_ns: u64,
    /// First round that was not held yet.
    next_ns: u64,
}

impl Rounds {
    pub(crate) fn new(config: &Config) -> Self {
        let ns = |seconds: f64| (seconds * SECOND_NS) as u64;
        let first_ns = ns(config.first_round_s.unwrap_or(0.0));
        Self { first_ns, every_ns: ns(config.round_s).max(1), next_ns: first_ns }
    }

    /// Whether a round is due; if so the next one is after `now_ns`. Rounds that were missed are not made up for.
    pub(crate) fn due(&mut self, now_ns: u64) -> bool {
        if now_ns < self.next_ns {
            return false;
        }
        let held = (now_ns - self.first_ns) / self.every_ns;
        self.next_ns = self.first_ns.saturating_add((held + 1).saturating_mul(self.every_ns));
        true
    }

    /// The first time at or after `now_ns` at which one is due.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn check(first_round_s: Option<f64>, cycles_s: &[u64], expected: &[bool]) {
        let mut rounds = Rounds::new(&Config { first_round_s, ..Config::default() });
        let found: Vec<bool> = cycles_s.iter().map(|at_s| rounds.due(at_s * SECOND)).collect();
        assert_eq!(found, expected, "first at {first_round_s:?}");
    }

    #[test]
    fn a_round_is_held_once_and_missed_ones_are_not_made_up_for() {
        check(None, &[0, 1, 299, 300, 301, 1000, 1100, 1200], &[true, false, false, true, false, true, false, true]);
        check(Some(1.0), &[0, 1, 300, 301], &[false, true, false, true]);
    }
}
