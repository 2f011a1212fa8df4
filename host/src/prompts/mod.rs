//! jaato's prompts for the user at the terminal: each kind of prompt as rows, and its answers as
//! lines.
//!
//! [`crate::terminal`] draws and reads keys. [`crate::ask`] decides who may ask when.

pub mod form;
pub mod permission;
pub mod secret;
pub mod trust;
