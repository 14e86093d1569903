//! Where and on what the numbers were measured.

use crate::{files, process};
use std::process::Command;

/// Processor, cores, memory and system, in words.
pub(crate) fn machine() -> String {
    let field = |file: &str, key: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = field("/proc/meminfo", "MemTotal").and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok());
    let memory = memory.map_or_else(|| "unknown memory".to_owned(), |kib| format!("{} GiB", kib.div_ceil(1 << 20)));
    let rustc = process::capture(Command::new("rustc").arg("--version")).unwrap_or_default();
    format!("{processor}, {cores} cores, {memory}, {}, {}", std::env::consts::OS, rustc.trim())
}

/// The commit, with a plus sign when the tree differs from it.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| process::capture(Command::new("git").current_dir(files::root()).args(arguments));
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|_| "unknown".to_owned());
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_ok_and(|text| !text.trim().is_empty());
    format!("{}{}", commit.trim(), if changed { "+" } else { "" })
}
