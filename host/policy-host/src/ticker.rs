//! The thread that ticks an engine's epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wasmtime::Engine;

/// Ticks given and ticks that came too late.
#[derive(Debug, Default)]
pub(crate) struct Ticks {
    given: AtomicU64,
    missed: AtomicU64,
}

impl Ticks {
    /// Ticks since the engine was made.
    pub(crate) fn given(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }

    /// Ticks that were skipped because this thread did not run in time: the machine is short of CPU.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

/// Starts the ticking thread. It holds the engine only weakly and ends with it. Missed ticks are skipped, never made up
/// for: a burst of them would end calls that have hardly run.
#[expect(clippy::disallowed_methods, reason = "the ticker is a clock: it waits for nothing but time")]
pub(crate) fn start(engine: &Engine, tick: Duration) -> std::io::Result<Arc<Ticks>> {
    let ticks = Arc::new(Ticks::default());
    let weak = engine.weak();
    let shared = Arc::clone(&ticks);
    std::thread::Builder::new().name("policy-ticker".into()).spawn(move || {
        let mut last = Instant::now();
        loop {
            std::thread::sleep(tick);
            let Some(engine) = weak.upgrade() else { return };
            shared.missed.fetch_add(late_ticks(last.elapsed(), tick), Ordering::Relaxed);
            last = Instant::now();
            engine.increment_epoch();
            shared.given.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    Ok(ticks)
}

/// Whole ticks by which a sleep of one tick came late; one is forgiven, since a sleep always overshoots.
fn late_ticks(elapsed: Duration, tick: Duration) -> u64 {
    let ticks = elapsed.as_nanos() / tick.as_nanos().max(1);
    u64::try_from(ticks).unwrap_or(u64::MAX).saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_counted_in_whole_ticks() {
        let check = |elapsed_us: u64, expected: u64| {
            let tick = Duration::from_millis(1);
            assert_eq!(late_ticks(Duration::from_micros(elapsed_us), tick), expected, "{elapsed_us}");
        };
        check(1_050, 0);
        check(2_400, 0);
        check(3_000, 1);
        check(12_500, 10);
    }

    #[test]
    fn the_thread_ticks_and_ends_with_the_engine() {
        let engine = Engine::default();
        let ticks = start(&engine, Duration::from_millis(1)).unwrap();
        while ticks.given() < 3 {
            std::thread::yield_now();
        }
        drop(engine);
        while Arc::strong_count(&ticks) > 1 {
            std::thread::yield_now();
        }
    }
}
