//! `docs/figures.md`: one section per figure, renewed by its command.

use super::matrix::matrix;
use super::registry::{FIGURES, Figure};
use super::result::{Value, rows};
use crate::error::Error;
use crate::files;
use std::path::PathBuf;

const HEAD: &str = "# Figures\n\nEvery number that the project claims, written by `cargo xtask figures --write NAME`. Numbers of \
    different machines\nare not comparable.\n";

/// Renews the section of one figure.
pub(crate) fn write(figure: &Figure, values: &[Value], machine: &str, commit: &str) -> Result<PathBuf, Error> {
    let path = files::root().join("docs/figures.md");
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let section = section(figure, values, machine, commit);
    files::write(&path, renew(&old, figure.name, &section).as_bytes())?;
    Ok(path)
}

fn section(figure: &Figure, values: &[Value], machine: &str, commit: &str) -> String {
    let mut text = format!("\n## {}\n\n{}.\n\n{}\n\n", figure.name, capital(figure.about), figure.method);
    let is_listed = |value: &&Value| !figure.matrix || value.goal.is_some() || !value.label.contains(": ");
    let listed: Vec<Value> = values.iter().filter(is_listed).cloned().collect();
    let is_cell = |value: &&Value| figure.matrix && value.label.contains(": ");
    let cells: Vec<Value> = values.iter().filter(is_cell).cloned().collect();
    text.push_str("| | value | unit | goal |\n| --- | ---: | --- | --- |\n");
    for [label, value, unit, goal] in rows(&listed) {
        text.push_str(&format!("| {label} | {value} | {unit} | {goal} |\n"));
    }
    text.push_str(&matrix(&cells));
    text.push_str(&format!("\nMeasured at commit `{commit}` on: {machine}.\n"));
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The page with one section replaced; the sections stand in the registry's order.
fn renew(old: &str, name: &str, section: &str) -> String {
    let mut page = HEAD.to_owned();
    for figure in FIGURES {
        if figure.name == name {
            page.push_str(section);
        } else if let Some(kept) = find_section(old, figure.name) {
            page.push_str(kept);
        }
    }
    page
}

/// A section from the empty line before its heading to the end of its text.
fn find_section<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let start = page.find(&format!("\n## {name}\n"))?;
    let (_, rest) = page.split_at(start);
    let end = rest.get(1..)?.find("\n## ").map_or(rest.len(), |at| at + 1);
    rest.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_others_stay() {
        let first = renew("", "simulate-scale", "\n## simulate-scale\n\nold\n");
        let second = renew(&first, "decision-cost", "\n## decision-cost\n\nnumbers\n");
        let third = renew(&second, "simulate-scale", "\n## simulate-scale\n\nnew\n");
        assert!(third.starts_with(HEAD));
        assert!(third.contains("numbers") && third.contains("new") && !third.contains("old"));
        assert!(third.find("decision-cost") < third.find("simulate-scale"));
        assert_eq!(renew(&third, "simulate-scale", "\n## simulate-scale\n\nnew\n"), third);
    }
}
