//! Tables of one run.

use coretuner_simulator::result::{CycleStats, Distribution, Metrics, RunResult};

use super::text::{Section, printable, render};
use crate::format::{TimeUnit, bytes, count, digits, percent, plain};

/// Everything that `simulate` prints on standard output without `--json`.
pub(crate) fn print_run(run: &RunResult) -> String {
    let mut out = title(run);
    for line in warnings(&run.policy.name, run) {
        out.push_str(&format!("\n!! {line}\n"));
    }
    let [times, cluster, decisions] = run_sections(run);
    for section in [times, beside(&cluster, &decisions)] {
        out.push('\n');
        out.push_str(&render(&section));
    }
    out.push_str(&footer(run));
    out
}

/// The tables: times over jobs, the cluster, the decisions.
pub(crate) fn run_sections(run: &RunResult) -> [Section; 3] {
    let facts = |name: &str, facts: Vec<Fact>| {
        let mut section = Section::new(&[name, ""]);
        facts.into_iter().for_each(|(name, value)| section.row([name, value]));
        section
    };
    [times(&run.metrics), facts("cluster and jobs", cluster(&run.metrics)), facts("decisions", decisions(&run.cycles))]
}

/// Loud lines about what a reader of the figures must not miss.
pub(crate) fn warnings(label: &str, run: &RunResult) -> Vec<String> {
    fault_line(label, &run.cycles).into_iter().chain(unfinished_line(label, &run.metrics)).collect()
}

/// Times are over finished jobs only, so a policy that lets jobs wait for ever would look fast.
fn unfinished_line(label: &str, metrics: &Metrics) -> Option<String> {
    let left = metrics.jobs_counted.checked_sub(metrics.jobs_finished).filter(|left| *left > 0)?;
    Some(printable(&format!(
        "under {label} {} of {} jobs did not finish; times are of those that did",
        count(left),
        count(metrics.jobs_counted)
    )))
}

/// When the policy failed or the fallback answered; names what was wrong first.
fn fault_line(label: &str, cycles: &CycleStats) -> Option<String> {
    let faults: u64 = cycles.faults.values().sum();
    if faults == 0 && cycles.fallback_cycles == 0 {
        return None;
    }
    let kinds: Vec<String> = cycles.faults.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
    let first = cycles.first_fault.as_deref().map_or(String::new(), |text| format!(" First: {text}"));
    Some(printable(&format!(
        "policy {label} failed in {} of {} cycles ({}); the built-in fallback answered {} cycles.{first}",
        count(faults),
        count(cycles.cycles),
        if kinds.is_empty() { "no kind recorded".to_owned() } else { kinds.join(", ") },
        count(cycles.fallback_cycles)
    )))
}

fn title(run: &RunResult) -> String {
    let workload = &run.workload;
    format!(
        "{} {} on {}: {} jobs, {} nodes, {} GPUs, {} cores\n",
        printable(&run.policy.name),
        printable(&run.policy.version),
        printable(&workload.name),
        count(workload.jobs),
        count(workload.nodes),
        count(workload.gpus),
        plain(workload.cpu_cores)
    )
}

fn times(metrics: &Metrics) -> Section {
    let unit = TimeUnit::for_max(metrics.jct_s.mean.max(metrics.queueing_delay_s.mean));
    let mut section = Section::new(&["over jobs", "mean", "median", "p95", "p99", "max"]);
    let mut add = |name: String, values: &Distribution, show: &dyn Fn(f64) -> String| {
        let cells = [values.mean, values.median, values.p95, values.p99, values.max].map(show);
        section.row(std::iter::once(name).chain(cells));
    };
    let time = |seconds: f64| unit.show(seconds);
    add(format!("job completion time [{}]", unit.symbol()), &metrics.jct_s, &time);
    add(format!("queueing delay [{}]", unit.symbol()), &metrics.queueing_delay_s, &time);
    add("fairness rho [1]".to_owned(), &metrics.fairness_rho, &digits);
    section
}

type Fact = (String, String);

/// Two lists of facts next to each other.
fn beside(left: &Section, right: &Section) -> Section {
    let head: Vec<&str> = left.head.iter().chain(&right.head).map(String::as_str).collect();
    let mut section = Section::new(&head);
    section.words = vec![0, 2];
    for at in 0..left.rows.len().max(right.rows.len()) {
        let rows = [left.rows.get(at), right.rows.get(at)];
        section.row(rows.into_iter().flat_map(|row| row.cloned().unwrap_or_else(|| vec![String::new(); 2])));
    }
    section
}

fn cluster(metrics: &Metrics) -> Vec<Fact> {
    let unit = TimeUnit::for_max(metrics.makespan_s);
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact(&format!("makespan [{}]", unit.symbol()), unit.show(metrics.makespan_s)),
        fact("GPU allocation [%]", percent(metrics.gpu_allocation)),
        fact("GPU utilisation [%]", percent(metrics.gpu_utilisation)),
        fact("CPU allocation [%]", percent(metrics.cpu_allocation)),
        fact("CPU utilisation [%]", percent(metrics.cpu_utilisation)),
        fact("memory allocation [%]", percent(metrics.memory_allocation)),
        fact("GPUs stranded by CPU [mean]", digits(metrics.gpus_stranded_by_cpu)),
        fact("jobs with rho > 1 [%]", percent(metrics.fairness_unfair_share)),
        fact("preemptions", count(metrics.preemptions)),
        fact("restarts", count(metrics.restarts)),
        fact("resizes", count(metrics.resizes)),
        fact(
            "jobs finished, of counted",
            format!("{} of {}", count(metrics.jobs_finished), count(metrics.jobs_counted)),
        ),
    ]
}

fn decisions(cycles: &CycleStats) -> Vec<Fact> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![
        fact("cycles", count(cycles.cycles)),
        fact("actions accepted", count(cycles.actions_accepted)),
        fact("actions refused", count(cycles.refused.values().sum())),
        fact("policy faults", count(cycles.faults.values().sum())),
        fact("cycles answered by the fallback", count(cycles.fallback_cycles)),
        fact("fuel per decision, mean", digits(cycles.fuel.mean)),
        fact("fuel per decision, p99", digits(cycles.fuel.p99)),
        fact("fuel per decision, max", digits(cycles.fuel.max)),
        fact("guest memory, max", bytes(cycles.guest_memory_bytes_max)),
    ];
    facts.extend(cycles.refused.iter().map(|(reason, number)| (format!("refused: {reason}"), count(*number))));
    facts
}

/// Which workload, predictor, settings and assumptions stand behind the numbers.
pub(crate) fn footer(run: &RunResult) -> String {
    let workload = &run.workload;
    let settings = &run.settings;
    let mut lines = vec![
        format!("workload:   {} ({}, seed {}, {})", workload.name, workload.format, workload.seed, workload.digest),
        format!("speeds:     {}", settings.truth),
        format!("predictor:  {}, {} ({})", run.predictor.name, run.predictor.engine, run.predictor.digest),
        format!(
            "time:       {}{}, restart {} s, resize {} s, placement penalty ×{}",
            settings.mode,
            settings.round_s.map_or(String::new(), |round| format!(" of {} s", plain(round))),
            plain(settings.restart_s),
            plain(settings.resize_s),
            plain(settings.placement_penalty)
        ),
    ];
    if let Some((first, last)) = settings.window {
        lines.push(format!("counted:    jobs {first} to {last} in order of submission"));
    }
    if workload.never_schedulable > 0 {
        lines.push(format!(
            "left out:   {} jobs that fit no set of nodes even when the cluster is empty",
            count(workload.never_schedulable)
        ));
    }
    lines.extend(workload.assigned.iter().map(|rule| format!("assumption: {rule}")));
    let text: String = lines.iter().map(|line| format!("{}\n", printable(line))).collect();
    format!("\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn names_units_workload_predictor_and_assumptions() {
        let text = print_run(&fixture::run("coretuner", 1));
        let expected = [
            "job completion time [",
            "GPU utilisation [%]",
            "assumption: model-by-mix",
            "predictor:",
            "refused: no-capacity",
        ];
        for part in expected {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("!!"));
    }

    #[test]
    fn shouts_about_jobs_that_did_not_finish() {
        let mut run = fixture::run("fifo", 1);
        assert_eq!(warnings("fifo", &run), Vec::<String>::new());
        run.metrics.jobs_finished = run.metrics.jobs_counted - 3;
        let text = print_run(&run);
        assert!(text.contains("!! under fifo 3 of"), "{text}");
    }

    #[test]
    fn shouts_about_faults() {
        let mut run = fixture::run("coretuner", 1);
        run.cycles.faults.insert("trap".to_owned(), 3);
        run.cycles.fallback_cycles = 3;
        run.cycles.first_fault = Some("wasm trap: unreachable".to_owned());
        let text = print_run(&run);
        let expected = "!! policy coretuner failed in 3 of 260 cycles (3 trap); the built-in fallback answered 3 cycles. \
                        First: wasm trap: unreachable";
        assert!(text.contains(expected), "{text}");
    }
}
