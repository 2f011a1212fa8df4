//! Walks to a path part by part, like the system, and checks each step.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::error::{PathProblem, PlaceError};
use crate::owners::{GROUP_WRITES, TrustedOwners, is_own_group, is_unmapped};

/// How many links are followed on one path, as in the system.
const LINKS_MAX: usize = 40;

/// Mode bits that let others write.
pub(crate) const OTHERS_WRITE: u32 = 0o022;

/// The mode bit that lets everyone write.
const EVERYBODY_WRITES: u32 = 0o002;

/// Mode bits that let others enter a folder.
const OTHERS_ENTER: u32 = 0o011;

/// The mode bit that lets only a file's owner remove it from a folder.
const STICKY: u32 = 0o1000;

/// The end of a walk.
#[derive(Debug)]
pub(crate) struct WalkEnd {
    /// The path without links.
    pub(crate) path: PathBuf,
    pub(crate) metadata: Metadata,
}

/// Walks to a path, through links. Checks each folder and link on the way, and the owner of the
/// file at the end, but not its mode.
pub(crate) fn walk_path(path: &Path, owners: &TrustedOwners) -> Result<WalkEnd, PlaceError> {
    let absolute = std::path::absolute(path).map_err(PlaceError::from_io(path))?;
    let mut rest = reversed_parts(&absolute);
    let mut way = WalkPosition::at_root()?;
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == ".." {
            way.ascend();
            continue;
        }
        way.check_folder_on_path(owners)?;
        let next = way.path.join(&part);
        let found = fs::symlink_metadata(&next).map_err(PlaceError::from_io(&next))?;
        if !found.is_symlink() {
            way.descend(next, found);
            continue;
        }
        check_owner(&next, &found, owners)?;
        links += 1;
        if links > LINKS_MAX {
            return Err(PlaceError::new(path, PathProblem::TooManyLinks));
        }
        let target = fs::read_link(&next).map_err(PlaceError::from_io(&next))?;
        if target.is_absolute() {
            way = WalkPosition::at_root()?;
        }
        rest.extend(reversed_parts(&target));
    }
    let WalkPosition { path, metadata, .. } = way;
    check_owner(&path, &metadata, owners)?;
    Ok(WalkEnd { path, metadata })
}

/// Refuses a file that others can write to.
pub(crate) fn check_mode(
    path: &Path,
    metadata: &Metadata,
    owners: &TrustedOwners,
) -> Result<(), PlaceError> {
    match metadata.mode() & OTHERS_WRITE {
        0 => Ok(()),
        GROUP_WRITES if owners.contains_group(metadata.gid()) => Ok(()),
        _ => Err(PlaceError::new(path, PathProblem::Writable(metadata.mode() & 0o7777))),
    }
}

pub(crate) fn check_owner(
    path: &Path,
    metadata: &Metadata,
    owners: &TrustedOwners,
) -> Result<(), PlaceError> {
    match owners.contains_user(metadata.uid()) {
        true => Ok(()),
        false => Err(PlaceError::new(path, PathProblem::Owner(metadata.uid()))),
    }
}

/// The current position of the walk.
struct WalkPosition {
    path: PathBuf,
    metadata: Metadata,
    /// For each folder so far: whether others can reach it, and its metadata.
    above: Vec<(bool, Metadata)>,
    /// Whether others can reach the current position.
    is_open: bool,
}

impl WalkPosition {
    fn at_root() -> Result<Self, PlaceError> {
        let path = PathBuf::from("/");
        let metadata = fs::symlink_metadata(&path).map_err(PlaceError::from_io(&path))?;
        Ok(Self { path, metadata, above: Vec::new(), is_open: true })
    }

    /// Checks the folder in which the next part is looked up.
    fn check_folder_on_path(&self, owners: &TrustedOwners) -> Result<(), PlaceError> {
        if !self.metadata.is_dir() {
            let error = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(PlaceError::new(&self.path, PathProblem::System(error)));
        }
        if !is_unmapped(self.metadata.uid()) {
            check_owner(&self.path, &self.metadata, owners)?;
        }
        if !self.is_open || self.metadata.mode() & STICKY != 0 {
            return Ok(());
        }
        check_mode(&self.path, &self.metadata, owners).or_else(|error| {
            let is_closed = self.metadata.mode() & EVERYBODY_WRITES == 0;
            (is_closed && is_own_group(self.metadata.gid())).then_some(()).ok_or(error)
        })
    }

    fn descend(&mut self, path: PathBuf, metadata: Metadata) {
        let may_enter = self.is_open && self.metadata.mode() & OTHERS_ENTER != 0;
        let passed = std::mem::replace(&mut self.metadata, metadata);
        self.above.push((self.is_open, passed));
        self.path = path;
        self.is_open = may_enter;
    }

    fn ascend(&mut self) {
        if let Some((was_open, metadata)) = self.above.pop() {
            self.path.pop();
            (self.is_open, self.metadata) = (was_open, metadata);
        }
    }
}

/// Returns the parts of a path, the last one first.
fn reversed_parts(path: &Path) -> Vec<OsString> {
    let named = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    named.collect()
}
