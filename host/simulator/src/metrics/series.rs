//! Cluster state over time in a bounded number of equal bins.

use coretuner_core::model::TimeNs;

use crate::result::{SERIES_POINTS_MAX, Sample};

/// Values of one moment, in [`Sample`]'s order without the time.
pub(crate) type Values = [f64; 6];

/// Bins start at a second each and double in width whenever there would be too many.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    start_ns: TimeNs,
    end_ns: TimeNs,
    width_ns: u64,
    /// Integrals (value × nanoseconds) by bin.
    bins: Vec<Values>,
}

impl Series {
    pub(crate) fn new(start_ns: TimeNs) -> Self {
        Self { start_ns, end_ns: start_ns, width_ns: 1_000_000_000, bins: Vec::new() }
    }

    /// `values` held from `from_ns` until `to_ns`.
    pub(crate) fn add(&mut self, from_ns: TimeNs, to_ns: TimeNs, values: &Values) {
        let (mut at, end) = (from_ns - self.start_ns, to_ns - self.start_ns);
        while end.div_ceil(self.width_ns) > SERIES_POINTS_MAX as u64 {
            self.halve();
        }
        self.end_ns = to_ns;
        while at < end {
            let bin = (at / self.width_ns) as usize;
            let until = end.min((bin as u64 + 1) * self.width_ns);
            if self.bins.len() <= bin {
                self.bins.resize(bin + 1, Values::default());
            }
            for (sum, value) in self.bins[bin].iter_mut().zip(values) {
                *sum += value * (until - at) as f64;
            }
            at = until;
        }
    }

    fn halve(&mut self) {
        self.width_ns *= 2;
        let sum = |pair: &[Values]| std::array::from_fn(|index| pair.iter().map(|bin| bin[index]).sum());
        self.bins = self.bins.chunks(2).map(sum).collect();
    }

    /// Means by bin.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        let sample = |(bin, sums): (usize, &Values)| {
            let from = bin as u64 * self.width_ns;
            let width = self.width_ns.min(self.end_ns - self.start_ns - from) as f64;
            let [gpus, effective, cores, useful, running, waiting] = sums.map(|sum| sum / width);
            Sample {
                t_s: (self.start_ns + from) as f64 / 1e9,
                gpus_allocated: gpus,
                gpus_effective: effective,
                cpu_cores_allocated: cores,
                cpu_cores_useful: useful,
                jobs_running: running,
                jobs_waiting: waiting,
            }
        };
        self.bins.iter().enumerate().map(sample).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn means_survive_doubling() {
        let mut series = Series::new(5 * SECOND);
        series.add(5 * SECOND, 7 * SECOND, &[4.0; 6]);
        series.add(7 * SECOND, 8 * SECOND, &[1.0; 6]);
        assert_eq!(series.samples().iter().map(|sample| sample.gpus_allocated).collect::<Vec<_>>(), [4.0, 4.0, 1.0]);
        series.add(8 * SECOND, 4005 * SECOND, &[2.0; 6]);
        let samples = series.samples();
        assert_eq!(samples.len(), 2000);
        assert_eq!((samples[0].t_s, samples[0].jobs_waiting, samples[1].jobs_waiting), (5.0, 4.0, 1.5));
        let total: f64 = samples.iter().map(|sample| sample.gpus_allocated * 2.0).sum();
        assert!((total - (8.0 + 1.0 + 3997.0 * 2.0)).abs() < 1e-6, "{total}");
    }

    #[test]
    fn a_last_part_of_a_bin_is_a_mean_of_its_own() {
        let mut series = Series::new(0);
        series.add(0, SECOND / 2, &[3.0; 6]);
        assert_eq!(series.samples()[0].jobs_running, 3.0);
    }
}
