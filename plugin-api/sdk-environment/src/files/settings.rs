//! The settings that confine the files of an environment.

use std::path::PathBuf;

/// The allowed folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfinedFilesSettings {
    /// The allowed folders.
    pub roots: Vec<AllowedFolder>,
    /// The folder in which relative paths start, as the environment shows it. Must be in an allowed
    /// folder.
    pub default_folder: PathBuf,
    /// The temporary folder, which is allowed too. `None` for no temporary folder.
    pub temporary: Option<TemporarySettings>,
}

/// An allowed folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedFolder {
    /// Its path on this machine.
    pub host: PathBuf,
    /// Its absolute path in the environment, for example in a container.
    pub shown: PathBuf,
    /// The allowed access.
    pub access: FolderAccess,
}

/// The access to an allowed folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FolderAccess {
    /// Read and write.
    #[default]
    Write,
    /// Read only.
    Read,
}

/// The location of the temporary folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemporarySettings {
    /// The folder in which it is created. Defaults to the system's folder for temporary files.
    pub base: Option<PathBuf>,
    /// Its path in the environment. Defaults to its path on this machine.
    pub shown: Option<PathBuf>,
}

impl AllowedFolder {
    /// Returns a folder with read and write access, shown under its path on this machine.
    pub fn local(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { shown: path.clone(), host: path, access: FolderAccess::Write }
    }
}
