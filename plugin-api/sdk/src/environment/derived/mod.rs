//! What files of an environment do over the six operations that each environment has: text in
//! ranges, edits, moves, copies, patterns, searches, trees and streams.
//!
//! An environment that can do one of them faster, or at once, writes it itself. Nothing here holds
//! more than [`WHOLE_BYTES_MAX`] of one file.

mod copy;
mod edit;
mod find;
mod glob;
mod ignored;
mod pattern;
mod search;
mod streams;
mod text;
mod tree;

use jaato_types::files::{FilePath, FileRead, READ_BYTES_MAX};
use jaato_types::{Error, ErrorKind, Result};

use super::Files;
use crate::context::Reporter;

pub(super) use copy::{copy, rename};
pub(super) use edit::edit;
pub(super) use find::Finding;
pub(super) use glob::glob;
pub(super) use search::Searching;
pub(super) use streams::{Draft, Ranges};
pub(super) use text::read_text;
pub(super) use tree::Tree;

/// Most bytes of one file that are held at once: what is edited, what a draft collects, and what a
/// copy writes in one go.
const WHOLE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Folders deep that trees are gone through: deeper ones are made by mistake or by malice.
const DEPTH_MAX: usize = 128;

/// Files and folders that one operation looks at: each costs a question to the environment.
const ENTRIES_MAX: usize = 100_000;

/// Reads a whole file.
async fn whole<F: Files + ?Sized>(files: &F, host: &Reporter, path: &str) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let read = range(path, all.len() as u64, READ_BYTES_MAX);
        let (facts, bytes) = files.read(host, read).await?;
        let is_end = bytes.is_empty() || !facts.has_more;
        all.extend(bytes);
        if all.len() as u64 > WHOLE_BYTES_MAX {
            return Err(too_large(path, "read it in ranges"));
        }
        if is_end {
            return Ok(all);
        }
    }
}

fn named(path: &str) -> FilePath {
    FilePath { path: path.to_owned(), ..FilePath::default() }
}

fn range(path: &str, offset: u64, length: u64) -> FileRead {
    let (path, length) = (path.to_owned(), Some(length));
    FileRead { path, offset, length, ..FileRead::default() }
}

fn too_large(path: &str, hint: &str) -> Error {
    let text = format!("`{path}` has more than {WHOLE_BYTES_MAX} bytes");
    Error::new(ErrorKind::LimitReached, text).with_hint(hint)
}

/// Puts a name behind a folder, which may be the default one.
fn joined(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        _ if folder.ends_with('/') => format!("{folder}{name}"),
        _ => format!("{folder}/{name}"),
    }
}
