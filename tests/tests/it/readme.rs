//! Every command in the documentation runs.

use coretuner_tests::{paths, source};
use std::path::Path;
use std::process::Command;

/// Commands of xtask set up or build for minutes; here only their names and options are checked.
const XTASK: &str = "cargo xtask ";

#[test]
fn commands_of_the_documentation_run() {
    let mut count = 0;
    for path in source::files(".").into_iter().filter(|path| is_page(path)) {
        let text = source::text(&path).unwrap_or_default();
        for block in blocks(&text) {
            count += 1;
            run(&path, &block);
        }
    }
    assert!(count >= 4, "only {count} blocks of commands found");
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for path in source::files(".").into_iter().filter(|path| is_page(path)) {
        let text = source::text(&path).unwrap_or_default();
        let folder = path.parent().unwrap_or(Path::new(""));
        for link in links(&text) {
            if !paths::root().join(folder).join(link).exists() {
                wrong.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links to nothing:\n{}", wrong.join("\n"));
}

#[test]
fn blocks_and_links_are_found() {
    assert_eq!(blocks("a\n```sh\nx 1\ny\n```\n```text\nz\n```\n"), ["x 1\ny\n"]);
    assert_eq!(links("[a](b.md) [c](https://d) [e](f#g)").collect::<Vec<_>>(), ["b.md", "f"]);
}

fn is_page(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(Path::new(""));
    let here = folder == Path::new("") || folder == Path::new("docs");
    here && path.extension().is_some_and(|end| end == "md")
}

/// Blocks of shell commands.
fn blocks(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "```sh" {
            found.push(lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect());
        }
    }
    found
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).filter_map(|target| target.split('#').next())
}

fn run(page: &Path, block: &str) {
    let (ours, others): (Vec<&str>, Vec<&str>) = block.lines().partition(|line| line.starts_with(XTASK));
    for line in ours {
        check_xtask(page, line);
    }
    // The program must be there, whatever the block does.
    paths::coretuner();
    let cache = tempfile::tempdir().expect("a folder");
    let mut shell = Command::new("sh");
    shell.args(["-eu", "-c", &others.join("\n")]).current_dir(paths::root()).env("CORETUNER_CACHE_DIR", cache.path());
    shell.env("ORT_DYLIB_PATH", paths::onnxruntime());
    let output = shell.output().expect("sh starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: these commands fail:\n{block}\n{said}", page.display());
}

/// The command exists and takes these arguments: `--help` after them is understood.
fn check_xtask(page: &Path, line: &str) {
    let words: Vec<&str> = line.trim_start_matches(XTASK).split_whitespace().collect();
    let program = paths::program("xtask", "cargo build --package xtask");
    let output = Command::new(program).args(&words).arg("--help").output().expect("xtask starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: `{line}` is not understood:\n{said}", page.display());
}
