//! Plugin `provider-ollama`: models of an Ollama server, over its own protocol.
//!
//! The server's OpenAI endpoint cannot set the size of the context, so the server cuts long
//! conversations there without a word. This plugin sets it with each request, and never lets the
//! server cut.
//!
//! Pure: `endpoint` finds the server (`config` the settings), `facts` reads what the server says of
//! a model, `window` chooses the size of its context, `request` writes a request (`thinking` how
//! much the model thinks, `tools` the tools, `history` the messages), `reply` reads an answer,
//! `pull` reads the progress of a fetch, `models` reads the lists of models, `refusal` says what to
//! do about an error. `plugin` stands between them and the host, which owns connections and keys;
//! `state` remembers what the server said, `exchange` sends and receives.
#![forbid(unsafe_code)]

pub mod config;
pub mod endpoint;
mod exchange;
pub mod facts;
mod history;
pub mod models;
pub mod plugin;
pub mod pull;
mod refusal;
pub mod reply;
pub mod request;
pub mod state;
mod thinking;
mod tools;
pub mod window;

use plugin::OllamaProvider;
use state::Ollama;

jaato_plugin_sdk::export_plugin! { state: Ollama, provider: OllamaProvider, scope: host }
