//! Plugin `provider-google-genai`: Gemini models over Google's generateContent API.
//!
//! These modules are pure. `request` writes a request, with `settings` for the options, `thinking`
//! for the amount of thinking, `tools` for the tools, `schema` and `reduced` for the two forms of
//! their schemas, `history` for the messages, `content` for their parts, and `names` for tool
//! names. `reply` reads a streamed or a complete answer, with `usage` for the tokens and `reason`
//! for the finish reason. `refusal` adds hints to errors, and `quota` reads when to retry. `models`
//! reads the list of models, `facts` describes the allowed content of a request, and `habits`
//! contains requirements that a server revealed. `endpoint` chooses between AI Studio and Vertex
//! AI, `credentials` lists their credentials, and `config` contains the settings.
//!
//! `plugin` connects them to the host, which owns the connection, the keys and the tokens. `state`
//! contains what the plugin remembers, and `exchange` sends requests with the user's credential.
#![forbid(unsafe_code)]

pub mod config;
pub mod content;
mod count;
mod credentials;
pub mod endpoint;
mod exchange;
mod facts;
mod history;
pub mod models;
mod names;
mod openapi_subset;
pub mod plugin;
mod quota;
mod reason;
mod refusal;
pub mod reply;
pub mod request;
mod request_style;
mod schema;
pub mod settings;
pub mod state;
mod thinking;
mod tools;
mod usage;

use plugin::GoogleProvider;
use state::GoogleState;

jaato_plugin_sdk::export_plugin! { state: GoogleState, provider: GoogleProvider, scope: host }
