//! The allowed folders, as open handles.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_types::{Error, ErrorKind, Result};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::path_target::{FolderHandle, PathTarget};
use super::requested_path::{RequestedPath, join_parts, push_parts};
use super::settings::{AllowedFolder, FolderAccess};
use crate::engine::{PathOperation, ResolvedPathPair};
use crate::errors::{self, FileOperationVerb};

/// The allowed folders, as open handles.
#[derive(Debug)]
pub(crate) struct OpenRoots {
    roots: Vec<OpenRoot>,
    default: PathBuf,
}

/// An allowed folder. The handle stays valid if the folder is renamed.
#[derive(Debug)]
pub(crate) struct OpenRoot {
    pub(crate) handle: FolderHandle,
    host: PathBuf,
    shown: PathBuf,
    access: FolderAccess,
    /// The names by which paths may reach it, split into parts: its shown path, and its real path
    /// if the environment shows this machine's own paths.
    names: Vec<Vec<OsString>>,
    /// Whether it contains another allowed folder. Paths are then resolved step by step, to detect
    /// when they enter that one.
    has_roots_below: bool,
}

impl OpenRoots {
    /// Opens the allowed folders.
    pub(crate) fn open(roots: &[AllowedFolder], default: &Path) -> Result<Self> {
        let mut opened = roots.iter().map(OpenRoot::open).collect::<Result<Vec<_>>>()?;
        for at in 0..opened.len() {
            let others = opened.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<_> = others.flat_map(|(_, root)| &root.names).collect();
            let root = &opened[at];
            if others.iter().any(|other| **other == root.names[0]) {
                let text = format!("the folder `{}` is allowed twice", root.shown.display());
                return Err(Error::new(ErrorKind::Configuration, text));
            }
            let is_above = |name: &Vec<OsString>| others.iter().any(|it| it.starts_with(name));
            let has_roots_below = root.names.iter().any(is_above);
            opened[at].has_roots_below = has_roots_below;
        }
        let roots = Self { roots: opened, default: default.to_owned() };
        if !default.is_absolute() {
            let text = format!("the default folder `{}` is not absolute", default.display());
            return Err(Error::new(ErrorKind::Configuration, text));
        }
        Ok(roots)
    }

    pub(crate) fn default_folder(&self) -> &Path {
        &self.default
    }

    pub(crate) fn display_paths(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.shown.as_path())
    }

    pub(crate) fn root_at(&self, root: usize) -> &OpenRoot {
        &self.roots[root]
    }

    /// Returns the folder with exactly this path.
    pub(crate) fn root_index(&self, parts: &[OsString]) -> Option<usize> {
        self.roots.iter().position(|root| root.names.iter().any(|name| name == parts))
    }

    /// Returns the innermost folder that the path starts with, and the number of parts in that
    /// prefix. Returns `None` if the path must be resolved step by step.
    pub(crate) fn innermost_root(&self, asked: &RequestedPath) -> Option<(usize, usize)> {
        let mut found: Option<(usize, usize)> = None;
        for (at, root) in self.roots.iter().enumerate() {
            for name in root.names.iter().filter(|name| asked.parts.starts_with(name)) {
                if found.is_none_or(|(_, length)| name.len() > length) {
                    found = Some((at, name.len()));
                }
            }
        }
        // Limits are checked name by name.
        let keeps_off =
            asked.limits.as_ref().is_some_and(|limits| limits.has_patterns(PathOperation::Read));
        let needs_steps = keeps_off || asked.has_parent_part();
        found.filter(|(at, _)| !needs_steps && !self.roots[*at].has_roots_below)
    }

    /// Returns an error if the place is read-only.
    pub(crate) fn check_writable(&self, verb: FileOperationVerb, place: &PathTarget) -> Result<()> {
        self.check_root_writable(verb, place.root, &place.shown)
    }

    /// Like [`Self::check_writable`], but before the place is known.
    pub(crate) fn check_root_writable(
        &self,
        verb: FileOperationVerb,
        root: usize,
        shown: &Path,
    ) -> Result<()> {
        let root = &self.roots[root];
        if root.access == FolderAccess::Write {
            return Ok(());
        }
        let reason = format!("the folder `{}` is read-only", root.shown.display());
        let error = errors::refused_error(verb, shown, &reason);
        Err(Error { kind: ErrorKind::PermissionDenied, ..error })
    }

    /// Refuses to delete or move an allowed folder, or a folder that contains one.
    pub(crate) fn check_holds_no_root(
        &self,
        verb: FileOperationVerb,
        place: &PathTarget,
    ) -> Result<()> {
        let is_root = place.name.is_none() && place.above.is_empty();
        let mut parts = Vec::new();
        push_parts(&mut parts, self.resolved_path(place).as_os_str());
        let below =
            self.roots.iter().find(|root| root.names.iter().any(|name| name.starts_with(&parts)));
        if is_root || below.is_some_and(|root| root.shown == place.shown) {
            let error = errors::refused_error(verb, &place.shown, "it is an allowed folder itself");
            return Err(Error { kind: ErrorKind::PermissionDenied, ..error });
        }
        below.map_or(Ok(()), |root| {
            let reason = format!("it contains the allowed folder `{}`", root.shown.display());
            let error = errors::refused_error(verb, &place.shown, &reason);
            Err(Error { kind: ErrorKind::PermissionDenied, ..error })
        })
    }

    /// Returns the path of a place without links, as the environment shows it.
    pub(crate) fn resolved_path(&self, place: &PathTarget) -> PathBuf {
        place.path_below_top(&self.roots[place.root].shown)
    }

    /// Returns the path of a place on this machine.
    pub(crate) fn host_path(&self, place: &PathTarget) -> PathBuf {
        place.path_below_top(&self.roots[place.root].host)
    }

    /// Returns both names of a place, without links.
    pub(crate) fn resolved_pair(&self, place: &PathTarget) -> ResolvedPathPair {
        ResolvedPathPair::new(self.resolved_path(place), self.host_path(place))
    }

    /// Returns the error of a path outside the allowed folders.
    pub(crate) fn outside_error(&self, verb: &str) -> Error {
        let allowed: Vec<String> =
            self.roots.iter().map(|root| format!("`{}`", root.shown.display())).collect();
        let text = format!("{verb} outside of the allowed folders {}", allowed.join(", "));
        Error::new(ErrorKind::PermissionDenied, text).with_hint("use a path in one of them")
    }
}

impl OpenRoot {
    fn open(root: &AllowedFolder) -> Result<Self> {
        let wrong = |reason: &str| {
            let text = format!("cannot use the folder `{}`: {reason}", root.host.display());
            Error::new(ErrorKind::Configuration, text)
        };
        let mut shown = Vec::new();
        push_parts(&mut shown, root.shown.as_os_str());
        if !root.shown.is_absolute() || shown.iter().any(|part| part == "..") {
            return Err(wrong(&format!("`{}` is not an absolute path", root.shown.display())));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, &root.host, flags, Mode::empty())
            .map_err(|errno| wrong(&std::io::Error::from(errno).kind().to_string()))?;
        let real = root.host.canonicalize().map_err(|error| wrong(&error.kind().to_string()))?;
        let is_local = root.host == root.shown;
        let shown_path = join_parts(&shown);
        let mut names = vec![shown];
        if is_local {
            let mut parts = Vec::new();
            push_parts(&mut parts, real.as_os_str());
            if !names.contains(&parts) {
                names.push(parts);
            }
        }
        Ok(Self {
            handle: Arc::new(handle),
            host: real,
            shown: shown_path,
            access: root.access,
            names,
            has_roots_below: false,
        })
    }

    /// Returns the shown path, split into parts.
    pub(crate) fn path_parts(&self) -> &[OsString] {
        &self.names[0]
    }

    /// Returns the path as the environment shows it.
    pub(crate) fn display_path(&self) -> &Path {
        &self.shown
    }

    /// Returns the path on this machine.
    pub(crate) fn host_path(&self) -> &Path {
        &self.host
    }

    pub(crate) fn has_roots_below(&self) -> bool {
        self.has_roots_below
    }
}
