//! Plugins behind the C entry: fits their tables of functions to the traits of every other plugin.
//!
//! What a plugin exports is a [`Plugin`]; [`Entry`] is that table, checked. What it is lent is one
//! table of the host's for all plugins. Calls become futures, requests of the plugin become polls.
//!
//! Invariants:
//! - A panic of the host's own code does not cross; what the plugin gives is checked before it is
//!   used.
//! - Everything of the plugin's runs and ends where the executor polls and drops its future.
//! - Every pointer that the plugin is lent lives until the call of its that says so.

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

pub(crate) use entry::Entry;
pub(crate) use factory::factory;

/// Makes a factory of a table that is at hand without a file: one that is linked into the host, or
/// a test's own. Runs the plugin's `start` on the calling thread.
///
/// # Errors
/// `plugin_misbehaved` for a table that cannot be used and for what is no answer, and what the
/// plugin answers.
///
/// # Safety
/// The table lives for ever and begins with its size; its functions keep to `jaato_plugin.h` as far
/// as memory goes: what they point to is there for as long as the header says.
pub unsafe fn factory_of_table(
    table: *const Plugin,
    manifest: &Manifest,
) -> Result<FactoryBox, Error> {
    // SAFETY: as the caller says.
    let entry = unsafe { Entry::read(table) }.map_err(|what| misbehaved(&manifest.name, what))?;
    factory(entry, manifest)
        .into_result()
        .map_err(|error| Frame::read(&error).unwrap_or_else(|bad| misbehaved(&manifest.name, bad)))
}

/// Makes the error of a plugin that gave what is no answer.
fn misbehaved(plugin: &jaato_types::PluginName, what: impl std::fmt::Display) -> Error {
    let text = format!("the plugin `{plugin}` misbehaved: {what}");
    Error::new(ErrorKind::PluginMisbehaved, text)
}
