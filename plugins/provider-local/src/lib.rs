//! Plugin `provider-local`: a language model that runs inside the plugin, without an API key or a
//! server.
//!
//! The modules from the bottom up: `gguf` reads the header of the weights, and `qwen2` computes
//! behind the trait in `engine`. `tokenizer` and `grammar` know text and calls, `prompt` writes a
//! request, and `decode` produces the answer. `state` keeps the start of prompts across processes.
//! `local` combines these modules, `worker` runs them on a separate thread, and `plugin` connects
//! the worker to the host.
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

use plugin::{LocalProvider, LocalProviderState};

jaato_plugin_sdk::export_plugin! {
    state: LocalProviderState,
    provider: LocalProvider,
    scope: host,
    isolation: worker,
    // With AMX, the runtime keeps a third copy of the weights. Without it, the default model needs
    // less than 2.75 GiB. Every processor with AMX also supports the simpler kernels.
    variables: ["MISTRALRS_FORCE_AVX2=1 if memory < 6 GiB", "MISTRALRS_FORCE_AVXVNNI", "RAYON_NUM_THREADS"]
}
