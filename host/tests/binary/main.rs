//! The real binary, as people type it: every command, every bad file, every bad input.
//!
//! The files are Linux's, and so are the traces by which processes are found.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../authors/main.rs"]
mod authors;
mod bad_files;
mod bad_plugins;
mod batch;
mod cache;
mod call;
mod chat;
mod check;
mod children;
mod cli;
mod cli_ends;
mod command;
mod conditions;
mod config;
mod docker;
mod doctor;
mod embedded;
mod environments;
mod gc;
mod help;
mod hostile;
mod install;
mod introspection;
mod ledger;
mod lists;
mod names;
mod new_plugin;
mod objects;
mod offline;
mod openai;
mod openai_bad;
mod openai_keys;
mod openai_limits;
mod openai_windows;
mod places;
mod plugin_in_c;
mod prepared;
mod private;
mod prompt;
mod questions;
#[path = "../real_model.rs"]
mod real_model;
mod reload;
mod reload_by_hand;
mod reload_embedded;
mod resources;
mod run;
mod run_bad;
mod run_cancel;
mod run_gate;
mod secrets;
mod sequences;
mod shared_environment;
mod shell;
mod shells;
mod story;
#[path = "../support/mod.rs"]
mod support;
mod switch;
mod terminal;
mod terminals;
mod trust_plugin;
mod trust_workspace;
mod unruly;
mod unusual;
mod unwritable;
mod workers;
mod workspace_bounds;
