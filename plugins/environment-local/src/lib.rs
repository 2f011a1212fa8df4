//! The execution environment `local`: this machine. Files are kept to the allowed folders, commands
//! are not.
//!
//! It starts nothing itself: the host's service `process` does, and ends what must end. Terminals
//! are its own.
#![forbid(unsafe_code)]

mod config;
mod environment;
mod shell;
mod terminal;
mod waiting;

jaato_plugin_sdk::export_plugin! { state: environment::Local, environment: environment::Ready }
