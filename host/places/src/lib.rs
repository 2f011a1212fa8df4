//! Jaato's own folders and files: private regardless of the umask, and used only if no other user
//! can write to them.
//!
//! A path is *safe* if each folder on the way to it, each link that is followed, and the file
//! at its end belong to this user or to root, and no one else can write to them. A folder on the
//! way that everyone can write to is accepted if it is sticky (`/tmp`), because our files below it
//! stay ours. So is a folder that the group can write to, if no one else can enter a folder above
//! it (a home with mode 700), or if the group contains only this user.
//!
//! A path that is not safe is not used. The caller continues without it and shows the
//! [`PlaceError`], whose hint names a fix.
//!
//! This crate also opens files that another user may have put there, without following links and
//! without blocking.
//!
//! It does not know which folders exist (`jaato-config` does), or what a plugin or a workspace may
//! do.
//!
//! Invariant: no other code in `host/` makes folders of jaato. `cargo xtask tidy` checks this.

mod error;
mod file;
mod folder;
mod lock;
mod owners;
mod untrusted_files;
mod walk;

pub use error::{PathProblem, PlaceError, io_error_hint};
pub use file::{check_file, check_file_in, open_own_file, read_own_file};
pub use folder::{check_folder, make_missing_folders, make_own_folder, make_single_folder};
pub use lock::lock_own_file;
pub use owners::TrustedOwners;
pub use untrusted_files::{open_file_inside, open_plain_file};
