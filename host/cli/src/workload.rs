//! From the command line to a workload.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use coretuner_simulator::trace::{self, Format, ReadOptions, TraceError};
use coretuner_simulator::truth::{TruthMode, TruthOptions};
use coretuner_simulator::workload::{FillOptions, Gangs, GenerateOptions, Workload, generate};
use miette::{NamedSource, SourceSpan};

use crate::args::{GangsArg, TruthArg, WorkloadArgs};
use crate::fetch;

/// Jobs of a generated workload where none are asked for.
const GENERATED_JOBS: u32 = 1_000;
/// Lines longer than this are not shown in a message.
const SHOWN_LINE_MAX: usize = 400;

/// Why there is no workload.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum WorkloadError {
    #[error("there is no trace `{spec}`: neither a file nor a published trace that was fetched; tried {}", list(.tried))]
    #[diagnostic(help(
        "give the path of a trace, or `generated`; `coretuner trace fetch` lists published traces and fetches them"
    ))]
    NoTrace { spec: String, tried: Vec<PathBuf> },
    #[error("the published trace `{name}` is not here; looked for {}", list(.tried))]
    #[diagnostic(help("fetch it with `coretuner trace fetch {name}`, or set CORETUNER_DATA to a folder that has it"))]
    NotFetched { name: String, tried: Vec<PathBuf> },
    #[error("{0}")]
    Trace(Box<TraceError>),
    #[error("{message}")]
    Line {
        message: String,
        #[source_code]
        text: Arc<NamedSource<String>>,
        #[label("{reason}")]
        at: SourceSpan,
        reason: String,
    },
}

/// A trace to read, or nothing to read for a generated workload.
pub(crate) enum Source {
    Generated,
    File { path: PathBuf, format: Option<Format> },
}

/// Finds the trace that `--trace` names.
pub(crate) fn source(args: &WorkloadArgs) -> Result<Source, WorkloadError> {
    if args.trace == "generated" {
        return Ok(Source::Generated);
    }
    let (path, published) = locate(&args.trace, args.cache_dir.as_deref())?;
    let format = args.format.or_else(|| published.and_then(|format| format.parse().ok()));
    Ok(Source::File { path, format })
}

/// Builds the workload for one seed and one load.
pub(crate) fn build(args: &WorkloadArgs, seed: u64, load: Option<f64>) -> Result<Workload, WorkloadError> {
    let truth = truth_options(args);
    match source(args)? {
        Source::Generated => {
            let defaults = GenerateOptions::default();
            let options = GenerateOptions {
                jobs: args.jobs.unwrap_or(GENERATED_JOBS),
                load_jobs_per_hour: load.unwrap_or(defaults.load_jobs_per_hour),
                mix: args.mix,
                gangs: match args.gangs {
                    GangsArg::Published => Gangs::Published,
                    GangsArg::Single => Gangs::Single,
                },
                servers: args.nodes.unwrap_or(defaults.servers),
                cores_per_server: args.cores_per_node,
                seed,
                truth,
            };
            generate(&options).map_err(marked)
        }
        Source::File { path, format } => {
            let cluster = match &args.cluster {
                Some(cluster) => Some(locate(cluster, args.cache_dir.as_deref())?.0),
                None => None,
            };
            let fill = FillOptions {
                seed,
                mix: args.mix,
                servers: args.nodes,
                jobs_max: args.jobs.map(|jobs| jobs as usize),
                load_jobs_per_hour: load,
                truth,
            };
            trace::read(&path, &ReadOptions { format, cluster, fill }).map_err(marked)
        }
    }
}

/// Options of the ground truth.
fn truth_options(args: &WorkloadArgs) -> TruthOptions {
    let mode = match args.truth {
        TruthArg::Tables => TruthMode::Tables,
        TruthArg::Figure => TruthMode::Figure,
        TruthArg::Scalar => TruthMode::Scalar,
    };
    TruthOptions { mode, placement_penalty: args.placement_penalty }
}

/// A file, or a published trace that is here already; with the format of the latter.
pub(crate) fn locate(spec: &str, cache: Option<&Path>) -> Result<(PathBuf, Option<&'static str>), WorkloadError> {
    let path = Path::new(spec);
    if path.exists() {
        return Ok((path.to_owned(), None));
    }
    match fetch::find(spec) {
        Ok(published) => match fetch::present(published, cache) {
            Some(found) => Ok((found, Some(published.format.as_str()))),
            None => Err(WorkloadError::NotFetched { name: spec.to_owned(), tried: fetch::places(published, cache) }),
        },
        Err(_) => Err(WorkloadError::NoTrace { spec: spec.to_owned(), tried: vec![path.to_owned()] }),
    }
}

/// Shows the line of the file that an error is about.
fn marked(error: TraceError) -> WorkloadError {
    let (path, line, column, reason) = match &error {
        TraceError::Line { path, line, reason } => (path, *line, None, reason),
        TraceError::Cell { path, line, column, reason, .. } => (path, *line, Some(*column), reason),
        _ => return WorkloadError::Trace(Box::new(error)),
    };
    let Some(found) = line_of(path, line).filter(|text| text.len() <= SHOWN_LINE_MAX) else {
        return WorkloadError::Trace(Box::new(error));
    };
    let at = column.map_or((0, found.len()), |column| cell(&found, column));
    // The snippet is the one line; blank lines before it give it its number.
    let before = "\n".repeat(usize::try_from(line).unwrap_or(1).saturating_sub(1).min(100_000));
    let span = SourceSpan::from((before.len() + at.0, at.1));
    let text = Arc::new(NamedSource::new(path.display().to_string(), format!("{before}{found}\n")));
    WorkloadError::Line { message: error.to_string(), reason: reason.clone(), text, at: span }
}

/// Line number `line`, counted from one, of a plain text file.
fn line_of(path: &Path, line: u64) -> Option<String> {
    use std::io::BufRead;
    let file = std::fs::File::open(path).ok()?;
    let index = usize::try_from(line.checked_sub(1)?).ok()?;
    std::io::BufReader::new(file).lines().nth(index)?.ok()
}

/// Start and length of cell number `column`, counted from one.
fn cell(line: &str, column: usize) -> (usize, usize) {
    let separator = if line.contains('\t') { '\t' } else { ',' };
    let mut start = 0;
    for (at, part) in line.split(separator).enumerate() {
        if at + 1 == column {
            return (start, part.len());
        }
        start += part.len() + 1;
    }
    (0, line.len())
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_cells() {
        let check = |line: &str, column, expected: &str| {
            let (start, length) = cell(line, column);
            assert_eq!(&line[start..start + length], expected);
        };
        check("a,bb,ccc", 1, "a");
        check("a,bb,ccc", 3, "ccc");
        check("a\tb,b\tc", 2, "b,b");
        check("a,b", 9, "a,b");
    }

    #[test]
    fn marks_the_line_of_a_trace_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.csv");
        std::fs::write(&path, "one,1\ntwo,x\n").unwrap();
        let error = TraceError::Cell {
            path: path.clone(),
            line: 2,
            column: 2,
            field: "gpus".to_owned(),
            reason: "not a number".to_owned(),
        };
        match marked(error) {
            WorkloadError::Line { at, message, .. } => {
                assert_eq!((at.offset(), at.len()), (1 + 4, 1));
                assert!(message.contains("line 2"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
}
