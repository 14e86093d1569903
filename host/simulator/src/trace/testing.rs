//! Helpers of the readers' tests.

use std::io::Write;
use std::path::Path;

use super::error::TraceError;
use crate::workload::Draft;

pub(crate) fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("temporary file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

/// Reads `text` and expects so many jobs, or an error that says so.
pub(crate) fn check(read: impl Fn(&Path) -> Result<Draft, TraceError>, text: &str, expected: Result<usize, &str>) {
    let file = file(text);
    match (read(file.path()), expected) {
        (Ok(draft), Ok(jobs)) => assert_eq!(draft.jobs.len(), jobs, "{text}"),
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}, not {part}"),
        (Ok(draft), Err(part)) => panic!("{} jobs, not an error about {part}", draft.jobs.len()),
        (Err(error), Ok(jobs)) => panic!("{error}, not {jobs} jobs"),
    }
}
