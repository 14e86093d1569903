//! How a time grows with a size.

/// Exponent b of y ≈ a · x^b by least squares on logarithms; NaN where it is not defined.
pub(crate) fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (libm::log(*x), libm::log(*y))).collect();
    let count = logs.len() as f64;
    let mean_x = logs.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logs.iter().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logs.iter().map(|(x, _)| (x - mean_x) * (x - mean_x)).sum();
    covariance / variance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_of_powers_are_found() {
        let check = |power: f64| {
            let points: Vec<(f64, f64)> = [16.0, 100.0, 5_000.0].map(|x| (x, 3.0 * libm::pow(x, power))).to_vec();
            assert!((exponent(&points) - power).abs() < 1e-9, "{power}");
        };
        [0.0, 0.5, 1.0, 1.1, 2.0].into_iter().for_each(check);
    }

    #[test]
    fn scatter_is_averaged() {
        let found = exponent(&[(1.0, 2.0), (1.0, 0.5), (4.0, 8.0), (4.0, 2.0)]);
        assert!((found - 1.0).abs() < 1e-12, "{found}");
        assert!(exponent(&[(1.0, 2.0)]).is_nan());
    }
}
