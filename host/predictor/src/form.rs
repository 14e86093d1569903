//! The closed form of a training step in double precision, with its derivative: what the model's graph computes, for the
//! host to calibrate with.
//!
//! θ = (log G, log K, log γ, log a_r, log a_n, log γ_net). Seconds per sample of one GPU are a soft maximum (sharpness γ)
//! of GPU work G, input pipeline K divided by cores, and fetching; seconds per step a soft maximum (sharpness γ_net) of
//! computing a batch and agreeing on gradients (a_r within a node, a_n across nodes).

use serde::Deserialize;

use crate::matrix::{N, Vector};

/// Bounds of θ, as in the graph.
const BOUNDS: [(f64, f64); N] = [
    (-25.0, 15.0),
    (-25.0, 15.0),
    (0.0, 2.995_732_273_553_991),
    (-25.0, 10.0),
    (-25.0, 10.0),
    (0.0, std::f64::consts::LN_10),
];
/// One GPU does not communicate: its network term is e^-80 of what it would be.
const ALONE: f64 = 80.0;
const FETCH_MIN_S: f64 = 1e-12;

/// Constants of the form, from the model's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Form {
    /// Growth of the network term per GPU beyond the second, within a node.
    pub growth_node: f64,
    /// The same across nodes.
    pub growth_nodes: f64,
    /// Standard deviation of a measurement's logarithm, within a node.
    pub sigma_node: f64,
    /// The same across nodes.
    pub sigma_nodes: f64,
}

/// An allocation, as the model sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    pub cores_per_gpu: f64,
    pub gpus: f64,
    pub nodes: f64,
    /// Seconds to fetch one sample from storage, 0 when it is cached.
    pub fetch_s: f64,
}

impl Place {
    /// The model's `place` columns.
    pub fn columns(&self) -> [f32; 4] {
        [self.cores_per_gpu as f32, self.gpus as f32, self.nodes as f32, self.fetch_s as f32]
    }
}

impl Form {
    /// log samples/s of the whole job, and its derivative by θ (0 for a parameter at or beyond its bounds).
    pub fn log_throughput(&self, theta: &Vector, place: &Place, batch: f64) -> (f64, Vector) {
        let mut t = *theta;
        let mut inside = [0.0; N];
        for (i, (low, high)) in BOUNDS.iter().enumerate() {
            inside[i] = f64::from(u8::from(t[i] > *low && t[i] < *high));
            t[i] = t[i].clamp(*low, *high);
        }
        let (gamma, gamma_net) = (libm::exp(t[2]), libm::exp(t[5]));
        let fetch = libm::log(place.fetch_s.max(FETCH_MIN_S));
        let sample = soft_max([t[0], t[1] - libm::log(place.cores_per_gpu), fetch], gamma);
        let across = place.nodes > 1.0;
        let log_batch = libm::log(batch);
        let step = soft_max([sample.top + log_batch, self.log_network(&t, place)], gamma_net);
        let [compute, network] = step.shares;
        let slope = [
            -compute * sample.shares[0],
            -compute * sample.shares[1],
            compute * sample.entropy / gamma,
            if across { 0.0 } else { -network },
            if across { -network } else { 0.0 },
            step.entropy / gamma_net,
        ];
        let value = libm::log(place.gpus) + log_batch - step.top;
        (value, std::array::from_fn(|i| slope[i] * inside[i]))
    }

    /// Standard deviation of a measurement's logarithm.
    pub fn sigma(&self, place: &Place) -> f64 {
        if place.nodes > 1.0 { self.sigma_nodes } else { self.sigma_node }
    }

    fn log_network(&self, t: &Vector, place: &Place) -> f64 {
        let more = (place.gpus - 2.0).max(0.0);
        let across = t[4] + libm::log1p(self.growth_nodes * more);
        let within = t[3] + libm::log1p(self.growth_node * more);
        let term = if place.nodes > 1.0 { across } else { within };
        if place.gpus > 1.0 { term } else { term - ALONE }
    }
}

struct SoftMax<const M: usize> {
    /// log(Σ e^(s·x))/s
    top: f64,
    /// What each term contributes to it.
    shares: [f64; M],
    entropy: f64,
}

fn soft_max<const M: usize>(terms: [f64; M], sharpness: f64) -> SoftMax<M> {
    let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers = terms.map(|x| libm::exp(sharpness * (x - most)));
    let sum: f64 = powers.iter().sum();
    let shares = powers.map(|p| p / sum);
    let entropy = -shares.iter().map(|w| w * libm::log(w.max(1e-30))).sum::<f64>();
    SoftMax { top: most + libm::log(sum) / sharpness, shares, entropy }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const FORM: Form = Form { growth_node: 0.14, growth_nodes: 0.023, sigma_node: 0.03, sigma_nodes: 0.12 };

    #[test]
    fn is_the_slower_of_its_parts() {
        let theta = [-7.0, -5.0, 2.9, -30.0, -30.0, 0.5];
        let check = |cores_per_gpu: f64, fetch_s: f64, expected: f64| {
            let place = Place { cores_per_gpu, gpus: 1.0, nodes: 1.0, fetch_s };
            let (value, _) = FORM.log_throughput(&theta, &place, 64.0);
            assert!((value - expected).abs() < 1e-3, "{value} {expected}");
        };
        check(24.0, 0.0, 7.0);
        check(1.0, 0.0, 5.0);
        check(24.0, libm::exp(-4.0), 4.0);
    }

    #[test]
    fn slope_is_the_derivative() {
        let theta = [-7.2, -5.7, 1.5, -3.0, -2.0, 0.6];
        let places = [(3.0, 1.0, 1.0, 0.0), (5.0, 4.0, 1.0, 2e-3), (2.0, 8.0, 2.0, 1e-3)];
        for (cores_per_gpu, gpus, nodes, fetch_s) in places {
            let place = Place { cores_per_gpu, gpus, nodes, fetch_s };
            let (_, slope) = FORM.log_throughput(&theta, &place, 32.0);
            for i in 0..N {
                let at = |step: f64| {
                    let mut moved = theta;
                    moved[i] += step;
                    FORM.log_throughput(&moved, &place, 32.0).0
                };
                let numeric = (at(1e-6) - at(-1e-6)) / 2e-6;
                assert!((slope[i] - numeric).abs() < 1e-7, "{i}: {} {numeric}", slope[i]);
            }
        }
    }
}
