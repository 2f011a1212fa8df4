//! Keeps the computed start of prompts on disk, so that a new process does not have to compute it
//! again.
//!
//! Only the system text, tools and examples are saved, never a part of a conversation. Only the
//! owner can read the files. Damaged files are removed and reported, never used.

mod file;
mod store;

pub use file::ModelDigest;
pub use store::{BYTES_MAX, MatchingState, ModelStateStore, common_prefix_length};
