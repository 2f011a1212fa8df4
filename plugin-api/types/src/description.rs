//! The description: facts that a plugin's code reports. The host asks for it once and caches it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::execution::{EnvironmentPart, EnvironmentSpec};
use crate::hooks::Hook;
use crate::resources::ResourceSpec;
use crate::{Asset, ModelInfo, ToolSpec};

/// The facts about a plugin that its manifest does not contain. New fields may be added freely,
/// because it is data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Description {
    /// Version of this format.
    pub v: u32,
    /// The tools, sorted by name.
    pub tools: Vec<ToolSpec>,
    /// The plugin's part of the system prompt, sent while one of its tools is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The commands that a user may run by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandSpec>,
    /// JSON Schema of `[plugins.NAME]`. Without one, the plugin takes no configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// The provider, if the plugin is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderSpec>,
    /// The execution environment, if the plugin is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentSpec>,
    /// The parts that the environment never has, whatever its setup. The SDK fills this in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment_lacks: Vec<EnvironmentPart>,
    /// The resources that the plugin can create for other plugins in a session's environment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceSpec>,
    /// Large files that the plugin needs and the host downloads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assets: Vec<Asset>,
    /// Whether the host opens the plugin when a session begins instead of at its first call.
    /// Plugins that set tools need this.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_start: bool,
    /// Files and folders without which the plugin does nothing on its own. If none of them exists
    /// and the user has not configured the plugin, the host opens it only for a call of one of its
    /// tools or commands. It then ignores `at_start`, calls no hooks (except guards), and treats
    /// conditions of the plugin's tools as not met. Each path begins with one of [`PATH_ROOTS`]. If
    /// empty, the host always treats the plugin as active.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_with_files: Vec<String>,
    /// Prefixes of the tool names that the plugin sets while it runs. A user may name such a tool
    /// before it exists, and no other plugin may set one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_prefixes: Vec<String>,
    /// Secrets that the host adds to the plugin's requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<CredentialSpec>,
    /// The services that it uses and that need the user's grant, by the names in
    /// [`GRANTS`](crate::grant::GRANTS): `ask`, `secret`. The host refuses all others, even to
    /// plugins that come with jaato.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// The hooks that the plugin implements. The host ignores words that it does not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// How long the host waits for answers of hooks, in milliseconds, if the hook's own default is
    /// too short. The user's `session.hook_deadline_ms` is the limit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hook_deadlines_ms: BTreeMap<Hook, u64>,
}

/// The placeholders with which a path of [`Description::only_with_files`] may begin: the user's
/// home, the working directory or one of its parents, the folder of the plugin's own store, and the
/// folder of its store for the workspace.
pub const PATH_ROOTS: [&str; 4] = ["{home}/", "{workspace}/", "{store}/", "{workspace_store}/"];

impl Description {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Returns true if the plugin may set a tool with this name later. Prefixes shorter than three
    /// letters do not count.
    pub fn can_set_tool(&self, tool: &str) -> bool {
        self.tool_prefixes
            .iter()
            .any(|prefix| prefix.len() >= 3 && tool.starts_with(prefix.as_str()))
    }
}

/// A command that a user types after `/` or in the shell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// The name that the user types.
    pub name: String,
    /// One line for a list.
    pub description: String,
    /// JSON Schema of its arguments: an object.
    #[serde(default)]
    pub parameters: Value,
    /// Whether the model sees the command's answer.
    #[serde(default)]
    pub share_with_model: bool,
    /// Whether the host asks the plugin for completions while the user types the command
    /// ([`COMPLETE_WORDS`](crate::hooks::COMPLETE_WORDS)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completes: bool,
    /// Whether the command's answer, a text, becomes the next prompt. Without a model, the answer
    /// is shown to the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_prompt: bool,
    /// Whether lists leave the command out, because a program runs it and not the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
}

/// A model provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderSpec {
    /// The name before the slash in `provider/model`.
    pub name: String,
    /// One line for a list.
    #[serde(default)]
    pub title: String,
    /// The model for a request that does not name one.
    #[serde(default)]
    pub default_model: String,
    /// Models that are known without a request to the server.
    #[serde(default)]
    pub models: Vec<ModelInfo>,
    /// The supported request options, by their names in [`RequestOptions`](crate::RequestOptions),
    /// and [`TOOLS_CHANGED`](crate::TOOLS_CHANGED). The host refuses other options before it asks
    /// the provider. If absent, the provider supports `max_output_tokens` and `temperature`.
    #[serde(default = "first_options")]
    pub options: Vec<String>,
    /// The media types, other than text, that models accept unless they have their own list:
    /// `image/png`, or `image/*` for all images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepts: Vec<String>,
    /// Size limits for images and files. Instead of sending a larger file, the host informs the
    /// model and the user in text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media_limits: Vec<MediaLimit>,
    /// Servers that the provider knows by name. Each name may come before the slash in
    /// `provider/model`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<ProviderPreset>,
    /// Whether the provider holds one conversation at a time, so that a request outside the
    /// session's conversation would evict its cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_conversation: bool,
}

/// The size limits of a provider for a media type. A limit of 0 means no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MediaLimit {
    /// The media type: `image/png`, or `image/*` for all images.
    pub mime_type: String,
    /// The maximum number of bytes.
    #[serde(skip_serializing_if = "is_zero_64")]
    pub bytes_max: u64,
    /// The maximum number of pixels per side.
    #[serde(skip_serializing_if = "is_zero")]
    pub side_max: u32,
    /// If a request has more images than this, `side_max_of_many` applies to each of them.
    #[serde(skip_serializing_if = "is_zero")]
    pub many: u32,
    /// The maximum number of pixels per side if a request has many images.
    #[serde(skip_serializing_if = "is_zero")]
    pub side_max_of_many: u32,
}

fn is_zero(bound: &u32) -> bool {
    *bound == 0
}

fn is_zero_64(bound: &u64) -> bool {
    *bound == 0
}

/// A server that a provider knows by name, so that a user can use it without configuration.
/// Settings under `[providers.NAME]` override it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderPreset {
    /// The name before the slash in `provider/model`: `groq`. A provider with the same name takes
    /// precedence.
    pub name: String,
    /// One line for a list.
    #[serde(default)]
    pub title: String,
    /// The base URL of the server. API keys go to its origin.
    pub base_url: String,
    /// The variable that holds the API key: `GROQ_API_KEY`. It replaces the variable of the
    /// plugin's first credential. Empty if the server needs no key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variable: String,
    /// The plugin's settings for this server, as under `[providers.NAME]`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
}

/// Returns the options of providers that do not list any.
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

/// A secret that the host adds to a plugin's requests. The plugin never sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialSpec {
    /// The variable that holds the secret: `OPENAI_API_KEY`.
    pub variable: String,
    /// How the host adds the secret: `bearer`, `header:NAME`, `query:NAME`.
    pub scheme: String,
    /// How the host creates the token that it adds. The variable then names a credentials file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mint: Option<TokenRecipe>,
    /// The vendor's own origin, for which the credential is required.
    #[serde(default)]
    pub origin: String,
    /// The vendor's other origins. A `*` in the first label of a host matches the rest of that
    /// label: `https://*-aiplatform.googleapis.com`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// The variable by which a user overrides the vendor's base URL: `OPENAI_BASE_URL`. It is an
    /// alternative to the key `base_url` of `[plugins.NAME]`, which the plugin reads from its
    /// configuration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_url_variable: String,
}

/// How the host creates a token: from a file of Google credentials, from the one that `gcloud`
/// keeps, or at the machine's metadata server. The plugin sees neither the file nor the token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenRecipe {
    /// The scope of the token.
    pub scope: String,
    /// The header that names the project to bill, if the credentials have one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project_header: String,
}
