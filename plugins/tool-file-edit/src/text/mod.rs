//! What the bytes of a file say as text, and how a changed text becomes bytes again. Pure.

mod charset;
mod kind;
mod lines;

pub use charset::{Decoded, decode, shown};
pub use kind::{image_type, kind_of};
pub use lines::{LineView, lines_of};
