//! The document around the plots.

use super::escape::{html, script_json};
use super::plot::{Size, fill_class, line_class};
use crate::table::Section;

const STYLE: &str = include_str!("../../assets/report.css");

/// A whole document. Nothing in it may load or run anything: the policy in its head forbids both.
pub(crate) fn document(title: &str, body: &str, data_json: &str) -> String {
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{STYLE}</style>
</head>
<body>
<main>
{body}
</main>
<script type="application/json" id="data">{data}</script>
</body>
</html>
"#,
        title = html(title),
        data = script_json(data_json)
    )
}

/// A figure drawn for both kinds of screens. `caption` is plain text; `legend` is HTML from [`legend`].
pub(crate) fn figure(title: &str, caption: &str, legend: &str, draw: impl Fn(Size) -> String) -> String {
    format!(
        "<h3>{}</h3>\n<figure>\n<figcaption>{}</figcaption>\n{legend}\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n</figure>\n",
        html(title),
        html(caption),
        draw(Size::Wide),
        draw(Size::Narrow)
    )
}

/// A legend of lines: label and style classes of each.
pub(crate) fn legend(lines: &[(String, String)]) -> String {
    let entries: String = lines
        .iter()
        .map(|(label, class)| {
            format!(
                r#"<span><svg viewBox="0 0 28 12" aria-hidden="true"><path d="M0 6L28 6" class="line {}"/></svg>{}</span>"#,
                html(class),
                html(label)
            )
        })
        .collect();
    format!("<div class=\"legend\">{entries}</div>")
}

/// A legend of filled areas: label and class of each.
pub(crate) fn area_legend(areas: &[(&str, &str)]) -> String {
    let entries: String = areas
        .iter()
        .map(|(label, class)| format!(r#"<span><i class="key {}"></i>{}</span>"#, html(class), html(label)))
        .collect();
    format!("<div class=\"legend\">{entries}</div>")
}

/// Labels with the line styles that series get by their position.
pub(crate) fn series_legend(labels: &[String]) -> String {
    let lines: Vec<_> = labels.iter().enumerate().map(|(at, label)| (label.clone(), line_class(at))).collect();
    legend(&lines)
}

/// A table. `keys` gives rows a colour key by their position.
pub(crate) fn table(section: &Section, keys: bool) -> String {
    let class = |at: usize| if section.words.contains(&at) { " class=\"words\"" } else { "" };
    let cells = |tag: &str, row: &[String]| -> String {
        row.iter().enumerate().map(|(at, cell)| format!("<{tag}{}>{}</{tag}>", class(at), html(cell))).collect()
    };
    let rows = section.rows.iter().enumerate();
    let body: String = rows
        .map(|(at, row)| {
            let key = if keys { format!("<i class=\"key {}\"></i>", fill_class(at)) } else { String::new() };
            format!("<tr>{}</tr>\n", cells("td", row).replacen('>', &format!(">{key}"), 1))
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n",
        cells("th", &section.head)
    )
}

/// A grid of facts; both sides are plain text.
pub(crate) fn facts(pairs: &[(&str, String)]) -> String {
    let cells: String = pairs
        .iter()
        .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", html(name), html(value)))
        .collect();
    format!("<dl class=\"facts\">\n{cells}</dl>\n")
}

/// Large numbers at the top; plain text.
pub(crate) fn tiles(pairs: &[(&str, String)]) -> String {
    let cells: String = pairs
        .iter()
        .map(|(name, value)| format!("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", html(name), html(value)))
        .collect();
    format!("<div class=\"tiles\">\n{cells}</div>\n")
}

/// A list of plain texts.
pub(crate) fn list(items: &[String]) -> String {
    let items: String = items.iter().map(|item| format!("<li>{}</li>\n", html(item))).collect();
    format!("<ul>\n{items}</ul>\n")
}
