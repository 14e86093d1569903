//! Times both sides in turns and takes the fastest of many batches: what else runs here only ever adds.

use super::cluster::scene;
use crate::error::Error;
use crate::native::on_this_machine;
use crate::value::Value;
use coretuner_contract::cluster::Delta;
use coretuner_core::port::{Policy, Predictor};
use coretuner_policy_host::{CodeCache, Grants, Limits, LoadedPolicy, Mode, PolicyEngine, Services};
use coretuner_simulator::ProfilePredictor;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NODES: [u32; 2] = [1_000, 10_000];
/// Jobs that wait in each decision.
const WAITING: u32 = 4;
/// Batches per side.
const BATCHES: usize = 60;
/// A batch lasts at least so long.
const BATCH: Duration = Duration::from_millis(4);

/// An image, and what follows it in turns.
type Deltas<'a> = (&'a Delta, &'a [Delta]);

const RATIO_MAX: f64 = 1.25;
const CROSSING_US_MAX: f64 = 5.0;

/// Measures the whole figure.
pub(crate) fn measure(guests: &Path) -> Result<Vec<Value>, Error> {
    let engine = PolicyEngine::new(Mode::Production, Limits::default())?;
    let mut values = Vec::new();
    for nodes in NODES {
        let scene = scene(nodes, WAITING)?;
        let predictor: Arc<dyn Predictor> = Arc::new(ProfilePredictor::new(&scene.workload));
        let native = on_this_machine::<coretuner_policy_best_fit::BestFit>(&scene.workload, &predictor)?;
        let wasm = component(&engine, guests, "best-fit", &predictor)?;
        values.extend(decision("best-fit", nodes, (&scene.image, &scene.unchanged), wasm, native)?);
        let native = on_this_machine::<coretuner_policy_coretuner::CoreTuner>(&scene.workload, &predictor)?;
        let wasm = component(&engine, guests, "coretuner", &predictor)?;
        values.extend(decision("coretuner", nodes, (&scene.image, &scene.changing), wasm, native)?);
    }
    for nodes in NODES {
        let scene = scene(nodes, 0)?;
        let predictor: Arc<dyn Predictor> = Arc::new(ProfilePredictor::new(&scene.workload));
        let native = on_this_machine::<coretuner_policy_best_fit::BestFit>(&scene.workload, &predictor)?;
        let wasm = component(&engine, guests, "best-fit", &predictor)?;
        let (wasm, native) = race((&scene.image, &scene.unchanged), wasm, native)?;
        let label = format!("crossing, {nodes} nodes unchanged");
        values.push(Value::new(label, micros(wasm.saturating_sub(native)), "µs").at_most(CROSSING_US_MAX));
    }
    Ok(values)
}

fn decision(
    name: &str,
    nodes: u32,
    scene: Deltas<'_>,
    wasm: impl Policy,
    native: impl Policy,
) -> Result<[Value; 3], Error> {
    let (wasm, native) = race(scene, wasm, native)?;
    let ratio = wasm.as_secs_f64() / native.as_secs_f64();
    Ok([
        Value::new(format!("{name}, {nodes} nodes: Wasm / native"), ratio, "ratio").at_most(RATIO_MAX),
        Value::new(format!("{name}, {nodes} nodes: Wasm"), micros(wasm), "µs"),
        Value::new(format!("{name}, {nodes} nodes: native"), micros(native), "µs"),
    ])
}

fn component(
    engine: &PolicyEngine,
    guests: &Path,
    name: &str,
    predictor: &Arc<dyn Predictor>,
) -> Result<impl Policy + use<>, Error> {
    let path = guests.join(format!("{name}.wasm"));
    let failed = |source| Error::Load { path: path.clone(), source: Box::new(source) };
    let loaded = LoadedPolicy::from_file(engine, &path, &Grants::all(), &CodeCache::disabled()).map_err(failed)?;
    let services = Services { predictor: Some(Arc::clone(predictor)), ..Services::default() };
    loaded.instantiate("{}", services).map_err(failed)
}

/// Fastest time per decision of each side.
fn race(scene: Deltas<'_>, mut wasm: impl Policy, mut native: impl Policy) -> Result<(Duration, Duration), Error> {
    same_answers(scene, &mut wasm, &mut native)?;
    let calls = calls_per_batch(scene, &mut native)?.min(calls_per_batch(scene, &mut wasm)?);
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..BATCHES {
        best.0 = best.0.min(batch(scene, &mut wasm, calls)?);
        best.1 = best.1.min(batch(scene, &mut native, calls)?);
    }
    Ok(best)
}

/// Both sides must do the same work, or the comparison means nothing.
fn same_answers(scene: Deltas<'_>, wasm: &mut impl Policy, native: &mut impl Policy) -> Result<(), Error> {
    let (image, turns) = scene;
    for delta in std::iter::once(image).chain(turns) {
        let (one, other) = (wasm.decide(delta)?.plan, native.decide(delta)?.plan);
        if one != other {
            let detail = format!("{} against {} actions", one.actions.job.len(), other.actions.job.len());
            return Err(Error::Differs { policy: wasm.identity().name.clone(), detail });
        }
    }
    Ok(())
}

fn calls_per_batch(scene: Deltas<'_>, policy: &mut impl Policy) -> Result<u32, Error> {
    let one = batch(scene, policy, 3)?;
    let calls = BATCH.as_secs_f64() / one.as_secs_f64().max(1e-9);
    Ok((calls as u32).clamp(3, 5_000))
}

/// Time per decision over one batch.
fn batch(scene: Deltas<'_>, policy: &mut impl Policy, calls: u32) -> Result<Duration, Error> {
    let (image, turns) = scene;
    if policy.needs_image() {
        policy.decide(image)?;
    }
    // Whole turns only: the last delta leads back to where the first starts.
    let calls = calls.next_multiple_of(turns.len() as u32);
    let start = Instant::now();
    for delta in turns.iter().cycle().take(calls as usize) {
        std::hint::black_box(policy.decide(std::hint::black_box(delta))?);
    }
    Ok(start.elapsed() / calls)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
