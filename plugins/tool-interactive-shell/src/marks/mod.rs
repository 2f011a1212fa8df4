//! Prompt marks (OSC 133): what a shell says of its prompts and of the commands that end.
//!
//! Programs can print such marks as well, so only those count that carry the session's nonce.
//! Nothing is taken out of the stream: terminals pass over what they do not know.

mod nonce;
mod scanner;
mod setup;

pub use nonce::{NONCE_LENGTH_MAX, NONCE_LENGTH_MIN, Nonce};
pub use scanner::{MARK_BYTES_MAX, Mark, MarkKind, MarkScanner};
pub use setup::{Injection, Shell};
