//! Licences of everything that is linked or runs while building: the list of `deny.toml`.

use crate::metadata::packages;
use coretuner_tests::{paths, source};

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = allowed();
    let packages = packages();
    let wrong: Vec<String> = packages
        .values()
        .filter(|package| !package.licence.as_deref().is_some_and(|licence| is_allowed(licence, &allowed)))
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.licence))
        .collect();
    assert!(wrong.is_empty(), "licences that deny.toml does not allow:\n{}", wrong.join("\n"));
}

#[test]
fn licence_expressions_are_read() {
    let allowed = ["MIT".to_owned(), "Apache-2.0".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned()];
    let check = |licence, expected| assert_eq!(is_allowed(licence, &allowed), expected, "{licence}");
    check("MIT", true);
    check("GPL-3.0", false);
    check("GPL-3.0 OR MIT", true);
    check("MIT/Apache-2.0", true);
    check("MIT AND GPL-3.0", false);
    check("(MIT OR GPL-3.0) AND Apache-2.0", true);
    check("(MIT OR Apache-2.0) AND GPL-3.0", false);
    check("Apache-2.0 WITH LLVM-exception", true);
}

/// The allow list of `deny.toml`.
fn allowed() -> Vec<String> {
    let text = source::text(&paths::file("deny.toml")).expect("deny.toml is text");
    let list = text.split("allow = [").nth(1).and_then(|rest| rest.split(']').next()).expect("an allow list");
    list.split(',').map(|word| word.trim().trim_matches('"').to_owned()).filter(|word| !word.is_empty()).collect()
}

/// Whether a licence expression can be met from the list: each part joined by AND needs one alternative of its ORs.
fn is_allowed(licence: &str, allowed: &[String]) -> bool {
    let licence = licence.replace('/', " OR ");
    if let Some((left, right)) = split_outside(&licence, " AND ") {
        return is_allowed(left, allowed) && is_allowed(right, allowed);
    }
    if let Some((left, right)) = split_outside(&licence, " OR ") {
        return is_allowed(left, allowed) || is_allowed(right, allowed);
    }
    let inner = licence.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    inner.map_or_else(|| allowed.iter().any(|one| one == licence.trim()), |inner| is_allowed(inner, allowed))
}

/// Splits at the first `word` that stands outside parentheses.
fn split_outside<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && text[at..].starts_with(word) => return Some((&text[..at], &text[at + word.len()..])),
            _ => {}
        }
    }
    None
}
