//! Measures what the project claims. `cargo xtask figures` runs this; it prints one JSON list of values per figure.
#![forbid(unsafe_code)]

mod decision;
mod error;
mod native;
mod scale;
mod value;

use error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let values = match words.as_slice() {
        ["decision-cost", guests] => decision::measure(&PathBuf::from(guests)),
        ["simulate-scale", guests] => scale::measure(&PathBuf::from(guests)),
        ["one-run", run] => scale::one_run(run),
        _ => Err(Error::Usage),
    };
    match values.and_then(|values| value::print(&values)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
