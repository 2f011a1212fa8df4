//! Lists declared files, imported models, and other files in the folder.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jaato_types::Asset;

use crate::remembered::DigestRecord;
use crate::{AssetError, AssetStore};

/// An existing or possible file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetEntry {
    /// Its name: the asset's id, the name it was imported under, or its file name.
    pub name: String,
    /// Its kind.
    pub kind: AssetEntryKind,
    /// Its path.
    pub path: PathBuf,
    /// Its state.
    pub state: AssetFileState,
}

/// The kind of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssetEntryKind {
    /// A declared asset.
    Asset {
        /// Total size.
        bytes: u64,
    },
    /// A model that the user imported.
    Custom {
        /// Its architecture, if its record matches it.
        architecture: Option<String>,
    },
    /// A file that nothing declares, such as a model of an earlier version.
    Other,
}

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssetFileState {
    /// No data.
    Missing,
    /// Some data has arrived.
    Partial {
        /// Bytes received.
        bytes: u64,
    },
    /// Complete, and verified in its current state.
    Verified {
        /// Its size.
        bytes: u64,
    },
    /// A file that was not verified, or has changed since.
    Unverified {
        /// Its size.
        bytes: u64,
    },
}

impl AssetStore {
    /// Lists declared files in their order, then imported models, then other files, by name. Reads
    /// records but no content.
    pub fn list(&self, assets: &[Asset]) -> Result<Vec<AssetEntry>, AssetError> {
        let mut entries: Vec<AssetEntry> =
            assets.iter().map(|asset| self.asset_entry(asset)).collect();
        for (name, metadata) in list_regular_files(&self.custom_folder())? {
            let path = self.custom_folder().join(&name);
            let Some(name) = name.strip_suffix(".gguf") else { continue };
            let note = DigestRecord::read_matching(&path, &metadata);
            let bytes = metadata.len();
            let state = match note {
                Some(_) => AssetFileState::Verified { bytes },
                None => AssetFileState::Unverified { bytes },
            };
            let kind =
                AssetEntryKind::Custom { architecture: note.and_then(|note| note.architecture) };
            entries.push(AssetEntry { name: name.to_owned(), kind, path, state });
        }
        let declared: BTreeSet<&str> =
            assets.iter().map(|asset| asset.file_name.as_str()).collect();
        for (name, metadata) in list_regular_files(self.folder())? {
            let owner = name.strip_suffix(".part").unwrap_or(&name);
            if declared.contains(owner) || is_bookkeeping_file(&name) {
                continue;
            }
            let path = self.folder().join(&name);
            let bytes = metadata.len();
            let state = if owner == name {
                AssetFileState::Unverified { bytes }
            } else {
                AssetFileState::Partial { bytes }
            };
            entries.push(AssetEntry { name, kind: AssetEntryKind::Other, path, state });
        }
        Ok(entries)
    }

    fn asset_entry(&self, asset: &Asset) -> AssetEntry {
        let paths = self.asset_paths(asset);
        let state = match (fs::metadata(&paths.file), fs::metadata(&paths.part)) {
            (Ok(metadata), _) => {
                let bytes = metadata.len();
                let known = DigestRecord::read_matching(&paths.file, &metadata);
                match known.is_some_and(|known| known.sha256 == asset.sha256) {
                    true => AssetFileState::Verified { bytes },
                    false => AssetFileState::Unverified { bytes },
                }
            }
            (Err(_), Ok(part)) if part.len() > 0 => AssetFileState::Partial { bytes: part.len() },
            (Err(_), _) => AssetFileState::Missing,
        };
        let kind = AssetEntryKind::Asset { bytes: asset.bytes };
        AssetEntry { name: asset.id.clone(), kind, path: paths.file, state }
    }
}

/// Returns true for this crate's small files next to the big ones.
fn is_bookkeeping_file(name: &str) -> bool {
    let endings = [".parts", ".lock", ".verified", ".import"];
    endings.iter().any(|ending| name.ends_with(ending)) || name.contains(".verified-")
}

/// Returns the regular files of a folder by name. A missing folder has no files.
fn list_regular_files(folder: &Path) -> Result<Vec<(String, Metadata)>, AssetError> {
    let fail = |error| AssetError::from_io("read", folder, error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A file that has vanished is skipped.
        if let Ok(metadata) = fs::metadata(entry.path())
            && metadata.is_file()
            && !name.starts_with('.')
        {
            found.push((name, metadata));
        }
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(found)
}
