//! All saved sessions of a user.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jaato_places::make_own_folder;
use jaato_types::SessionId;
use serde_json::to_value;

use crate::attachments;
use crate::error::SessionStoreError;
use crate::owner::{self, OwnerClaim};
use crate::reader::{ReadProblem, SessionReader};
use crate::record::{FORMAT_VERSION, SessionHeader, SessionRecord, StoredRecord, record_type};
use crate::writer::SessionWriter;

/// The records of a session, in its folder.
const RECORDS: &str = "session.jsonl";

/// The attachments of a session, in its folder.
const ATTACHMENTS: &str = "attachments";

/// The folder with all sessions.
#[derive(Debug, Clone)]
pub struct SessionStore {
    folder: PathBuf,
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
}

impl SessionStore {
    /// Uses a folder, which the first session creates.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates a session, which this process owns.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn create(
        &self,
        id: &SessionId,
        workspace: &str,
        forked_from: Option<(String, u64)>,
    ) -> Result<SessionWriter, SessionStoreError> {
        let folder = self.session_folder(id)?;
        make_own_folder(&folder)?;
        let claim = OwnerClaim::take(&folder, id.as_str(), false)?;
        let (version, workspace) = (FORMAT_VERSION, workspace.to_owned());
        let header = SessionHeader { version, id: id.as_str().to_owned(), workspace, forked_from };
        // Its maps have text keys.
        let data = to_value(header).unwrap_or_default();
        let header = SessionRecord::new(record_type::HEADER, data);
        SessionWriter::create(folder.join(RECORDS), id.as_str().to_owned(), claim, header)
    }

    /// Opens a session to continue it. `take_over` replaces an owner that is alive.
    ///
    /// # Errors
    /// If there is no such session, another process has it open, or it cannot be read.
    pub fn open(
        &self,
        id: &SessionId,
        take_over: bool,
    ) -> Result<OpenedSession, SessionStoreError> {
        let folder = self.existing_folder(id)?;
        // Before the claim: a file that this program cannot read stays with its owner.
        SessionReader::open(&folder.join(RECORDS))?;
        let claim = OwnerClaim::take(&folder, id.as_str(), take_over)?;
        let opened = SessionWriter::open(folder.join(RECORDS), id.as_str().to_owned(), claim)?;
        let (writer, records, problems) = opened;
        Ok(OpenedSession { writer, records, problems })
    }

    /// Reads a session, which another process may own.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn read(&self, id: &SessionId) -> Result<SessionReader, SessionStoreError> {
        SessionReader::open(&self.existing_folder(id)?.join(RECORDS))
    }

    /// Lists all sessions, the newest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> Result<Vec<SessionId>, SessionStoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(SessionStoreError::io("read", &self.folder)(error)),
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_session = |id: &SessionId| {
            self.session_folder(id).is_ok_and(|folder| folder.join(RECORDS).exists())
        };
        let mut ids: Vec<SessionId> = names.map(SessionId::new).filter(is_session).collect();
        ids.sort_unstable_by(|one, other| other.as_str().cmp(one.as_str()));
        Ok(ids)
    }

    /// Deletes a session with its attachments.
    ///
    /// # Errors
    /// If there is no such session, or another process has it open.
    pub fn delete(&self, id: &SessionId) -> Result<(), SessionStoreError> {
        let folder = self.existing_folder(id)?;
        if owner::is_owned(&folder)? {
            return Err(SessionStoreError::InUse { id: id.as_str().to_owned() });
        }
        fs::remove_dir_all(&folder).map_err(SessionStoreError::io("delete", &folder))
    }

    /// Returns the folder for the outputs of a session's tools. It need not exist.
    pub fn outputs_folder(&self, id: &SessionId) -> PathBuf {
        self.folder.join(id.as_str()).join("outputs")
    }

    /// Stores a large content of a session. Returns its name.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn keep_attachment(
        &self,
        id: &SessionId,
        content: &[u8],
    ) -> Result<String, SessionStoreError> {
        attachments::keep(&self.session_folder(id)?.join(ATTACHMENTS), content)
    }

    /// Reads such a content. Returns `None` if it is missing or damaged.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn attachment(
        &self,
        id: &SessionId,
        name: &str,
    ) -> Result<Option<Vec<u8>>, SessionStoreError> {
        attachments::read(&self.session_folder(id)?.join(ATTACHMENTS), name)
    }

    /// Returns the folder of a session. Refuses ids that are no safe names of folders.
    fn session_folder(&self, id: &SessionId) -> Result<PathBuf, SessionStoreError> {
        let text = id.as_str();
        let is_safe = (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !text.starts_with('-');
        match is_safe {
            true => Ok(self.folder.join(text)),
            false => Err(SessionStoreError::InvalidId(text.to_owned())),
        }
    }

    fn existing_folder(&self, id: &SessionId) -> Result<PathBuf, SessionStoreError> {
        let folder = self.session_folder(id)?;
        match folder.join(RECORDS).exists() {
            true => Ok(folder),
            false => Err(SessionStoreError::NotFound(id.as_str().to_owned())),
        }
    }
}
