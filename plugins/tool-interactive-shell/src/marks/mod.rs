//! Prompt marks (OSC 133), with which a shell reports its prompts and the end of commands.
//!
//! Programs can print such marks as well, so only marks with the session's nonce count. The marks
//! stay in the stream, because terminals ignore unknown sequences.

mod nonce;
mod scanner;
mod setup;

pub use nonce::{NONCE_LENGTH_MAX, NONCE_LENGTH_MIN, MarkNonce};
pub use scanner::{MARK_BYTES_MAX, ShellMark, MarkKind, MarkScanner};
pub use setup::{ShellInjection, MarkableShell};
