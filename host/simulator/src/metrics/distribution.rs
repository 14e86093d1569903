//! Figures of a sample.

use crate::result::Distribution;

/// Mean, median, p95, p99 and maximum; percentiles by linear interpolation between ranks. All 0 for an empty sample.
pub fn distribution(mut values: Vec<f64>) -> Distribution {
    if values.is_empty() {
        return Distribution::default();
    }
    values.sort_by(f64::total_cmp);
    Distribution {
        mean: values.iter().sum::<f64>() / values.len() as f64,
        median: percentile(&values, 0.5),
        p95: percentile(&values, 0.95),
        p99: percentile(&values, 0.99),
        max: percentile(&values, 1.0),
    }
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = share * (sorted.len() - 1) as f64;
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    let (low, part) = (rank as usize, rank.fract());
    if part == 0.0 { at(low) } else { at(low) + part * (at(low + 1) - at(low)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_small_samples() {
        let check = |values: &[f64], mean: f64, median: f64, p95: f64, max: f64| {
            let got = distribution(values.to_vec());
            assert_eq!((got.mean, got.median, got.max), (mean, median, max));
            assert!((got.p95 - p95).abs() < 1e-12, "{got:?}");
        };
        check(&[], 0.0, 0.0, 0.0, 0.0);
        check(&[7.0], 7.0, 7.0, 7.0, 7.0);
        check(&[4.0, 1.0, 3.0, 2.0], 2.5, 2.5, 3.85, 4.0);
    }
}
