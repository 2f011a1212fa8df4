//! What environment plugins share: files that cannot be left by any path.
//!
//! [`files::Confined`] answers what tools ask of the files of an execution environment. It blocks, and knows nothing
//! of plugins; an environment plugin calls it on threads that may wait.
#![forbid(unsafe_code)]

pub mod files;
mod platform;
