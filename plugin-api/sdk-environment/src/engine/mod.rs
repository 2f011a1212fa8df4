//! The engine: walks, patterns, searches, text ranges and edits, over any files.
//!
//! The engine reads files through two traits. [`SearchableFiles`] opens the folder in which a
//! request starts, and [`SearchableFolder`] reads everything below it. This machine's files
//! implement them with handles, and the files of other environments with the environment's six
//! operations. The engine blocks and is independent of plugins.

mod call_limits;
mod edit;
mod find;
mod first_results;
mod folder;
mod glob;
mod ignored;
mod limits;
mod lines;
mod search;
mod text;
mod tree;

pub use call_limits::CallLimits;
pub(crate) use call_limits::{PathOperation, ResolvedPathPair, TreeCallLimits};
pub use edit::EDIT_BYTES_MAX;
pub(crate) use edit::apply_edits;
pub(crate) use find::{find_files, search_folder};
pub(crate) use folder::{
    FolderNames, NameOrder, SearchStartFolder, SearchableFiles, SearchableFolder, SearchedFileFacts,
};
pub use limits::{DEPTH_MAX, FOLDER_ENTRIES_MAX, PATH_BYTES_MAX};
pub use lines::{PageFiller, collect_matches, invalid_regex_error, searched_line};
pub use search::SearchCancel;
pub(crate) use search::start_search;
pub(crate) use text::TextReader;
pub(crate) use tree::walk_pages;
