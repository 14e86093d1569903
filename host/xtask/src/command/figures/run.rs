//! The command: list, or measure and print.

use super::registry::{FIGURES, Figure, find};
use super::result::{Value, json, table};
use super::{machine, page};
use crate::error::Error;
use crate::setup::{guests, onnxruntime};
use crate::step::{Done, Steps};
use crate::{cargo, files, process};
use std::process::Command;

/// Optimised as programs are released, native policies as much as components.
const PROFILE: &str = "figures";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The figure to measure; without a name: list them.
    name: Option<String>,
    /// Renew its section of docs/figures.md.
    #[arg(long, requires = "name")]
    write: bool,
    /// Seeds per cell, to look at a part of the figure.
    #[arg(long, requires = "name", conflicts_with = "write")]
    seeds: Option<u64>,
    /// Only cells whose name holds each of these words: "(33,33,33);1 GPU;rho 0.95".
    #[arg(long, requires = "name", conflicts_with = "write")]
    cells: Option<String>,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<(), Error> {
        let Some(name) = &self.name else {
            FIGURES.iter().for_each(|figure| println!("{:<16} {}", figure.name, figure.about));
            return Ok(());
        };
        let figure = find(name).ok_or_else(|| unknown(name))?;
        let part = self.part(figure)?;
        let values = measure(figure, &part)?;
        let (machine, commit) = (machine::machine(), machine::commit());
        println!("{}", table(&values));
        if self.write {
            println!("written: {}", page::write(figure, &values, &machine, &commit)?.display());
        }
        println!("{}", json(figure.name, &values, &machine, &commit));
        Ok(())
    }

    /// Options that say which part of the figure to measure.
    fn part(&self, figure: &Figure) -> Result<Vec<String>, Error> {
        let mut options = Vec::new();
        options.extend(self.seeds.map(|seeds| format!("--seeds={seeds}")));
        options.extend(self.cells.as_ref().map(|cells| format!("--cells={cells}")));
        if options.is_empty() || figure.in_parts { Ok(options) } else { Err(whole(figure.name)) }
    }
}

fn whole(name: &str) -> Error {
    Error::Step {
        what: format!("{name} is measured as a whole"),
        tried: vec!["--seeds and --cells".to_owned()],
        advice: "leave them out".to_owned(),
    }
}

fn unknown(name: &str) -> Error {
    Error::Step {
        what: format!("no figure is named {name:?}"),
        tried: vec!["the registry of figures".to_owned()],
        advice: "run `cargo xtask figures` for the list".to_owned(),
    }
}

fn measure(figure: &Figure, part: &[String]) -> Result<Vec<Value>, Error> {
    let mut steps = Steps::new();
    guests::build(&mut steps, &[])?;
    let library = if figure.predicts { Some(onnxruntime::fetch(&mut steps)?) } else { None };
    steps.run("build the measuring program", || {
        let mut command = cargo::cargo();
        command.args(["build", "--profile", PROFILE, "--package", "coretuner-bench", "--manifest-path"]);
        process::run(command.arg(files::root().join("Cargo.toml"))).map(|()| Done::Worked)
    })?;
    let mut values = Vec::new();
    steps.run(&format!("measure {}", figure.name), || {
        let mut command = Command::new(files::target().join(PROFILE).join("coretuner-bench"));
        if let Some(library) = &library {
            command.env(onnxruntime::OVERRIDE, library);
        }
        let text = process::capture_output(command.arg(figure.name).arg(guests::folder()).args(part))?;
        values = serde_json::from_str(&text)
            .map_err(|error| Error::Output { command: process::shown(&command), detail: error.to_string() })?;
        Ok(Done::Worked)
    })?;
    Ok(values)
}
