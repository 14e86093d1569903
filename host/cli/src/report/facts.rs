//! What every report says of its inputs: workload, predictor, settings, assumptions, faults.

use coretuner_simulator::result::{RunResult, SettingsInfo};

use super::page;
use crate::format::{count, digits, plain};
use crate::metric::METRICS;

/// Workload, cluster, predictor and settings as pairs.
pub(crate) fn inputs(run: &RunResult) -> String {
    let workload = &run.workload;
    let cluster =
        format!("{} nodes, {} GPUs, {} cores", count(workload.nodes), count(workload.gpus), plain(workload.cpu_cores));
    let mut jobs = count(workload.jobs);
    if workload.never_schedulable > 0 {
        jobs.push_str(&format!(", {} of them never schedulable", count(workload.never_schedulable)));
    }
    page::facts(&[
        ("workload", workload.name.clone()),
        ("jobs", jobs),
        ("cluster", cluster),
        (
            "load",
            workload.load_jobs_per_hour.map_or("as in the trace".into(), |load| format!("{} jobs/h", digits(load))),
        ),
        ("ground truth of speed", run.settings.truth.clone()),
        ("prediction given to policies", format!("{}, {}", run.predictor.name, run.predictor.engine)),
        ("time", time(&run.settings)),
        ("costs", costs(&run.settings)),
        ("jobs counted", window(&run.settings)),
        ("trace digest", workload.digest.clone()),
        ("predictor digest", run.predictor.digest.clone()),
    ])
}

/// What was filled in, and what the figures mean.
pub(crate) fn assumptions(run: &RunResult) -> String {
    let mut out = String::from("<h2>Assumptions</h2>\n");
    if run.workload.assigned.is_empty() {
        out.push_str("<p>The trace has all that is needed; nothing was filled in.</p>\n");
    } else {
        out.push_str("<p>The trace lacks some facts. These rules, seeded and documented, filled them in:</p>\n");
        out.push_str(&page::list(&run.workload.assigned));
    }
    let meanings: Vec<String> = METRICS.iter().map(|metric| format!("{}: {}", metric.title, metric.about)).collect();
    out.push_str("<details><summary>What the figures mean</summary>\n");
    out.push_str(&page::list(&meanings));
    out.push_str("</details>\n");
    out
}

/// Loud lines about runs whose policy failed or whose jobs did not all finish; empty when there are none.
pub(crate) fn warnings<'a>(runs: impl Iterator<Item = (String, &'a RunResult)>) -> String {
    runs.flat_map(|(label, run)| crate::table::warnings(&label, run))
        .map(|line| format!("<div class=\"warning\" role=\"alert\">{}</div>\n", super::escape::html(&line)))
        .collect()
}

fn time(settings: &SettingsInfo) -> String {
    match settings.round_s {
        Some(round) => format!("{} of {} s", settings.mode, plain(round)),
        None => settings.mode.clone(),
    }
}

fn costs(settings: &SettingsInfo) -> String {
    format!(
        "restart {} s, resize {} s, placement penalty ×{}",
        plain(settings.restart_s),
        plain(settings.resize_s),
        plain(settings.placement_penalty)
    )
}

fn window(settings: &SettingsInfo) -> String {
    match settings.window {
        Some((first, last)) => format!("submissions {} to {}", count(first), count(last)),
        None => "all".to_owned(),
    }
}
