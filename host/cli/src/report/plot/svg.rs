//! Writing SVG elements.

use std::fmt::Write;

use crate::report::escape::html;

/// Where a text is held.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A drawing under way. Writing to a `String` cannot fail, so results of `write!` are dropped.
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ =
            write!(self.body, r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" class="{}"/>"#, html(class));
    }

    /// A rectangle; `title` is shown when pointed at.
    pub(crate) fn rect(&mut self, corner: (f64, f64), size: (f64, f64), class: &str, title: Option<&str>) {
        let ((x, y), (w, h)) = (corner, size);
        let _ = write!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}" class="{}""#,
            w.max(0.0),
            h.max(0.0),
            html(class)
        );
        self.close("rect", title);
    }

    pub(crate) fn circle(&mut self, centre: (f64, f64), radius: f64, class: &str, title: Option<&str>) {
        let (x, y) = centre;
        let _ = write!(self.body, r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" class="{}""#, html(class));
        self.close("circle", title);
    }

    pub(crate) fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let (x, y) = at;
        let _ = write!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{}" class="{}">{}</text>"#,
            anchor.name(),
            html(class),
            html(text)
        );
    }

    /// An open line through `points`; points that are not finite break it.
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], class: &str, title: Option<&str>) {
        let mut path = String::new();
        let mut pen_down = false;
        for (x, y) in points {
            if !(x.is_finite() && y.is_finite()) {
                pen_down = false;
                continue;
            }
            let _ = write!(path, "{}{x:.1} {y:.1}", if pen_down { "L" } else { "M" });
            pen_down = true;
        }
        let _ = write!(self.body, r#"<path d="{path}" class="{}""#, html(class));
        self.close("path", title);
    }

    /// The element; `label` says in words what it shows.
    pub(crate) fn finish(self, label: &str) -> String {
        format!(
            r#"<svg viewBox="0 0 {w:.0} {h:.0}" width="{w:.0}" height="{h:.0}" role="img" aria-label="{label}">{body}</svg>"#,
            w = self.width,
            h = self.height,
            label = html(label),
            body = self.body
        )
    }

    fn close(&mut self, element: &str, title: Option<&str>) {
        match title {
            Some(title) => {
                let _ = write!(self.body, "><title>{}</title></{element}>", html(title));
            }
            None => self.body.push_str("/>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_text_and_titles() {
        let mut svg = Svg::new(10.0, 20.0);
        svg.text((1.0, 2.0), Anchor::End, "label", "<b>");
        svg.rect((0.0, 0.0), (-1.0, 2.0), "s0", Some("a\"b"));
        let drawn = svg.finish("x<y");
        assert!(drawn.contains("&lt;b&gt;") && drawn.contains("<title>a&quot;b</title>"), "{drawn}");
        assert!(drawn.contains(r#"width="0.0""#) && drawn.contains("x&lt;y"), "{drawn}");
    }

    #[test]
    fn breaks_lines_where_nothing_is_known() {
        let mut svg = Svg::new(10.0, 20.0);
        svg.polyline(&[(0.0, 0.0), (1.0, f64::NAN), (2.0, 2.0), (3.0, 3.0)], "s0", None);
        assert!(svg.finish("").contains(r#"d="M0.0 0.0M2.0 2.0L3.0 3.0""#));
    }
}
