//! Plugin `provider-openai`: any server that speaks OpenAI's chat completions.
//!
//! Pure: `request` writes a request down, `reply` reads what is streamed (`reason` why it ended,
//! `think` reasoning in tags, `halves` torn characters), `refusal` says what to do about an error,
//! `models` reads the list of models, `window` what servers tell of a context window, `endpoint`
//! joins URLs. `plugin` stands between them and the host, which owns the connection and the key;
//! `stream` follows a stream there.
#![forbid(unsafe_code)]

pub mod endpoint;
mod halves;
pub mod models;
pub mod plugin;
mod reason;
mod refusal;
pub mod reply;
pub mod request;
mod stream;
mod think;
pub mod window;

use plugin::{OpenAi, OpenAiProvider};

jaato_plugin_sdk::export_plugin! { state: OpenAi, provider: OpenAiProvider, scope: host }
