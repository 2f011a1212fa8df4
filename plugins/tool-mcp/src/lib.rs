//! `tool-mcp`: servers of the Model Context Protocol, their tools, resources and prompts.
//!
//! [`config`] reads which servers there are, [`transport`] how bytes come and go, [`connection`] is
//! one client of `rmcp` over them, [`client`] what a server may ask of us, [`oauth`] how somebody
//! logs in to one. [`server`] keeps one server up, [`servers`] all of them; [`offer`] is what
//! models and people have of them. [`runtime`] is the thread on which the protocol runs, [`state`]
//! the plugin, [`library`] what other programs use.
#![forbid(unsafe_code)]

pub mod asks;
pub mod cache;
pub mod call;
pub mod client;
pub mod config;
pub mod connection;
pub mod content;
pub mod described;
pub mod library;
pub mod log;
pub mod names;
pub mod oauth;
pub mod offer;
mod people;
pub mod resources;
pub mod runner;
pub mod runtime;
mod sampling;
pub mod schema;
pub mod server;
pub mod servers;
pub mod site;
pub mod state;
pub mod transport;

use jaato_plugin_sdk::prelude::*;

use state::Mcp;

export_plugin! { scope: host, state: Mcp, tools: dynamic }
