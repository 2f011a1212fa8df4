//! The options that several commands share. Their help is written here.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Heads what every command takes in each help, apart from the command's own options.
const GLOBAL: &str = "Global options";

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
}

/// What a conversation with a model is started with.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// The model
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub model: Option<String>,

    /// Only these tools; `none` for a model that takes no tools
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Run this tool without asking; may be given again. One of a plugin that is not shipped is
    /// PLUGIN:TOOL
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub allow: Vec<String>,

    /// Run every tool without asking
    #[arg(long)]
    pub yes: bool,

    /// More instructions for the model
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,

    /// Read variables from this file instead of the workspace's .env
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,

    #[command(flatten)]
    pub environment: EnvironmentArgs,
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
