//! Steps: what is done, how long it took, what was skipped.

use crate::error::Error;
use std::time::{Duration, Instant};

/// How a step ended well.
pub(crate) enum Done {
    /// It did its work.
    Worked,
    /// Nothing to do, and why.
    Skipped(String),
}

/// One finished step.
struct Row {
    name: String,
    took: Duration,
    skipped: Option<String>,
    failed: bool,
}

/// The steps of one command, in order.
pub(crate) struct Steps {
    rows: Vec<Row>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// Runs one step, saying what it does before and how long it took after.
    pub(crate) fn run(&mut self, name: &str, step: impl FnOnce() -> Result<Done, Error>) -> Result<(), Error> {
        eprintln!("==> {name}");
        let start = Instant::now();
        let result = step();
        let took = start.elapsed();
        let (skipped, failed) = match &result {
            Ok(Done::Worked) => (None, false),
            Ok(Done::Skipped(why)) => (Some(why.clone()), false),
            Err(_) => (None, true),
        };
        match (&skipped, failed) {
            (Some(why), _) => eprintln!("    skipped: {why}"),
            (None, true) => eprintln!("    failed after {}", seconds(took)),
            (None, false) => eprintln!("    done in {}", seconds(took)),
        }
        self.rows.push(Row { name: name.to_owned(), took, skipped, failed });
        result.map(|_| ())
    }

    /// Runs one step of several that do not need each other: a failure is printed and counted.
    pub(crate) fn attempt(&mut self, name: &str, step: impl FnOnce() -> Result<Done, Error>) {
        if let Err(error) = self.run(name, step) {
            eprintln!("    {error}");
        }
    }

    /// How many steps failed.
    pub(crate) fn failures(&self) -> usize {
        self.rows.iter().filter(|row| row.failed).count()
    }

    /// The table of all steps, to be printed at the end of a long command.
    pub(crate) fn table(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING).set_header(["step", "time", "result"]);
        for row in &self.rows {
            let result = match (&row.skipped, row.failed) {
                (Some(why), _) => format!("skipped: {why}"),
                (None, true) => "FAILED".to_owned(),
                (None, false) => "ok".to_owned(),
            };
            table.add_row([row.name.clone(), seconds(row.took), result]);
        }
        let total: Duration = self.rows.iter().map(|row| row.took).sum();
        table.add_row(["total".to_owned(), seconds(total), String::new()]);
        table.to_string()
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_and_listed() {
        let mut steps = Steps::new();
        steps.attempt("works", || Ok(Done::Worked));
        steps.attempt("skips", || Ok(Done::Skipped("it is there".to_owned())));
        steps.attempt("fails", || Err(Error::Checks { count: 1 }));
        assert_eq!(steps.failures(), 1);
        let table = steps.table();
        for word in ["works", "skipped: it is there", "FAILED", "total"] {
            assert!(table.contains(word), "{word} in\n{table}");
        }
    }
}
