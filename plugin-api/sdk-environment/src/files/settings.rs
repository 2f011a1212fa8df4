//! What the files of an environment are confined to.

use std::path::PathBuf;

/// What is allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The allowed folders.
    pub roots: Vec<Root>,
    /// Where relative paths start, as it is shown; in one of the allowed folders.
    pub default_folder: PathBuf,
    /// The temporary folder, which is allowed too; none without.
    pub temporary: Option<TemporarySettings>,
}

/// An allowed folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Where it is on this machine.
    pub host: PathBuf,
    /// How the environment shows it: in a container, the container's path. Absolute.
    pub shown: PathBuf,
    /// What may be done there.
    pub access: Access,
}

/// What may be done in an allowed folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// All.
    #[default]
    Write,
    /// Reading alone.
    Read,
}

/// Where the temporary folder is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemporarySettings {
    /// The folder in which it is made; the system's for temporary files by default.
    pub base: Option<PathBuf>,
    /// How it is shown; as it is called on this machine by default.
    pub shown: Option<PathBuf>,
}

impl Root {
    /// A folder that is shown as it is called on this machine, to read and write.
    pub fn local(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { shown: path.clone(), host: path, access: Access::Write }
    }
}
