//! Reading our own source text: files of the repository and the functions in them.

use crate::paths;
use std::path::{Path, PathBuf};

/// Folders that hold no source of ours.
const LEFT_OUT: [&str; 4] = [".git", "target", "node_modules", "__pycache__"];

/// All files below a folder of the repository, sorted, as paths from its root.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let root = paths::root();
    let mut found = Vec::new();
    collect(&root.join(folder), &mut found);
    let mut found: Vec<PathBuf> =
        found.into_iter().filter_map(|path| path.strip_prefix(&root).map(Path::to_path_buf).ok()).collect();
    found.sort();
    found
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if path.is_symlink() || LEFT_OUT.contains(&&*name) {
        return;
    }
    if path.is_file() {
        found.push(path.to_path_buf());
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        collect(&entry.path(), found);
    }
}

/// The text of a file of the repository; nothing when it is not text.
pub fn text(path: &Path) -> Option<String> {
    let full = paths::root().join(path);
    let bytes = std::fs::read(&full).unwrap_or_else(|error| panic!("failed to read {}: {error}", full.display()));
    String::from_utf8(bytes).ok()
}

/// The part of a formatted Rust file before its unit tests.
pub fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod ").map_or(text, |at| text.split_at(at).0)
}

/// One function: its first line's number (from 1), its name, and how many lines it has.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Number of the line with `fn`, from 1.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// Lines from `fn` to the closing brace, both included.
    pub lines: usize,
}

/// The functions of a text formatted by rustfmt: a body ends at the first `}` as deep as its `fn` line.
pub fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate().filter_map(|(at, line)| name_of(line).map(|name| (at, name)));
    starts
        .map(|(at, name)| {
            let depth = indent(lines[at]);
            let body = &lines[at..];
            let end = body.iter().position(|line| indent(line) == depth && closes(line));
            Function { line: at + 1, name: name.to_owned(), lines: end.map_or(1, |end| end + 1) }
        })
        .collect()
}

/// Public items without a doc comment: line (from 1) and text. Fields and variants may speak for themselves.
pub fn undescribed(text: &str) -> Vec<(usize, String)> {
    const ITEMS: [&str; 8] = ["fn", "struct", "enum", "trait", "const", "static", "type", "async"];
    let lines: Vec<&str> = text.lines().collect();
    let is_item = |line: &str| {
        let rest = line.trim_start().strip_prefix("pub ");
        rest.and_then(|rest| rest.split(' ').next()).is_some_and(|word| ITEMS.contains(&word))
    };
    let items = lines.iter().enumerate().filter(|(_, line)| is_item(line));
    let bare = items.filter(|(at, _)| !is_described(&lines[..*at]));
    bare.map(|(at, line)| (at + 1, line.trim().to_owned())).collect()
}

/// Whether the lines before an item end in a doc comment, attributes left out.
fn is_described(before: &[&str]) -> bool {
    let attribute = |line: &str| line.starts_with("#[") || line.ends_with(")]");
    let last = before.iter().rev().map(|line| line.trim()).find(|line| !attribute(line));
    last.is_some_and(|line| line.starts_with("///") || line.starts_with("$(#["))
}

/// The name of the function that starts on this line.
fn name_of(line: &str) -> Option<&str> {
    let words = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "extern", "\"C\""];
    let mut rest = line.trim_start();
    while let Some(word) = words.iter().find(|word| rest.strip_prefix(**word).is_some_and(|rest| rest.starts_with(' ')))
    {
        rest = rest[word.len()..].trim_start();
    }
    let name = rest.strip_prefix("fn ")?;
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

fn closes(line: &str) -> bool {
    let line = line.trim_end();
    line.ends_with('}') || line.ends_with(';')
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(usize, &str, usize)]) {
        let found = functions(text);
        let found: Vec<_> = found.iter().map(|one| (one.line, one.name.as_str(), one.lines)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn measures_functions() {
        check("fn a() {}\n", &[(1, "a", 1)]);
        check("pub(crate) const fn b(x: u32) -> u32 {\n    x\n}\n", &[(1, "b", 3)]);
        check("trait T {\n    fn c(&self);\n    fn d(&self) {\n        1;\n    }\n}\n", &[(2, "c", 1), (3, "d", 3)]);
        check("fn e(\n    x: u32,\n) -> u32 {\n    if x > 1 {\n        2\n    }\n}\n", &[(1, "e", 7)]);
    }

    #[test]
    fn finds_items_without_description() {
        let text =
            "/// Said.\n#[derive(Debug)]\npub struct A {\n    pub x: u32,\n}\npub fn b() {}\npub(crate) fn c() {}\n";
        assert_eq!(undescribed(text), [(6, "pub fn b() {}".to_owned())]);
    }

    #[test]
    fn leaves_unit_tests_out() {
        assert_eq!(without_tests("fn a() {}\n\n#[cfg(test)]\nmod tests {}\n"), "fn a() {}\n");
    }
}
