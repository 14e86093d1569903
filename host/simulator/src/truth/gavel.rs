//! Gavel's measured steps per second by GPU kind, number of GPUs and placement; the CPU axis is a rule.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::surface::Surface;

const STEPS: &str = include_str!("../../data/gavel_steps.csv");

/// Core-seconds per image of 224 x 224 pixels decoded and augmented on the CPU: the mean of the image models of
/// Synergy's Figure 2 (K per epoch / 1,281,167 images).
const CPU_CORE_S_PER_IMAGE: f64 = 3.27e-3;
/// CIFAR images have 32 x 32 pixels: 1/49 of the work.
const CPU_CORE_S_PER_SMALL_IMAGE: f64 = CPU_CORE_S_PER_IMAGE / 49.0;
/// Overlap of CPU and GPU time: the mean over the published curves.
const GAMMA: f64 = 5.3;

/// Steps per second of one job type, by (GPU kind, together on one node, GPUs).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GavelKind {
    steps_per_s: BTreeMap<(String, bool), BTreeMap<u32, f64>>,
    cpu_core_s: f64,
}

impl GavelKind {
    /// The table of `job_type`, for example `ResNet-50 (batch size 64)`.
    pub(crate) fn find(job_type: &str) -> Option<&'static Self> {
        tables().get(job_type)
    }

    /// Names of all job types.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        tables().keys().map(String::as_str)
    }

    /// Whether the tables know this GPU kind.
    pub(crate) fn knows_gpu(&self, gpu_kind: &str) -> bool {
        self.steps_per_s.contains_key(&(gpu_kind.to_owned(), true))
    }

    /// The job as a surface: seconds per step of the whole job with c cores per GPU.
    pub(crate) fn surface(&self, gpu_kind: &str, gpus: u32, together: bool) -> Option<Surface> {
        let rates = self.steps_per_s.get(&(gpu_kind.to_owned(), together))?;
        let rate = scaled_rate(rates, gpus.max(1))?;
        // g GPUs take g steps' samples in g/rate seconds, so K (per GPU and own step) shrinks with g as T_gpu does.
        let gpus = f64::from(gpus.max(1));
        Some(Surface { gpu_s: 1.0 / rate, cpu_core_s: self.cpu_core_s / gpus, gamma: GAMMA })
    }
}

/// Measured where measured; between two counts on a line; above the largest (and for types measured on one GPU only)
/// in proportion to GPUs.
fn scaled_rate(rates: &BTreeMap<u32, f64>, gpus: u32) -> Option<f64> {
    let (low_gpus, low) = rates.range(..=gpus).next_back()?;
    match rates.range(gpus..).next() {
        Some((high_gpus, high)) if high_gpus > low_gpus => {
            let part = f64::from(gpus - low_gpus) / f64::from(high_gpus - low_gpus);
            Some(low + part * (high - low))
        }
        _ => Some(low * f64::from(gpus) / f64::from(*low_gpus)),
    }
}

fn tables() -> &'static BTreeMap<String, GavelKind> {
    static TABLES: OnceLock<BTreeMap<String, GavelKind>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut tables = BTreeMap::new();
        for line in STEPS.lines().skip(1) {
            add_line(&mut tables, line);
        }
        tables
    })
}

/// The file is compiled in and checked by a test: a line that does not parse is left out here and caught there.
fn add_line(tables: &mut BTreeMap<String, GavelKind>, line: &str) -> Option<()> {
    let mut cells = line.split(',');
    let (gpu, placement, job_type) = (cells.next()?, cells.next()?, cells.next()?);
    let gpus: u32 = cells.next()?.parse().ok()?;
    let steps: f64 = cells.next()?.parse().ok()?;
    let kind = tables
        .entry(job_type.to_owned())
        .or_insert_with(|| GavelKind { steps_per_s: BTreeMap::new(), cpu_core_s: cpu_core_s(job_type) });
    kind.steps_per_s.entry((gpu.to_owned(), placement == "together")).or_default().insert(gpus, steps);
    Some(())
}

/// Rule R7: image pipelines cost CPU per image, all other inputs none.
fn cpu_core_s(job_type: &str) -> f64 {
    let batch = f64::from(batch_size(job_type));
    match model_name(job_type) {
        "ResNet-50" | "CycleGAN" => CPU_CORE_S_PER_IMAGE * batch,
        "ResNet-18" => CPU_CORE_S_PER_SMALL_IMAGE * batch,
        _ => 0.0,
    }
}

/// `ResNet-50` of `ResNet-50 (batch size 64)`.
pub(crate) fn model_name(job_type: &str) -> &str {
    job_type.split(" (").next().unwrap_or(job_type)
}

/// 64 of `ResNet-50 (batch size 64)`; 1 where the name has none.
pub(crate) fn batch_size(job_type: &str) -> u32 {
    let digits = job_type.rsplit("batch size ").next().unwrap_or("").trim_end_matches(')');
    digits.parse().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let cells: usize = tables().values().flat_map(|kind| kind.steps_per_s.values()).map(BTreeMap::len).sum();
        assert_eq!(cells, 492);
        assert_eq!(tables().len(), 26);
    }

    #[test]
    fn rates_are_measured_interpolated_or_proportional() {
        let kind = GavelKind::find("LM (batch size 80)").expect("in the table");
        let rate = |gpus| 1.0 / kind.surface("V100", gpus, true).expect("known").gpu_s;
        assert!((rate(1) - 28.239_955_1).abs() < 1e-6);
        assert!((rate(3) - (rate(2) + rate(4)) / 2.0).abs() < 1e-9);
        assert!((rate(16) - 2.0 * rate(8)).abs() < 1e-9);
        assert!(kind.surface("A100", 1, true).is_none());
        assert!(GavelKind::find("nothing").is_none());
    }

    #[test]
    fn job_types_are_taken_apart() {
        assert_eq!((model_name("A3C"), batch_size("A3C")), ("A3C", 1));
        assert_eq!(model_name("ResNet-50 (batch size 64)"), "ResNet-50");
        assert_eq!(batch_size("ResNet-50 (batch size 64)"), 64);
    }
}
