//! The options that several commands share, with their help.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum};
use jaato_runtime::config::{Caps, Dollars, Temperature, parse_effort};
use jaato_runtime::policy::PolicyMode;
use jaato_runtime::types::{Effort, RequestOptions};
use serde_json::Value;

use crate::exit::{CommandFailure, Exit};

/// The help heading of options that every command takes.
const GLOBAL: &str = "Global options";

/// The help heading of options for each request to the model's provider.
const REQUEST: &str = "Model options";

/// The help heading for saved sessions.
const SAVED: &str = "Saved sessions";

/// The help heading of the limits of a session.
const CAPS: &str = "Session limits";

/// Options of every command, before or after its name.
#[derive(Debug, Clone, Args)]
pub struct GlobalArgs {
    /// Also search this folder for plugins; repeatable
    #[arg(long, value_name = "DIR", global = true, help_heading = GLOBAL)]
    pub plugin_dir: Vec<PathBuf>,

    /// Do not use the network
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub offline: bool,

    /// Read this file instead of your config.toml
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL)]
    pub config: Option<PathBuf>,

    /// Read variables from this file instead of the workspace's .env
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL)]
    pub env_file: Option<PathBuf>,
}

/// Options with which a session starts.
#[derive(Debug, Clone, Args)]
pub struct SessionArgs {
    /// The model, for example `anthropic/claude-opus-5-5` or `ollama/qwen3:8b`
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub model: Option<String>,

    /// Offer only these tools: names or prefixes such as `mcp__git__*`; `none` offers no tools
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Run this tool without asking; repeatable. A `*` at the end matches any suffix. Write
    /// PLUGIN:TOOL for a tool of a plugin that does not ship with jaato
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub allow: Vec<String>,

    /// Run all tools without asking
    #[arg(long)]
    pub yes: bool,

    /// Approval mode: `ask`, `accept-edits` (edit workspace files without asking), `plan` (only
    /// read until you agree to a plan) or `read-only` (deny all changes)
    #[arg(long, value_name = "MODE", value_parser = crate::permissions::parse_mode)]
    pub mode: Option<PolicyMode>,

    /// Ignore `deny` rules in permission files; the ledger records this option
    #[arg(long)]
    pub ignore_deny_rules: bool,

    /// Additional instructions for the model
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,

    #[command(flatten)]
    pub request: RequestArgs,

    #[command(flatten)]
    pub caps: CapArgs,

    #[command(flatten)]
    pub environment: EnvironmentArgs,
}

/// Options of a conversation that a user follows.
#[derive(Debug, Clone, Default, Args)]
pub struct FollowArgs {
    /// Show the model's thinking if the provider returns it
    #[arg(long)]
    pub thoughts: bool,

    /// Work in the git worktree .worktrees/NAME, or without git in a copy of this folder; `jaato
    /// worktree` shows and applies the changes
    #[arg(long, value_name = "NAME", conflicts_with = "continued")]
    pub worktree: Option<String>,

    #[command(flatten)]
    pub saving: SavingArgs,
}

/// Which saved session continues, and whether it is saved.
#[derive(Debug, Clone, Default, Args)]
#[command(group = ArgGroup::new("continued").args(["newest", "resume"]))]
pub struct SavingArgs {
    /// Continue the newest session of this workspace
    #[arg(long = "continue", help_heading = SAVED, conflicts_with = "no_save")]
    pub newest: bool,

    /// Continue a saved session; without ID, jaato asks which one
    #[arg(long, value_name = "ID", num_args = 0..=1, help_heading = SAVED, conflicts_with = "no_save")]
    pub resume: Option<Option<String>>,

    /// Continue the session here even if another process has it open
    #[arg(long, help_heading = SAVED, requires = "continued")]
    pub take_over: bool,

    /// Do not save this session
    #[arg(long, help_heading = SAVED)]
    pub no_save: bool,
}

/// Limits of a whole session.
#[derive(Debug, Clone, Default, Args)]
pub struct CapArgs {
    /// Stop when the session has cost this many US dollars; needs a known model price
    #[arg(long, help_heading = CAPS, value_name = "DOLLARS")]
    pub max_cost: Option<Dollars>,

    /// Stop when requests and answers have used this many tokens
    #[arg(long, help_heading = CAPS, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,

    /// Stop after this many requests to the model
    #[arg(long, help_heading = CAPS, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
}

impl CapArgs {
    /// Returns the caps for the session.
    pub fn caps(&self) -> Caps {
        Caps { cost: self.max_cost, tokens: self.max_tokens, steps: self.max_steps }
    }
}

/// Options of each request to the model. A provider that does not support an option is not asked.
#[derive(Debug, Clone, Default, Args)]
pub struct RequestArgs {
    /// Sampling temperature, from 0 (greedy) to 2
    #[arg(long, help_heading = REQUEST, value_name = "NUMBER")]
    pub temperature: Option<Temperature>,

    /// Maximum number of tokens in one answer
    #[arg(long, help_heading = REQUEST, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_output_tokens: Option<u32>,

    /// Reasoning effort: none, minimal, low, medium, high or max
    #[arg(long, help_heading = REQUEST, value_name = "EFFORT", value_parser = parse_effort_word)]
    pub effort: Option<Effort>,

    /// Stop the answer before this text; repeatable
    #[arg(long, help_heading = REQUEST, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub stop: Vec<String>,

    /// Seed for repeatable sampling, if the provider supports it
    #[arg(long, help_heading = REQUEST, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Answer with one JSON value that matches the JSON Schema in this file
    #[arg(long, help_heading = REQUEST, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,

    /// Do not stream answers; for servers with broken streaming
    #[arg(long, help_heading = REQUEST)]
    pub no_streaming: bool,

    /// Service tier, as the provider names it (for example `flex` or `priority`)
    #[arg(long, help_heading = REQUEST, value_name = "NAME")]
    pub service_tier: Option<String>,

    /// Merge this JSON object into every request body; `null` removes a key
    #[arg(long, help_heading = REQUEST, value_name = "JSON", value_parser = parse_json_object)]
    pub extra_body: Option<JsonObject>,

    /// Send this header with every request; repeatable
    #[arg(long, help_heading = REQUEST, value_name = "NAME=VALUE", value_parser = parse_key_value)]
    pub extra_header: Vec<(String, String)>,
}

/// A JSON object in a single argument.
type JsonObject = serde_json::Map<String, Value>;

impl RequestArgs {
    /// Builds the options of a request.
    ///
    /// # Errors
    /// When the schema cannot be read, or is not valid.
    pub fn request_options(&self) -> Result<RequestOptions, CommandFailure> {
        let mut options = RequestOptions::default();
        options.temperature = self.temperature.map(Temperature::get);
        options.max_output_tokens = self.max_output_tokens;
        options.effort = self.effort;
        options.stop.clone_from(&self.stop);
        options.seed = self.seed;
        options.stream = self.no_streaming.then_some(false);
        options.output_schema = self.output_schema.as_deref().map(read_schema).transpose()?;
        options.service_tier.clone_from(&self.service_tier);
        options.extra_body = self.extra_body.clone().unwrap_or_default();
        options.extra_headers = self.extra_header.iter().cloned().collect();
        Ok(options)
    }
}

fn parse_json_object(text: &str) -> Result<JsonObject, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

fn parse_effort_word(word: &str) -> Result<Effort, String> {
    parse_effort(word).ok_or_else(|| "use none, minimal, low, medium, high or max".to_owned())
}

/// Reads a JSON Schema.
fn read_schema(path: &Path) -> Result<Value, CommandFailure> {
    let shown = path.display();
    let refused = |text: String| CommandFailure::new(Exit::Usage, text);
    let text = std::fs::read_to_string(path)
        .map_err(|error| refused(format!("cannot read the schema `{shown}`: {error}")))?;
    let schema: Value = serde_json::from_str(&text)
        .map_err(|error| refused(format!("the schema `{shown}` is not valid JSON: {error}")))?;
    if !schema.is_object() {
        return Err(refused(format!(
            "the schema `{shown}` is not a JSON Schema: it must be an object"
        )));
    }
    Ok(schema)
}

/// The place of the files and commands.
#[derive(Debug, Clone, Default, Args)]
pub struct EnvironmentArgs {
    /// Where commands run and files are: `local`, `docker`, or the environment of a plugin
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,

    /// Run in a new container created from this image and removed at the end
    #[arg(long, value_name = "IMAGE", conflicts_with = "container")]
    pub image: Option<String>,

    /// Run in this existing container
    #[arg(long, value_name = "CONTAINER")]
    pub container: Option<String>,

    /// Override one setting of the environment for this session; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_key_value)]
    pub environment_option: Vec<(String, String)>,
}

impl EnvironmentArgs {
    /// Returns true if the user chose anything about the environment.
    pub fn is_given(&self) -> bool {
        self.has_environment_name() || !self.environment_option.is_empty()
    }

    /// Returns true if the user chose the environment, and not only one of its settings.
    pub fn has_environment_name(&self) -> bool {
        [&self.environment, &self.image, &self.container].iter().any(|it| it.is_some())
    }
}

/// Splits `KEY=VALUE`.
pub fn parse_key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputForm {
    /// Text for a reader
    Text,
    /// JSON for programs; a conversation is a stream of events, one per line
    Json,
}
