//! Who held what, when.

use coretuner_core::model::{Allocation, TimeNs};

use crate::result::Segment;

/// Collects segments until there are too many to be of use; then none are kept.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    limit: usize,
    kept: Option<Vec<Segment>>,
}

impl Segments {
    /// Keeps none at all with `limit` 0.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, kept: (limit > 0).then(Vec::new) }
    }

    /// `job` held `rows` from `from_ns` until `to_ns`.
    pub(crate) fn add(&mut self, job: u32, rows: &[Allocation], from_ns: TimeNs, to_ns: TimeNs, relative_speed: f64) {
        let Some(kept) = &mut self.kept else { return };
        if to_ns <= from_ns {
            return;
        }
        kept.extend(rows.iter().map(|row| Segment {
            job,
            node: row.node.0,
            from_s: from_ns as f64 / 1e9,
            to_s: to_ns as f64 / 1e9,
            gpus: f64::from(row.gpu_milli) / 1000.0,
            cpu_cores: f64::from(row.cpu_milli) / 1000.0,
            memory_gib: f64::from(row.memory_mib) / 1024.0,
            relative_speed,
        }));
        if kept.len() > self.limit {
            self.kept = None;
        }
    }

    /// In order of start, then job, then node.
    pub(crate) fn finish(self) -> Vec<Segment> {
        let mut segments = self.kept.unwrap_or_default();
        segments.sort_by(|a, b| a.from_s.total_cmp(&b.from_s).then(a.job.cmp(&b.job)).then(a.node.cmp(&b.node)));
        segments
    }
}
