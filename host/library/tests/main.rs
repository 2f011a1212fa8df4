//! The library as a program uses it: everything through its public items.
#![allow(clippy::unwrap_used)]

mod chat;
mod client;
mod environment;
mod examples;
mod options;
mod plugin;
mod silence;
mod support;
mod worker;

// The plugin that is linked into these tests, as `export_plugin!` wants it: in the crate's root.
jaato_plugin_sdk::export_plugin! {
    state: plugin::Plugin,
    tools,
    provider: plugin::ParrotProvider,
    gc: plugin::KeepLastGc,
    environment: plugin::FolderEnvironment,
    hook: plugin::CarefulHooks,
}
