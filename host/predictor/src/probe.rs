//! Which observation would tell most about a kind of job.

use crate::calibration::Belief;
use crate::form::{Form, Place};
use crate::matrix::{self, Matrix, Vector};

/// Below this standard deviation of log speed, averaged over the grid, another observation is not worth it.
const ENOUGH_SD: f64 = 0.05;
/// Points of a belief: as many as the model's graph uses.
const POINTS: usize = 16;

/// Index of the place in `grid` whose observation leaves the least variance of log speed, averaged over the grid and over
/// the points of the belief; `None` when the curve is known well enough.
///
/// One-step rule: an observation with slope j and noise σ changes a covariance Σ to Σ - Σj·jᵀΣ/(jᵀΣj + σ²).
pub(crate) fn best(form: &Form, belief: &Belief, grid: &[Place], batch: f64) -> Option<usize> {
    let covariance = matrix::squared(&belief.lower);
    let slopes_at = |theta: Vector| -> Vec<Vector> {
        grid.iter().map(|place| form.log_throughput(&theta, place, batch).1).collect()
    };
    let slopes: Vec<Vec<Vector>> = (0..POINTS).map(|s| slopes_at(point(belief, s))).collect();
    let known = slopes.iter().map(|s| mean_variance(&covariance, s)).sum::<f64>() / POINTS as f64;
    if known < ENOUGH_SD * ENOUGH_SD {
        return None;
    }
    let left = |(i, place): (usize, &Place)| -> f64 {
        let after =
            |s: &Vec<Vector>| s.get(i).map_or(0.0, |j| mean_variance(&updated(&covariance, j, form.sigma(place)), s));
        slopes.iter().map(after).sum()
    };
    let left: Vec<f64> = grid.iter().enumerate().map(left).collect();
    let least = left.iter().copied().fold(f64::INFINITY, f64::min);
    left.iter().position(|v| *v <= least)
}

/// μ + L·h for the `s`-th of the points h: columns 1 to 6 of an 8 × 8 Hadamard matrix, then their negatives.
fn point(belief: &Belief, s: usize) -> Vector {
    let sign = if s < POINTS / 2 { 1.0 } else { -1.0 };
    let h: Vector = std::array::from_fn(|j| if (s & (j + 1)).count_ones().is_multiple_of(2) { sign } else { -sign });
    let spread = matrix::times(&belief.lower, &h);
    std::array::from_fn(|i: usize| belief.mu[i] + spread[i])
}

fn updated(covariance: &Matrix, slope: &Vector, sigma: f64) -> Matrix {
    let moved = matrix::times(covariance, slope);
    let scale = matrix::dot(slope, &moved) + sigma * sigma;
    std::array::from_fn(|i| std::array::from_fn(|j| covariance[i][j] - moved[i] * moved[j] / scale))
}

fn mean_variance(covariance: &Matrix, slopes: &[Vector]) -> f64 {
    let total: f64 = slopes.iter().map(|s| matrix::dot(s, &matrix::times(covariance, s))).sum();
    total / slopes.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::tests::FORM;
    use crate::matrix::N;

    fn belief(sd_g: f64, sd_k: f64) -> Belief {
        let mut lower = [[0.0; N]; N];
        for (i, sd) in [sd_g, sd_k, 0.01, 1.0, 0.26, 0.4].into_iter().enumerate() {
            lower[i][i] = sd;
        }
        Belief { mu: [-7.65, -5.72, 1.67, -3.9, -2.2, 0.4], lower }
    }

    #[test]
    fn points_have_the_belief_s_mean_and_covariance() {
        let belief = belief(0.3, 0.5);
        for i in 0..N {
            let values: Vec<f64> = (0..POINTS).map(|s| point(&belief, s)[i] - belief.mu[i]).collect();
            let mean = values.iter().sum::<f64>() / POINTS as f64;
            let variance = values.iter().map(|v| v * v).sum::<f64>() / POINTS as f64;
            assert!(mean.abs() < 1e-12 && (variance - belief.lower[i][i].powi(2)).abs() < 1e-12);
        }
    }

    #[test]
    fn looks_where_the_doubt_is() {
        let cores = [1.0, 3.0, 6.0, 12.0, 24.0];
        let grid = cores.map(|cores_per_gpu| Place { cores_per_gpu, gpus: 1.0, nodes: 1.0, fetch_s: 0.0 });
        let check = |sd_g, sd_k, expected: &[Option<usize>]| {
            let found = best(&FORM, &belief(sd_g, sd_k), &grid, 512.0);
            assert!(expected.contains(&found), "{found:?} not in {expected:?}");
        };
        check(0.5, 0.01, &[Some(3), Some(4)]);
        check(0.01, 0.5, &[Some(0), Some(1)]);
        check(0.01, 0.01, &[None]);
    }
}
