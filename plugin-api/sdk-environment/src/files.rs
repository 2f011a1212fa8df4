//! Files of an execution environment, confined to its allowed folders.
//!
//! The allowed folders are open as handles. Every other file is reached from such a handle, either
//! name by name or with a single system call. No path is checked first and used later, so `..`,
//! symbolic links and concurrent renames cannot lead outside. A link with an absolute target is
//! followed inside the allowed folder that the target names, as the environment shows it. Hard
//! links are treated like other files, because a process that can link to an outside file already
//! has its content.
//!
//! Only files are confined here, not programs.

mod confined;
mod copy;
mod delete;
mod draft;
mod edit;
mod excluded_folders;
mod facts;
mod folder;
mod limits;
mod list;
mod move_files;
mod path_target;
mod read;
mod removal;
mod requested_path;
mod resolve_path;
mod roots;
mod search;
mod settings;
mod steps;
mod stream;
mod temporary;
mod text;
mod write;

pub use self::confined::ConfinedFiles;
pub use self::limits::{COPY_ENTRIES_MAX, LINKS_MAX};
pub use self::search::ConfinedSearchPages;
pub use self::settings::{AllowedFolder, ConfinedFilesSettings, FolderAccess, TemporarySettings};
pub use self::stream::{ConfinedFileReader, ConfinedFileWriter, PIECE_BYTES};
pub use crate::engine::{
    CallLimits, DEPTH_MAX, EDIT_BYTES_MAX, FOLDER_ENTRIES_MAX, PATH_BYTES_MAX, SearchCancel,
};
