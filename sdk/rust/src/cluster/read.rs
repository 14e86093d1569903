//! Reading cells of the wire tables, every access checked.

use std::ops::Range;

use coretuner_contract::NONE;
use coretuner_contract::cluster::AllocationRows;

use crate::cluster::{Allocation, ApplyError};
use crate::id::NodeId;

pub(super) type Result<T> = std::result::Result<T, ApplyError>;

/// Cell `i` of a column; the table's name is for the error.
pub(super) fn at<T: Copy>(table: &'static str, column: &[T], row: usize) -> Result<T> {
    column.get(row).copied().ok_or(ApplyError::Table { table, row })
}

pub(super) fn some(value: u32) -> Option<u32> {
    (value != NONE).then_some(value)
}

/// 0 stands for "none" in some columns.
pub(super) fn nonzero(value: u64) -> Option<u64> {
    (value != 0).then_some(value)
}

/// Rows `start .. start + count` of a table of `len` rows, named by row `row` of `table`.
pub(super) fn range(table: &'static str, start: u32, count: u32, len: usize, row: usize) -> Result<Range<usize>> {
    let (start, count) = (start as usize, count as usize);
    if count == 0 {
        return Ok(0..0);
    }
    start.checked_add(count).filter(|end| *end <= len).map(|end| start..end).ok_or(ApplyError::Table { table, row })
}

pub(super) fn allocation(rows: &AllocationRows, i: usize) -> Result<Allocation> {
    const T: &str = "allocations";
    at(T, &rows.job, i)?;
    Ok(Allocation {
        group: at(T, &rows.group, i)?,
        node: NodeId(at(T, &rows.node, i)?),
        workers: at(T, &rows.workers, i)?,
        cpu_milli: at(T, &rows.cpu_milli, i)?,
        memory_mib: at(T, &rows.memory_mib, i)?,
        gpu_milli: at(T, &rows.gpu_milli, i)?,
        device_mask: at(T, &rows.device_mask, i)?,
    })
}
