//! `glob_files` and `grep_content`: find files by a pattern, and texts in them.
//!
//! The session's execution environment searches; here stand the settings, what a person sees
//! meanwhile, and the shape of the answers.
#![forbid(unsafe_code)]

mod config;
mod entries;
mod glob;
mod grep;
mod live;
mod place;
mod time_limit;

jaato_plugin_sdk::export_plugin! { state: config::Query, tools }
