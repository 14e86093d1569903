//! What an operator can set.

use coretuner_sdk::order::Las;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rank::Order;

/// Configuration of the CoreTuner policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which job goes first. All but `fifo` may preempt, at ticks.
    pub order: Order,
    /// For `las`: attained GPU-seconds at which a job falls to the next queue, rising.
    pub las_thresholds_gpu_s: Vec<f64>,
    /// Seconds between the moments at which a running job may be preempted for one that goes first. Starts and
    /// resizes do not wait for them.
    pub tick_s: f64,
    /// Hours A after which the key of `srtf`, `srsf` and `jsrsf` counts half, after 2A a third, and so on, from the
    /// submission. Bounds how long a job waits for shorter ones, at the cost of the mean. Absent: off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ageing_h: Option<f64>,
    /// How much longer, as a part of a waiting job's length, a running one must be to lose its place to it with `srtf`,
    /// `srsf` and `jsrsf`, beyond `restart_cost_s`: predictions of both may be off. Counts only where a restart costs
    /// something; a job that was (re)started less than `tick_s` ago is left alone there, too.
    pub preempt_margin: f64,
    /// Whether every job keeps at least the predicted speed of its proportional share of a node.
    pub floor: bool,
    /// Step in which CPU is handed out, thousandths of a core. Coarser where a node has more than `cpu_units_max` steps.
    pub cpu_quantum_milli: u32,
    /// Most CPU steps of a node: bounds the cost of dividing it.
    pub cpu_units_max: u32,
    /// Steps into which a node's memory is divided.
    pub memory_units: u32,
    /// Amounts of memory considered for a job, in proportional shares. 1 is always considered. Add amounts below 1 only
    /// with predictions that know what too little memory costs: a job whose data no longer fits can run ten times slower.
    pub memory_levels: Vec<f64>,
    /// How much an allocation counts for less than its predicted speed because the prediction is unsure: its speed is
    /// multiplied by exp(-`caution` × d), where d is about the relative standard deviation of its ratio to the speed at the
    /// proportional share. 0 = predictions are taken at their mean.
    pub caution: f64,
    /// Relative difference up to which two predicted speeds count as equal: what buys less is not bought, and the floor may
    /// be missed by that much.
    pub tolerance: f64,
    /// Most jobs that run at an allocation chosen to learn from, where predictions for their kind are unsure; 0 = none. A
    /// probe is a resize in place and ends with an observation.
    pub probes_max: u32,
    /// Longest time of a probe, seconds.
    pub probe_s: f64,
    /// Doubt of a kind's curve from which a probe is worth it: about the largest relative standard deviation of the ratio
    /// between a speed and the speed at the proportional share.
    pub probe_doubt_min: f64,
    /// Most exchanges or moves of running jobs per plan for a better division; 0 = running jobs stay.
    pub swaps_max: u32,
    /// Seconds of work that a moved job loses: a move must gain more within an hour, or within half the time that the
    /// job still has, if that is less.
    pub restart_cost_s: f64,
    /// Whether smaller jobs are moved together to make room for a gang that fits no node.
    pub room: bool,
    /// Least part of its speed on as few nodes as can hold it at which a gang is split over more, by prediction. Above 0, a
    /// gang also waits for whole nodes where those are expected sooner than a split would pay, prefers nodes of one link
    /// domain, rack or zone, and is brought together later where that pays. 0: split wherever GPUs are free.
    pub span_speed_min: f64,
    /// Whether places are preferred where free GPUs keep the CPU and memory that the jobs which usually come need beside
    /// them.
    pub spare_cpu: bool,
    /// Whether fast GPU kinds go to the jobs that gain most by them against their own speed on the slowest kind; else to
    /// who comes first.
    pub kinds_by_gain: bool,
    /// Whether jobs with more than one allowed number of workers get more of them while nobody waits who could use the
    /// GPUs, and give them back to those who wait.
    pub elastic: bool,
    /// Most running jobs whose number of workers changes per plan: each restarts.
    pub elastic_moves_max: u32,
    /// Least seconds between two changes of one job.
    pub elastic_gap_s: f64,
    /// Seconds that a gang of several GPUs waits before the nodes that are expected to have room for it first are kept for
    /// it: others start there only if they are predicted to end before. It then keeps its place at least as long as that.
    /// At most four gangs at once, and an eighth of all nodes. Bounds how long a stream of small jobs starves a large one. Absent: off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve_after_s: Option<f64>,
    /// Seconds for which an action that the host refused is not tried again.
    pub retry_s: f64,
    /// Most reasons for waiting told per cycle.
    pub holds_max: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            order: Order::Jsrsf,
            las_thresholds_gpu_s: Las::default().thresholds_gpu_s,
            tick_s: 300.0,
            ageing_h: None,
            preempt_margin: 0.1,
            floor: true,
            cpu_quantum_milli: 1000,
            cpu_units_max: 64,
            memory_units: 24,
            memory_levels: vec![1.0, 2.0, 3.0, 4.0],
            caution: 0.25,
            tolerance: 0.02,
            probes_max: 2,
            probe_s: 600.0,
            probe_doubt_min: 0.15,
            swaps_max: 4,
            restart_cost_s: 30.0,
            room: true,
            span_speed_min: 0.9,
            spare_cpu: true,
            kinds_by_gain: true,
            elastic: true,
            elastic_moves_max: 4,
            elastic_gap_s: 600.0,
            reserve_after_s: None,
            retry_s: 60.0,
            holds_max: 64,
        }
    }
}

impl Config {
    /// Whether a job may hold less memory than its share.
    pub(crate) fn goes_below_share(&self) -> bool {
        self.memory_levels.iter().any(|level| *level < 1.0)
    }

    /// What is wrong with it, for a person.
    pub(crate) fn check(&self) -> Result<(), String> {
        let positive = |name: &str, value: f64| {
            let fine = value.is_finite() && value > 0.0;
            if fine { Ok(()) } else { Err(format!("`{name}` is {value}, but must be a number above 0")) }
        };
        positive("tick_s", self.tick_s)?;
        positive("retry_s", self.retry_s)?;
        positive("probe_s", self.probe_s)?;
        positive("probe_doubt_min", self.probe_doubt_min)?;
        positive("cpu_quantum_milli", f64::from(self.cpu_quantum_milli))?;
        positive("cpu_units_max", f64::from(self.cpu_units_max))?;
        positive("memory_units", f64::from(self.memory_units))?;
        if self.cpu_units_max > 512 || self.memory_units > 512 {
            return Err("`cpu_units_max` and `memory_units` may be at most 512".to_owned());
        }
        let not_negative = |name: &str, value: f64| {
            let fine = value.is_finite() && value >= 0.0;
            if fine { Ok(()) } else { Err(format!("`{name}` is {value}, but must not be below 0")) }
        };
        not_negative("restart_cost_s", self.restart_cost_s)?;
        not_negative("elastic_gap_s", self.elastic_gap_s)?;
        not_negative("preempt_margin", self.preempt_margin)?;
        self.check_ageing()?;
        self.reserve_after_s.map_or(Ok(()), |after_s| positive("reserve_after_s", after_s))?;
        not_negative("caution", self.caution)?;
        if !(0.0..1.0).contains(&self.tolerance) {
            return Err(format!("`tolerance` is {}, but must be a number from 0 to below 1", self.tolerance));
        }
        if !(0.0..=1.0).contains(&self.span_speed_min) {
            return Err(format!("`span_speed_min` is {}, but must be between 0 and 1", self.span_speed_min));
        }
        self.las().check().map_err(|_| "`las_thresholds_gpu_s` must be positive and rising".to_owned())?;
        self.memory_levels.iter().try_for_each(|&level| positive("memory_levels", level))
    }

    fn check_ageing(&self) -> Result<(), String> {
        match self.ageing_h {
            Some(hours) if !(hours.is_finite() && hours > 0.0) => {
                Err(format!("`ageing_h` is {hours}, but must be a number above 0"))
            }
            Some(_) if !self.order.by_length() => {
                Err("`ageing_h` is set, but only the orders `srtf`, `srsf` and `jsrsf` age".to_owned())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid_and_survives_json() {
        let config = Config::default();
        assert_eq!(config.check(), Ok(()));
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
        assert_eq!(serde_json::from_str::<Config>("{}").unwrap(), config);
    }

    #[test]
    fn nonsense_is_refused_with_the_name_of_the_setting() {
        let check = |json: &str, part: &str| {
            let refusal = serde_json::from_str::<Config>(json).map_err(|error| error.to_string());
            let error = refusal.and_then(|config| config.check()).unwrap_err();
            assert!(error.contains(part), "{json}: {error}");
        };
        check(r#"{"tick_s": 0}"#, "tick_s");
        check(r#"{"cpu_quantum_milli": 0}"#, "cpu_quantum_milli");
        check(r#"{"memory_levels": [1, -2]}"#, "memory_levels");
        check(r#"{"restart_cost_s": -1}"#, "restart_cost_s");
        check(r#"{"preempt_margin": -0.1}"#, "preempt_margin");
        check(r#"{"ageing_h": 0}"#, "ageing_h");
        check(r#"{"reserve_after_s": 0}"#, "reserve_after_s");
        check(r#"{"ageing_h": 24, "order": "las"}"#, "ageing_h");
        check(r#"{"caution": -0.5}"#, "caution");
        check(r#"{"tolerance": 1}"#, "tolerance");
        check(r#"{"probe_s": 0}"#, "probe_s");
        check(r#"{"elastic_gap_s": -1}"#, "elastic_gap_s");
        check(r#"{"span_speed_min": 1.5}"#, "span_speed_min");
        check(r#"{"memory_units": 9999}"#, "512");
        check(r#"{"las_thresholds_gpu_s": [2, 1]}"#, "las_thresholds_gpu_s");
        check(r#"{"order": "random"}"#, "random");
        check(r#"{"tick": 1}"#, "tick");
    }
}
