//! Converts the bytes of a file to text and back. Pure.

mod charset;
mod kind;
mod lines;

pub use charset::{DecodedText, decode_bytes, display_text};
pub use kind::{describe_binary_kind, detect_image_type};
pub use lines::{LineView, count_lines};
