//! What a store carries: limits of memory, and what the guest said and keeps on the host's side.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use wasmtime::ResourceLimiter;

use crate::engine::{Mode, PolicyEngine};
use crate::grants::Capability;
use crate::host::predict::PredictSession;
use crate::host::{JobDetails, Services};
use crate::kv::KvSession;
use crate::limits::Limits;
use crate::shape::ComponentShape;

/// Data of one store.
pub(crate) struct Guest {
    pub(crate) engine: PolicyEngine,
    pub(crate) memory: MemoryLimiter,
    pub(crate) log: LogBook,
    pub(crate) metrics: MetricBook,
    pub(crate) kv: KvSession,
    pub(crate) predict: PredictSession,
    pub(crate) details: Option<Arc<dyn JobDetails>>,
    /// Engine tick at which the running call ends; moves while the host works for the guest.
    pub(crate) deadline_tick: u64,
}

impl Guest {
    pub(crate) fn new(engine: &PolicyEngine, name: &str, shape: &ComponentShape, services: &Services) -> Self {
        let limits = engine.limits();
        let predictor = services.predictor.clone().filter(|_| shape.imports(Capability::Predict));
        Self {
            engine: engine.clone(),
            memory: MemoryLimiter::new(limits),
            log: LogBook::new(name, limits),
            metrics: MetricBook::default(),
            kv: KvSession::new(services.kv.clone(), name.to_owned()),
            predict: PredictSession::new(predictor, shape.imports(Capability::Predict)),
            details: services.job_details.clone(),
            deadline_tick: 0,
        }
    }

    pub(crate) fn metered(&self) -> bool {
        self.engine.mode() == Mode::Metered
    }

    /// Starts a call: allowances per cycle are whole again, writes that nobody committed are gone.
    pub(crate) fn begin_call(&mut self) {
        self.log.begin_cycle();
        self.kv.discard();
        self.predict.begin_cycle();
    }
}

/// The guest asked for more than it may have. Raised as an error, so that the fault carries a guest backtrace.
#[derive(Debug, thiserror::Error)]
#[error("the policy asked for {asked} {unit} of memory, {limit} are allowed")]
pub(crate) struct MemoryCap {
    asked: u64,
    limit: u64,
    unit: &'static str,
}

/// Counts linear memory and tables of one store.
pub(crate) struct MemoryLimiter {
    bytes: u64,
    bytes_max: u64,
    elements_max: u64,
}

impl MemoryLimiter {
    fn new(limits: &Limits) -> Self {
        Self { bytes: 0, bytes_max: limits.memory_bytes, elements_max: limits.table_elements }
    }

    /// Linear memory of all the store's instances.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let asked = self.bytes.saturating_sub(current as u64).saturating_add(desired as u64);
        if asked > self.bytes_max {
            return Err(wasmtime::Error::new(MemoryCap { asked, limit: self.bytes_max, unit: "bytes" }));
        }
        self.bytes = asked;
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired as u64 > self.elements_max {
            let cap = MemoryCap { asked: desired as u64, limit: self.elements_max, unit: "table elements" };
            return Err(wasmtime::Error::new(cap));
        }
        Ok(true)
    }
}

/// How urgent a message is; names are the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Passes messages on to `tracing`, within bounds, and keeps the last ones for fault reports.
pub(crate) struct LogBook {
    policy: String,
    tail: VecDeque<String>,
    tail_max: usize,
    line_max: usize,
    cycle_max: u64,
    /// Bytes left in this cycle.
    left: u64,
    dropped: u64,
}

impl LogBook {
    fn new(policy: &str, limits: &Limits) -> Self {
        Self {
            policy: policy.to_owned(),
            tail: VecDeque::new(),
            tail_max: Limits::size(limits.log_tail_lines),
            line_max: Limits::size(limits.log_line_bytes),
            cycle_max: limits.log_bytes_per_cycle,
            left: limits.log_bytes_per_cycle,
            dropped: 0,
        }
    }

    fn begin_cycle(&mut self) {
        self.left = self.cycle_max;
    }

    /// Messages dropped because a cycle logged too much.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn write(&mut self, level: Level, mut message: String) {
        cut(&mut message, self.line_max);
        // Errors always reach the tail: a panic's text must not be lost to a flood before it.
        let bytes = message.len() as u64;
        if bytes > self.left && level != Level::Error {
            self.dropped += 1;
            return;
        }
        if bytes <= self.left {
            self.left -= bytes;
            self.emit(level, &message);
        } else {
            self.dropped += 1;
        }
        while self.tail.len() >= self.tail_max.max(1) {
            self.tail.pop_front();
        }
        self.tail.push_back(message);
    }

    /// The last lines, oldest first.
    pub(crate) fn tail(&self) -> Vec<String> {
        self.tail.iter().cloned().collect()
    }

    fn emit(&self, level: Level, message: &str) {
        let policy = self.policy.as_str();
        match level {
            Level::Error => tracing::error!(target: "coretuner::policy", policy, "{message}"),
            Level::Warn => tracing::warn!(target: "coretuner::policy", policy, "{message}"),
            Level::Info => tracing::info!(target: "coretuner::policy", policy, "{message}"),
            Level::Debug => tracing::debug!(target: "coretuner::policy", policy, "{message}"),
            Level::Trace => tracing::trace!(target: "coretuner::policy", policy, "{message}"),
        }
    }
}

/// Shortens a text to at most `max` bytes at a character's edge.
pub(crate) fn cut(text: &mut String, max: usize) {
    if text.len() > max {
        let edge = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(edge);
        text.push('…');
    }
}

/// Metric series of a policy.
#[derive(Debug, Default)]
pub(crate) struct MetricBook {
    series: BTreeMap<String, f64>,
    dropped: u64,
}

impl MetricBook {
    pub(crate) fn gauge(&mut self, limits: &Limits, name: String, value: f64) {
        if let Some(slot) = self.slot(limits, name, value) {
            *slot = value;
        }
    }

    pub(crate) fn count(&mut self, limits: &Limits, name: String, increment: f64) {
        if let Some(slot) = self.slot(limits, name, increment) {
            *slot += increment;
        }
    }

    /// Current values, in name order.
    pub(crate) fn values(&self) -> Vec<(String, f64)> {
        self.series.iter().map(|(name, value)| (name.clone(), *value)).collect()
    }

    /// Writes refused: too many series, too long a name or no number.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    fn slot(&mut self, limits: &Limits, name: String, value: f64) -> Option<&mut f64> {
        let known = self.series.contains_key(&name);
        let fits = known || (self.series.len() as u64) < limits.metric_series;
        if !fits || !value.is_finite() || name.len() as u64 > limits.metric_name_bytes {
            self.dropped += 1;
            return None;
        }
        Some(self.series.entry(name).or_insert(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_flood_is_cut_and_the_last_error_kept() {
        let limits = Limits { log_bytes_per_cycle: 10, log_line_bytes: 6, log_tail_lines: 2, ..Limits::default() };
        let mut log = LogBook::new("p", &limits);
        for text in ["one", "two", "ééééé", "four"] {
            log.write(Level::Info, text.into());
        }
        log.write(Level::Error, "panic".into());
        assert_eq!(log.tail(), ["four", "panic"]);
        assert_eq!(log.dropped(), 2);
        log.begin_cycle();
        log.write(Level::Info, "again".into());
        assert_eq!(log.tail(), ["panic", "again"]);
    }

    #[test]
    fn texts_are_cut_at_characters() {
        let check = |text: &str, max: usize, expected: &str| {
            let mut text = text.to_owned();
            cut(&mut text, max);
            assert_eq!(text, expected);
        };
        check("abc", 3, "abc");
        check("abcd", 3, "abc…");
        check("éé", 3, "é…");
        check("é", 1, "…");
    }

    #[test]
    fn metrics_are_bounded() {
        let limits = Limits { metric_series: 2, metric_name_bytes: 4, ..Limits::default() };
        let mut book = MetricBook::default();
        book.gauge(&limits, "a".into(), 1.0);
        book.count(&limits, "b".into(), 1.0);
        book.count(&limits, "b".into(), 2.0);
        book.gauge(&limits, "c".into(), 1.0);
        book.gauge(&limits, "a".into(), f64::NAN);
        book.gauge(&limits, "a2345".into(), 1.0);
        assert_eq!(book.values(), [("a".to_owned(), 1.0), ("b".to_owned(), 3.0)]);
        assert_eq!(book.dropped(), 3);
    }

    #[test]
    fn memory_is_counted_over_all_of_a_store() {
        let mut limiter = MemoryLimiter::new(&Limits { memory_bytes: 100, table_elements: 3, ..Limits::default() });
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(limiter.memory_growing(0, 30, None).unwrap());
        assert!(limiter.memory_growing(60, 70, None).unwrap());
        let error = limiter.memory_growing(70, 71, None).unwrap_err();
        assert!(error.downcast_ref::<MemoryCap>().is_some());
        assert_eq!(limiter.bytes(), 100);
        assert!(limiter.table_growing(0, 3, None).unwrap());
        assert!(limiter.table_growing(3, 4, None).is_err());
    }
}
