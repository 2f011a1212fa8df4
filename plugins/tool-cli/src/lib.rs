//! `cli_based_tool`: runs a command in the user's shell and tells the model what it printed and how
//! it ended.
//!
//! It starts nothing itself: the host's service `process` does, cleans the variables and ends what
//! must end. Here is what the model is shown of the output, and where the whole goes. Nothing that
//! a command prints is held whole in memory.
#![forbid(unsafe_code)]

mod answer;
mod collect;
mod config;
mod kept;
mod live;
mod plain;
mod tool;

jaato_plugin_sdk::export_plugin! { state: config::Cli, tools }
