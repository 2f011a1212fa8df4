//! Plugins with a C entry: adapts their function tables to the traits of all other plugins.
//!
//! A plugin exports a [`StartedPlugin`], and [`CFunctionTable`] is that table after its check. In
//! return it gets one host table that all plugins share. Calls become futures, and requests of the
//! plugin become polls.
//!
//! Invariants:
//! - A panic in host code does not cross the boundary, and input from the plugin is checked before
//!   use.
//! - The plugin's code runs and ends only where the executor polls and drops its future.
//! - Every pointer on loan to the plugin lives until the plugin releases it.

mod buffer;
mod call;
mod context;
mod entry;
mod factory;
mod host;
mod request;

use jaato_plugin_api::abi::FactoryBox;
use jaato_plugin_api::c1::Plugin;
use jaato_types::{Error, ErrorKind, Frame, Manifest};

pub(crate) use entry::CFunctionTable;
pub(crate) use factory::create_factory;

/// Creates a factory from a table without a file, for plugins that are linked into the host and for
/// tests. Runs the plugin's `start` on the calling thread.
///
/// # Errors
/// `plugin_misbehaved` for an unusable table or an invalid answer, or the plugin's error.
///
/// # Safety
/// The table is never freed and begins with its size; its functions keep to `jaato_plugin.h` as far
/// as memory goes: what they point to is there for as long as the header says.
pub unsafe fn factory_of_table(
    table: *const Plugin,
    manifest: &Manifest,
) -> Result<FactoryBox, Error> {
    // SAFETY: the caller guarantees it.
    let entry = unsafe { CFunctionTable::read_table(table) }
        .map_err(|what| misbehaved_error(&manifest.name, what))?;
    create_factory(entry, manifest).into_result().map_err(|error| {
        Frame::read(&error).unwrap_or_else(|bad| misbehaved_error(&manifest.name, bad))
    })
}

/// Returns the error for a plugin's invalid answer.
fn misbehaved_error(plugin: &jaato_types::PluginName, what: impl std::fmt::Display) -> Error {
    let text = format!("the plugin `{plugin}` misbehaved: {what}");
    Error::new(ErrorKind::PluginMisbehaved, text)
}
