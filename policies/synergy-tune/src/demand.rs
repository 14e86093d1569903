//! What a job asks for: its full demand by predicted speeds, and its proportional share.

/// CPU cores per GPU of Synergy's profiles.
pub(crate) const CORES: [u32; 9] = [1, 2, 3, 4, 5, 6, 9, 12, 24];

/// Memory per GPU of Synergy's profiles, in 24ths of a server: 20.83, 62.5, 125, 187.5 and 250 GB of 500.
pub(crate) const MEMORY_24THS: [u32; 5] = [1, 3, 6, 9, 12];

/// Speeds closer than this are the same: predictions are 32-bit floats.
const SAME_SPEED: f32 = 1e-5;

/// Totals on the profile grid for a job of `gpus` GPUs, as far as `servers` of `cpu_milli` and `memory_mib` hold them.
pub(crate) fn grid(gpus: u32, servers: u32, cpu_milli: u32, memory_mib: u32) -> (Vec<u32>, Vec<u32>) {
    let most = cpu_milli.saturating_mul(servers);
    let cores = CORES.iter().map(|cores| (cores * 1000).saturating_mul(gpus)).filter(|cpu| *cpu <= most).collect();
    let part = |units: u32| (u64::from(units * gpus) * u64::from(memory_mib) / 24) as u32;
    let fits = |units: &&u32| units.saturating_mul(gpus) <= servers.saturating_mul(24);
    (cores, MEMORY_24THS.iter().filter(fits).map(|units| part(*units)).collect())
}

/// The cheapest point of the grid (CPU, then memory) that reaches the highest speed of the grid, as indices; none when
/// nothing is known.
pub(crate) fn cheapest_peak(speed: &[f32], memories: usize) -> Option<(usize, usize)> {
    let peak = speed.iter().copied().filter(|speed| speed.is_finite()).fold(f32::NEG_INFINITY, f32::max);
    let at = speed.iter().position(|speed| *speed >= peak * (1.0 - SAME_SPEED))?;
    (peak > 0.0 && memories > 0).then(|| (at / memories, at % memories))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coretuner_sdk::solve::synergy::{MODELS, SERVER};

    #[test]
    fn the_full_demand_of_every_published_model_is_the_one_published() {
        let (cpu, memory) = grid(1, 1, SERVER.cpu * 1000, 512_000);
        for model in &MODELS {
            let cell = |row: usize, column: usize| model.cell(row, column) as f32;
            let speed: Vec<f32> =
                (0..CORES.len()).flat_map(|row| (0..5).map(move |column| cell(row, column))).collect();
            let (row, column) = cheapest_peak(&speed, 5).unwrap();
            let gb = f64::from(memory[column]) / 1024.0;
            // The tables say 20 GB for language models; the grid's least is 20.83.
            let same = (gb - model.best.1).abs() < 0.9;
            assert!(cpu[row] == model.best.0 * 1000 && same, "{}: {} milli, {gb} GB", model.name, cpu[row]);
        }
    }

    #[test]
    fn the_grid_of_a_gang_stays_within_the_servers_that_it_needs() {
        let (cpu, memory) = grid(4, 1, 24_000, 512_000);
        assert_eq!(cpu, [4000, 8000, 12_000, 16_000, 20_000, 24_000]);
        assert_eq!(memory, [85_333, 256_000, 512_000]);
        let (cpu, memory) = grid(16, 2, 24_000, 512_000);
        assert_eq!((cpu, memory), (vec![16_000, 32_000, 48_000], vec![341_333, 1_024_000]));
    }

    #[test]
    fn unknown_speeds_have_no_peak() {
        assert_eq!(cheapest_peak(&[f32::NAN, f32::NAN], 1), None);
        assert_eq!(cheapest_peak(&[], 1), None);
        assert_eq!(cheapest_peak(&[f32::NAN, 2.0, 1.0, 2.0], 2), Some((0, 1)));
    }
}
