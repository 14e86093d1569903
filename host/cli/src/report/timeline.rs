//! Jobs from submission to finish: when each waited, and how fast it ran.

use std::collections::BTreeMap;

use coretuner_simulator::result::{JobOutcome, Segment};

use super::plot::{Anchor, Axis, Frame, Scale, Size};
use super::sampling::even_picks;
use crate::format::{TimeUnit, digits};

/// Rows drawn at most.
pub(crate) const ROWS_MAX: usize = 60;
const ROW: f64 = 11.0;

/// Jobs of the timeline: in order of submission; of more than [`ROWS_MAX`], evenly spaced ones.
pub(crate) fn sample(jobs: &[JobOutcome]) -> Vec<&JobOutcome> {
    let mut started: Vec<&JobOutcome> = jobs.iter().filter(|job| job.end != "never-schedulable").collect();
    started.sort_by(|a, b| a.submit_s.total_cmp(&b.submit_s).then(a.id.cmp(&b.id)));
    let picks = even_picks(started.len(), ROWS_MAX);
    picks.into_iter().filter_map(|at| started.get(at).copied()).collect()
}

/// One row per job. `end_s` is the end of the run.
pub(crate) fn draw(size: Size, rows: &[&JobOutcome], segments: &[Segment], end_s: f64) -> String {
    let x = Axis::time(end_s, size.ticks(), "time");
    let y = Axis { scale: Scale::from_zero(1.0), ticks: Vec::new(), label: "job (model, GPUs)".to_owned() };
    let left = if size == Size::Wide { 190.0 } else { 96.0 };
    let height = rows.len() as f64 * ROW + 74.0;
    let mut frame = Frame::new(size, height, left, x, y);
    let by_job = group(segments);
    for (at, job) in rows.iter().enumerate() {
        let row = frame.edges().2 + at as f64 * ROW + 2.0;
        let name = label(job, if size == Size::Wide { 30 } else { 15 });
        frame.svg.text((left - 7.0, row + 7.5), Anchor::End, "row-label", &name);
        draw_job(&mut frame, row, job, by_job.get(&job.id).map_or(&[], Vec::as_slice), end_s);
    }
    frame.svg.finish("Timeline of jobs")
}

fn draw_job(frame: &mut Frame, row: f64, job: &JobOutcome, segments: &[&Segment], end_s: f64) {
    let until = job.finish_s.unwrap_or(end_s);
    let (from, to) = (frame.px(job.submit_s), frame.px(until));
    frame.svg.rect((from, row + 3.0), (to - from, 2.0), "waiting", Some(&describe(job)));
    if segments.is_empty() {
        if let Some(start) = job.first_start_s {
            let x = frame.px(start);
            frame.svg.rect((x, row), (to - x, ROW - 3.0), "run-known", Some(&describe(job)));
        }
        return;
    }
    for segment in segments {
        let (x0, x1) = (frame.px(segment.from_s), frame.px(segment.to_s));
        let title = format!(
            "{}: node {}, {} GPU, {} cores, {} GiB, speed {}",
            job.name,
            segment.node,
            digits(segment.gpus),
            digits(segment.cpu_cores),
            digits(segment.memory_gib),
            digits(segment.relative_speed)
        );
        frame.svg.rect((x0, row), ((x1 - x0).max(0.6), ROW - 3.0), speed_class(segment.relative_speed), Some(&title));
    }
}

/// Speed against the proportional share, in three classes.
fn speed_class(relative: f64) -> &'static str {
    match relative {
        speed if !speed.is_finite() => "run-known",
        speed if speed < 0.95 => "run-slower",
        speed if speed > 1.05 => "run-faster",
        _ => "run-even",
    }
}

fn describe(job: &JobOutcome) -> String {
    let shown = |seconds: Option<f64>| {
        seconds.map_or("–".to_owned(), |s| {
            let unit = TimeUnit::for_max(s);
            format!("{} {}", unit.show(s), unit.symbol())
        })
    };
    let wait = job.first_start_s.map(|start| start - job.submit_s);
    format!("{} ({}, {} GPU): waited {}, done after {}", job.name, job.model, job.gpus, shown(wait), shown(job.jct_s))
}

fn label(job: &JobOutcome, letters: usize) -> String {
    let full = if job.model.is_empty() {
        format!("{} · {}", job.name, job.gpus)
    } else {
        format!("{} · {} · {}", job.name, job.model, job.gpus)
    };
    if full.chars().count() <= letters {
        return full;
    }
    let short = if job.model.is_empty() { &job.name } else { &job.model };
    let keep = letters.saturating_sub(5);
    let cut: String = if short.chars().count() > keep {
        short.chars().take(keep.saturating_sub(1)).chain(['…']).collect()
    } else {
        short.clone()
    };
    format!("{cut} · {}", job.gpus)
}

fn group(segments: &[Segment]) -> BTreeMap<u32, Vec<&Segment>> {
    let mut by_job: BTreeMap<u32, Vec<&Segment>> = BTreeMap::new();
    for segment in segments {
        by_job.entry(segment.job).or_default().push(segment);
    }
    by_job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_speeds() {
        let check = |speed: f64, expected: &str| assert_eq!(speed_class(speed), expected);
        check(0.5, "run-slower");
        check(1.0, "run-even");
        check(1.5, "run-faster");
        check(f64::NAN, "run-known");
    }
}
