//! Seeded random numbers for the assignment rules and the workload generator.
//!
//! The streams are part of every result's identity, so the generator is written out here (SplitMix64 seeding
//! xoshiro256**, Blackman and Vigna, public domain): a library may change its streams or its distributions in any
//! release.

use libm::{log, pow};

/// xoshiro256** with draws that stay the same for ever.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// A stream for `seed`; `purpose` keeps the draws of different rules apart.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        let salt = purpose
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let mut mixer = seed ^ salt;
        Self { state: [split_mix(&mut mixer), split_mix(&mut mixer), split_mix(&mut mixer), split_mix(&mut mixer)] }
    }

    /// Uniform over all 64-bit values.
    pub(crate) fn bits(&mut self) -> u64 {
        let result = self.state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = self.state[1] << 17;
        self.state[2] ^= self.state[0];
        self.state[3] ^= self.state[1];
        self.state[1] ^= self.state[2];
        self.state[0] ^= self.state[3];
        self.state[2] ^= shifted;
        self.state[3] = self.state[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in [low, high).
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Exponential with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -log(1.0 - self.unit()) * mean
    }

    /// 10 to the power of a uniform draw from [low, high).
    pub(crate) fn power_of_ten(&mut self, low: f64, high: f64) -> f64 {
        pow(10.0, self.between(low, high))
    }

    /// Index drawn with these weights; the last one if they are all zero.
    pub(crate) fn weighted(&mut self, weights: &[u32]) -> usize {
        let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        let mut left = self.unit() * total;
        for (index, weight) in weights.iter().enumerate() {
            left -= f64::from(*weight);
            if left < 0.0 {
                return index;
            }
        }
        weights.len().saturating_sub(1)
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_the_published_first_values() {
        let mut state = 1_234_567;
        let first = [split_mix(&mut state), split_mix(&mut state), split_mix(&mut state)];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn streams_depend_on_seed_and_purpose() {
        let draw = |seed, purpose| Random::new(seed, purpose).bits();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
    }

    #[test]
    fn draws_have_the_right_means() {
        let mut random = Random::new(7, "means");
        let mean = |draw: &mut dyn FnMut() -> f64| (0..20_000).map(|_| draw()).sum::<f64>() / 20_000.0;
        assert!((mean(&mut || random.unit()) - 0.5).abs() < 0.01);
        assert!((mean(&mut || random.exponential(3.0)) - 3.0).abs() < 0.1);
        let thirds = mean(&mut || f64::from(u8::from(random.weighted(&[20, 70, 10]) == 1)));
        assert!((thirds - 0.7).abs() < 0.02, "{thirds}");
    }
}
