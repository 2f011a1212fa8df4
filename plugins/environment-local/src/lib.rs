//! The execution environment `local`, which runs on this machine. File access is limited to the
//! allowed folders, but commands are not restricted.
//!
//! The host's `process` service starts and ends all programs. The plugin creates only the
//! terminals.
#![forbid(unsafe_code)]

mod config;
mod environment;
mod shell;
mod terminal;
mod waiting;

jaato_plugin_sdk::export_plugin! { state: environment::LocalPlugin, environment: environment::LocalEnvironment }
