//! A parametric surface: GPU time and CPU time of an iteration overlap.

use libm::pow;

/// `T(c) = (T_gpu^γ + (K/c)^γ)^(1/γ)` seconds per iteration with c cores per GPU (our form; it fits Synergy's Figure 2
/// within 1.7 %).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Surface {
    /// T_gpu: seconds per iteration with CPU to spare.
    pub(crate) gpu_s: f64,
    /// K: core-seconds of the input pipeline per iteration and GPU; 0 = none.
    pub(crate) cpu_core_s: f64,
    /// γ ≥ 1: how well the two overlap; infinite = perfectly.
    pub(crate) gamma: f64,
}

/// Share of the best speed from which on more cores count as useless.
const USEFUL_SHARE: f64 = 0.99;

impl Surface {
    /// Seconds per iteration.
    pub(crate) fn iteration_s(&self, cores: f64) -> f64 {
        if self.cpu_core_s <= 0.0 {
            return self.gpu_s;
        }
        let cpu_s = self.cpu_core_s / cores.max(1e-9);
        let (long, short) = if cpu_s > self.gpu_s { (cpu_s, self.gpu_s) } else { (self.gpu_s, cpu_s) };
        long * pow(1.0 + pow(short / long, self.gamma), 1.0 / self.gamma)
    }

    /// Fewest cores that give [`USEFUL_SHARE`] of the best speed.
    pub(crate) fn useful_cores(&self) -> f64 {
        let ratio = pow(pow(1.0 / USEFUL_SHARE, self.gamma) - 1.0, 1.0 / self.gamma);
        self.cpu_core_s / (self.gpu_s * ratio)
    }

    /// The same surface in another unit of time.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self { gpu_s: self.gpu_s * factor, cpu_core_s: self.cpu_core_s * factor, ..self }
    }

    /// On a GPU that is `speed` times as fast.
    pub(crate) fn on_gpu(self, speed: f64) -> Self {
        Self { gpu_s: self.gpu_s / speed, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALEXNET: Surface = Surface { gpu_s: 335.0, cpu_core_s: 3927.0, gamma: 3.0 };

    #[test]
    fn the_figure_is_reproduced() {
        for (cores, epoch_s) in [(1.0, 3850.0), (3.0, 1360.0), (6.0, 690.0), (12.0, 410.0), (24.0, 350.0)] {
            let off = (ALEXNET.iteration_s(cores) / epoch_s - 1.0).abs();
            assert!(off < 0.05, "{cores} cores: {off}");
        }
    }

    #[test]
    fn more_cores_never_slow_a_job() {
        let times: Vec<f64> = (1..=100).map(|tenth| ALEXNET.iteration_s(f64::from(tenth) * 0.5)).collect();
        assert!(times.windows(2).all(|pair| pair[1] <= pair[0]));
        assert!(times.iter().all(|time| *time >= ALEXNET.gpu_s));
    }

    #[test]
    fn useful_cores_reach_nearly_all_speed() {
        let at = ALEXNET.iteration_s(ALEXNET.useful_cores());
        assert!((ALEXNET.gpu_s / at - USEFUL_SHARE).abs() < 1e-9);
        assert_eq!(Surface { cpu_core_s: 0.0, ..ALEXNET }.useful_cores(), 0.0);
    }
}
