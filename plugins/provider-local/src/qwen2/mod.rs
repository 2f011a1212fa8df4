//! The forward pass of Qwen2 and Qwen2.5 on quantised weights, on the CPU.
//!
//! Own code and not `candle-transformers`, because that copies the cache at every token and keeps
//! it private: it could be neither cut nor saved.

mod cache;
mod layer;
mod model;
mod weights;

pub use model::Qwen2;
