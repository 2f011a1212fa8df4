//! Installs plugin files into the user's own folder, and takes them away again.
//!
//! Invariant: a file that a running host may have mapped is never written to. What is installed is written
//! beside its place and renamed over it.

mod archive;
mod error;
mod source;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use jaato_loader::{FoundFile, Place, PlaceKind, find, read_manifest};
use jaato_types::Manifest;

pub use archive::{ARCHIVE_FILES_MAX, UNPACKED_BYTES_MAX};
pub use error::InstallError;
pub use source::{Source, target_triple};

/// A plugin file where plugins are searched.
#[derive(Debug, Clone)]
pub struct PlacedPlugin {
    /// The file.
    pub file: FoundFile,
    /// What its manifest says.
    pub manifest: Manifest,
}

/// Lists the plugin files of some places, most trusted first, without running one. Files that are none are
/// left out: the lists tell of them.
pub fn placed_plugins(places: &[Place]) -> Vec<PlacedPlugin> {
    let files = find(places).files.into_iter();
    files
        .filter_map(|file| {
            let manifest = read_manifest(&file.path).ok()?;
            Some(PlacedPlugin { file, manifest })
        })
        .collect()
}

/// What became of an installed plugin.
#[derive(Debug)]
pub struct Installed {
    /// Where it lies.
    pub path: PathBuf,
    /// The version of the one that it took the place of.
    pub before: Option<String>,
}

/// Puts a plugin into the user's folder; one of its name that is there gives way to it.
///
/// # Errors
/// When its place is held by another plugin, or cannot be written.
pub fn install(source: &Source, folder: &Path) -> Result<Installed, InstallError> {
    let name = &source.manifest().name;
    let own = Place { kind: PlaceKind::User, folder: folder.to_owned() };
    let mut before: Vec<_> =
        placed_plugins(&[own]).into_iter().filter(|plugin| plugin.manifest.name == *name).collect();
    // The first has the name; others of it were refused, and would be again.
    let path = match before.first() {
        Some(plugin) => plugin.file.path.clone(),
        None => folder.join(library_name(name.as_str())),
    };
    if before.is_empty() && path.symlink_metadata().is_ok() {
        return Err(InstallError::Taken { path, name: name.to_string() });
    }
    let failed = |error| InstallError::Write(path.clone(), error);
    fs::create_dir_all(folder).map_err(failed)?;
    place(source.file(), &path).map_err(failed)?;
    let before = (!before.is_empty()).then(|| before.remove(0).manifest.version);
    Ok(Installed { path, before })
}

fn library_name(plugin: &str) -> String {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    format!("{DLL_PREFIX}{}{DLL_SUFFIX}", plugin.replace('-', "_"))
}

fn place(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut beside = tempfile::Builder::new().prefix(".installed-").tempfile_in(folder)?;
    io::copy(&mut fs::File::open(from)?, beside.as_file_mut())?;
    beside.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    beside.as_file().sync_all()?;
    beside.persist(to).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests;
