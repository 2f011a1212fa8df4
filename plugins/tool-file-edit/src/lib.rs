//! The tools `readFile`, `updateFile`, `writeNewFile`, `removeFile`, `moveFile`, `renameFile`,
//! `multiFileEdit`, `findAndReplace`, `undoFileChange`, `restoreFile` and `listBackups`, which read
//! and change files and undo changes.
//!
//! The files are those of the session's execution environment. Replaced content is stored before a
//! call changes a file, and a call makes all of its changes or none.
#![forbid(unsafe_code)]

mod apply;
mod commands;
mod config;
mod content;
mod diff;
mod edit;
mod editor;
mod files;
pub mod history;
mod page;
mod plan;
mod recover_changes;
mod replace;
mod seen_files;
mod similar_names;
mod text;
mod tools;
mod undo_change;

jaato_plugin_sdk::export_plugin! { state: editor::Editor, tools }
