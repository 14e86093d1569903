//! Streaming rows of a separated-values file; every error names line, column and reason.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use coretuner_core::model::TimeNs;

use super::error::TraceError;
use super::source;

/// Longest time that a trace may speak of, seconds (about 95 years): nanoseconds and sums stay exact enough.
const TIME_S_MAX: f64 = 3e9;

/// Rows of one file.
pub(crate) struct Rows {
    path: PathBuf,
    reader: csv::Reader<Box<dyn BufRead>>,
    columns: Vec<String>,
    record: csv::StringRecord,
}

/// How a file is laid out.
pub(crate) struct Layout<'a> {
    pub(crate) delimiter: u8,
    /// Names of the columns of a file without a header; `None` = the first row names them.
    pub(crate) columns: Option<&'a [&'a str]>,
    /// Columns that must be there.
    pub(crate) required: &'a [&'a str],
    /// Columns that may be there; `None` = any.
    pub(crate) optional: Option<&'a [&'a str]>,
    /// Lines that start with `#` are left out.
    pub(crate) comments: bool,
}

impl Rows {
    /// Opens the file and checks its header.
    pub(crate) fn open(path: &Path, layout: &Layout<'_>) -> Result<Self, TraceError> {
        let reader = csv::ReaderBuilder::new()
            .delimiter(layout.delimiter)
            .has_headers(false)
            .flexible(true)
            .quoting(layout.delimiter == b',')
            .comment(layout.comments.then_some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(source::open(path)?);
        let mut rows = Self { path: path.to_owned(), reader, columns: Vec::new(), record: csv::StringRecord::new() };
        match layout.columns {
            Some(columns) => rows.columns = columns.iter().map(|name| (*name).to_owned()).collect(),
            None => rows.read_header(layout)?,
        }
        Ok(rows)
    }

    fn read_header(&mut self, layout: &Layout<'_>) -> Result<(), TraceError> {
        if !self.advance()? {
            return Err(TraceError::File { path: self.path.clone(), reason: "the file is empty".to_owned() });
        }
        self.columns = self.record.iter().map(|name| name.trim_start_matches('\u{feff}').to_owned()).collect();
        let missing = layout.required.iter().find(|name| !self.columns.iter().any(|column| column == *name));
        if let Some(name) = missing {
            return Err(self.line_error(format!("the header lacks column `{name}`")));
        }
        let known = |column: &String| {
            let listed = |names: &[&str]| names.contains(&column.as_str());
            listed(layout.required) || layout.optional.is_none_or(listed)
        };
        match self.columns.iter().find(|column| !known(column)) {
            Some(column) => Err(self.line_error(format!("the header has an unknown column `{column}`"))),
            None => Ok(()),
        }
    }

    /// The next row; `None` at the end. Empty lines are left out.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>, TraceError> {
        if !self.advance()? {
            return Ok(None);
        }
        let (found, wanted) = (self.record.len(), self.columns.len());
        if found != wanted {
            return Err(self.line_error(format!("{found} columns, {wanted} expected")));
        }
        Ok(Some(Row { rows: self }))
    }

    /// Line of the last row read.
    pub(crate) fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    fn advance(&mut self) -> Result<bool, TraceError> {
        self.reader.read_record(&mut self.record).map_err(|error| self.csv_error(&error))
    }

    fn csv_error(&self, error: &csv::Error) -> TraceError {
        let line = error.position().map_or(0, csv::Position::line);
        match error.kind() {
            csv::ErrorKind::Io(source) => TraceError::Read {
                path: self.path.clone(),
                source: std::io::Error::new(source.kind(), source.to_string()),
            },
            csv::ErrorKind::Utf8 { .. } => {
                TraceError::Line { path: self.path.clone(), line, reason: "is not UTF-8 text".to_owned() }
            }
            _ => TraceError::Line { path: self.path.clone(), line, reason: error.to_string() },
        }
    }

    fn line_error(&self, reason: String) -> TraceError {
        TraceError::Line { path: self.path.clone(), line: self.line(), reason }
    }
}

/// One row.
pub(crate) struct Row<'a> {
    rows: &'a Rows,
}

impl Row<'_> {
    /// Line in the file, 1 = first.
    pub(crate) fn line(&self) -> u64 {
        self.rows.line()
    }

    /// The cell of `column`; empty where the file has no such column.
    pub(crate) fn text(&self, column: &str) -> &str {
        self.index(column).and_then(|index| self.rows.record.get(index)).unwrap_or("")
    }

    /// A cell that may not be empty.
    pub(crate) fn name(&self, column: &str) -> Result<&str, TraceError> {
        match self.text(column) {
            "" => Err(self.error(column, "is empty")),
            text => Ok(text),
        }
    }

    /// A number.
    pub(crate) fn number<T: FromStr>(&self, column: &str) -> Result<T, TraceError> {
        let text = self.name(column)?;
        text.parse().map_err(|_| self.error(column, &format!("`{text}` is no {}", kind_of::<T>())))
    }

    /// A number, or `None` for an empty cell.
    pub(crate) fn optional<T: FromStr>(&self, column: &str) -> Result<Option<T>, TraceError> {
        if self.text(column).is_empty() { Ok(None) } else { self.number(column).map(Some) }
    }

    /// A whole number within bounds.
    pub(crate) fn within(&self, column: &str, least: u32, most: u32) -> Result<u32, TraceError> {
        let value: f64 = self.number(column)?;
        if value.fract() != 0.0 || value < f64::from(least) || value > f64::from(most) {
            return Err(self.error(column, &format!("{value} is no whole number from {least} to {most}")));
        }
        Ok(value as u32)
    }

    /// Seconds (with a fraction) as nanoseconds.
    pub(crate) fn seconds(&self, column: &str) -> Result<TimeNs, TraceError> {
        let value: f64 = self.number(column)?;
        if !(0.0..=TIME_S_MAX).contains(&value) {
            return Err(self.error(column, &format!("{value} seconds are not between 0 and {TIME_S_MAX}")));
        }
        Ok((value * 1e9).round() as TimeNs)
    }

    /// Points at `column`.
    pub(crate) fn error(&self, column: &str, reason: &str) -> TraceError {
        TraceError::Cell {
            path: self.rows.path.clone(),
            line: self.line(),
            column: self.index(column).map_or(0, |index| index + 1),
            field: column.to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn index(&self, column: &str) -> Option<usize> {
        self.rows.columns.iter().position(|name| name == column)
    }
}

fn kind_of<T>() -> &'static str {
    match std::any::type_name::<T>() {
        "f64" | "f32" => "number",
        "i32" | "i64" => "whole number",
        _ => "whole number from 0 up",
    }
}
