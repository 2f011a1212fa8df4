//! Plugins behind the C entry: fits their tables of functions to the traits of every other plugin.
//!
//! What a plugin exports is a [`Plugin`](jaato_plugin_api::c1::Plugin); [`Entry`] is that table, checked. What it is lent is
//! one table of the host's for all plugins. Calls become futures, requests of the plugin become polls.
//!
//! Invariants:
//! - A panic of the host's own code does not cross; what the plugin gives is checked before it is used.
//! - Everything of the plugin's runs and ends where the executor polls and drops its future.
//! - Every pointer that the plugin is lent lives until the call of its that says so.

mod buffer;
mod call;
mod context;
mod entry;
mod factory;
mod host;
mod request;

pub(crate) use entry::Entry;
pub(crate) use factory::factory;

/// Makes the error of a plugin that gave what is no answer.
fn misbehaved(
    plugin: &jaato_types::PluginName,
    what: impl std::fmt::Display,
) -> jaato_types::Error {
    let text = format!("the plugin `{plugin}` misbehaved: {what}");
    jaato_types::Error::new(jaato_types::ErrorKind::PluginMisbehaved, text)
}
