//! Predicted speeds, discounted where nobody is sure of them.

use libm::{exp, log, sqrt};

/// Predicted speeds on a grid with the band in which each probably lies, in the surface's row-major order.
#[derive(Clone, Copy, Debug)]
pub struct Band<'a> {
    pub mean: &'a [f32],
    pub low: &'a [f32],
    pub high: &'a [f32],
}

impl Band<'_> {
    /// How unsure the ratio between the speeds at `index` and at `anchor` is: about its relative standard deviation.
    /// 0 where a band is unknown.
    ///
    /// A band also holds what shifts all speeds alike (an unknown absolute scale) and leaves ratios as they are. With
    /// h = ln(high/low)/2 and parts that are independent, h² = common² + own², so that √|h² − h_anchor²| is what the two
    /// do not share.
    pub fn doubt(&self, index: usize, anchor: usize) -> f64 {
        let half = |at: usize| {
            let (low, high) = (f64::from(*self.low.get(at)?), f64::from(*self.high.get(at)?));
            let known = low.is_finite() && high.is_finite() && low > 0.0 && high >= low;
            known.then(|| log(high / low) / 2.0)
        };
        match half(index).zip(half(anchor)) {
            Some((own, anchor)) => sqrt((own * own - anchor * anchor).abs()),
            None => 0.0,
        }
    }

    /// Mean speeds, each multiplied by exp(−`caution` × doubt of its ratio to the speed at `anchor`): what differs from a
    /// known allocation must be worth its risk. 0 = the means.
    pub fn cautious(&self, anchor: usize, caution: f64) -> Vec<f32> {
        let discounted = |(index, mean): (usize, &f32)| {
            if caution == 0.0 { *mean } else { (f64::from(*mean) * exp(-caution * self.doubt(index, anchor))) as f32 }
        };
        self.mean.iter().enumerate().map(discounted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bands e^∓half around a mean of 1.
    fn check(halves: &[f32], caution: f64, expected: &[f64]) {
        let low: Vec<f32> = halves.iter().map(|half| libm::expf(-half)).collect();
        let high: Vec<f32> = halves.iter().map(|half| libm::expf(*half)).collect();
        let mean = vec![1.0; halves.len()];
        let found = Band { mean: &mean, low: &low, high: &high }.cautious(0, caution);
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-4, "{found} is not {expected}");
        }
    }

    #[test]
    fn what_is_as_sure_as_the_anchor_is_not_discounted() {
        check(&[0.0, 0.0, 0.0], 1.0, &[1.0, 1.0, 1.0]);
        check(&[3.0, 3.0], 1.0, &[1.0, 1.0]);
    }

    #[test]
    fn more_doubt_discounts_more_in_either_direction() {
        check(&[0.03, 0.5], 1.0, &[1.0, 0.607_08]);
        check(&[0.03, 0.5], 0.5, &[1.0, 0.779_15]);
        check(&[0.03, 0.5], 0.0, &[1.0, 1.0]);
        // A common unknown scale (3), and at the anchor a part of its own (0.9).
        check(&[3.132_09, 3.0], 1.0, &[1.0, 0.4066]);
    }

    #[test]
    fn bands_that_say_nothing_leave_the_mean() {
        let nan = f32::NAN;
        let band = Band { mean: &[1.0, 2.0, nan], low: &[1.0, nan, 1.0], high: &[1.0, 3.0, 0.5] };
        let found = band.cautious(0, 1.0);
        assert!(found[..2] == [1.0, 2.0] && found[2].is_nan());
        assert_eq!(Band { mean: &[1.0], low: &[], high: &[] }.cautious(0, 1.0), [1.0]);
    }
}
