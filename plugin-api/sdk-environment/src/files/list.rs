//! Lists folders, returns facts, and creates folders.

use std::ffi::OsStr;

use jaato_types::Result;
use jaato_types::files::{
    FileFacts, FileKind, FilePath, FolderEntries, FolderEntry, FolderList, FolderMake,
    LIST_BYTES_MAX, LIST_ENTRIES_MAX,
};
use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;

use super::confined::ConfinedFiles;
use super::folder::{ListedFolder, entry_metadata, open_folder_in};
use super::steps::{FinalLinkPolicy, MissingFolderPolicy};
use crate::engine::{NameOrder, TreeCallLimits};
use crate::errors::{self, FileOperationVerb};

impl ConfinedFiles {
    /// Lists a folder, sorted by name. If the facts of an entry cannot be read, it is listed
    /// without them.
    pub fn list(&self, request: &FolderList) -> Result<FolderEntries> {
        let asked = self.parse_folder_path(&request.path)?;
        let failed =
            |errno| errors::operation_error(FileOperationVerb::List, &asked.display_path(), errno);
        let (folder, limits) = match &asked.limits {
            None => (self.roots.open_folder(&asked, FileOperationVerb::List)?, None),
            Some(limits) => {
                let place = self.roots.resolve_folder(&asked, FileOperationVerb::List)?;
                let folder = open_folder_in(&*place.dir, OsStr::new(".")).map_err(failed)?;
                (folder, Some(TreeCallLimits::new(limits, self.roots.resolved_pair(&place))))
            }
        };
        let ListedFolder { handle, mut names } =
            ListedFolder::read_listed(folder, NameOrder::Yes).map_err(failed)?;
        let denied = limits
            .map_or(0, |limits| names.retain(|name| !limits.skips_entry(name.as_encoded_bytes())));
        names.skip_names(request.skip);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < LIST_ENTRIES_MAX && bytes < LIST_BYTES_MAX {
            let Some((name, kind)) = names.next() else { break };
            let name = name.to_owned();
            let size = match kind {
                FileKind::File => entry_metadata(&handle, &name).map_or(0, |facts| facts.size),
                _ => 0,
            };
            let name = name.to_string_lossy().into_owned();
            bytes += name.len();
            entries.push(FolderEntry { name, kind, size, ..FolderEntry::default() });
        }
        Ok(FolderEntries { entries, count: names.len(), denied, ..FolderEntries::default() })
    }

    /// Returns the facts of a file or folder, following links.
    pub fn stat(&self, request: &FilePath) -> Result<FileFacts> {
        let asked = self.requested_path(&request.path)?;
        if request.itself {
            let place = self.roots.resolve_existing(
                &asked,
                FinalLinkPolicy::Stay,
                FileOperationVerb::Find,
            )?;
            let failed =
                |errno| errors::operation_error(FileOperationVerb::Find, &place.shown, errno);
            return Ok(place.metadata().map_err(failed)?.file_facts(&asked.display_path()));
        }
        let facts = self.roots.metadata_of(&asked, FileOperationVerb::Find)?;
        if !asked.has_parent_part() {
            return Ok(facts.file_facts(&asked.display_path()));
        }
        let place = self.roots.resolve_existing(
            &asked,
            FinalLinkPolicy::Follow,
            FileOperationVerb::Find,
        )?;
        Ok(facts.file_facts(&self.roots.resolved_path(&place)))
    }

    /// Returns the facts of a file or folder if the system has them in memory, without waiting for
    /// the disk. Returns `None` if it does not, or if that is unknown. Use [`Self::stat`] then.
    pub fn stat_cached(&self, request: &FilePath) -> Option<FileFacts> {
        let asked = self.requested_path(&request.path).ok().filter(|_| !request.itself)?;
        Some(self.roots.cached_metadata(&asked)?.file_facts(&asked.display_path()))
    }

    /// Creates a folder. Succeeds if the folder already exists.
    pub fn make_folder(&self, request: &FolderMake) -> Result<()> {
        let asked = self.requested_path(&request.path)?;
        let missing =
            if request.parents { MissingFolderPolicy::Make } else { MissingFolderPolicy::Fail };
        let place = self.roots.resolve_for_write(&asked, missing, FileOperationVerb::Make)?;
        let Some(name) = &place.name else { return Ok(()) };
        match mkdirat(&*place.dir, name, Mode::from_raw_mode(0o777)) {
            Err(Errno::EXIST) => match place.metadata() {
                Ok(facts) if facts.kind == FileKind::Folder => Ok(()),
                _ => Err(errors::operation_error(
                    FileOperationVerb::Make,
                    &place.shown,
                    Errno::EXIST,
                )),
            },
            made => made.map_err(|errno| {
                errors::operation_error(FileOperationVerb::Make, &place.shown, errno)
            }),
        }
    }
}
