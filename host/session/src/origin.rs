//! Who makes a call that is not the model's: a plugin, and the call that it makes it for.

use jaato_types::{CallId, PluginName};

use crate::Hold;

/// How deep calls of tools by tools may go: a tool that calls a tool that calls a tool.
pub const CALL_DEPTH_MAX: u32 = 3;

/// A plugin that calls a tool.
#[derive(Debug, Clone)]
pub struct CallOrigin {
    /// The plugin.
    pub plugin: PluginName,
    /// Its own call, for which it makes this one; none outside of calls.
    pub parent: Option<CallId>,
    /// How many calls of plugins stand above this one, at least 1.
    pub depth: u32,
    /// The deadline of its own call.
    pub hold: Hold,
}

impl CallOrigin {
    /// Makes the origin of a call that a plugin makes outside of its own calls.
    pub fn of(plugin: PluginName) -> Self {
        Self { plugin, parent: None, depth: 1, hold: Hold::default() }
    }
}
