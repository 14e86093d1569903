//! What a measurement says: the table and the JSON object.

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

/// One number as the measuring program prints it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Value {
    pub(crate) label: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    /// 95 % confidence interval.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) goal: Option<f64>,
    pub(crate) op: Option<String>,
}

impl Value {
    /// The number, with its interval where there is one.
    pub(crate) fn shown(&self) -> String {
        let number = number(self.value);
        self.interval.map_or_else(
            || number.clone(),
            |(low, high)| format!("{number} ({}–{})", self::number(low), self::number(high)),
        )
    }

    /// The goal in words, and whether it is met.
    pub(crate) fn goal(&self) -> String {
        let (Some(goal), Some(op)) = (self.goal, self.op.as_deref()) else { return String::new() };
        let met = match op {
            "<=" => self.value <= goal,
            _ => self.value >= goal,
        };
        format!("{op} {} {}", number(goal), if met { "met" } else { "missed" })
    }
}

/// Columns of a table: label, value, unit, goal.
pub(crate) fn rows(values: &[Value]) -> Vec<[String; 4]> {
    values.iter().map(|value| [value.label.clone(), value.shown(), value.unit.clone(), value.goal()]).collect()
}

/// A table for the terminal.
pub(crate) fn table(values: &[Value]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(["", "value", "unit", "goal"]);
    table.add_rows(rows(values));
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    table.to_string()
}

/// The last line that the command prints.
pub(crate) fn json(figure: &str, values: &[Value], machine: &str, commit: &str) -> Json {
    let mut all = Map::new();
    for value in values {
        let mut one = json!({ "value": value.value, "unit": value.unit });
        if let Some((low, high)) = value.interval {
            one["interval"] = json!([low, high]);
        }
        if let (Some(goal), Some(op)) = (value.goal, &value.op) {
            one["goal"] = json!(goal);
            one["op"] = json!(op);
        }
        all.insert(value.label.clone(), one);
    }
    json!({ "figure": figure, "values": all, "machine": machine, "commit": commit })
}

/// Three significant digits for small numbers, whole ones with separators for large.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => separated(value.round()),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn separated(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: f64, goal: f64, op: &str) -> Value {
        let (label, unit) = ("a".into(), "µs".into());
        Value { label, value: number, unit, interval: None, goal: Some(goal), op: Some(op.into()) }
    }

    #[test]
    fn numbers_are_readable() {
        let check = |value, expected| assert_eq!(number(value), expected);
        check(0.8916, "0.892");
        check(1.254, "1.25");
        check(12.34, "12.3");
        check(123.4, "123");
        check(82_247.4, "82,247");
        check(-1_000_000.0, "-1,000,000");
    }

    #[test]
    fn intervals_are_shown() {
        let one = Value { interval: Some((0.85, 0.951)), ..value(0.9, 1.0, "<=") };
        assert_eq!(one.shown(), "0.900 (0.850–0.951)");
        assert_eq!(json("f", &[one], "m", "c")["values"]["a"]["interval"], serde_json::json!([0.85, 0.951]));
    }

    #[test]
    fn goals_are_judged() {
        let check = |value: Value, expected| assert_eq!(value.goal(), expected);
        check(value(1.2, 1.25, "<="), "<= 1.25 met");
        check(value(1.3, 1.25, "<="), "<= 1.25 missed");
        check(value(9.0, 5.0, ">="), ">= 5.00 met");
    }

    #[test]
    fn the_object_has_its_form() {
        let object = json("f", &[value(1.0, 2.0, "<=")], "two cores", "abc");
        let text = object.to_string();
        let read: Json = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read["values"]["a"]["goal"], 2.0);
        assert_eq!(read["figure"], "f");
        assert!(!text.contains('\n'));
    }
}
