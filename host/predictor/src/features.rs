//! Turns descriptors and allocations into the model's columns.

use coretuner_core::catalog::{InputKind, ModelDescriptor};

use crate::form::Place;
use crate::gpu;

/// Bytes in a MiB.
const MIB: f64 = 1_048_576.0;

/// The `job` columns of `descriptor`. Descriptors count only together: without activations or GMACs the kind's prior is
/// used.
pub(crate) fn job(descriptor: &ModelDescriptor) -> [f32; 9] {
    let is = |input: InputKind| f32::from(u8::from(descriptor.input == input));
    let (activations, gmacs, params) = match (descriptor.activations_m, descriptor.gmacs, descriptor.params_m) {
        (Some(activations), Some(gmacs), Some(params)) if activations > 0.0 => (activations, gmacs, params),
        (.., params) => (0.0, 0.0, params.unwrap_or(0.0)),
    };
    let flag = |known: bool| f32::from(u8::from(known));
    [
        is(InputKind::Image),
        is(InputKind::Audio),
        is(InputKind::Text),
        flag(activations > 0.0),
        activations as f32,
        gmacs as f32,
        params as f32,
        flag(params > 0.0),
        batch(descriptor) as f32,
    ]
}

/// Samples per GPU and iteration, at least 1.
pub(crate) fn batch(descriptor: &ModelDescriptor) -> f64 {
    f64::from(descriptor.batch_per_gpu.max(1))
}

/// The `gpu` columns of a GPU kind.
pub(crate) fn gpu(name: &str) -> [f32; 2] {
    let slowness = gpu::slowness(name);
    [slowness.log as f32, slowness.sd as f32]
}

/// An allocation in totals of the job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Allocation {
    pub gpus: u32,
    pub nodes: u32,
    pub cpu_milli: u32,
    pub memory_mib: u32,
}

/// What the model sees of `allocation`; `None` without GPUs or CPU.
///
/// Fetching: the part of the data set that does not fit in memory comes from storage again in every epoch, at
/// `storage_mib_per_s` for each GPU. Nothing is fetched when the descriptor does not say how large the data set is.
pub(crate) fn place(descriptor: &ModelDescriptor, allocation: &Allocation, storage_mib_per_s: f64) -> Option<Place> {
    if allocation.gpus == 0 || allocation.cpu_milli == 0 {
        return None;
    }
    let gpus = f64::from(allocation.gpus);
    let fetch_s = match (descriptor.bytes_per_sample, descriptor.dataset_mib) {
        (Some(bytes), Some(dataset)) if dataset > 0 && storage_mib_per_s > 0.0 => {
            let missing = 1.0 - f64::from(allocation.memory_mib) / f64::from(dataset);
            bytes / (storage_mib_per_s * MIB) * missing.max(0.0)
        }
        _ => 0.0,
    };
    let cores_per_gpu = f64::from(allocation.cpu_milli) / 1000.0 / gpus;
    Some(Place { cores_per_gpu, gpus, nodes: f64::from(allocation.nodes.max(1)), fetch_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resnet18() -> ModelDescriptor {
        ModelDescriptor {
            name: "resnet18".to_owned(),
            input: InputKind::Image,
            activations_m: Some(2.48),
            gmacs: Some(1.82),
            params_m: Some(11.7),
            batch_per_gpu: 512,
            bytes_per_sample: Some(MIB),
            dataset_mib: Some(1000),
        }
    }

    #[test]
    fn describes_jobs() {
        let check = |descriptor: ModelDescriptor, expected: [f32; 9]| assert_eq!(job(&descriptor), expected);
        check(resnet18(), [1.0, 0.0, 0.0, 1.0, 2.48, 1.82, 11.7, 1.0, 512.0]);
        check(ModelDescriptor { gmacs: None, ..resnet18() }, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 11.7, 1.0, 512.0]);
        check(ModelDescriptor::default(), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn divides_cores_and_fetches_what_memory_lacks() {
        let check = |gpus, nodes, cpu_milli, memory_mib, expected: Option<(f64, f64)>| {
            let found = place(&resnet18(), &Allocation { gpus, nodes, cpu_milli, memory_mib }, 100.0);
            assert_eq!(found.map(|p| (p.cores_per_gpu, p.fetch_s)), expected);
        };
        check(1, 1, 3000, 1000, Some((3.0, 0.0)));
        check(4, 1, 6000, 500, Some((1.5, 0.005)));
        check(1, 1, 3000, 4000, Some((3.0, 0.0)));
        check(0, 0, 3000, 1000, None);
        check(1, 1, 0, 1000, None);
    }
}
