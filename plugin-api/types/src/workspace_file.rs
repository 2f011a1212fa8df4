//! The service `workspace_file.set`: a covered file of the workspace, written for a person.

use serde::{Deserialize, Serialize};

crate::operations::service_operations! { $ workspace_file_operations, Some("workspace_file"), answered;
    /// Writes a file of the workspace that the user's trust covers, and keeps the workspace
    /// trusted. Only a command, which a user gives, may do this.
    set WORKSPACE_FILE_SET "workspace_file.set": WorkspaceFileSet + bytes => WorkspaceFileStored;
}

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
