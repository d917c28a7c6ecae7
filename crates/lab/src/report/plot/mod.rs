//! Drawing tools for plots: SVG that a page holds inline and gives its colours to.
//!
//! ```text
//!            title of y
//!            :  marks of events  :
//!       tick |-------------------|  name
//!            |  what is plotted  |  name
//!       tick |___________________|
//!            tick    tick     tick
//!                        title of x
//! ```
//!
//! Nothing here names a colour: shapes have classes, and the page's style sheet has colours for light and for dark.

mod axis;
mod frame;
mod svg;

pub(super) use axis::Axis;
pub(super) use frame::{Frame, WIDTH};
pub(super) use svg::{Svg, escaped};

/// A place in a drawing, in its own units: from the left, from the top.
pub(super) type Point = (f64, f64);
