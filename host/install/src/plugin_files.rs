//! Plugin files in their folders, and installing another one.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use jaato_loader::{FoundFile, PlaceKind, PluginSearchFolder, find_plugin_files, read_manifest};
use jaato_types::{Manifest, PluginName};

use crate::error::InstallError;
use crate::source::InstallSource;

/// A plugin file in a searched folder.
#[derive(Debug, Clone)]
pub struct PlacedPlugin {
    /// The file.
    pub file: FoundFile,
    /// Its manifest.
    pub manifest: Manifest,
}

/// Lists the plugin files in these folders, most trusted first, without running one. Files that are
/// not plugins are left out, because the plugin lists report them.
pub fn placed_plugins(places: &[PluginSearchFolder]) -> Vec<PlacedPlugin> {
    let files = find_plugin_files(places).files.into_iter();
    files
        .filter_map(|file| {
            let manifest = read_manifest(&file.path).ok()?;
            Some(PlacedPlugin { file, manifest })
        })
        .collect()
}

/// The result of an installation.
#[derive(Debug)]
pub struct InstalledPlugin {
    /// The path of the file.
    pub path: PathBuf,
    /// The version of the replaced plugin.
    pub before: Option<String>,
}

/// Returns the path for a plugin with this name. If such a plugin is installed, returns its path
/// and the plugin.
pub fn find_plugin_path(name: &PluginName, folder: &Path) -> (PathBuf, Option<PlacedPlugin>) {
    let own = PluginSearchFolder::new(PlaceKind::User, folder);
    let mut placed = placed_plugins(&[own]).into_iter();
    // The first one has the name. Others were refused, and would be again.
    match placed.find(|plugin| plugin.manifest.name == *name) {
        Some(plugin) => (plugin.file.path.clone(), Some(plugin)),
        None => (folder.join(library_name(name.as_str())), None),
    }
}

/// Puts a plugin into the user's folder, and replaces one of the same name.
///
/// # Errors
/// When another plugin is at its path, or the path cannot be written.
pub fn install_plugin(
    source: &InstallSource,
    folder: &Path,
) -> Result<InstalledPlugin, InstallError> {
    let name = &source.manifest().name;
    let (path, before) = find_plugin_path(name, folder);
    if before.is_none() && path.symlink_metadata().is_ok() {
        return Err(InstallError::Taken { path, name: name.to_string() });
    }
    let failed = |error| InstallError::Write(path.clone(), error);
    jaato_places::make_own_folder(folder).map_err(|error| failed(error.into()))?;
    place_file(source.file(), &path).map_err(failed)?;
    Ok(InstalledPlugin { path, before: before.map(|plugin| plugin.manifest.version) })
}

fn library_name(plugin: &str) -> String {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    format!("{DLL_PREFIX}{}{DLL_SUFFIX}", plugin.replace('-', "_"))
}

fn place_file(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut beside = tempfile::Builder::new().prefix(".installed-").tempfile_in(folder)?;
    io::copy(&mut fs::File::open(from)?, beside.as_file_mut())?;
    beside.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
    beside.as_file().sync_all()?;
    beside.persist(to).map(drop).map_err(|error| error.error)
}
