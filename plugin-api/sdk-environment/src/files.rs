//! Files of an execution environment, confined to its allowed folders.
//!
//! Everything is reached from handles of the allowed folders, one name after the other or by one
//! call of the kernel that does so; no path is checked and then used. `..`, symbolic links, and
//! whoever renames meanwhile, therefore lead nowhere else. A link whose target is absolute goes on
//! in the allowed folder that the target names, as the environment shows it. Hard links are files
//! like others: who may make one to a file outside has its content already.
//!
//! Only files are confined here, not programs.

mod asked;
mod confined;
mod copy;
mod delete;
mod draft;
mod edit;
mod facts;
mod folder;
mod kept_off;
mod limits;
mod list;
mod moving;
mod place;
mod reach;
mod read;
mod removal;
mod roots;
mod search;
mod settings;
mod steps;
mod stream;
mod temporary;
mod text;
mod write;

pub use self::confined::Confined;
pub use self::limits::{COPY_ENTRIES_MAX, LINKS_MAX};
pub use self::search::Pages;
pub use self::settings::{Access, Root, Settings, TemporarySettings};
pub use self::stream::{PIECE_BYTES, Pieces, Writer};
pub use crate::engine::{
    CallLimits, Cancel, DEPTH_MAX, EDIT_BYTES_MAX, FOLDER_ENTRIES_MAX, PATH_BYTES_MAX,
};
