//! Plugin `provider-local`: a language model that runs inside the plugin, without a key or a server.
//!
//! Bottom up: `gguf` reads the weights' header, `qwen2` computes (behind the seam `engine`), `tokenizer`
//! and `grammar` know text and calls, `prompt` writes a request down, `decode` lets the model answer,
//! `state` keeps the start of prompts across processes, `local` puts them together.
#![forbid(unsafe_code)]

pub mod cancel;
pub mod decode;
pub mod engine;
pub mod gguf;
pub mod grammar;
pub mod local;
pub mod memory;
pub mod prompt;
pub mod qwen2;
pub mod sampler;
pub mod state;
pub mod tokenizer;
