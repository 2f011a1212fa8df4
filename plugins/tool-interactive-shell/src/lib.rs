//! The tools `shell_spawn`, `shell_input`, `shell_read`, `shell_control`, `shell_close` and
//! `shell_list`, which run interactive programs, each on its own terminal.
//!
//! The execution environment provides the terminals and knows which programs wait for input. This
//! crate manages the sessions and their limits, computes each visible screen, and decides when to
//! return a result.
#![forbid(unsafe_code)]

mod answer;
mod backend;
mod changed_rows;
mod close;
mod command;
mod config;
mod echo;
mod gather;
mod input_bytes;
mod keys;
pub mod marks;
mod output;
mod platform;
mod raw_bytes;
mod ready;
mod reaper;
pub mod screen;
mod session;
mod shells;
mod start;
mod tools;
mod trace;
mod transcript;
mod wait;
mod watch_sessions;

jaato_plugin_sdk::export_plugin! {
    state: shells::InteractiveShellPlugin,
    tools,
    // The trace log's path, if it is not the default, and the time zone of its lines.
    variables: ["JAATO_TRACE_LOG", "TMPDIR", "TZ", "TZDIR"],
}
