//! All saved sessions of a user.
//!
//! ```text
//! SESSIONS/ID/session.jsonl    the records
//! SESSIONS/ID/attachments/     large contents
//! SESSIONS/ID/owner-N, lock    who has the session open
//! SESSIONS/changed/ID          an empty file: the index must read this session
//! SESSIONS/index.sqlite        the index
//! SESSIONS/.NAME               a session that is being copied or deleted
//! ```

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_types::SessionId;

use crate::attachments;
use crate::disk::Disk;
use crate::disk::DiskHook;
use crate::error::SessionStoreError;
use crate::owner::{self, OwnerClaim, OwnerState};
use crate::reader::{ReadProblem, SessionReader};
use crate::record::{SessionHeader, SessionOpener, StoredRecord};
use crate::writer::{SessionWriter, WriterPaths, folders_to_sync};

/// The records of a session, in its folder.
pub(crate) const RECORDS: &str = "session.jsonl";

/// The attachments of a session, in its folder.
pub(crate) const ATTACHMENTS: &str = "attachments";

/// The folder with a mark for each session that the index must read.
const CHANGED: &str = "changed";

/// Longest id of a session, in bytes.
const ID_BYTES_MAX: usize = 64;

/// The folder with all sessions.
#[derive(Debug, Clone)]
pub struct SessionStore {
    folder: PathBuf,
    pub(crate) disk: Disk,
}

/// A session that was opened to continue it.
#[derive(Debug)]
pub struct OpenedSession {
    /// Appends to it.
    pub writer: SessionWriter,
    /// Its records after the header.
    pub records: Vec<StoredRecord>,
    /// Parts of the file without a record.
    pub problems: Vec<ReadProblem>,
    /// The root of the workspace in which it began, as text.
    pub workspace: String,
}

impl SessionStore {
    /// Uses a folder, which the first session creates.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), disk: Disk::default() }
    }

    /// Adds a hook that watches each change on the disk and can make it fail, for tests.
    #[must_use]
    pub fn with_disk_hook(mut self, hook: Arc<dyn DiskHook>) -> Self {
        self.disk.hook = Some(hook);
        self
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates a session, which this process owns. `opener` is the session that opens it, if any.
    ///
    /// # Errors
    /// If the id is taken, or the disk refuses.
    pub fn create_session(
        &self,
        id: &SessionId,
        workspace: &str,
        opener: Option<&SessionOpener>,
    ) -> Result<SessionWriter, SessionStoreError> {
        let folder = self.session_folder(id)?;
        self.disk.make_folder(&self.folder)?;
        self.disk.make_folder(&folder)?;
        let claim = OwnerClaim::claim_folder(&self.disk, &folder, id.as_str(), false)?;
        if folder.join(RECORDS).exists() {
            return Err(SessionStoreError::AlreadyExists(id.as_str().to_owned()));
        }
        self.mark_changed(id)?;
        let mut header = SessionHeader::new(id, workspace);
        header.opener = opener.cloned();
        SessionWriter::create(
            self.disk.clone(),
            self.writer_paths(id, &folder),
            claim,
            header.to_record(),
        )
    }

    /// Opens a session to continue it. `take_over` replaces an owner that is alive.
    ///
    /// # Errors
    /// If there is no such session, another process has it open, or it cannot be read.
    pub fn open_session(
        &self,
        id: &SessionId,
        take_over: bool,
    ) -> Result<OpenedSession, SessionStoreError> {
        let folder = self.existing_folder(id)?;
        // Before the claim: a file that this program cannot read stays with its owner.
        let reader = SessionReader::open(&self.folder, &folder.join(RECORDS))?;
        let workspace = reader.header().workspace.clone();
        let claim = OwnerClaim::claim_folder(&self.disk, &folder, id.as_str(), take_over)?;
        self.mark_changed(id)?;
        let paths = self.writer_paths(id, &folder);
        let (writer, records, problems) = SessionWriter::open(self.disk.clone(), paths, claim)?;
        Ok(OpenedSession { writer, records, problems, workspace })
    }

    /// Reads a session, which another process may own.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn read_session(&self, id: &SessionId) -> Result<SessionReader, SessionStoreError> {
        SessionReader::open(&self.folder, &self.existing_folder(id)?.join(RECORDS))
    }

    /// Lists all sessions. Ids of jaato begin with their time, so the newest are first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list_sessions(&self) -> Result<Vec<SessionId>, SessionStoreError> {
        let mut ids = self.session_ids_matching(|_| true)?;
        ids.sort_unstable_by(|one, other| other.as_str().cmp(one.as_str()));
        Ok(ids)
    }

    /// Checks that a session can be opened: it is there, this program reads it, and no other
    /// process has it open.
    ///
    /// # Errors
    /// Why not.
    pub fn check_can_open(&self, id: &SessionId) -> Result<(), SessionStoreError> {
        self.read_session(id)?;
        match self.owner_state(id)? {
            OwnerState::Free => Ok(()),
            OwnerState::InUse { pid } => {
                Err(SessionStoreError::InUse { id: id.as_str().to_owned(), pid })
            }
        }
    }

    /// Returns whether a process has a session open.
    ///
    /// # Errors
    /// If there is no such session, or its folder cannot be read.
    pub fn owner_state(&self, id: &SessionId) -> Result<OwnerState, SessionStoreError> {
        owner::owner_state(&self.existing_folder(id)?)
    }

    /// Lists the sessions that processes have open, with the process ids. Only a session with a
    /// mark can be open, so this does not read the other sessions.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn open_sessions(&self) -> Result<Vec<(SessionId, Option<u32>)>, SessionStoreError> {
        let state = |id: SessionId| match self.owner_state(&id) {
            Ok(OwnerState::InUse { pid }) => Some((id, pid)),
            // A session that cannot be read is not open.
            Ok(OwnerState::Free) | Err(_) => None,
        };
        Ok(self.changed_sessions()?.into_iter().filter_map(state).collect())
    }

    /// Returns the folder for outputs of a session's tools that are not complete yet. It does not
    /// have to exist.
    pub fn outputs_folder(&self, id: &SessionId) -> PathBuf {
        self.folder.join(id.as_str()).join("outputs")
    }

    /// Returns the folder of a session's attachments. It does not have to exist.
    pub fn attachments_folder(&self, id: &SessionId) -> PathBuf {
        self.folder.join(id.as_str()).join(ATTACHMENTS)
    }

    /// Makes a file with a whole output an attachment of a session. Returns its new path.
    ///
    /// # Errors
    /// If the file cannot be read, or the disk refuses.
    pub fn attach_output(&self, id: &SessionId, file: &Path) -> Result<PathBuf, SessionStoreError> {
        attachments::adopt_file(&self.disk, &self.session_folder(id)?.join(ATTACHMENTS), file)
    }

    /// Lists the attachments of a session whose paths are in a text.
    pub fn named_outputs<'a>(&self, id: &SessionId, text: &'a str) -> Vec<&'a str> {
        let folder = self.attachments_folder(id).display().to_string();
        attachments::content_paths(text, &folder).into_iter().map(|(_, name)| name).collect()
    }

    /// Stores a large content of a session. Returns its name.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn store_attachment(
        &self,
        id: &SessionId,
        content: &[u8],
    ) -> Result<String, SessionStoreError> {
        attachments::store_content(&self.disk, &self.session_folder(id)?.join(ATTACHMENTS), content)
    }

    /// Reads such a content. Returns `None` if it is missing or damaged.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_attachment(
        &self,
        id: &SessionId,
        name: &str,
    ) -> Result<Option<Vec<u8>>, SessionStoreError> {
        attachments::read_content(&self.session_folder(id)?.join(ATTACHMENTS), name)
    }

    /// Marks a session as changed, so that the index reads it. Only an owner does this, because the
    /// index removes the mark of a session without one.
    pub(crate) fn mark_changed(&self, id: &SessionId) -> Result<(), SessionStoreError> {
        let path = self.mark_path(id);
        if path.exists() {
            return Ok(());
        }
        self.disk.make_folder(&self.folder.join(CHANGED))?;
        match self.disk.create_new(&path) {
            // Another process was faster.
            Err(_) if path.exists() => Ok(()),
            created => created.map(drop),
        }
    }

    /// Lists the marked sessions.
    pub(crate) fn changed_sessions(&self) -> Result<Vec<SessionId>, SessionStoreError> {
        let names = names_in(&self.folder.join(CHANGED))?;
        let ids = names.into_iter().map(SessionId::new);
        Ok(ids.filter(|id| self.session_folder(id).is_ok()).collect())
    }

    /// Returns the path of a session's mark.
    pub(crate) fn mark_path(&self, id: &SessionId) -> PathBuf {
        self.folder.join(CHANGED).join(id.as_str())
    }

    /// Lists the sessions whose ids pass, in any order.
    pub(crate) fn session_ids_matching(
        &self,
        passes: impl Fn(&str) -> bool,
    ) -> Result<Vec<SessionId>, SessionStoreError> {
        let names = names_in(&self.folder)?.into_iter().filter(|name| passes(name));
        Ok(names.map(SessionId::new).filter(|id| self.existing_folder(id).is_ok()).collect())
    }

    /// Returns the folder of a session. Refuses ids that are no safe names of folders.
    pub(crate) fn session_folder(&self, id: &SessionId) -> Result<PathBuf, SessionStoreError> {
        let text = id.as_str();
        let is_safe = (1..=ID_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !text.starts_with('-')
            && text != CHANGED;
        match is_safe {
            true => Ok(self.folder.join(text)),
            false => Err(SessionStoreError::InvalidId(text.to_owned())),
        }
    }

    pub(crate) fn existing_folder(&self, id: &SessionId) -> Result<PathBuf, SessionStoreError> {
        let folder = self.session_folder(id)?;
        match folder.join(RECORDS).exists() {
            true => Ok(folder),
            false => Err(SessionStoreError::NotFound(id.as_str().to_owned())),
        }
    }

    fn writer_paths(&self, id: &SessionId, folder: &Path) -> WriterPaths {
        let changed = self.folder.join(CHANGED);
        let above = self.folder.parent().unwrap_or(&self.folder).to_owned();
        WriterPaths {
            sessions: self.folder.clone(),
            file: folder.join(RECORDS),
            id: id.as_str().to_owned(),
            // With the folder above, which has the name of the folder with all sessions.
            folders: folders_to_sync(folder, &[&above, &self.folder, &changed]),
        }
    }
}

/// Lists the names in a folder, which may be missing.
pub(crate) fn names_in(folder: &Path) -> Result<Vec<String>, SessionStoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SessionStoreError::from_io("read", folder)(error)),
    };
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
}
