//! Plugin `provider-google-genai`: Gemini models over Google's generateContent.
//!
//! Pure: `request` writes a request down (`settings` what is set, `thinking` how much a model
//! thinks, `tools` the tools, `schema` and `reduced` their schemas in two forms, `history` the
//! messages, `content` their parts, `names` what tools are called), `reply` reads what is streamed
//! or comes at once (`usage` what it cost, `reason` why it ended), `refusal` says what to do about
//! an error, `quota` when to come again, `models` reads the list of models, `facts` knows what
//! requests to a model may say, `habits` what a server turned out to want, `endpoint` whom to ask:
//! AI Studio or Vertex AI, `credentials` by what they know a person, `config` the settings.
//! `plugin` stands between them and the host, which owns the connection, the keys and the tokens;
//! `state` has what it remembers, `exchange` sends with the credential that the person has.
#![forbid(unsafe_code)]

pub mod config;
pub mod content;
mod count;
mod credentials;
pub mod endpoint;
mod exchange;
mod facts;
mod habits;
mod history;
pub mod models;
mod names;
pub mod plugin;
mod quota;
mod reason;
mod reduced;
mod refusal;
pub mod reply;
pub mod request;
mod schema;
pub mod settings;
pub mod state;
mod thinking;
mod tools;
mod usage;

use plugin::GoogleProvider;
use state::Google;

jaato_plugin_sdk::export_plugin! { state: Google, provider: GoogleProvider, scope: host }
