//! `glob_files` and `grep_content`: find files by pattern, and search their contents.
//!
//! The session's execution environment does the search. This crate contains the settings, the live
//! display for the user, and the format of the answers.
#![forbid(unsafe_code)]

mod config;
mod entries;
mod glob;
mod grep;
mod live_results;
mod search_start;
mod time_limit;

jaato_plugin_sdk::export_plugin! { state: config::FilesystemQueryPlugin, tools }
