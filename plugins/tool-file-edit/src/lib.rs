//! `readFile`, `updateFile`, `writeNewFile`, `removeFile`, `moveFile`, `renameFile`,
//! `multiFileEdit`, `findAndReplace`, `undoFileChange`, `restoreFile`, `listBackups`: files read,
//! changed and taken back.
//!
//! The files are those of the session's execution environment. What a call changes is kept before
//! it happens, and a call changes all that it should or nothing.
#![forbid(unsafe_code)]

mod alike;
mod apply;
mod commands;
mod config;
mod content;
mod diff;
mod edit;
mod editor;
mod files;
pub mod history;
mod mend;
mod page;
mod plan;
mod replace;
mod sights;
mod take_back;
mod text;
mod tools;

jaato_plugin_sdk::export_plugin! { state: editor::Editor, tools }
