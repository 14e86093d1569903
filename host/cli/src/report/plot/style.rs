//! Sizes and classes that the page's style knows.

/// Every plot is drawn twice, for wide and for narrow screens; the style shows one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Wide,
    Narrow,
}

impl Size {
    /// Width of the drawing in CSS pixels.
    pub(crate) fn width(self) -> f64 {
        match self {
            Self::Wide => 1_080.0,
            Self::Narrow => 360.0,
        }
    }

    /// About how many labels fit along the horizontal axis.
    pub(crate) fn ticks(self) -> usize {
        match self {
            Self::Wide => 10,
            Self::Narrow => 4,
        }
    }
}

/// How many colours and dash patterns the style has; series beyond repeat them.
const SERIES_STYLES: usize = 8;

/// Colour of the lines of series number `at`.
pub(crate) fn stroke_class(at: usize) -> String {
    format!("s{}", at % SERIES_STYLES)
}

/// Colour of the areas of series number `at`.
pub(crate) fn fill_class(at: usize) -> String {
    format!("f{}", at % SERIES_STYLES)
}

/// Colour and dashes of series number `at`: lines are told apart without colours too.
pub(crate) fn line_class(at: usize) -> String {
    format!("s{0} dash{0}", at % SERIES_STYLES)
}
