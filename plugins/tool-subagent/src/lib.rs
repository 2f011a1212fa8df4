//! `tool-subagent`: subagents, which are child sessions with their own model, tools and limits.
//!
//! The host runs the children, shares the parent's rules, caps and user with them, and passes their
//! answers to the parent's model. This plugin contains the model's interface, with the names of the
//! original plugin, the profiles, and the command `agents` for the user.
#![forbid(unsafe_code)]

mod activity;
mod agents;
mod command;
mod spawn;
mod tools;

use jaato_plugin_sdk::prelude::*;

pub use agents::Subagents;

export_plugin! { state: Subagents, tools }
