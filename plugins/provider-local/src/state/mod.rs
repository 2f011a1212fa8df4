//! Keeps the computed start of prompts on disk, so that a fresh process need not compute it again.
//!
//! Only system text, tools and examples: never a word of a conversation. Files are readable by
//! their owner only. What is damaged is removed and said, never trusted.

mod file;
mod store;

pub use file::ModelDigest;
pub use store::{BYTES_MAX, Found, Store, common_prefix};
