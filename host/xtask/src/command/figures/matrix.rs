//! Values of many cells as one table.

use super::result::Value;

/// Values named `ROW: COLUMN`, rows and columns in the order in which they first come. Empty without values.
pub(crate) fn matrix(values: &[Value]) -> String {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    let mut cells = Vec::new();
    for value in values {
        let (row, column) = value.label.rsplit_once(": ").unwrap_or((&value.label, &value.unit));
        cells.push((place(&mut rows, row), place(&mut columns, column), value.shown()));
    }
    if cells.is_empty() {
        return String::new();
    }
    let mut table = vec![vec![String::new(); columns.len()]; rows.len()];
    for (row, column, text) in cells {
        table[row][column] = text;
    }
    let mut text = format!("\n| | {} |\n| --- |{}\n", columns.join(" | "), " ---: |".repeat(columns.len()));
    for (row, cells) in rows.iter().zip(&table) {
        text.push_str(&format!("| {row} | {} |\n", cells.join(" | ")));
    }
    text
}

/// Index of `name`, added when new.
fn place<'a>(names: &mut Vec<&'a str>, name: &'a str) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(label: &str, value: f64) -> Value {
        Value { label: label.into(), value, unit: "h".into(), interval: None, goal: None, op: None }
    }

    #[test]
    fn rows_and_columns_are_named_by_labels() {
        let values = [value("FIFO: mean", 2.0), value("FIFO: p99", 30.0), value("LAS: p99", 40.0), value("alone", 1.0)];
        let expected = "\n| | mean | p99 | h |\n| --- | ---: | ---: | ---: |\n\
            | FIFO | 2.00 | 30.0 |  |\n| LAS |  | 40.0 |  |\n| alone |  |  | 1.00 |\n";
        assert_eq!(matrix(&values), expected);
        assert_eq!(matrix(&[]), "");
    }
}
