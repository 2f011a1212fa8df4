//! `cli_based_tool`: runs a command in the user's shell and tells the model what it printed and how
//! it ended.
//!
//! It starts nothing itself: the host's service `process` does, cleans the variables and ends what
//! must end. It streams what a command prints to the host, which keeps all of it in a file and
//! truncates what the model gets.
#![forbid(unsafe_code)]

mod answer;
mod config;
mod tool;

jaato_plugin_sdk::export_plugin! { state: config::Cli, tools }
