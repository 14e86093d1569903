//! Means of paired ratios with confidence intervals.

/// Two-sided 95 % quantiles of Student's t by degrees of freedom from 1 on (any table of the distribution).
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// Beyond the table: that of the normal distribution, within 4 %.
const NORMAL_95: f64 = 1.960;

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    /// None from less than two values.
    pub(crate) interval: Option<(f64, f64)>,
}

/// The geometric mean; NaN of nothing.
pub(crate) fn geometric_mean(values: &[f64]) -> f64 {
    libm::exp(mean(&logs(values)))
}

/// The geometric mean of paired ratios, with the interval of Student's t on their logarithms: a ratio and its inverse
/// are then equally far from 1.
pub(crate) fn of_ratios(ratios: &[f64]) -> Estimate {
    let logs = logs(ratios);
    let mean = mean(&logs);
    let interval = half_width(&logs, mean).map(|half| (libm::exp(mean - half), libm::exp(mean + half)));
    Estimate { mean: libm::exp(mean), interval }
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| libm::log(*value)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn half_width(values: &[f64], mean: f64) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let quantile = T_95.get(freedom - 1).copied().unwrap_or(NORMAL_95);
    Some(quantile * libm::sqrt(squares / freedom as f64 / values.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometric_means() {
        let check = |values: &[f64], expected: f64| assert!((geometric_mean(values) - expected).abs() < 1e-12);
        check(&[4.0], 4.0);
        check(&[1.0, 4.0, 16.0], 4.0);
        check(&[0.5, 2.0], 1.0);
        assert!(geometric_mean(&[]).is_nan());
    }

    #[test]
    fn intervals_are_those_of_student() {
        // Logarithms 0, 1, 2: mean 1, sample deviation 1, so the half width is 4.303 / sqrt 3.
        let e = libm::exp(1.0);
        let found = of_ratios(&[1.0, e, e * e]);
        let (low, high) = found.interval.expect("three values");
        assert!((found.mean - e).abs() < 1e-12);
        assert!((libm::log(low) - (1.0 - 4.303 / libm::sqrt(3.0))).abs() < 1e-9);
        assert!((libm::log(high) - (1.0 + 4.303 / libm::sqrt(3.0))).abs() < 1e-9);
    }

    #[test]
    fn one_value_says_nothing_about_its_spread() {
        assert_eq!(of_ratios(&[1.0]), Estimate { mean: 1.0, interval: None });
        assert_eq!(of_ratios(&[2.0, 2.0]).interval.map(|(low, high)| high - low), Some(0.0));
    }

    #[test]
    fn many_values_take_the_normal_distribution() {
        let values: Vec<f64> = (0..200).map(|at| if at % 2 == 0 { 1.0 } else { 1.1 }).collect();
        let (low, high) = of_ratios(&values).interval.expect("many values");
        let deviation = libm::log(1.1) / 2.0 * libm::sqrt(200.0 / 199.0);
        assert!((libm::log(high / low) - 2.0 * 1.960 * deviation / libm::sqrt(200.0)).abs() < 1e-9);
    }
}
