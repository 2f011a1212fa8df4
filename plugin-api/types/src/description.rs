//! The description: what is derived from a plugin's code, asked once and cached by the host.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::execution::{EnvironmentPart, EnvironmentSpec};
use crate::hooks::Hook;
use crate::resources::ResourceSpec;
use crate::{Asset, ModelInfo, ToolSpec};

/// Everything that a plugin says of itself beyond its manifest. Grows freely: it is data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Description {
    /// Version of this shape.
    pub v: u32,
    /// Its tools, sorted by name.
    pub tools: Vec<ToolSpec>,
    /// Its part of the prompt, sent while one of its tools is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What a person may run by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandSpec>,
    /// JSON Schema of `[plugins.NAME]`; without one the plugin takes no configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// The provider, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderSpec>,
    /// The execution environment, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentSpec>,
    /// What that environment has not, whatever it is made ready for; the sdk says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment_lacks: Vec<EnvironmentPart>,
    /// Resources of a session's environment that it can make for whoever asks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceSpec>,
    /// Big files that it needs and the host fetches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assets: Vec<Asset>,
    /// Whether it is opened when a session begins, and not with its first call: it has tools to
    /// set.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_start: bool,
    /// Files and folders without which the plugin has nothing to do by itself. If none of them
    /// exists and the user has not configured the plugin, only a call of one of its tools or
    /// commands opens it: the host ignores `at_start`, asks it no hooks (except as a guard), and
    /// takes conditions of its tools as not met. Each path begins with one of [`PATH_ROOTS`].
    /// Empty: the plugin always has something to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_with_files: Vec<String>,
    /// How names of tools begin that it sets while it runs: a person may name such a tool before it
    /// is there, and no other plugin sets one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_prefixes: Vec<String>,
    /// Secrets that the host adds to its requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<CredentialSpec>,
    /// What it asks for that needs a person's grant, by the names in
    /// [`GRANTS`](crate::grant::GRANTS): `ask`, `secret`. Whatever is not listed is refused, to
    /// plugins that are shipped as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// What it wants to be asked beside its own calls. Words that the host does not know are passed
    /// over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
}

/// How a path of [`Description::only_with_files`] begins: the user's home, the working directory
/// or one above it, the folder of the plugin's own store, and that of its store for the workspace.
pub const PATH_ROOTS: [&str; 4] = ["{home}/", "{workspace}/", "{store}/", "{workspace_store}/"];

impl Description {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Returns true if a tool of that name may be one that it sets later. A prefix has at least
    /// three letters.
    pub fn may_set(&self, tool: &str) -> bool {
        self.tool_prefixes
            .iter()
            .any(|prefix| prefix.len() >= 3 && tool.starts_with(prefix.as_str()))
    }
}

/// A command: what a person types behind `/` or at the shell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The name that is typed.
    pub name: String,
    /// One line for a list.
    pub description: String,
    /// JSON Schema of its arguments: an object.
    #[serde(default)]
    pub parameters: Value,
    /// Whether the model is shown what the command answered.
    #[serde(default)]
    pub share_with_model: bool,
    /// Whether the plugin is asked for words while a person types it
    /// ([`COMPLETE_WORDS`](crate::hooks::COMPLETE_WORDS)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completes: bool,
    /// Whether its answer, a text, is what the person says to the model next. Where no model talks
    /// the person reads it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_prompt: bool,
}

/// A model provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderSpec {
    /// The name before the slash in `provider/model`.
    pub name: String,
    /// One line for a list.
    #[serde(default)]
    pub title: String,
    /// The model for a request that names none.
    #[serde(default)]
    pub default_model: String,
    /// Models that are known without asking a server.
    #[serde(default)]
    pub models: Vec<ModelInfo>,
    /// What it honours of a request's options, by their names in
    /// [`RequestOptions`](crate::RequestOptions), and [`TOOLS_CHANGED`](crate::TOOLS_CHANGED). The
    /// host refuses what is not listed before it asks. A provider that says nothing honours
    /// `max_output_tokens` and `temperature`.
    #[serde(default = "first_options")]
    pub options: Vec<String>,
    /// Media types of what its models can look at, beside text, where a model does not say so
    /// itself: `image/png`, or `image/*` for all of a kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepts: Vec<String>,
    /// How large images and files may be. The host does not send a larger one: it tells the model
    /// in words that there is one, and the user as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media_limits: Vec<MediaLimit>,
    /// Servers that it knows by name, each of which stands before the slash of `provider/model` as
    /// well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<ProviderPreset>,
    /// Whether it holds one conversation at a time, so that a request beside the session's would
    /// cost that its cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_conversation: bool,
}

/// The largest image or file of a media type that a provider takes. A bound of 0 is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MediaLimit {
    /// The media type: `image/png`, or `image/*` for all of a kind.
    pub mime_type: String,
    /// Most bytes.
    #[serde(skip_serializing_if = "is_zero_64")]
    pub bytes_max: u64,
    /// Most pixels a side.
    #[serde(skip_serializing_if = "is_zero")]
    pub side_max: u32,
    /// From more than so many images in one request on, `side_max_of_many` holds for each of them.
    #[serde(skip_serializing_if = "is_zero")]
    pub many: u32,
    /// Most pixels a side of one of many images.
    #[serde(skip_serializing_if = "is_zero")]
    pub side_max_of_many: u32,
}

fn is_zero(bound: &u32) -> bool {
    *bound == 0
}

fn is_zero_64(bound: &u64) -> bool {
    *bound == 0
}

/// A server that a provider knows by name: a person names it, and need not set it up. What stands
/// under `[providers.NAME]` wins over it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderPreset {
    /// The name before the slash of `provider/model`: `groq`. The name of a provider wins over it.
    pub name: String,
    /// One line for a list.
    #[serde(default)]
    pub title: String,
    /// Where the server is. Keys go to its origin.
    pub base_url: String,
    /// The variable that holds its key: `GROQ_API_KEY`. It stands for the one that the plugin's
    /// first credential names; empty for a server that needs no key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variable: String,
    /// Settings of the plugin for it, as they would stand under `[providers.NAME]`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
}

/// The options that there were before a provider could list them.
fn first_options() -> Vec<String> {
    ["max_output_tokens", "temperature"].map(str::to_owned).to_vec()
}

impl Default for ProviderSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            title: String::new(),
            default_model: String::new(),
            models: Vec::new(),
            options: first_options(),
            accepts: Vec::new(),
            media_limits: Vec::new(),
            presets: Vec::new(),
            one_conversation: false,
        }
    }
}

/// A secret that the host adds to a plugin's requests; the plugin never sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialSpec {
    /// The variable that holds it: `OPENAI_API_KEY`.
    pub variable: String,
    /// How it is added: `bearer`, `header:NAME`, `query:NAME`.
    pub scheme: String,
    /// How the host mints the token that is added. The variable names a file of credentials then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mint: Option<TokenRecipe>,
    /// The vendor's own origin, for which the credential must be there.
    #[serde(default)]
    pub origin: String,
    /// The vendor's other origins. A `*` in the first label of a host stands for the rest of that
    /// label: `https://*-aiplatform.googleapis.com`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// The variable by which a person names another base URL than the vendor's: `OPENAI_BASE_URL`.
    /// It stands for the key `base_url` of `[plugins.NAME]`, which the plugin reads from its
    /// configuration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_url_variable: String,
}

/// How the host mints a token from a file of Google credentials, from the one that `gcloud` keeps,
/// or at the machine's metadata server. The plugin sees neither file nor token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenRecipe {
    /// The scope that the token is asked for.
    pub scope: String,
    /// The header in which the server is told which project pays, if the credentials name one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project_header: String,
}
