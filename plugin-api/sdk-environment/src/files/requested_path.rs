//! A requested path, split into its parts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_plugin_sdk::types::text::truncate_chars;
use jaato_types::{Error, ErrorKind, Result};

use crate::engine::{CallLimits, PATH_BYTES_MAX};

/// A requested path: absolute, as the environment shows it, and not yet resolved.
#[derive(Debug, Clone)]
pub(crate) struct RequestedPath {
    /// Names and `..`, from the root.
    pub(crate) parts: Vec<OsString>,
    /// Whether the path must lead to a folder, for example because it ends with a slash.
    pub(crate) wants_folder: bool,
    /// The limits of the call.
    pub(crate) limits: Option<Arc<CallLimits>>,
}

impl RequestedPath {
    /// Splits a path. A relative path starts at `default`.
    pub(crate) fn new(path: &str, default: &Path) -> Result<Self> {
        if path.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArguments, "the path is empty"));
        }
        if path.contains('\0') {
            let text = "a path cannot hold a NUL character";
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        if path.len() > PATH_BYTES_MAX {
            let (beginning, has) = (truncate_chars(path, 60), path.len());
            let text = format!(
                "the path `{beginning}` is too long: {has} bytes, at most {PATH_BYTES_MAX}"
            );
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let mut parts = Vec::new();
        if !path.starts_with('/') {
            push_parts(&mut parts, default.as_os_str());
        }
        push_parts(&mut parts, OsStr::new(path));
        let last = path.rsplit('/').next().unwrap_or_default();
        Ok(Self { parts, wants_folder: matches!(last, "" | "." | ".."), limits: None })
    }

    /// Returns true if the path contains `..`.
    pub(crate) fn has_parent_part(&self) -> bool {
        self.parts.iter().any(|part| part == "..")
    }

    /// Returns the path as users see it.
    pub(crate) fn display_path(&self) -> PathBuf {
        join_parts(&self.parts)
    }
}

/// Appends the names of a path. Skips `.` and empty names.
pub(crate) fn push_parts(parts: &mut Vec<OsString>, path: &OsStr) {
    let names = path.as_bytes().split(|byte| *byte == b'/');
    let names = names.filter(|name| !name.is_empty() && *name != b".");
    parts.extend(names.map(|name| OsStr::from_bytes(name).to_owned()));
}

/// Joins names into an absolute path.
pub(crate) fn join_parts(parts: &[OsString]) -> PathBuf {
    let mut path = OsString::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
    for part in parts {
        path.push("/");
        path.push(part);
    }
    if path.is_empty() {
        path.push("/");
    }
    path.into()
}
