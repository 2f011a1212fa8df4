//! One edit of a text: what is replaced, and what is nearest to it where it is not there. Pure.

mod nearest;
mod target;

pub use nearest::nearest;
pub use target::{Anchors, Missed, find};
