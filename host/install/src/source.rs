//! The source of an installation: a plugin file, a folder with one, or an archive of such a folder.

use std::env::consts::DLL_SUFFIX;
use std::fs;
use std::path::{Path, PathBuf};

use jaato_loader::read_manifest;
use jaato_types::Manifest;
use tempfile::TempDir;

use crate::archive;
use crate::error::InstallError;
use crate::system::target_triple;

/// A plugin file to install, and its manifest.
#[derive(Debug)]
pub struct InstallSource {
    file: PathBuf,
    manifest: Manifest,
    /// The folder of an unpacked archive, which must live as long as the source.
    _unpacked: Option<TempDir>,
}

impl InstallSource {
    /// Finds the plugin in the source. Its manifest is read, but none of its code runs. An archive
    /// is unpacked below `scratch`, from where programs can run.
    ///
    /// # Errors
    /// The problem with the source. Nothing is left behind then.
    pub fn find(given: &Path, scratch: &Path) -> Result<Self, InstallError> {
        let text = given.to_string_lossy();
        let read = |error| match is_address(&text) {
            true => InstallError::Address(text.clone().into_owned()),
            false => InstallError::Read(given.to_owned(), error),
        };
        let metadata = fs::metadata(given).map_err(read)?;
        let (file, unpacked) = if metadata.is_dir() {
            (find_in_folder(given, given)?, None)
        } else if metadata.is_file() && archive::is_archive(given).map_err(read)? {
            jaato_places::make_own_folder(scratch)
                .map_err(|error| InstallError::Write(scratch.to_owned(), error.into()))?;
            let unpacked = archive::unpack_archive(given, scratch)?;
            (find_in_unpacked(unpacked.path(), given)?, Some(unpacked))
        } else {
            (given.to_owned(), None)
        };
        let manifest = read_manifest(&file).map_err(InstallError::File)?;
        Ok(Self { file, manifest, _unpacked: unpacked })
    }

    /// Returns the plugin file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

fn is_address(text: &str) -> bool {
    text.contains("://") || text.starts_with("git@")
}

/// Returns the plugin of an unpacked archive, which may contain everything below one folder named
/// like the archive.
fn find_in_unpacked(folder: &Path, given: &Path) -> Result<PathBuf, InstallError> {
    let (files, folders) = list_entries(folder, given)?;
    match folders.as_slice() {
        [only] if files.is_empty() && only != "lib" => find_in_folder(&folder.join(only), given),
        _ => find_in_folder(folder, given),
    }
}

/// Returns the only library of a folder: in `lib/<this system>`, else at its top level.
fn find_in_folder(folder: &Path, given: &Path) -> Result<PathBuf, InstallError> {
    let lib = folder.join("lib");
    let ours = lib.join(target_triple());
    if ours.is_dir() {
        return find_only_library(&ours, given);
    }
    let found = find_only_library(folder, given);
    let Err(InstallError::NoLibrary(_)) = &found else { return found };
    if lib.is_dir() {
        let (_, has) = list_entries(&lib, given)?;
        if !has.is_empty() {
            return Err(InstallError::OtherSystems { path: given.to_owned(), has });
        }
    }
    if folder.join("Cargo.toml").is_file() {
        return Err(InstallError::Crate(given.to_owned()));
    }
    found
}

fn find_only_library(folder: &Path, given: &Path) -> Result<PathBuf, InstallError> {
    let (mut files, _) = list_entries(folder, given)?;
    files.retain(|name| name.ends_with(DLL_SUFFIX) && !name.starts_with('.'));
    match files.as_slice() {
        [] => Err(InstallError::NoLibrary(given.to_owned())),
        [only] => Ok(folder.join(only)),
        _ => Err(InstallError::Several(given.to_owned(), files)),
    }
}

/// Returns the names of the files and of the folders in a folder, sorted.
fn list_entries(folder: &Path, given: &Path) -> Result<(Vec<String>, Vec<String>), InstallError> {
    let read = |error| InstallError::Read(given.to_owned(), error);
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(read)? {
        let entry = entry.map_err(read)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let list = if entry.path().is_dir() { &mut folders } else { &mut files };
        list.push(name);
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}
