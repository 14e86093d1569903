//! A policy's configuration: JSON from the command line or a file. What is in it the policy itself checks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{NamedSource, SourceSpan};
use serde_json::Value;

/// Why a configuration is not taken.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum ConfigError {
    #[error("cannot read the policy configuration {}: {source}", path.display())]
    #[diagnostic(help("--policy-config takes JSON, or @FILE with JSON in it"))]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the policy configuration is not JSON: {reason}")]
    #[diagnostic(help("--policy-config takes a JSON object such as {example}, or @FILE"))]
    Malformed {
        reason: String,
        example: &'static str,
        #[source_code]
        text: Arc<NamedSource<String>>,
        #[label("here")]
        at: SourceSpan,
    },
    #[error("the policy configuration must be a JSON object, such as {{}}")]
    NotAnObject,
    #[error("policy {policy} does not take this configuration: {reason}")]
    #[diagnostic(help("`coretuner policy inspect {policy}` prints the schema of its configuration"))]
    Refused { policy: String, reason: String },
}

/// Reads `given`: JSON, or `@FILE`. Nothing given is an empty object. The result is canonical: keys sorted.
pub(crate) fn read(given: Option<&str>) -> Result<Value, ConfigError> {
    let (name, text) = match given {
        None => return Ok(Value::Object(serde_json::Map::new())),
        Some(given) => match given.strip_prefix('@') {
            Some(path) => (path.to_owned(), read_file(Path::new(path))?),
            None => ("--policy-config".to_owned(), given.to_owned()),
        },
    };
    let value: Value = serde_json::from_str(&text).map_err(|error| malformed(&name, &text, &error))?;
    if value.is_object() { Ok(value) } else { Err(ConfigError::NotAnObject) }
}

fn read_file(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })
}

fn malformed(name: &str, text: &str, error: &serde_json::Error) -> ConfigError {
    ConfigError::Malformed {
        reason: error.to_string(),
        example: r#"{"backfill": true}"#,
        text: Arc::new(NamedSource::new(name, text.to_owned())),
        at: SourceSpan::from(offset(text, error.line(), error.column())),
    }
}

/// Byte offset of a line and column that both count from one; inside the text.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let at = (before + column.saturating_sub(1)).min(text.len().saturating_sub(1));
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_json_and_marks_what_is_wrong() {
        assert_eq!(read(None).unwrap().to_string(), "{}");
        assert_eq!(read(Some(r#"{"b":1,"a":2}"#)).unwrap().to_string(), r#"{"a":2,"b":1}"#);
        assert!(matches!(read(Some("[1]")), Err(ConfigError::NotAnObject)));
        assert!(matches!(read(Some("@/no/such/file")), Err(ConfigError::Unreadable { .. })));
        match read(Some("{\"a\":\n  oops}")) {
            Err(ConfigError::Malformed { at, reason, .. }) => {
                assert_eq!(at.offset(), 8, "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn offsets_stay_inside() {
        let check = |text, line, column, expected| assert_eq!(offset(text, line, column), expected);
        check("abc", 1, 2, 1);
        check("ab\ncd", 2, 1, 3);
        check("ab", 9, 9, 1);
        check("", 1, 1, 0);
        check("é", 1, 2, 0);
    }
}
