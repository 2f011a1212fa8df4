//! `tool-mcp`: servers of the Model Context Protocol, with their tools, resources and prompts.
//!
//! [`config`] reads the configured servers. [`transport`] sends and receives messages,
//! [`connection`] is one `rmcp` client over a transport, [`client`] answers a server's requests,
//! and [`oauth`] logs in to servers. [`server`] keeps one server up, and [`servers`] all of them.
//! [`offer`] collects the tools and commands for models and users. [`runtime`] is the thread on
//! which the protocol runs, [`state`] the plugin, and [`library`] the API for other programs.
#![forbid(unsafe_code)]

pub mod cache;
pub mod call;
pub mod call_context;
pub mod client;
pub mod config;
pub mod connection;
pub mod content;
pub mod library;
pub mod log;
pub mod names;
pub mod oauth;
pub mod offer;
pub mod resources;
pub mod runner;
pub mod runtime;
mod sampling;
pub mod schema;
pub mod server;
pub mod server_description;
pub mod server_requests;
pub mod servers;
pub mod state;
pub mod transport;
mod user_commands;

use jaato_plugin_sdk::prelude::*;

use state::McpPlugin;

export_plugin! { scope: host, state: McpPlugin, tools: dynamic }
