//! What jaato asks the user at the terminal: each kind of prompt as rows, and its answers as lines.
//!
//! Drawing and keys are the job of [`crate::terminal`]; who may ask when is that of [`crate::ask`].

pub mod form;
pub mod permission;
pub mod secret;
pub mod trust;
