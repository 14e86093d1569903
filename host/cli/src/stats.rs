//! Means, paired differences and their 95 % intervals.

/// How an interval was made; names what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum IntervalKind {
    /// Student's t over the seeds' differences.
    PairedTOverSeeds,
    /// Percentile bootstrap over the jobs of one run, fixed seed.
    PairedBootstrapOverJobs,
}

/// A relative difference to the baseline with its interval; 0.1 = 10 % more.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Paired {
    pub(crate) relative: f64,
    /// 95 % interval, low and high; `None` where one run gives none.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) kind: Option<IntervalKind>,
}

/// Resamples of the bootstrap.
pub(crate) const BOOTSTRAP_RESAMPLES: usize = 2_000;
/// Seed of the bootstrap: the same input gives the same interval.
const BOOTSTRAP_SEED: u64 = 0x636f_7265_7475_6e65;

/// Arithmetic mean; NaN of nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample standard deviation; `None` below two values.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre) * (value - centre)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Half of the 95 % interval of the mean; `None` below two values.
pub(crate) fn half_width(values: &[f64]) -> Option<f64> {
    let spread = deviation(values)?;
    Some(t_975(values.len() - 1) * spread / (values.len() as f64).sqrt())
}

/// Mean over seeds of (value − baseline) / baseline, with a paired-t interval from two seeds on. Seeds whose baseline is
/// zero or not finite give no ratio and are left out.
pub(crate) fn paired_over_seeds(values: &[f64], baseline: &[f64]) -> Paired {
    let ratios: Vec<f64> = values
        .iter()
        .zip(baseline)
        .filter(|(value, base)| value.is_finite() && base.is_finite() && **base != 0.0)
        .map(|(value, base)| (value - base) / base)
        .collect();
    let relative = mean(&ratios);
    let interval = half_width(&ratios).map(|half| (relative - half, relative + half));
    Paired { relative, interval, kind: interval.map(|_| IntervalKind::PairedTOverSeeds) }
}

/// Σ value / Σ baseline − 1 over jobs that both runs have, with a percentile bootstrap interval over those jobs.
pub(crate) fn paired_over_jobs(pairs: &[(f64, f64)]) -> Paired {
    let relative = ratio_of_sums(pairs.iter().copied());
    if pairs.len() < 2 || !relative.is_finite() {
        return Paired { relative, interval: None, kind: None };
    }
    let mut random = SplitMix(BOOTSTRAP_SEED);
    let mut resampled: Vec<f64> = (0..BOOTSTRAP_RESAMPLES)
        .map(|_| ratio_of_sums((0..pairs.len()).filter_map(|_| pairs.get(random.below(pairs.len())).copied())))
        .filter(|ratio| ratio.is_finite())
        .collect();
    resampled.sort_by(f64::total_cmp);
    let interval = quantile(&resampled, 0.025).zip(quantile(&resampled, 0.975));
    Paired { relative, interval, kind: interval.map(|_| IntervalKind::PairedBootstrapOverJobs) }
}

/// Quantile `q` of ascending values, linear between neighbours; `None` of nothing.
pub(crate) fn quantile(ascending: &[f64], q: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = ascending.get(at.floor() as usize)?;
    let above = ascending.get(at.ceil() as usize)?;
    Some(below + (above - below) * (at - at.floor()))
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom: a table up to 30, above it the Cornish–Fisher
/// expansion around the normal quantile (error below 1e-4).
fn t_975(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604,
        2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518,
        2.0484, 2.0452, 2.0423,
    ];
    const Z: f64 = 1.959_963_985;
    if let Some(value) = freedom.checked_sub(1).and_then(|at| TABLE.get(at)) {
        return *value;
    }
    let n = freedom as f64;
    let (z3, z5) = (Z * Z * Z, Z * Z * Z * Z * Z);
    Z + (z3 + Z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * n * n)
}

fn ratio_of_sums(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (values, baselines) = pairs.fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
    values / baselines - 1.0
}

/// SplitMix64 (Steele, Lea and Flood 2014): small, seeded, the same everywhere.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `0..bound` by multiplication; the bias is below `bound` / 2^64.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64, tolerance: f64) {
        assert!((left - right).abs() <= tolerance, "{left} is not {right} within {tolerance}");
    }

    #[test]
    fn knows_students_quantiles() {
        let check = |freedom: usize, expected: f64| close(t_975(freedom), expected, 2e-4);
        check(1, 12.7062);
        check(4, 2.7764);
        check(30, 2.0423);
        check(31, 2.0395);
        check(60, 2.0003);
        check(120, 1.9799);
    }

    #[test]
    fn gives_the_textbook_interval() {
        let values = [4.0, 5.0, 6.0, 7.0];
        close(mean(&values), 5.5, 1e-12);
        close(deviation(&values).unwrap(), 1.290_994, 1e-6);
        close(half_width(&values).unwrap(), 3.1824 * 1.290_994 / 2.0, 1e-4);
        assert_eq!(half_width(&[1.0]), None);
    }

    #[test]
    fn pairs_seeds() {
        let paired = paired_over_seeds(&[90.0, 160.0], &[100.0, 200.0]);
        close(paired.relative, -0.15, 1e-12);
        let half = 12.7062 * 0.05;
        close(paired.interval.unwrap().0, -0.15 - half, 1e-4);
        assert_eq!(paired.kind, Some(IntervalKind::PairedTOverSeeds));
        assert_eq!(paired_over_seeds(&[90.0], &[100.0]).interval, None);
        assert!(paired_over_seeds(&[1.0], &[0.0]).relative.is_nan());
    }

    #[test]
    fn bootstraps_the_same_interval_each_time() {
        let pairs: Vec<(f64, f64)> = (1..=50).map(|n| (f64::from(n) * 0.8 + f64::from(n % 7), f64::from(n))).collect();
        let first = paired_over_jobs(&pairs);
        assert_eq!(first, paired_over_jobs(&pairs));
        let (low, high) = first.interval.unwrap();
        assert!(low < first.relative && first.relative < high, "{first:?}");
        let constant: Vec<(f64, f64)> = (1..=50).map(|n| (f64::from(n) * 0.5, f64::from(n))).collect();
        let (low, high) = paired_over_jobs(&constant).interval.unwrap();
        close(low, -0.5, 1e-12);
        close(high, -0.5, 1e-12);
    }

    #[test]
    fn interpolates_quantiles() {
        let check = |q: f64, expected: f64| close(quantile(&[1.0, 2.0, 4.0], q).unwrap(), expected, 1e-12);
        check(0.0, 1.0);
        check(0.5, 2.0);
        check(0.75, 3.0);
        check(1.0, 4.0);
        assert_eq!(quantile(&[], 0.5), None);
    }
}
