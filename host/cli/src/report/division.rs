//! How one node's CPU cores are divided among its jobs over time.

use std::collections::BTreeMap;

use coretuner_simulator::result::{JobOutcome, Segment};

use super::plot::{Axis, Frame, Size, fill_class};
use crate::format::digits;

/// Intervals drawn at most; a busier node is shown from the start until that many.
const INTERVALS_MAX: usize = 400;

/// What one node did.
pub(crate) struct Division<'a> {
    pub(crate) node: u32,
    /// Time shown, seconds.
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    /// Whether the node went on after `to_s`.
    pub(crate) cut: bool,
    segments: Vec<&'a Segment>,
}

/// The node with the most changes, so that there is something to see; the lowest id among equals.
pub(crate) fn busiest(segments: &[Segment]) -> Option<Division<'_>> {
    let mut changes: BTreeMap<u32, usize> = BTreeMap::new();
    for segment in segments {
        *changes.entry(segment.node).or_default() += 1;
    }
    let (node, _) = changes.into_iter().max_by_key(|(node, count)| (*count, std::cmp::Reverse(*node)))?;
    let mut on_node: Vec<&Segment> = segments.iter().filter(|segment| segment.node == node).collect();
    on_node.sort_by(|a, b| a.from_s.total_cmp(&b.from_s).then(a.job.cmp(&b.job)));
    let cut = on_node.len() > INTERVALS_MAX;
    on_node.truncate(INTERVALS_MAX);
    let from_s = on_node.first()?.from_s;
    let last_start = on_node.last()?.from_s;
    let end_s = on_node.iter().map(|segment| segment.to_s).fold(from_s, f64::max);
    let to_s = if cut { last_start.max(from_s + 1.0) } else { end_s };
    Some(Division { node, from_s, to_s, cut, segments: on_node })
}

/// Stacked cores per job; the colour of a job stays, hues repeat.
pub(crate) fn draw(size: Size, division: &Division<'_>, jobs: &[JobOutcome], cores: f64) -> String {
    let label = format!("CPU cores of node {}", division.node);
    let high = cores.max(peak(&division.segments));
    let span = division.to_s - division.from_s;
    let x = Axis::time(span, size.ticks(), "time since the first job on the node");
    let mut frame = Frame::new(size, 300.0, 54.0, x, Axis::numbers(high * 1.04, 5, &label));
    for block in stack(&division.segments, division.to_s) {
        let (x0, x1) = (frame.px(block.from_s - division.from_s), frame.px(block.to_s - division.from_s));
        let (y0, y1) = (frame.py(block.low), frame.py(block.high));
        let title = title(jobs, block.job, block.high - block.low);
        let class = format!("block {}", fill_class(block.job as usize));
        frame.svg.rect((x0, y1), (x1 - x0, y0 - y1), &class, Some(&title));
    }
    frame.line(&[(0.0, cores), (span, cores)], "capacity", "capacity");
    frame.svg.finish(&label)
}

fn title(jobs: &[JobOutcome], id: u32, cores: f64) -> String {
    let found = jobs.binary_search_by_key(&id, |job| job.id).ok().and_then(|at| jobs.get(at));
    match found {
        Some(job) => format!("{} ({}, {} GPU): {} cores", job.name, job.model, job.gpus, digits(cores)),
        None => format!("job {id}: {} cores", digits(cores)),
    }
}

#[derive(Debug, PartialEq)]
struct Block {
    job: u32,
    from_s: f64,
    to_s: f64,
    low: f64,
    high: f64,
}

/// Between two changes, jobs stand on each other in order of their ids; a block that goes on unchanged is one.
fn stack(segments: &[&Segment], until_s: f64) -> Vec<Block> {
    let mut times: Vec<f64> = segments.iter().flat_map(|segment| [segment.from_s, segment.to_s.min(until_s)]).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: BTreeMap<u32, usize> = BTreeMap::new();
    for (from_s, to_s) in times.iter().zip(times.iter().skip(1)) {
        let mut active: Vec<&&Segment> =
            segments.iter().filter(|segment| segment.from_s <= *from_s && segment.to_s >= *to_s).collect();
        active.sort_by_key(|segment| segment.job);
        let mut low = 0.0;
        for segment in active {
            let high = low + segment.cpu_cores;
            let before = open.get(&segment.job).and_then(|at| blocks.get_mut(*at));
            match before {
                Some(block) if block.to_s == *from_s && block.low == low && block.high == high => block.to_s = *to_s,
                _ => {
                    open.insert(segment.job, blocks.len());
                    blocks.push(Block { job: segment.job, from_s: *from_s, to_s: *to_s, low, high });
                }
            }
            low = high;
        }
    }
    blocks
}

fn peak(segments: &[&Segment]) -> f64 {
    let ends = segments.iter().map(|segment| segment.from_s);
    ends.map(|at| {
        let held = segments.iter().filter(|segment| segment.from_s <= at && segment.to_s > at);
        held.map(|segment| segment.cpu_cores).sum::<f64>()
    })
    .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(job: u32, node: u32, from_s: f64, to_s: f64, cpu_cores: f64) -> Segment {
        Segment { job, node, from_s, to_s, gpus: 1.0, cpu_cores, memory_gib: 1.0, relative_speed: 1.0 }
    }

    #[test]
    fn stacks_jobs_without_overlap() {
        let segments = [segment(1, 0, 0.0, 4.0, 3.0), segment(2, 0, 1.0, 2.0, 5.0)];
        let blocks = stack(&segments.iter().collect::<Vec<_>>(), 4.0);
        let block = |job, from_s, to_s, low, high| Block { job, from_s, to_s, low, high };
        assert_eq!(blocks, [block(1, 0.0, 4.0, 0.0, 3.0), block(2, 1.0, 2.0, 3.0, 8.0)]);
    }

    #[test]
    fn shows_the_node_with_most_changes() {
        let segments = [segment(1, 7, 0.0, 1.0, 1.0), segment(2, 3, 0.0, 1.0, 1.0), segment(2, 3, 1.0, 2.0, 2.0)];
        assert_eq!(busiest(&segments).map(|division| division.node), Some(3));
        assert!(busiest(&[]).is_none());
    }
}
