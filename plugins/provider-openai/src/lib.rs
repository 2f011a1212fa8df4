//! Plugin `provider-openai`: any server that speaks OpenAI's chat completions.
//!
//! Pure: `request` writes a request down (`options` its settings, `messages` its history, `content`
//! what a message says and shows), `reply` reads what is streamed (`chunk` where servers put what
//! they say, `details` reasoning that goes back, `usage` what it cost, `reason` why it ended,
//! `think` reasoning in tags, `halves` torn characters), `refusal` says what to do about an error,
//! `models` reads the list of models, `sight` what they look at, `window` what servers tell of a
//! context window, `endpoint` joins URLs, `dialect` tells whose words a server understands,
//! `habits` what it wants differently.
//! `plugin` stands between them and the host, which owns the connection and the key; `state` has
//! its settings, `exchange` sends and reads what comes at once.
#![forbid(unsafe_code)]

mod chunk;
pub mod content;
mod details;
mod dialect;
pub mod endpoint;
mod exchange;
mod habits;
mod halves;
mod messages;
pub mod models;
pub mod options;
pub mod plugin;
mod reason;
mod refusal;
pub mod reply;
pub mod request;
mod sight;
pub mod state;
mod think;
mod usage;
pub mod window;

use plugin::OpenAiProvider;
use state::OpenAi;

jaato_plugin_sdk::export_plugin! { state: OpenAi, provider: OpenAiProvider, scope: host }
