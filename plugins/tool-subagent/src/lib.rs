//! `tool-subagent`: subagents, which are child sessions with their own model, tools and limits.
#![forbid(unsafe_code)]

use jaato_plugin_sdk::prelude::*;

/// The subagents of a session.
#[derive(Default)]
pub struct Subagents {}

impl State for Subagents {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::default())
    }
}

export_plugin! { state: Subagents, tools }
