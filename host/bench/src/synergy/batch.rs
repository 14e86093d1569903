//! Many runs at once.

use super::load::{Cell, workload};
use crate::error::Error;
use coretuner_simulator::workload::Workload;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A cell with one seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Task {
    pub(crate) cell: Cell,
    pub(crate) seed: u64,
}

/// Measures each cell with each seed, on all cores; outcomes by cell, then by seed. All that `measure` runs with one seed
/// sees the same jobs.
pub(crate) fn all<T: Send>(
    cells: &[Cell],
    seeds: std::ops::RangeInclusive<u64>,
    measure: impl Fn(&Task, &Workload) -> Result<T, Error> + Sync,
) -> Result<Vec<Vec<T>>, Error> {
    let tasks: Vec<Task> = cells.iter().flat_map(|&cell| seeds.clone().map(move |seed| Task { cell, seed })).collect();
    let done = AtomicUsize::new(0);
    // The longest runs are at the highest load: each task goes to the next free core, in order.
    let outcomes: Result<Vec<T>, Error> = tasks
        .par_iter()
        .with_max_len(1)
        .map(|task| {
            let outcome = measure(task, &workload(&task.cell, task.seed)?)?;
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            eprintln!("    {count} of {}: {}, seed {}", tasks.len(), task.cell.name(), task.seed);
            Ok(outcome)
        })
        .collect();
    let per_cell = tasks.len() / cells.len().max(1);
    let mut outcomes = outcomes?.into_iter();
    Ok(cells.iter().map(|_| outcomes.by_ref().take(per_cell).collect()).collect())
}
