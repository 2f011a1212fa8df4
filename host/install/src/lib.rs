//! Installs plugin files into the user's own folder, and finds installed ones.
//!
//! Runs no plugin: it unpacks the source, reads its manifest, and compares its names with those of
//! other plugins.
//!
//! Invariant: a file that a running host may have mapped is never written to. A new file is written
//! next to the old one and renamed over it.

mod archive;
mod error;
mod limits;
mod name_conflicts;
mod plugin_files;
mod source;
mod system;
#[cfg(test)]
mod tests;

pub use error::InstallError;
pub use limits::{ARCHIVE_FILES_MAX, UNPACKED_BYTES_MAX};
pub use name_conflicts::{PluginConflict, find_conflicts};
pub use plugin_files::{
    InstalledPlugin, PlacedPlugin, find_plugin_path, install_plugin, placed_plugins,
};
pub use source::InstallSource;
pub use system::target_triple;
