//! The options that several commands share. Their help is written here.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use jaato_runtime::config::{Caps, Dollars, Temperature, parse_effort};
use jaato_runtime::policy::Mode;
use jaato_runtime::types::{Effort, RequestOptions};
use serde_json::Value;

use crate::exit::{Exit, Failure};

/// Heads what every command takes in each help, apart from the command's own options.
const GLOBAL: &str = "Global options";

/// Heads what a model's provider is asked for with each request.
const REQUEST: &str = "What the model is asked for";

/// Heads what a session may use up.
const CAPS: &str = "What the session may use up";

/// What every command takes, before or after its name.
#[derive(Debug, Args)]
pub struct Global {
    /// Search this folder for plugins as well; may be given again
    #[arg(long, value_name = "DIR", global = true, help_heading = GLOBAL)]
    pub plugin_dir: Vec<PathBuf>,

    /// Use no network at all
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub offline: bool,

    /// Read this file instead of your own config.toml
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL)]
    pub config: Option<PathBuf>,

    /// Read variables from this file instead of the workspace's .env
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL)]
    pub env_file: Option<PathBuf>,
}

/// What a conversation with a model is started with.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// The model
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub model: Option<String>,

    /// Only these tools, by names or beginnings as `mcp__git__*`; `none` for a model that takes no
    /// tools
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Run this tool without asking; may be given again. A `*` at the end matches any rest. A
    /// tool of a plugin that is not shipped is PLUGIN:TOOL
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub allow: Vec<String>,

    /// Run every tool without asking
    #[arg(long)]
    pub yes: bool,

    /// Approval mode: `ask`, `accept-edits` (edit workspace files without asking), `plan` (only
    /// read until you agree to a plan) or `read-only` (deny all changes)
    #[arg(long, value_name = "MODE", value_parser = crate::permissions::parse_mode)]
    pub mode: Option<Mode>,

    /// Let no rule of a permissions file deny a call; the ledger says that it was given
    #[arg(long)]
    pub ignore_deny_rules: bool,

    /// More instructions for the model
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,

    /// Show what the model thinks, where its provider tells it
    #[arg(long)]
    pub thoughts: bool,

    #[command(flatten)]
    pub request: RequestArgs,

    #[command(flatten)]
    pub caps: CapArgs,

    #[command(flatten)]
    pub environment: EnvironmentArgs,
}

/// What a session may use up as a whole.
#[derive(Debug, Clone, Default, Args)]
pub struct CapArgs {
    /// Stop once the session has cost so many US dollars; the model's price must be known
    #[arg(long, help_heading = CAPS, value_name = "DOLLARS")]
    pub max_cost: Option<Dollars>,

    /// Stop once its requests and answers have so many tokens
    #[arg(long, help_heading = CAPS, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,

    /// Stop after so many requests to the model
    #[arg(long, help_heading = CAPS, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
}

impl CapArgs {
    /// As the session takes them.
    pub fn caps(&self) -> Caps {
        Caps { cost: self.max_cost, tokens: self.max_tokens, steps: self.max_steps }
    }
}

/// What each request to the model asks for. A provider that does not take an option is not asked.
#[derive(Debug, Clone, Default, Args)]
pub struct RequestArgs {
    /// Sampling temperature from 0, which is greedy, to 2
    #[arg(long, help_heading = REQUEST, value_name = "NUMBER")]
    pub temperature: Option<Temperature>,

    /// Most tokens of one answer
    #[arg(long, help_heading = REQUEST, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_output_tokens: Option<u32>,

    /// How much the model thinks: none, minimal, low, medium, high or max
    #[arg(long, help_heading = REQUEST, value_name = "EFFORT", value_parser = effort)]
    pub effort: Option<Effort>,

    /// Text before which the answer stops; may be given again
    #[arg(long, help_heading = REQUEST, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub stop: Vec<String>,

    /// Makes sampling repeatable where the provider can
    #[arg(long, help_heading = REQUEST, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Answer with one JSON value that matches the JSON Schema in this file
    #[arg(long, help_heading = REQUEST, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,

    /// Ask for whole answers, for servers that stream badly
    #[arg(long, help_heading = REQUEST)]
    pub no_streaming: bool,

    /// How soon and how dear answers come, in the provider's words: flex, priority
    #[arg(long, help_heading = REQUEST, value_name = "NAME")]
    pub service_tier: Option<String>,

    /// Lay this JSON object over the body of each request; `null` takes a key out
    #[arg(long, help_heading = REQUEST, value_name = "JSON", value_parser = json_object)]
    pub extra_body: Option<JsonObject>,

    /// Send this header with each request; may be given again
    #[arg(long, help_heading = REQUEST, value_name = "NAME=VALUE", value_parser = key_and_value)]
    pub extra_header: Vec<(String, String)>,
}

/// A JSON object, which stands in one argument.
type JsonObject = serde_json::Map<String, Value>;

impl RequestArgs {
    /// Makes the options of a request.
    ///
    /// # Errors
    /// When the schema cannot be read, or is none.
    pub fn options(&self) -> Result<RequestOptions, Failure> {
        let mut options = RequestOptions::default();
        options.temperature = self.temperature.map(Temperature::get);
        options.max_output_tokens = self.max_output_tokens;
        options.effort = self.effort;
        options.stop.clone_from(&self.stop);
        options.seed = self.seed;
        options.stream = self.no_streaming.then_some(false);
        options.output_schema = self.output_schema.as_deref().map(schema).transpose()?;
        options.service_tier.clone_from(&self.service_tier);
        options.extra_body = self.extra_body.clone().unwrap_or_default();
        options.extra_headers = self.extra_header.iter().cloned().collect();
        Ok(options)
    }
}

fn json_object(text: &str) -> Result<JsonObject, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON object: {error}"))
}

fn effort(word: &str) -> Result<Effort, String> {
    parse_effort(word)
        .ok_or_else(|| "an effort is none, minimal, low, medium, high or max".to_owned())
}

/// Reads a JSON Schema.
fn schema(path: &Path) -> Result<Value, Failure> {
    let shown = path.display();
    let refused = |text: String| Failure::new(Exit::Usage, text);
    let text = std::fs::read_to_string(path)
        .map_err(|error| refused(format!("cannot read the schema `{shown}`: {error}")))?;
    let schema: Value = serde_json::from_str(&text)
        .map_err(|error| refused(format!("the schema `{shown}` is no JSON: {error}")))?;
    if !schema.is_object() {
        return Err(refused(format!(
            "the schema `{shown}` is no JSON Schema: it must be an object"
        )));
    }
    Ok(schema)
}

/// Where files lie and commands run.
#[derive(Debug, Clone, Default, Args)]
pub struct EnvironmentArgs {
    /// Where files lie and commands run: `local`, `docker`, or a plugin's
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,

    /// Work in a new container of this image; it goes at the end
    #[arg(long, value_name = "IMAGE", conflicts_with = "container")]
    pub image: Option<String>,

    /// Work in this container, which runs already and stays
    #[arg(long, value_name = "CONTAINER")]
    pub container: Option<String>,

    /// Set something of the environment for this session, over its configuration; may be given
    /// again
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub environment_option: Vec<(String, String)>,
}

/// Takes `KEY=VALUE` apart.
fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("an option is KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputForm {
    /// For people
    Text,
    /// The event stream, one JSON object a line
    Json,
}
