//! `readFile`, `updateFile`, `writeNewFile`, `removeFile`, `moveFile`, `renameFile`,
//! `multiFileEdit`, `findAndReplace`, `undoFileChange`, `restoreFile`, `listBackups`: files read,
//! changed and taken back.
//!
//! The files are those of the session's execution environment. What a call changes is kept before
//! it happens, and a call changes all that it should or nothing.
#![forbid(unsafe_code)]

mod diff;
mod edit;
pub mod history;
mod text;
