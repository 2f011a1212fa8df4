//! The service `workspace_file.set`: a covered file of the workspace, written for a person.

use serde::{Deserialize, Serialize};

/// Writes a file of the workspace that the person's trust covers, with the frame's bytes, and keeps
/// the workspace trusted: [`WorkspaceFileSet`], [`WorkspaceFileStored`]. Only in a command, which a
/// person gives.
pub const WORKSPACE_FILE_SET: &str = "workspace_file.set";

/// Files that may be written.
pub const WORKSPACE_FILES: [&str; 1] = [".mcp.json"];
/// Largest content, in bytes.
pub const WORKSPACE_FILE_BYTES_MAX: usize = 1024 * 1024;

/// Which file is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspaceFileSet {
    /// Its name from the root of the workspace: one of [`WORKSPACE_FILES`].
    pub name: String,
}

/// It is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WorkspaceFileStored {}
