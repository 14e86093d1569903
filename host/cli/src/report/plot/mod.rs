//! A small plot module: scales, axes and marks drawn as SVG that takes its colours from the page's style.

mod frame;
mod scale;
mod style;
mod svg;

pub(crate) use frame::{Axis, Frame};
pub(crate) use scale::Scale;
pub(crate) use style::{Size, fill_class, line_class, stroke_class};
pub(crate) use svg::{Anchor, Svg};
