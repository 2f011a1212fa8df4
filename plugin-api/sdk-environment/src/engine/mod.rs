//! Walks, patterns, searches, ranges of text and edits, over any files.
//!
//! The engine knows files by two traits: [`Files`] opens where a request begins, and [`Folder`]
//! goes on from there. This machine's files implement them by handles, those of another
//! environment by its six operations. The engine blocks, and knows nothing of plugins.

mod best;
mod edit;
mod find;
mod folder;
mod glob;
mod ignored;
mod limits;
mod lines;
mod search;
mod text;
mod tree;

pub use edit::EDIT_BYTES_MAX;
pub(crate) use edit::edited;
pub(crate) use find::find;
pub(crate) use folder::{Files, Folder, Found, Names, Sorted, Top};
pub use limits::{DEPTH_MAX, FOLDER_ENTRIES_MAX, PATH_BYTES_MAX};
pub use lines::{PageFiller, matches_in, searched_line, wrong_regex};
pub use search::Cancel;
pub(crate) use search::search;
pub(crate) use text::TextReader;
pub(crate) use tree::walk;
