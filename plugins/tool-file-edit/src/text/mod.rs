//! Converts the bytes of a file to text and back. Pure.

mod charset;
mod kind;
mod lines;

pub use charset::{DecodedText, decode, display_text};
pub use kind::{image_type, kind_of};
pub use lines::{LineView, lines_of};
