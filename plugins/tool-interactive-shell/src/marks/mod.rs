//! Prompt marks (OSC 133), with which a shell reports its prompts and the end of commands.
//!
//! Programs can print such marks as well, so only marks with the session's nonce count. The marks
//! stay in the stream, because terminals ignore unknown sequences.

mod nonce;
mod scanner;
mod setup;

pub use nonce::{MarkNonce, NONCE_LENGTH_MAX, NONCE_LENGTH_MIN};
pub use scanner::{MARK_BYTES_MAX, MarkKind, MarkScanner, ShellMark};
pub use setup::{MarkableShell, ShellInjection};
