//! The folders and files that are jaato's: made private whatever the umask, and used only where
//! nobody else can write.
//!
//! A path is *believed* when each folder on the way to it, each link that is followed, and what
//! lies at its end belong to this user or to root, and nobody else can write to them. A folder that
//! everybody can write to is passed on the way where it is sticky (`/tmp`): what is ours below it
//! stays ours. So is a folder that the group can write to where nobody else can enter one above it
//! (a home with mode 700), or where the group is this user's alone.
//!
//! What is not believed is not used: the caller does without it and shows the [`PlaceError`], whose
//! hint says what to do.
//!
//! Beside it: opening a file that somebody else may have put there, without following a link and
//! without waiting for it.
//!
//! Not here: which folders there are (`jaato-config` knows), and what a plugin or a workspace may
//! do.
//!
//! Invariant: nothing else in `host/` makes a folder of ours; `cargo xtask tidy` looks.

mod error;
mod file;
mod folder;
mod inside;
mod lock;
mod owners;
mod walk;

pub use error::{PlaceError, Why, hint_of};
pub use file::{check_file, check_file_in, open, read};
pub use folder::{check_folder, make, make_missing, make_one};
pub use inside::{open_inside, open_plain};
pub use lock::lock;
pub use owners::Owners;
