//! Replaces the model's prior over θ by a posterior once a kind of job has been observed.
//!
//! A posterior is always fitted from the prior with every kept observation in a fixed order, so that the same set of
//! observations gives the same belief whatever the order in which they came.

use std::collections::{BTreeMap, VecDeque};

use coretuner_core::model::KindId;

use crate::form::{Form, Place};
use crate::matrix::{self, Matrix, N, Vector};

/// Observations kept of one kind on one GPU kind; older ones are forgotten.
const KEPT: usize = 64;
/// A prior whose log G is wider than this knows no absolute scale: the first observation sets it.
const SCALE_FREE_SD: f64 = 2.0;
/// Student-t noise: a straggler's weight shrinks with its residual.
const FREEDOM: f64 = 4.0;
const REWEIGHTS: usize = 8;
/// Gauss-Newton: most steps, smallest fall of the cost worth another, first damping and its bounds.
const STEPS: usize = 12;
const TOLERANCE: f64 = 1e-6;
const DAMPING: (f64, f64, f64) = (1e-3, 1e-6, 1e8);

/// A measured speed, in the units of a query: totals of the job.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub kind: KindId,
    pub gpu_kind: String,
    pub gpus: u32,
    pub nodes_spanned: u32,
    pub cpu_milli: u32,
    pub memory_mib: u32,
    /// Iterations/s of the whole job, averaged over at least 50 iterations: single ones scatter by 9 % and more.
    pub iterations_per_s: f64,
}

/// Why an observation was not taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ObserveError {
    #[error("kind {0} is not in the catalog")]
    UnknownKind(KindId),
    #[error("a speed of {0} iterations/s cannot be learned from; give a finite number above 0")]
    Speed(f64),
    #[error("an observation needs GPUs and CPU")]
    NoResources,
    #[error("the model gave no prior: {0}")]
    Prior(String),
    #[error("no belief fits the observations of kind {0}")]
    NoFit(KindId),
}

/// A Gaussian over θ: mean and lower factor of the covariance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Belief {
    pub mu: Vector,
    pub lower: Matrix,
}

impl Belief {
    /// From the model's columns.
    pub fn from_columns(mu: &[f32; 6], lower: &[f32; 21]) -> Self {
        let mut belief = Self { mu: mu.map(f64::from), lower: [[0.0; N]; N] };
        for ((i, j), value) in matrix::triangle().zip(lower) {
            belief.lower[i][j] = f64::from(*value);
        }
        belief
    }

    /// The model's columns `post_mu` and `post_l`.
    pub fn columns(&self) -> ([f32; 6], [f32; 21]) {
        let mut lower = [0.0; 21];
        for (cell, (i, j)) in lower.iter_mut().zip(matrix::triangle()) {
            *cell = self.lower[i][j] as f32;
        }
        (self.mu.map(|v| v as f32), lower)
    }
}

/// One observation, as the fit uses it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub place: Place,
    /// Natural logarithm of samples/s of the whole job.
    pub log_speed: f64,
}

impl Sample {
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let key = |s: &Self| [s.place.cores_per_gpu, s.place.gpus, s.place.nodes, s.place.fetch_s, s.log_speed];
        let pairs = key(self).into_iter().zip(key(other));
        pairs.map(|(a, b)| a.total_cmp(&b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    }
}

/// What has been learned of one kind on one GPU kind.
#[derive(Clone, Debug)]
pub(crate) struct Learned {
    pub belief: Belief,
    /// Observations taken so far, forgotten ones included.
    pub taken: u32,
    samples: VecDeque<Sample>,
}

/// Everything learned, by kind of job and GPU kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calibration {
    learned: BTreeMap<(KindId, String), Learned>,
}

impl Calibration {
    /// What was learned of a kind on a GPU product, if anything.
    pub fn get(&self, kind: KindId, gpu_kind: &str) -> Option<&Learned> {
        // A borrowed pair is no key of the map; a calibrated cluster has few GPU kinds.
        let of_kind = self.learned.range((kind, String::new())..).take_while(|((k, _), _)| *k == kind);
        of_kind.into_iter().find(|((_, gpu), _)| gpu == gpu_kind).map(|(_, learned)| learned)
    }

    /// Takes a sample and fits again from `prior`; `None`, and nothing changes, when no belief fits.
    pub fn add(
        &mut self,
        form: &Form,
        kind: KindId,
        gpu_kind: &str,
        prior: &Belief,
        sample: Sample,
        batch: f64,
    ) -> Option<()> {
        let before = self.get(kind, gpu_kind);
        let mut samples = before.map(|l| l.samples.clone()).unwrap_or_default();
        let taken = before.map_or(0, |l| l.taken).wrapping_add(1);
        samples.push_back(sample);
        while samples.len() > KEPT {
            samples.pop_front();
        }
        let mut sorted: Vec<Sample> = samples.iter().copied().collect();
        sorted.sort_by(Sample::order);
        let belief = fit(form, prior, &sorted, batch)?;
        self.learned.insert((kind, gpu_kind.to_owned()), Learned { belief, taken, samples });
        Some(())
    }
}

/// The posterior after `samples`, which are in a fixed order; `None` when the numbers leave the finite.
pub(crate) fn fit(form: &Form, prior: &Belief, samples: &[Sample], batch: f64) -> Option<Belief> {
    let first = samples.first()?;
    let mut mean = prior.mu;
    if prior.lower[0][0] > SCALE_FREE_SD {
        let shift = form.log_throughput(&mean, &first.place, batch).0 - first.log_speed;
        mean[0] += shift;
        mean[1] += shift;
    }
    let precision = matrix::inverse(&matrix::cholesky(&matrix::squared(&prior.lower))?);
    let variances: Vec<f64> = samples.iter().map(|s| form.sigma(&s.place).powi(2)).collect();
    let mut problem =
        Problem { form, samples, batch, mean, precision, weights: variances.iter().map(|v| 1.0 / v).collect() };
    let mut posterior = problem.solve()?;
    for _ in 1..REWEIGHTS {
        problem.weights =
            samples.iter().zip(&variances).map(|(s, v)| reweight(&problem, &posterior.mu, s, *v)).collect();
        posterior = problem.solve()?;
    }
    posterior.mu.iter().chain(posterior.lower.iter().flatten()).all(|v| v.is_finite()).then_some(posterior)
}

fn reweight(problem: &Problem<'_>, theta: &Vector, sample: &Sample, variance: f64) -> f64 {
    let residual = problem.residual(theta, sample);
    (FREEDOM + 1.0) / (FREEDOM + residual * residual / variance) / variance
}

/// A Gaussian prior and Gaussian noise of given weights around the form.
struct Problem<'a> {
    form: &'a Form,
    samples: &'a [Sample],
    batch: f64,
    mean: Vector,
    precision: Matrix,
    /// 1/variance of each sample.
    weights: Vec<f64>,
}

impl Problem<'_> {
    /// Mode and covariance, by Levenberg-damped Gauss-Newton from the prior's mean.
    fn solve(&self) -> Option<Belief> {
        let (mut damping, damping_min, damping_max) = DAMPING;
        let (mut theta, mut cost) = (self.mean, self.cost(&self.mean));
        for _ in 0..STEPS {
            let (curvature, slope) = self.linearise(&theta);
            let Some((next, lower_cost)) = self.step(&theta, cost, &curvature, &slope, &mut damping, damping_max)
            else {
                break;
            };
            let fall = cost - lower_cost;
            (theta, cost, damping) = (next, lower_cost, (damping / 3.0).max(damping_min));
            if fall < TOLERANCE {
                break;
            }
        }
        let (curvature, _) = self.linearise(&theta);
        let covariance = matrix::inverse(&matrix::cholesky(&curvature)?);
        Some(Belief { mu: theta, lower: matrix::cholesky(&covariance)? })
    }

    /// The first damped step that does not raise the cost; `None` when none does.
    fn step(
        &self,
        theta: &Vector,
        cost: f64,
        curvature: &Matrix,
        slope: &Vector,
        damping: &mut f64,
        most: f64,
    ) -> Option<(Vector, f64)> {
        while *damping <= most {
            let mut damped = *curvature;
            for (i, row) in damped.iter_mut().enumerate() {
                row[i] *= 1.0 + *damping;
            }
            let step = matrix::solve(&matrix::cholesky(&damped)?, slope);
            let next: Vector = std::array::from_fn(|i| theta[i] + step[i]);
            let next_cost = self.cost(&next);
            if next_cost <= cost {
                return Some((next, next_cost));
            }
            *damping *= 4.0;
        }
        None
    }

    /// Curvature P + JᵀWJ and slope -P(θ - μ) + JᵀW(y - f) of the cost's negative.
    fn linearise(&self, theta: &Vector) -> (Matrix, Vector) {
        let off: Vector = std::array::from_fn(|i| self.mean[i] - theta[i]);
        let (mut curvature, mut slope) = (self.precision, matrix::times(&self.precision, &off));
        for (sample, weight) in self.samples.iter().zip(&self.weights) {
            let (value, gradient) = self.form.log_throughput(theta, &sample.place, self.batch);
            let pull = weight * (sample.log_speed - value);
            for i in 0..N {
                slope[i] += gradient[i] * pull;
                for j in 0..N {
                    curvature[i][j] += weight * gradient[i] * gradient[j];
                }
            }
        }
        (curvature, slope)
    }

    fn cost(&self, theta: &Vector) -> f64 {
        let off: Vector = std::array::from_fn(|i| theta[i] - self.mean[i]);
        let noise = self.samples.iter().zip(&self.weights).map(|(s, w)| w * self.residual(theta, s).powi(2));
        0.5 * matrix::dot(&off, &matrix::times(&self.precision, &off)) + 0.5 * noise.sum::<f64>()
    }

    fn residual(&self, theta: &Vector, sample: &Sample) -> f64 {
        sample.log_speed - self.form.log_throughput(theta, &sample.place, self.batch).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::tests::FORM;

    /// Constants of a described image job (`models/throughput.json`, resnet18), network included.
    fn image() -> Belief {
        let mut lower = [[0.0; N]; N];
        for (i, sd) in [0.155, 0.123, 0.483, 1.2, 0.264, 0.4].into_iter().enumerate() {
            lower[i][i] = sd;
        }
        Belief { mu: [-7.6545, -5.7213, 1.672, -3.9, -2.27, 0.41], lower }
    }

    fn sample(cores_per_gpu: f64, samples_per_s: f64) -> Sample {
        let place = Place { cores_per_gpu, gpus: 1.0, nodes: 1.0, fetch_s: 0.0 };
        Sample { place, log_speed: libm::log(samples_per_s) }
    }

    fn predicted(belief: &Belief, cores: f64) -> f64 {
        FORM.log_throughput(&belief.mu, &sample(cores, 1.0).place, 512.0).0
    }

    #[test]
    fn observations_pull_the_curve_and_narrow_it() {
        let fitted = fit(&FORM, &image(), &[sample(1.0, 332.8), sample(12.0, 2228.1)], 512.0).expect("fits");
        assert!((predicted(&fitted, 1.0) - libm::log(332.8)).abs() < 0.01);
        assert!((predicted(&fitted, 12.0) - libm::log(2228.1)).abs() < 0.02);
        let variance = |b: &Belief, i: usize| matrix::squared(&b.lower)[i][i];
        assert!(variance(&fitted, 0) < variance(&image(), 0) && variance(&fitted, 1) < variance(&image(), 1));
    }

    #[test]
    fn the_order_of_observations_does_not_matter() {
        let kind = KindId(3);
        let samples = [sample(12.0, 2228.1), sample(1.0, 332.8), sample(3.0, 940.0)];
        let learn = |order: [usize; 3]| {
            let mut calibration = Calibration::default();
            for i in order {
                calibration.add(&FORM, kind, "V100", &image(), samples[i], 512.0).expect("fits");
            }
            let learned = calibration.get(kind, "V100").expect("learned");
            (learned.belief, learned.taken)
        };
        assert_eq!(learn([0, 1, 2]), learn([2, 0, 1]));
        assert!(Calibration::default().get(kind, "V100").is_none());
    }

    #[test]
    fn a_straggler_counts_little() {
        let truth = [(1.0, 332.8), (3.0, 942.0), (6.0, 1856.0), (12.0, 2228.1)];
        let clean: Vec<Sample> = truth.iter().map(|(c, s)| sample(*c, *s)).collect();
        let slow: Vec<Sample> = truth.iter().map(|(c, s)| sample(*c, if *c == 6.0 { s / 2.0 } else { *s })).collect();
        let error = |samples: &[Sample]| {
            let fitted = fit(&FORM, &image(), samples, 512.0).expect("fits");
            (predicted(&fitted, 6.0) - libm::log(1856.0)).abs()
        };
        assert!(error(&clean) < 0.05);
        assert!(error(&slow) < 0.12, "{}", error(&slow));
    }

    #[test]
    fn a_kind_without_a_scale_takes_it_from_the_first_observation() {
        let mut prior = image();
        prior.lower[0] = [3.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        prior.lower[1] = [3.0, 0.5, 0.0, 0.0, 0.0, 0.0];
        let knee = |b: &Belief| b.mu[1] - b.mu[0];
        let fitted = fit(&FORM, &prior, &[sample(3.0, 0.01)], 512.0).expect("fits");
        assert!((predicted(&fitted, 3.0) - libm::log(0.01)).abs() < 0.01);
        assert!((knee(&fitted) - knee(&prior)).abs() < 0.05);
    }

    #[test]
    fn old_observations_are_forgotten() {
        let mut calibration = Calibration::default();
        for i in 0..KEPT + 10 {
            calibration.add(&FORM, KindId(0), "", &image(), sample(1.0 + i as f64, 900.0), 512.0).expect("fits");
        }
        let learned = calibration.get(KindId(0), "").expect("learned");
        assert_eq!((learned.samples.len(), learned.taken), (KEPT, (KEPT + 10) as u32));
    }
}
