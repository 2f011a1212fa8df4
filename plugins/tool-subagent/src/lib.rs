//! `tool-subagent`: subagents, which are child sessions with their own model, tools and limits.
//!
//! The host runs the children, shares the parent's rules, caps and user with them, and passes their
//! answers to the parent's model. This plugin contains the model's interface, with the names of the
//! original plugin: [`agents`] keeps the subagents of a session, [`spawn`] and [`tools`] are what
//! the model calls, [`worktree`] gives a subagent a folder of its own, [`activity`] notes what each
//! agent does, and [`command`] shows it to the user.
//!
//! A [`Profile`] describes a kind of subagent. [`Profiles`] reads them from the configuration and
//! from files, [`profile_file`] parses one file, [`tool_choice`] selects its tools, and
//! [`profile_tools`] and [`user_commands`] show them.
#![forbid(unsafe_code)]

mod activity;
mod agents;
mod command;
mod config;
mod field_reader;
mod find_files;
mod profile;
mod profile_file;
mod profile_tools;
mod profiles;
mod spawn;
mod tool_choice;
mod tools;
mod user_commands;
mod variables;
mod worktree;

use jaato_plugin_sdk::prelude::*;

pub use agents::Subagents;
pub use config::Config;
pub use profile::{Isolation, Profile, ProfileLimits};
pub use profiles::{ProfilePlaces, Profiles, SkippedProfile};
pub use tool_choice::{SelectedTools, ToolChoice};

export_plugin! { state: Subagents, tools }
