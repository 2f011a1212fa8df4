//! `cli_based_tool`: runs a command in the user's shell and returns its output and exit status.
//!
//! The host's `process` service starts the program, cleans the environment variables, and ends
//! leftover processes. The tool streams the output to the host, which keeps all of it in a file and
//! truncates the model's copy.
#![forbid(unsafe_code)]

mod config;
mod tool;
mod tool_result;

jaato_plugin_sdk::export_plugin! { state: config::CliPlugin, tools }
