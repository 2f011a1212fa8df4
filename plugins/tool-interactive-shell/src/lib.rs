//! `shell_spawn`, `shell_input`, `shell_read`, `shell_control`, `shell_close`, `shell_list`:
//! interactive programs, each on a terminal of its own.
//!
//! Terminals, and what the system knows of who waits for input, are the execution environment's.
//! Here are the sessions with their limits, what a person would see of each, and the decision when
//! a result may be given.
#![forbid(unsafe_code)]

mod answer;
mod backend;
mod changed;
mod close;
mod command;
mod config;
mod echo;
mod gather;
mod join;
mod keys;
pub mod marks;
mod output;
mod platform;
mod raw;
mod ready;
mod reaper;
pub mod screen;
mod session;
mod shells;
mod start;
mod tools;
mod trace;
mod transcript;
mod typing;
mod wait;

jaato_plugin_sdk::export_plugin! {
    state: shells::Shells,
    tools,
    // The trace log's place, where it is kept otherwise, and the time zone of its lines.
    variables: ["JAATO_TRACE_LOG", "TMPDIR", "TZ", "TZDIR"],
}
