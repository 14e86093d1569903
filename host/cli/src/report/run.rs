//! The report of one run.

use coretuner_simulator::result::RunResult;
use serde::Serialize;

use super::cdf::{self, Curve};
use super::usage::{self, Line};
use super::{division, escape, facts, page, timeline};
use crate::format::{TimeUnit, bytes, count, digits, percent};
use crate::table;

/// The whole page.
pub(crate) fn run_page(run: &RunResult) -> String {
    let title = format!("{} on {}", run.policy.name, run.workload.name);
    let mut body = format!(
        "<h1>{}</h1>\n<p class=\"lead\">Simulated run of policy {} {}, {}</p>\n",
        escape::html(&title),
        escape::html(&run.policy.name),
        escape::html(&run.policy.version),
        escape::html(&run.policy.digest)
    );
    body.push_str(&facts::warnings(std::iter::once((run.policy.name.clone(), run))));
    body.push_str(&headline(run));
    body.push_str(&facts::inputs(run));
    body.push_str("<h2>Figures</h2>\n");
    body.push_str(&figures_table(run));
    body.push_str("<h2>Plots</h2>\n");
    body.push_str(&curves(run));
    body.push_str(&gpu_usage(run));
    body.push_str(&inside(run));
    body.push_str(&facts::assumptions(run));
    page::document(&title, &body, &data(run))
}

/// CPU division and timeline of one run: also shown in comparisons.
pub(crate) fn inside(run: &RunResult) -> String {
    let mut out = cpu_usage(run);
    out.push_str(&node_division(run));
    out.push_str(&job_timeline(run));
    out
}

/// End of the run on the time axis.
pub(crate) fn end_s(run: &RunResult) -> f64 {
    let finishes = run.jobs.iter().filter_map(|job| job.finish_s);
    finishes.chain(run.series.last().map(|sample| sample.t_s)).fold(0.0, f64::max)
}

fn headline(run: &RunResult) -> String {
    let metrics = &run.metrics;
    let time = |seconds: f64| {
        let unit = TimeUnit::for_max(seconds);
        format!("{} {}", unit.show(seconds), unit.symbol())
    };
    page::tiles(&[
        ("mean JCT", time(metrics.jct_s.mean)),
        ("p99 JCT", time(metrics.jct_s.p99)),
        ("makespan", time(metrics.makespan_s)),
        ("GPU utilisation", format!("{} %", percent(metrics.gpu_utilisation))),
        ("CPU allocation", format!("{} %", percent(metrics.cpu_allocation))),
        ("jobs finished", format!("{} of {}", count(metrics.jobs_finished), count(metrics.jobs_counted))),
    ])
}

fn figures_table(run: &RunResult) -> String {
    let [times, cluster, decisions] = table::run_sections(run).map(|section| page::table(&section, false));
    format!("{times}<div class=\"pair\">{cluster}{decisions}</div>\n")
}

fn curves(run: &RunResult) -> String {
    let curves = [Curve::of(&run.policy.name, run.jobs.iter())];
    page::figure(
        "Job completion times",
        "Share of the finished jobs that are done within a time; the time axis is logarithmic.",
        "",
        |size| cdf::draw(size, &curves),
    )
}

fn gpu_usage(run: &RunResult) -> String {
    let lines = [
        Line::of("allocated", "thin s1 dash1", &run.series, |sample| sample.gpus_allocated),
        Line::of("effective", "s0", &run.series, |sample| sample.gpus_effective),
    ];
    usage_figure(
        "GPU utilisation over time",
        "Effective = held GPUs weighted by speed / best speed of their job on as many GPUs. Means within each interval drawn.",
        &lines,
        (run.workload.gpus as f64, end_s(run), "GPUs"),
    )
}

fn cpu_usage(run: &RunResult) -> String {
    let lines = [
        Line::of("allocated", "thin s1 dash1", &run.series, |sample| sample.cpu_cores_allocated),
        Line::of("turned into speed", "s2", &run.series, |sample| sample.cpu_cores_useful),
    ];
    usage_figure(
        "CPU cores over time",
        "Of a grant, what its job can turn into speed.",
        &lines,
        (run.workload.cpu_cores, end_s(run), "CPU cores"),
    )
}

/// A plot of lines over time with the capacity; `scale` is (capacity, end in seconds, label).
pub(crate) fn usage_figure(title: &str, caption: &str, lines: &[Line], scale: (f64, f64, &str)) -> String {
    let (capacity, end, label) = scale;
    let mut entries: Vec<_> = lines.iter().map(|line| (line.label.clone(), line.class.clone())).collect();
    entries.push(("capacity".to_owned(), "capacity".to_owned()));
    page::figure(title, caption, &page::legend(&entries), |size| usage::draw(size, lines, capacity, end, label))
}

fn node_division(run: &RunResult) -> String {
    let Some(found) = division::busiest(&run.segments) else {
        return "<p class=\"soft\">No division of cores: the run was too large to record what each job held.</p>\n"
            .to_owned();
    };
    let cores = if run.workload.nodes > 0 { run.workload.cpu_cores / run.workload.nodes as f64 } else { 0.0 };
    let mut caption = format!(
        "Node {} (the one with most changes): each block is a job, its height the cores that it holds. Dotted: mean cores of a node.",
        found.node
    );
    if found.cut {
        caption.push_str(" Only the first 400 intervals are drawn.");
    }
    page::figure("How one node's cores are divided", &caption, "", |size| {
        division::draw(size, &found, &run.jobs, cores)
    })
}

fn job_timeline(run: &RunResult) -> String {
    let rows = timeline::sample(&run.jobs);
    let mut caption = String::from("One row per job in order of submission; thin = waiting, thick = running.");
    if rows.len() < run.jobs.len() {
        caption.push_str(&format!(
            " {} of {} jobs, evenly spaced in order of submission.",
            rows.len(),
            count(run.jobs.len() as u64)
        ));
    }
    let legend = page::area_legend(&[
        ("waiting", "waiting"),
        ("slower than with a proportional share", "run-slower"),
        ("as fast", "run-even"),
        ("faster", "run-faster"),
    ]);
    page::figure("Timeline of jobs", &caption, &legend, |size| timeline::draw(size, &rows, &run.segments, end_s(run)))
}

/// What the page's data element holds: the result without its long lists.
#[derive(Serialize)]
struct Data<'a> {
    workload: &'a coretuner_simulator::result::WorkloadInfo,
    policy: &'a coretuner_simulator::result::PolicyInfo,
    predictor: &'a coretuner_core::port::PredictorIdentity,
    settings: &'a coretuner_simulator::result::SettingsInfo,
    metrics: &'a coretuner_simulator::result::Metrics,
    cycles: &'a coretuner_simulator::result::CycleStats,
    series: &'a [coretuner_simulator::result::Sample],
}

fn data(run: &RunResult) -> String {
    let data = Data {
        workload: &run.workload,
        policy: &run.policy,
        predictor: &run.predictor,
        settings: &run.settings,
        metrics: &run.metrics,
        cycles: &run.cycles,
        series: &run.series,
    };
    // Serialising plain structs to a string has no way to fail but a map with odd keys, which none has.
    serde_json::to_string(&data)
        .unwrap_or_else(|error| format!("{{\"error\":\"{}\"}}", escape::html(&error.to_string())))
}

/// Cost of decisions in words, for a caption.
pub(crate) fn decision_cost(run: &RunResult) -> String {
    let cycles = &run.cycles;
    format!(
        "{} cycles; fuel per decision mean {}, max {}; guest memory up to {}",
        count(cycles.cycles),
        digits(cycles.fuel.mean),
        digits(cycles.fuel.max),
        bytes(cycles.guest_memory_bytes_max)
    )
}

#[cfg(test)]
mod tests {
    use crate::fixture;

    #[test]
    fn is_one_file_that_loads_nothing() {
        let page = super::run_page(&fixture::run("coretuner", 1));
        for forbidden in ["http://", "https://", "src=", "@import", "url(", "<script>", "onload"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert!(page.contains("Timeline of jobs") && page.contains("</html>"));
    }

    #[test]
    fn untrusted_names_stay_text() {
        let mut run = fixture::run("coretuner", 1);
        run.jobs[0].name = "</script><img onerror=alert(1)>".to_owned();
        run.policy.name = "<script>x</script>".to_owned();
        run.cycles.first_fault = Some("<b>boom</b>".to_owned());
        run.cycles.fallback_cycles = 1;
        run.cycles.faults.insert("trap".to_owned(), 1);
        let page = super::run_page(&run);
        assert!(!page.contains("<img") && !page.contains("<script>x") && !page.contains("<b>boom"));
        assert!(page.contains("&lt;b&gt;boom&lt;/b&gt;"));
    }

    #[test]
    fn survives_an_empty_run() {
        let mut run = fixture::run("coretuner", 1);
        run.jobs.clear();
        run.segments.clear();
        run.series.clear();
        run.metrics = Default::default();
        assert!(!super::run_page(&run).contains("NaN"));
    }
}
