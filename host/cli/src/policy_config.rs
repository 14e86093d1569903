//! A policy's configuration: JSON from the command line or a file, checked against the policy's schema.

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
    #[error("policy {policy} does not take this configuration: {}", reasons.join("; "))]
    #[diagnostic(help("`coretuner policy inspect {policy}` prints the schema of its configuration"))]
    Refused { policy: String, reasons: Vec<String> },
    #[error("policy {policy} describes its configuration with a schema that is not valid: {reason}")]
    BadSchema { policy: String, reason: String },
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

/// Checks a configuration against the schema that the policy carries; an empty schema allows anything.
pub(crate) fn check(policy: &str, schema: &str, config: &Value) -> Result<(), ConfigError> {
    if schema.trim().is_empty() {
        return Ok(());
    }
    let bad = |reason: String| ConfigError::BadSchema { policy: policy.to_owned(), reason };
    let schema: Value = serde_json::from_str(schema).map_err(|error| bad(error.to_string()))?;
    let validator = jsonschema::validator_for(&schema).map_err(|error| bad(error.to_string()))?;
    let reasons: Vec<String> = validator.iter_errors(config).map(|error| reason(&error)).collect();
    if reasons.is_empty() { Ok(()) } else { Err(ConfigError::Refused { policy: policy.to_owned(), reasons }) }
}

fn reason(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    if place.is_empty() { error.to_string() } else { format!("at {place}: {error}") }
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

    const SCHEMA: &str =
        r#"{"type":"object","properties":{"backfill":{"type":"boolean"}},"additionalProperties":false}"#;

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
    fn refuses_unknown_and_mistyped_fields() {
        let check = |config: &str| check("fifo", SCHEMA, &serde_json::from_str(config).unwrap());
        assert!(check(r#"{"backfill":true}"#).is_ok());
        let message = check(r#"{"backfil":true}"#).unwrap_err().to_string();
        assert!(message.contains("backfil"), "{message}");
        let message = check(r#"{"backfill":3}"#).unwrap_err().to_string();
        assert!(message.contains("at /backfill"), "{message}");
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
