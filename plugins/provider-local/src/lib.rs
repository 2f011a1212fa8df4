//! Plugin `provider-local`: a language model that runs inside the plugin, without a key or a
//! server.
//!
//! Bottom up: `gguf` reads the weights' header, `qwen2` computes (behind the seam `engine`),
//! `tokenizer` and `grammar` know text and calls, `prompt` writes a request down, `decode` lets the
//! model answer, `state` keeps the start of prompts across processes, `local` puts them together,
//! `worker` runs that on a thread of its own, `plugin` stands between it and the host.
#![forbid(unsafe_code)]

pub mod cancel;
pub mod catalog;
pub mod decode;
pub mod engine;
pub mod gguf;
pub mod grammar;
pub mod local;
pub mod memory;
pub mod plugin;
pub mod prompt;
pub mod qwen2;

pub mod sampler;
pub mod state;
pub mod stop;
pub mod tokenizer;
pub mod turn;
pub mod worker;

use plugin::{Local, LocalProvider};

jaato_plugin_sdk::export_plugin! {
    state: Local,
    provider: LocalProvider,
    scope: host,
    isolation: worker,
    // With AMX the runtime keeps a third copy of the weights. Without it the default model stays
    // below 2.75 GiB; the plainer kernels are there on every processor that has the others.
    variables: ["MISTRALRS_FORCE_AVX2=1 if memory < 6 GiB", "MISTRALRS_FORCE_AVXVNNI", "RAYON_NUM_THREADS"]
}
