//! The plugin that makes a call, and its own call for which it makes that one.

use jaato_types::{CallId, PluginName};

use crate::DeadlineHold;

/// How deep calls to tools by tools may be nested.
pub const CALL_DEPTH_MAX: u32 = 3;

/// A plugin that calls a tool.
#[derive(Debug, Clone)]
pub struct CallOrigin {
    /// The plugin.
    pub plugin: PluginName,
    /// The plugin's own call for which it makes this one. `None` outside of calls.
    pub parent: Option<CallId>,
    /// How many plugin calls are above this one, at least 1.
    pub depth: u32,
    /// The deadline of the plugin's own call.
    pub hold: DeadlineHold,
}

impl CallOrigin {
    /// Creates the origin of a call that a plugin makes outside of its own calls.
    pub fn outside_of_calls(plugin: PluginName) -> Self {
        Self { plugin, parent: None, depth: 1, hold: DeadlineHold::default() }
    }
}
