//! How time and cost are modelled.

use crate::result::SettingsInfo;
use crate::truth::GroundTruth;

/// When cycles run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Mode {
    /// Whenever something happens.
    #[default]
    Events,
    /// At the boundaries of rounds only; what ends in between is told at the next boundary and holds its resources
    /// until then.
    Rounds {
        /// Length of a round.
        round_s: f64,
        /// First boundary; `None` = the first multiple of `round_s` that is not before the first arrival.
        first_round_s: Option<f64>,
        /// A round does `floor(round_s / seconds per iteration)` iterations and jobs end at its end (Synergy).
        whole_iterations: bool,
    },
}

/// Settings of a run. Times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// When cycles run.
    pub mode: Mode,
    /// No progress for so long after a rescale and after every start but the first; the job holds its resources.
    pub restart_s: f64,
    /// No progress for so long after a change of CPU or memory in place.
    pub resize_s: f64,
    /// Jobs by index of submission that the metrics count, first and last; `None` = all.
    pub window: Option<(u64, u64)>,
    /// The run ends when every counted job has ended: with a window, jobs after it only keep the cluster loaded.
    pub stop_after_window: bool,
    /// Segments are left out if there are more than so many.
    pub segments_max: usize,
    /// The run ends at this time at the latest.
    pub horizon_s: Option<f64>,
}

impl Default for Settings {
    /// Events, 30 s to restart, resizes free.
    fn default() -> Self {
        Self {
            mode: Mode::Events,
            restart_s: 30.0,
            resize_s: 0.0,
            window: None,
            stop_after_window: false,
            segments_max: 20_000,
            horizon_s: None,
        }
    }
}

impl Settings {
    /// First senseless setting, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let time = |name: &str, value: f64| {
            let good = (0.0..=1e9).contains(&value);
            if good { Ok(()) } else { Err(format!("{name} must be between 0 and 1e9 seconds, not {value}")) }
        };
        time("the restart cost", self.restart_s)?;
        time("the resize cost", self.resize_s)?;
        time("the horizon", self.horizon_s.unwrap_or(0.0))?;
        if let Mode::Rounds { round_s, first_round_s, .. } = self.mode {
            time("the first round", first_round_s.unwrap_or(0.0))?;
            if !(1e-3..=1e9).contains(&round_s) {
                return Err(format!("a round must take between 0.001 and 1e9 seconds, not {round_s}"));
            }
        }
        match self.window {
            Some((first, last)) if first > last => {
                Err(format!("the window's first job {first} comes after its last {last}"))
            }
            _ => Ok(()),
        }
    }

    /// For results.
    pub fn info(&self, truth: &GroundTruth) -> SettingsInfo {
        let (mode, round_s) = match self.mode {
            Mode::Events => ("events", None),
            Mode::Rounds { round_s, whole_iterations: false, .. } => ("rounds", Some(round_s)),
            Mode::Rounds { round_s, whole_iterations: true, .. } => ("rounds of whole iterations", Some(round_s)),
        };
        SettingsInfo {
            mode: mode.to_owned(),
            round_s,
            restart_s: self.restart_s,
            resize_s: self.resize_s,
            placement_penalty: truth.options.placement_penalty,
            truth: truth.describe(),
            window: self.window,
        }
    }

    pub(crate) fn counts(&self, index: usize) -> bool {
        self.window.is_none_or(|(first, last)| (first..=last).contains(&(index as u64)))
    }
}

/// Whole nanoseconds of a checked time.
pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
