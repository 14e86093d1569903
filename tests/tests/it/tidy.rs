//! Shape and cleanliness of the source text.

use coretuner_tests::source;
use std::path::{Path, PathBuf};

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 400;
/// Half of all functions and nine of ten stay below these.
const FUNCTION_LINES_P90_MAX: usize = 35;

/// Files that may be longer, and why.
const LONG_FILES: &[(&str, &str)] = &[];
/// Functions that may be longer (`path::name`), and why.
const LONG_FUNCTIONS: &[(&str, &str)] = &[];

/// Where Rust source of the product is.
const SOURCE: [&str; 4] = ["host", "sdk", "policies", "examples"];

#[test]
fn functions_are_short() {
    let mut lengths = Vec::new();
    let mut wrong = Vec::new();
    for path in rust(&["host", "sdk", "policies", "examples", "tests"]) {
        let text = source::text(&path).unwrap_or_default();
        for function in source::functions(&text) {
            let place = format!("{}::{}", path.display(), function.name);
            let excused = LONG_FUNCTIONS.iter().any(|(name, _)| *name == place);
            if function.lines > FUNCTION_LINES_MAX && !excused {
                wrong.push(format!("{place} (line {}) has {} lines", function.line, function.lines));
            }
            lengths.push(function.lines);
        }
    }
    assert!(wrong.is_empty(), "more than {FUNCTION_LINES_MAX} lines:\n{}", wrong.join("\n"));
    lengths.sort_unstable();
    let p90 = lengths[lengths.len() * 9 / 10];
    assert!(p90 <= FUNCTION_LINES_P90_MAX, "nine of ten functions have up to {p90} lines");
}

#[test]
fn files_are_short() {
    let mut wrong = Vec::new();
    for path in rust(&SOURCE) {
        let text = source::text(&path).unwrap_or_default();
        let lines = source::without_tests(&text).lines().count();
        let excused = is_test(&path) || LONG_FILES.iter().any(|(name, _)| Path::new(name) == path);
        if lines > FILE_LINES_MAX && !excused {
            wrong.push(format!("{} has {lines} lines without its tests", path.display()));
        }
    }
    assert!(wrong.is_empty(), "more than {FILE_LINES_MAX} lines:\n{}", wrong.join("\n"));
}

#[test]
fn crate_roots_and_modules_hold_no_logic() {
    let mut wrong = Vec::new();
    for path in rust(&SOURCE) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = source::text(&path).unwrap_or_default();
        let text = source::without_tests(&text);
        let is_policy = path.starts_with("policies") || path.starts_with("examples");
        let functions = source::functions(text);
        if name == "lib.rs" && !is_policy && !functions.is_empty() {
            wrong.push(format!("{}: {}", path.display(), functions[0].name));
        }
    }
    assert!(wrong.is_empty(), "lib.rs only declares and re-exports:\n{}", wrong.join("\n"));
}

#[test]
fn public_items_are_described() {
    let mut wrong = Vec::new();
    for path in rust(&["host", "sdk"]).into_iter().filter(|path| !is_test(path)) {
        let text = source::text(&path).unwrap_or_default();
        let undescribed = source::undescribed(source::without_tests(&text));
        wrong.extend(undescribed.into_iter().map(|(line, what)| format!("{}:{line}: {what}", path.display())));
    }
    assert!(wrong.is_empty(), "public items without a doc comment:\n{}", wrong.join("\n"));
}

#[test]
fn no_test_is_switched_off() {
    absent(
        &["host", "sdk", "policies", "examples", "tests"],
        &[concat!("#[", "ignore"), concat!("#[", "should_panic")],
    );
}

#[test]
fn no_leftovers() {
    let words =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX"), concat!("todo", "!("), concat!("dbg", "!(")];
    absent(&["host", "sdk", "policies", "wit", "docs", "models"], &words);
}

#[test]
fn no_path_of_one_machine() {
    let words = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    absent(&["."], &words);
    let only_there = Path::new(".ci/run");
    let shared = concat!("shared", "/data");
    let wrong: Vec<PathBuf> = source::files(".")
        .into_iter()
        .filter(|path| path != only_there && source::text(path).is_some_and(|text| text.contains(shared)))
        .collect();
    assert!(wrong.is_empty(), "{shared} stands in {wrong:?}; only .ci/run may name it");
}

/// No text file below these folders contains one of the words.
fn absent(folders: &[&str], words: &[&str]) {
    let mut wrong = Vec::new();
    for path in folders.iter().flat_map(|folder| source::files(folder)) {
        let text = source::text(&path).unwrap_or_default();
        for (at, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                wrong.push(format!("{}:{}: {word}", path.display(), at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "these must not stand in the source:\n{}", wrong.join("\n"));
}

fn rust(folders: &[&str]) -> Vec<PathBuf> {
    let files = folders.iter().flat_map(|folder| source::files(folder));
    files.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

/// A file of tests only, or of data.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}
