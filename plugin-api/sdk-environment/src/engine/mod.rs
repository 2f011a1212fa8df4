//! Walks, patterns, searches, ranges of text and edits, over any files.
//!
//! The engine reads files through two traits: [`Files`] opens the folder in which a request begins,
//! and [`Folder`] reads everything below it. For this machine's files, handles implement them; for
//! another environment's files, its six operations do. The engine blocks, and knows nothing of
//! plugins.

mod best;
mod call_limits;
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

pub use call_limits::CallLimits;
pub(crate) use call_limits::{Does, TreeLimits, TruePath};
pub use edit::EDIT_BYTES_MAX;
pub(crate) use edit::edited;
pub(crate) use find::{find, folder_of};
pub(crate) use folder::{Files, Folder, Found, Names, Sorted, Top};
pub use limits::{DEPTH_MAX, FOLDER_ENTRIES_MAX, PATH_BYTES_MAX};
pub use lines::{PageFiller, matches_in, searched_line, wrong_regex};
pub use search::Cancel;
pub(crate) use search::search;
pub(crate) use text::TextReader;
pub(crate) use tree::walk;
