//! Published traces that are too large or not free to be kept in the repository.

use std::io::Write;
use std::path::PathBuf;

/// Names the folder of published traces.
pub const VARIABLE: &str = "CORETUNER_DATA";

/// `cargo xtask test` names a file here and prints it last, so that no skipped test goes unseen.
const SKIPPED: &str = "CORETUNER_SKIPPED_TESTS";

/// A file or folder below `CORETUNER_DATA`.
///
/// Without the variable: says loudly that `test` is skipped and gives nothing. With it, a missing file fails the test.
pub fn published(test: &str, path: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os(VARIABLE) else {
        skip(&format!("{test}: {VARIABLE} is not set, {path} is needed"));
        return None;
    };
    let full = PathBuf::from(folder).join(path);
    assert!(full.exists(), "{VARIABLE} is set, but {} is missing", full.display());
    Some(full)
}

/// Says on the terminal, past the capture of the test's output, that a test did not run, and notes it for the summary.
pub fn skip(what: &str) {
    // A terminal that is gone must not fail the test.
    let _ = writeln!(std::io::stderr(), "SKIPPED {what}");
    if let Some(path) = std::env::var_os(SKIPPED) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(format!("  {what}\n").as_bytes()));
        assert!(written.is_ok(), "failed to note a skipped test in {}: {written:?}", PathBuf::from(path).display());
    }
}
