//! The service `workspace_file.set`, which writes a trusted file of the workspace for the user.

use serde::{Deserialize, Serialize};

crate::operations::service_operations! { $ workspace_file_operations, Some("workspace_file"), answered;
    /// Writes a workspace file that the user's trust covers, and keeps the workspace trusted. Only
    /// available in a command that a user runs.
    set WORKSPACE_FILE_SET "workspace_file.set": WorkspaceFileSet + bytes => WorkspaceFileSetAnswer;
}

/// The files that may be written.
pub const WORKSPACE_FILES: [&str; 1] = [".mcp.json"];
/// The maximum size of the content, in bytes.
pub const WORKSPACE_FILE_BYTES_MAX: usize = 1024 * 1024;

/// The file to write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspaceFileSet {
    /// The name relative to the root of the workspace: one of [`WORKSPACE_FILES`].
    pub name: String,
}

/// The answer: the file was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WorkspaceFileSetAnswer {}
