//! What is there: declared files, imported models, and what else lies in the folder.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jaato_types::Asset;

use crate::remembered::Remembered;
use crate::{AssetError, Store};

/// One file, or one that could be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is called: the asset's id, the name it was imported under, or its file name.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Where it lies or would lie.
    pub path: PathBuf,
    /// How far it is there.
    pub state: State,
}

/// What a kept file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A declared asset of this size.
    Asset {
        /// Size of the whole.
        bytes: u64,
    },
    /// A model that a person imported.
    Custom {
        /// Its architecture, if its note fits it.
        architecture: Option<String>,
    },
    /// A file that nothing declares, such as a model of an earlier version.
    Other,
}

/// How far a file is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not at all.
    Missing,
    /// Some of it has arrived.
    Partial {
        /// Bytes that are there.
        bytes: u64,
    },
    /// All of it is there and was verified as it is.
    Verified {
        /// Its size.
        bytes: u64,
    },
    /// Something is there that was not verified, or has changed since.
    Unverified {
        /// Its size.
        bytes: u64,
    },
}

impl Store {
    /// Lists declared files in their order, then imported models, then other files, by name.
    /// Reads notes and no content.
    pub fn list(&self, assets: &[Asset]) -> Result<Vec<Entry>, AssetError> {
        let mut entries: Vec<Entry> = assets.iter().map(|asset| self.entry(asset)).collect();
        for (name, metadata) in files(&self.custom_folder())? {
            let path = self.custom_folder().join(&name);
            let Some(name) = name.strip_suffix(".gguf") else { continue };
            let note = Remembered::of(&path, &metadata);
            let bytes = metadata.len();
            let state = match note {
                Some(_) => State::Verified { bytes },
                None => State::Unverified { bytes },
            };
            let kind = EntryKind::Custom { architecture: note.and_then(|note| note.architecture) };
            entries.push(Entry { name: name.to_owned(), kind, path, state });
        }
        let declared: BTreeSet<&str> =
            assets.iter().map(|asset| asset.file_name.as_str()).collect();
        for (name, metadata) in files(self.folder())? {
            let owner = name.strip_suffix(".part").unwrap_or(&name);
            if declared.contains(owner) || is_note(&name) {
                continue;
            }
            let path = self.folder().join(&name);
            let bytes = metadata.len();
            let state =
                if owner == name { State::Unverified { bytes } } else { State::Partial { bytes } };
            entries.push(Entry { name, kind: EntryKind::Other, path, state });
        }
        Ok(entries)
    }

    fn entry(&self, asset: &Asset) -> Entry {
        let paths = self.paths(asset);
        let state = match (fs::metadata(&paths.file), fs::metadata(&paths.part)) {
            (Ok(metadata), _) => {
                let bytes = metadata.len();
                let known = Remembered::of(&paths.file, &metadata);
                match known.is_some_and(|known| known.sha256 == asset.sha256) {
                    true => State::Verified { bytes },
                    false => State::Unverified { bytes },
                }
            }
            (Err(_), Ok(part)) if part.len() > 0 => State::Partial { bytes: part.len() },
            (Err(_), _) => State::Missing,
        };
        let kind = EntryKind::Asset { bytes: asset.bytes };
        Entry { name: asset.id.clone(), kind, path: paths.file, state }
    }
}

/// Small files of this crate beside the big ones.
fn is_note(name: &str) -> bool {
    let endings = [".parts", ".lock", ".verified", ".import"];
    endings.iter().any(|ending| name.ends_with(ending)) || name.contains(".verified-")
}

/// Regular files of a folder by name; a folder that is not there has none.
fn files(folder: &Path) -> Result<Vec<(String, Metadata)>, AssetError> {
    let fail = |error| AssetError::io("read", folder, error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // One that vanished meanwhile is not there.
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
