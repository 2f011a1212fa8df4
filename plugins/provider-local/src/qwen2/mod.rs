//! The forward pass of Qwen2 and Qwen2.5 on quantised weights, on the CPU.
//!
//! This is not `candle-transformers`, because that crate copies the cache at every token and keeps
//! it private, so that it can be neither truncated nor saved.

mod cache;
mod layer;
mod model;
mod weights;

pub use model::Qwen2;
