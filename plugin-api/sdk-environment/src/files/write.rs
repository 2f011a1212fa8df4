//! Writes whole files atomically, so that a reader sees either the old or the new file.

use std::fs::File;
use std::io::{Read, Seek as _, Write as _};

use jaato_types::Result;
use jaato_types::files::{FileFacts, FileKind, FileWrite, WriteMode};
use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, fstat, ftruncate, openat};
use rustix::io::Errno;

use super::confined::ConfinedFiles;
use super::draft::{DraftFile, ExistingNamePolicy, errno_of};
use super::limits::RACES_MAX;
use super::path_target::PathTarget;
use super::requested_path::RequestedPath;
use super::steps::{FinalLinkPolicy, MissingFolderPolicy};
use crate::engine::EDIT_BYTES_MAX;
use crate::errors::{self, FileOperationVerb};
use crate::platform::{FileMetadata, copy_attributes};

/// The target of a write.
#[derive(Debug)]
pub(crate) struct WriteTarget {
    pub(crate) place: PathTarget,
    /// The existing file.
    pub(crate) old: Option<FileMetadata>,
    /// Whether to keep the file and change only its content, because it has other hard links, or
    /// its owner or attributes cannot be given to another file.
    stays: bool,
}

/// Permission bits of a draft that is only a copy.
const OWNERS_MODE: u32 = 0o600;

impl ConfinedFiles {
    /// Writes a file.
    ///
    /// Replaces the file with a new one that has the same owner, permission bits and extended
    /// attributes. If the system does not allow that (another user owns the file, its folder is
    /// read-only, it is a mount point), or if the file has other hard links, its content is
    /// overwritten. If the path is a link, the link stays and its target is written. Read-only
    /// files are refused.
    pub fn write(&self, request: &FileWrite, bytes: &[u8]) -> Result<FileFacts> {
        let asked = self.parse_file_path(&request.path, FileOperationVerb::Write)?;
        let missing =
            if request.parents { MissingFolderPolicy::Make } else { MissingFolderPolicy::Fail };
        match request.mode {
            WriteMode::Replace => {
                let target =
                    self.resolve_write_target(&asked, missing, FileOperationVerb::Write)?;
                let name = target.place.entry_name(FileOperationVerb::Write)?.clone();
                let _one_at_a_time = self.write_lock(&name);
                // The version must be checked under the lock.
                let target = match request.expected {
                    Some(_) => {
                        self.resolve_write_target(&asked, missing, FileOperationVerb::Write)?
                    }
                    None => target,
                };
                target.check_version(request.expected.as_deref())?;
                target.replace_content(bytes, request.permissions, FileOperationVerb::Write)
            }
            WriteMode::CreateNew => self.create_new(&asked, missing, request.permissions, bytes),
            WriteMode::Append => {
                self.append_bytes(&asked, missing, request.expected.as_deref(), bytes)
            }
        }
    }

    /// Parses the path of a file.
    pub(crate) fn parse_file_path(
        &self,
        path: &str,
        verb: FileOperationVerb,
    ) -> Result<RequestedPath> {
        let asked = self.requested_path(path)?;
        if asked.wants_folder {
            let reason = "a path with this ending names a folder, not a file";
            return Err(errors::refused_error(verb, &asked.display_path(), reason));
        }
        Ok(asked)
    }

    /// Resolves the target of a write, following links, and looks at the existing file.
    pub(crate) fn resolve_write_target(
        &self,
        asked: &RequestedPath,
        missing: MissingFolderPolicy,
        verb: FileOperationVerb,
    ) -> Result<WriteTarget> {
        let mut place =
            self.roots.resolve_new_name(asked, FinalLinkPolicy::Follow, missing, verb)?;
        for _ in 0..RACES_MAX {
            match WriteTarget::look_up_target(place, verb)? {
                Some(target) => return Ok(target),
                None => place = self.roots.resolve_for_write(asked, missing, verb)?,
            }
        }
        Err(errors::keeps_changing_error(verb, &asked.display_path()))
    }

    fn create_new(
        &self,
        asked: &RequestedPath,
        missing: MissingFolderPolicy,
        permissions: Option<u32>,
        bytes: &[u8],
    ) -> Result<FileFacts> {
        let place = self.roots.resolve_new_name(
            asked,
            FinalLinkPolicy::Stay,
            missing,
            FileOperationVerb::Write,
        )?;
        let failed = |errno| errors::operation_error(FileOperationVerb::Write, &place.shown, errno);
        let name = place.entry_name(FileOperationVerb::Write)?;
        if place.metadata().is_ok() {
            return Err(failed(Errno::EXIST));
        }
        let mut draft = DraftFile::create_draft(&place.dir).map_err(failed)?;
        draft.write(bytes).map_err(failed)?;
        draft.set_permissions(permissions).map_err(failed)?;
        draft.rename_into_place(name, ExistingNamePolicy::Refused).map_err(failed)?;
        let stat = fstat(&draft.file).map_err(failed)?;
        Ok(FileMetadata::from(&stat).file_facts(&place.shown))
    }

    fn append_bytes(
        &self,
        asked: &RequestedPath,
        missing: MissingFolderPolicy,
        expected: Option<&str>,
        bytes: &[u8],
    ) -> Result<FileFacts> {
        let failed =
            |errno| errors::operation_error(FileOperationVerb::Write, &asked.display_path(), errno);
        let mut place = self.roots.resolve_new_name(
            asked,
            FinalLinkPolicy::Follow,
            missing,
            FileOperationVerb::Write,
        )?;
        for _ in 0..RACES_MAX {
            let name = place.entry_name(FileOperationVerb::Write)?.clone();
            let _one_at_a_time = self.write_lock(&name);
            let create = if expected.is_some() { OFlags::empty() } else { OFlags::CREATE };
            let flags = TO_WRITE | OFlags::APPEND | create;
            match openat(&*place.dir, &name, flags, Mode::from_raw_mode(0o666)) {
                Err(Errno::LOOP) => {
                    place =
                        self.roots.resolve_for_write(asked, missing, FileOperationVerb::Write)?;
                    continue;
                }
                Err(Errno::NOENT) if expected.is_some() => {
                    return Err(errors::changed_file_error(&place.shown));
                }
                Err(errno) => {
                    return Err(open_for_write_error(&place, errno, FileOperationVerb::Write));
                }
                Ok(file) => {
                    let facts = FileMetadata::from(&fstat(&file).map_err(failed)?);
                    check_is_file(&facts, &place, FileOperationVerb::Write)?;
                    if expected.is_some_and(|expected| expected != facts.version()) {
                        return Err(errors::changed_file_error(&place.shown));
                    }
                    let mut file = File::from(file);
                    file.write_all(bytes).map_err(|error| failed(errno_of(&error)))?;
                    let stat = fstat(&file).map_err(failed)?;
                    return Ok(FileMetadata::from(&stat).file_facts(&place.shown));
                }
            }
        }
        Err(errors::keeps_changing_error(FileOperationVerb::Write, &asked.display_path()))
    }
}

/// Flags that open a file for writing, without waiting for a pipe.
const TO_WRITE: OFlags = OFlags::WRONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

impl WriteTarget {
    pub(crate) fn new(place: PathTarget, old: Option<FileMetadata>) -> Self {
        Self { place, old, stays: false }
    }

    /// Looks at a place and checks that it may be written. Returns `None` if it is a link.
    ///
    /// Does not open the file, because replacing a file that is open for writing is slower on some
    /// file systems.
    fn look_up_target(place: PathTarget, verb: FileOperationVerb) -> Result<Option<Self>> {
        let failed = |errno| errors::operation_error(verb, &place.shown, errno);
        let name = place.entry_name(verb)?;
        let facts = match place.metadata() {
            Ok(facts) => facts,
            Err(Errno::NOENT) => return Ok(Some(Self::new(place, None))),
            Err(errno) => return Err(failed(errno)),
        };
        if facts.kind == FileKind::Link {
            return Ok(None);
        }
        check_is_file(&facts, &place, verb)?;
        match accessat(&*place.dir, name, Access::WRITE_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(Some(Self::new(place, Some(facts)))),
            // Another process removed the file.
            Err(Errno::NOENT) => Ok(Some(Self::new(place, None))),
            Err(errno) => Err(failed(errno)),
        }
    }

    pub(crate) fn check_version(&self, expected: Option<&str>) -> Result<()> {
        let Some(expected) = expected else { return Ok(()) };
        match &self.old {
            Some(old) if old.version() == expected => Ok(()),
            _ => Err(errors::changed_file_error(&self.place.shown)),
        }
    }

    /// Opens the old file for reading, and checks that it is the same file.
    pub(crate) fn open_old_file(&self, verb: FileOperationVerb) -> Result<File> {
        self.reopen_old_file(
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
            verb,
        )
    }

    fn reopen_old_file(&self, flags: OFlags, verb: FileOperationVerb) -> Result<File> {
        let failed = |errno| errors::operation_error(verb, &self.place.shown, errno);
        let name = self.place.entry_name(verb)?;
        let file = openat(&*self.place.dir, name, flags, Mode::empty()).map_err(failed)?;
        let facts = FileMetadata::from(&fstat(&file).map_err(failed)?);
        match &self.old {
            Some(old) if old.identity == facts.identity => Ok(file.into()),
            _ => Err(errors::changed_file_error(&self.place.shown)),
        }
    }

    /// Reads the whole old file.
    pub(crate) fn read_old_content(&self, verb: FileOperationVerb) -> Result<Vec<u8>> {
        let failed = |errno| errors::operation_error(verb, &self.place.shown, errno);
        let mut content = Vec::new();
        let file = self.open_old_file(verb)?;
        let mut file = file.take(EDIT_BYTES_MAX + 1);
        file.read_to_end(&mut content).map_err(|error| failed(errno_of(&error)))?;
        Ok(content)
    }

    /// Creates the draft of the new file. Returns `None` if its folder allows no new files, so that
    /// the old file must be overwritten.
    pub(crate) fn create_draft(&mut self, verb: FileOperationVerb) -> Result<Option<DraftFile>> {
        let failed = |errno| errors::operation_error(verb, &self.place.shown, errno);
        let is_refused = |errno| self.old.is_some() && matches!(errno, Errno::ACCESS | Errno::PERM);
        let draft = match DraftFile::create_draft(&self.place.dir) {
            Ok(draft) => draft,
            Err(errno) if is_refused(errno) => return Ok(None),
            Err(errno) => return Err(failed(errno)),
        };
        let Some(old) = &self.old else { return Ok(Some(draft)) };
        let fresh = FileMetadata::from(&fstat(&draft.file).map_err(failed)?);
        let like = draft.copy_permissions(old, &fresh).and_then(|()| self.copy_attributes(&draft));
        if old.links > 1 || like.is_err() {
            // The file stays and receives the content of the draft, which no other user may read.
            draft.set_permissions(Some(OWNERS_MODE)).map_err(failed)?;
            self.stays = true;
        }
        Ok(Some(draft))
    }

    /// Replaces the file's content. A new file gets the permission bits.
    pub(crate) fn replace_content(
        mut self,
        bytes: &[u8],
        permissions: Option<u32>,
        verb: FileOperationVerb,
    ) -> Result<FileFacts> {
        let Some(mut draft) = self.create_draft(verb)? else {
            return self.write_in_place(bytes, verb);
        };
        let failed = |errno| errors::operation_error(verb, &self.place.shown, errno);
        draft.write(bytes).map_err(failed)?;
        if self.old.is_none() {
            draft.set_permissions(permissions).map_err(failed)?;
        }
        self.install_draft(draft, verb)
    }

    /// Replaces the file with a draft.
    pub(crate) fn install_draft(
        &self,
        mut draft: DraftFile,
        verb: FileOperationVerb,
    ) -> Result<FileFacts> {
        let failed = |errno| errors::operation_error(verb, &self.place.shown, errno);
        if !self.stays {
            match draft
                .rename_into_place(self.place.entry_name(verb)?, ExistingNamePolicy::Replaced)
            {
                Ok(()) => {
                    let stat = fstat(&draft.file).map_err(failed)?;
                    return Ok(FileMetadata::from(&stat).file_facts(&self.place.shown));
                }
                // A mount point cannot be renamed over.
                Err(Errno::BUSY | Errno::XDEV) if self.old.is_some() => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        // The draft remains until the end: if this fails half-way, it still has the content.
        draft.file.rewind().map_err(|error| failed(errno_of(&error)))?;
        self.overwrite_content(&mut draft.file, verb)
    }

    /// Overwrites the content.
    fn write_in_place(self, bytes: &[u8], verb: FileOperationVerb) -> Result<FileFacts> {
        self.overwrite_content(&mut &*bytes, verb)
    }

    /// Overwrites the content and truncates the rest.
    fn overwrite_content(
        &self,
        content: &mut impl Read,
        verb: FileOperationVerb,
    ) -> Result<FileFacts> {
        let failed = |errno| errors::operation_error(verb, &self.place.shown, errno);
        let mut file = self.reopen_old_file(TO_WRITE, verb)?;
        let length = std::io::copy(content, &mut file).map_err(|error| failed(errno_of(&error)))?;
        ftruncate(&file, length).map_err(failed)?;
        let stat = fstat(&file).map_err(failed)?;
        Ok(FileMetadata::from(&stat).file_facts(&self.place.shown))
    }

    fn copy_attributes(&self, draft: &DraftFile) -> rustix::io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        copy_attributes(self.place.open_target(flags)?, &draft.file)
    }
}

fn check_is_file(facts: &FileMetadata, place: &PathTarget, verb: FileOperationVerb) -> Result<()> {
    if facts.kind == FileKind::File {
        return Ok(());
    }
    Err(errors::not_a_file_error(verb, &place.shown, facts.kind))
}

/// Returns a better error if the file is a pipe without a reader, which cannot be opened.
fn open_for_write_error(
    place: &PathTarget,
    errno: Errno,
    verb: FileOperationVerb,
) -> jaato_types::Error {
    match place.metadata() {
        Ok(facts) if errno == Errno::NXIO => {
            errors::not_a_file_error(verb, &place.shown, facts.kind)
        }
        _ => errors::operation_error(verb, &place.shown, errno),
    }
}
