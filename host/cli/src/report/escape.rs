//! Text from traces and policies is untrusted: it reaches the page only through here.

/// `text` for HTML content and quoted attributes.
pub(crate) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters are not allowed in HTML or SVG.
            other if other.is_control() && other != '\n' && other != '\t' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// JSON for a `<script type="application/json">` element: nothing in it can end the element.
pub(crate) fn script_json(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neutralises_markup() {
        let check = |input: &str, expected: &str| assert_eq!(html(input), expected);
        check("resnet18", "resnet18");
        check("<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
        check("\" onload=\"x", "&quot; onload=&quot;x");
        check("a&b\u{0}", "a&amp;b\u{fffd}");
    }

    #[test]
    fn keeps_json_inside_its_element() {
        let json = serde_json::to_string("</script><script>alert(1)</script>").unwrap();
        let safe = script_json(&json);
        assert!(!safe.contains('<'), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "</script><script>alert(1)</script>");
    }
}
