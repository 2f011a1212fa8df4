//! `tool-subagent`: subagents, which are child sessions with their own model, tools and limits.
//!
//! A [`Profile`] describes a kind of subagent. [`Profiles`] reads them from the configuration and
//! from files, [`profile_file`] parses one file, [`tool_choice`] selects its tools, and
//! [`profile_tools`] and [`user_commands`] show them.
#![forbid(unsafe_code)]

mod config;
mod field_reader;
mod find_files;
mod profile;
mod profile_file;
mod profile_tools;
mod profiles;
mod tool_choice;
mod user_commands;
mod variables;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{schemars, serde_json};

pub use config::Config;
pub use profile::{Isolation, Profile, ProfileLimits};
pub use profiles::{ProfilePlaces, Profiles, SkippedProfile};
pub use tool_choice::{SelectedTools, ToolChoice};

/// The subagents of a session.
#[derive(Default)]
pub struct Subagents {}

impl State for Subagents {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::default())
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.commands = vec![user_commands::command()];
    }

    async fn command(cx: &Cx<Self>, name: &str, _arguments: Value) -> Result<Output> {
        if name != user_commands::NAME {
            let text = format!("unknown command `{name}`");
            return Err(Error::new(ErrorKind::UnknownOperation, text));
        }
        let profiles = Profiles::load(cx).await?;
        Ok(Output::text(user_commands::list_profiles(&profiles)))
    }
}

export_plugin! { state: Subagents, tools }
