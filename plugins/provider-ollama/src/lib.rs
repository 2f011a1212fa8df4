//! Plugin `provider-ollama`: models of an Ollama server over its native API.
//!
//! The server's OpenAI endpoint cannot set the context size, so the server silently truncates long
//! conversations there. This plugin sets the size with each request, and never lets the server
//! truncate.
//!
//! These modules are pure. `endpoint` finds the server, and `config` contains the settings. `facts`
//! reads what the server reports about a model, and `window` chooses its context size. `request`
//! writes a request, with `thinking` for the amount of thinking, `tools` for the tools, and
//! `history` for the messages. `reply` reads an answer, `pull` reads the progress of a pull,
//! `models` reads the lists of models, and `refusal` adds hints to errors.
//!
//! `plugin` connects them to the host, which owns connections and keys. `state` remembers the
//! server's reports, and `exchange` sends and receives.
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
use state::OllamaState;

jaato_plugin_sdk::export_plugin! { state: OllamaState, provider: OllamaProvider, scope: host }
