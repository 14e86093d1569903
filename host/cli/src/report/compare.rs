//! The report of a comparison.

use coretuner_simulator::result::RunResult;

use super::bars::{self, Bar, Unit};
use super::cdf::{self, Curve};
use super::usage::Line;
use super::{escape, facts, loads, page, run};
use crate::comparison::{Comparison, counted};
use crate::format::{count, plain};
use crate::metric::{Kind, Metric, by_key};
use crate::table::{self, Section};

/// Figures drawn as bars.
const BARS: [&str; 4] = ["jct_mean_s", "jct_p99_s", "makespan_s", "gpu_utilisation"];

/// The whole page.
pub(crate) fn comparison_page(comparison: &Comparison) -> String {
    let Some(first) = comparison.spokesman() else { return String::new() };
    let title = format!("{} policies on {}", comparison.labels.len(), first.workload.name);
    let mut body = format!("<h1>{}</h1>\n<p class=\"lead\">{}</p>\n", escape::html(&title), lead(comparison));
    body.push_str(&facts::warnings(comparison.cells.iter().map(|cell| (cell_label(comparison, cell), &cell.result))));
    body.push_str(&facts::inputs(first));
    for load in 0..comparison.loads.len() {
        body.push_str(&load_section(comparison, load));
    }
    if comparison.loads.len() > 1 {
        body.push_str(&loads::section(comparison));
    }
    body.push_str(&inside(comparison));
    body.push_str(&facts::assumptions(first));
    body.push_str(&policies(comparison));
    let data = serde_json::to_string(&comparison.document()).unwrap_or_default();
    page::document(&title, &body, &data)
}

fn lead(comparison: &Comparison) -> String {
    let seeds: Vec<String> = comparison.seeds.iter().map(u64::to_string).collect();
    let baseline = comparison.labels.get(comparison.baseline).map_or("", String::as_str);
    escape::html(&format!(
        "{} runs; seeds {}; differences are relative to {baseline}",
        count(comparison.cells.len() as u64),
        seeds.join(", ")
    ))
}

fn load_section(comparison: &Comparison, load: usize) -> String {
    let jobs_per_hour = comparison.loads.get(load).copied().flatten();
    let heading = jobs_per_hour.map_or("Comparison".to_owned(), |load| format!("At {} jobs per hour", plain(load)));
    let mut out = format!("<h2>{}</h2>\n", escape::html(&heading));
    for section in table::comparison_sections(comparison, load) {
        out.push_str(&page::table(&section, true));
    }
    out.push_str(&format!("<p class=\"soft\">{}</p>\n", escape::html(&table::interval_note(comparison))));
    for key in BARS {
        if let Some(metric) = by_key(key) {
            out.push_str(&bar_figure(comparison, metric, load));
        }
    }
    out.push_str(&curves(comparison, load));
    out.push_str(&gpus(comparison, load));
    out
}

fn bar_figure(comparison: &Comparison, metric: &Metric, load: usize) -> String {
    let bars: Vec<Bar> = comparison
        .labels
        .iter()
        .enumerate()
        .map(|(policy, label)| {
            let summary = comparison.summary(metric, policy, load);
            Bar {
                label: label.clone(),
                mean: summary.mean,
                half: summary.half_width,
                dots: summary.values,
                series: policy,
            }
        })
        .collect();
    let unit = match metric.kind {
        Kind::Time => Unit::Time,
        Kind::Ratio => Unit::Percent,
        Kind::Number | Kind::Count => Unit::Number,
    };
    let spread = if comparison.seeds.len() > 1 {
        " Whisker: 95 % interval of the mean over seeds; dots: seeds."
    } else {
        " One seed: no spread over seeds."
    };
    page::figure(&capital(metric.title), &format!("{}.{spread}", capital(metric.about)), "", |size| {
        bars::draw(size, metric.title, unit, &bars)
    })
}

fn curves(comparison: &Comparison, load: usize) -> String {
    let curves: Vec<Curve> = comparison
        .labels
        .iter()
        .enumerate()
        .map(|(policy, label)| Curve::of(label, comparison.runs(policy, load).flat_map(counted)))
        .collect();
    page::figure(
        "Job completion times",
        "Share of the finished jobs, all seeds together, that are done within a time; the time axis is logarithmic.",
        &page::series_legend(&comparison.labels),
        |size| cdf::draw(size, &curves),
    )
}

fn gpus(comparison: &Comparison, load: usize) -> String {
    let firsts: Vec<(usize, &str, &RunResult)> = comparison
        .labels
        .iter()
        .enumerate()
        .filter_map(|(policy, label)| comparison.runs(policy, load).next().map(|run| (policy, label.as_str(), run)))
        .collect();
    let lines: Vec<Line> = firsts
        .iter()
        .map(|(policy, label, run)| Line::series(label, *policy, &run.series, |sample| sample.gpus_effective))
        .collect();
    let end = firsts.iter().map(|(.., found)| run::end_s(found)).fold(0.0, f64::max);
    let capacity = firsts.first().map_or(0.0, |(.., run)| run.workload.gpus as f64);
    run::usage_figure(
        "Effective GPUs over time",
        "Held GPUs weighted by speed / best speed of their job on as many GPUs; first seed.",
        &lines,
        (capacity, end, "GPUs"),
    )
}

fn inside(comparison: &Comparison) -> String {
    let mut out =
        String::from("<h2>Inside the runs</h2>\n<p class=\"soft\">First load and first seed of each policy.</p>\n");
    for (policy, label) in comparison.labels.iter().enumerate() {
        let Some(found) = comparison.runs(policy, 0).next() else { continue };
        let open = if policy != comparison.baseline && policy + 1 == comparison.labels.len() { " open" } else { "" };
        out.push_str(&format!(
            "<details{open}><summary>{}</summary>\n<p class=\"soft\">{}</p>\n{}</details>\n",
            escape::html(label),
            escape::html(&run::decision_cost(found)),
            run::inside(found)
        ));
    }
    out
}

fn policies(comparison: &Comparison) -> String {
    let mut section = Section::of_words(&["policy", "version", "configuration", "digest"]);
    for (policy, label) in comparison.labels.iter().enumerate() {
        if let Some(run) = comparison.runs(policy, 0).next() {
            let info = &run.policy;
            section.row([label.clone(), info.version.clone(), info.config.to_string(), info.digest.clone()]);
        }
    }
    format!("<h2>Policies</h2>\n{}", page::table(&section, false))
}

fn cell_label(comparison: &Comparison, cell: &crate::comparison::Cell) -> String {
    let label = comparison.labels.get(cell.policy).map_or("?", String::as_str);
    format!("{label} (seed {})", cell.seed)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use crate::fixture;

    #[test]
    fn shows_every_policy_and_loads_nothing() {
        let page = super::comparison_page(&fixture::comparison(&["fifo", "las", "coretuner"], &[1, 2, 3]));
        for expected in ["fifo", "las", "coretuner", "Whisker", "Inside the runs", "Assumptions"] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(!page.contains("http") || page.matches("http").count() == page.matches("http-equiv").count());
        assert!(!page.contains("NaN"));
    }
}
