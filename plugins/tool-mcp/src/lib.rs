//! `tool-mcp`: servers of the Model Context Protocol, their tools, resources and prompts.
//!
//! [`config`] reads which servers there are, [`transport`] how bytes come and go, [`connection`] is
//! one client of `rmcp` over them, [`client`] what a server may ask of us. [`runtime`] is the thread
//! on which the protocol runs.
#![forbid(unsafe_code)]

pub mod client;
pub mod config;
pub mod connection;
pub mod log;
pub mod names;
pub mod runtime;
pub mod schema;
pub mod site;
pub mod transport;

use jaato_plugin_sdk::prelude::*;

/// The servers.
pub struct Mcp;

impl State for Mcp {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self)
    }
}

export_plugin! { scope: host, state: Mcp, tools: dynamic }
