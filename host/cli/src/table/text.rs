//! Drawing a table in a terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// A table as plain text: units stand in the head.
pub(crate) struct Section {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Columns of words, which stand to the left; the others are numbers.
    pub(crate) words: Vec<usize>,
}

impl Section {
    /// A table with these column names; only the first column holds words.
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new(), words: vec![0] }
    }

    /// A table of words.
    pub(crate) fn of_words(head: &[&str]) -> Self {
        Self { words: (0..head.len()).collect(), ..Self::new(head) }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

/// Lines above and below the head and at the end.
const STYLE: TableStyle = TableStyle::new()
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .top_border(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// Never wrapped: the same text on every terminal.
pub(crate) fn render(section: &Section) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(section.head.iter().map(|cell| printable(cell)));
    for row in &section.rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        let words = section.words.contains(&at);
        column.set_cell_alignment(if words { CellAlignment::Left } else { CellAlignment::Right });
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    lines.concat()
}

/// Names come from traces and components: control characters could steer the terminal. Line breaks stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() && letter != '\n' { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_and_neutralises() {
        let mut section = Section::new(&["policy", "mean JCT [h]"]);
        section.row(["fifo\u{1b}[31m".to_owned(), "1.5".to_owned()]);
        section.row(["las".to_owned(), "12.25".to_owned()]);
        let text = render(&section);
        assert!(!text.contains('\u{1b}'), "{text}");
        let ends: Vec<usize> = text
            .lines()
            .filter(|line| line.contains("1.5") || line.contains("12.25") || line.contains("[h]"))
            .map(|line| line.trim_end().chars().count())
            .collect();
        assert_eq!(ends.len(), 3);
        assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
    }
}
