//! Adds whole sessions: copies of others, and sessions from elsewhere.

use std::path::Path;

use jaato_types::SessionId;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::attachments;
use crate::effective::{effective_records, is_target};
use crate::error::SessionStoreError;
use crate::line;
use crate::record::{SessionRecord, StoredRecord, record_type};
use crate::store::{ATTACHMENTS, RECORDS, SessionStore, header_record};
use crate::writer::{now_ms, unwritable};

/// The letters and digits of ids, without those that are easy to confuse.
const ID_LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// How many of them an id has.
const ID_LETTERS_COUNT: usize = 6;

/// Returns the id of a session that another program made. It is the same each time, so a session
/// is not added twice, and it looks like the ids of jaato.
pub fn id_of_foreign_session(program: &str, id: &SessionId, begun_ms: i64) -> SessionId {
    let at = Timestamp::from_millisecond(begun_ms).unwrap_or_default();
    let digest = Sha256::digest(format!("{program}\n{id}"));
    let letter = |byte: &u8| char::from(ID_LETTERS[usize::from(*byte) % ID_LETTERS.len()]);
    let letters: String = digest.iter().take(ID_LETTERS_COUNT).map(letter).collect();
    SessionId::new(format!("{}-{letters}", at.strftime("%Y%m%d-%H%M%S")))
}

impl SessionStore {
    /// Copies the conversation of a session, up to a record or to its end, into a new session with
    /// the same workspace, name and attachments. The records keep their numbers and times. The
    /// session appears when it is whole and durable. Returns the number of the last record of the
    /// shared conversation.
    ///
    /// # Errors
    /// If there is no such session or record, the new id is taken, or the disk refuses.
    pub fn fork(
        &self,
        from: &SessionId,
        to: &SessionId,
        up_to_seq: Option<u64>,
    ) -> Result<u64, SessionStoreError> {
        let source = self.existing_folder(from)?;
        self.check_id_is_free(to)?;
        let mut reader = self.read(from)?;
        let mut records = effective_records(reader.read_rest()?);
        if let Some(seq) = up_to_seq {
            if !is_target(&records, seq) {
                let id = from.as_str().to_owned();
                return Err(SessionStoreError::NoRecord { id, seq });
            }
            // As with a rewind, the copy has the newest name.
            let is_name = |stored: &StoredRecord| stored.record.kind == record_type::NAME;
            records.retain(|stored| stored.seq <= seq || is_name(stored));
        }
        let last = up_to_seq.or_else(|| Some(records.last()?.seq)).unwrap_or(0);
        let workspace = &reader.header().workspace;
        let header = header_record(to, workspace, Some((from.as_str().to_owned(), last)));
        let header = StoredRecord { seq: 0, at_ms: now_ms(), epoch: 0, record: header };
        let records = [header].into_iter().chain(records);
        self.place(to, records, Some(&source.join(ATTACHMENTS)))?;
        Ok(last)
    }

    /// Adds a session from elsewhere with its records and their times. The session appears when it
    /// is whole and durable.
    ///
    /// # Errors
    /// If the id is taken, or the disk refuses.
    pub fn add(
        &self,
        id: &SessionId,
        workspace: &str,
        begun_ms: i64,
        records: Vec<(i64, SessionRecord)>,
    ) -> Result<(), SessionStoreError> {
        self.check_id_is_free(id)?;
        let header = (begun_ms, header_record(id, workspace, None));
        let records = [header].into_iter().chain(records);
        let stored = |(seq, (at_ms, record))| StoredRecord { seq, at_ms, epoch: 0, record };
        self.place(id, (0..).zip(records).map(stored), None)
    }

    fn check_id_is_free(&self, id: &SessionId) -> Result<(), SessionStoreError> {
        match self.session_folder(id)?.exists() {
            true => Err(SessionStoreError::AlreadyExists(id.as_str().to_owned())),
            false => Ok(()),
        }
    }

    /// Makes a session in a folder that no list shows, and then gives the folder its name.
    fn place(
        &self,
        id: &SessionId,
        records: impl Iterator<Item = StoredRecord>,
        attachments: Option<&Path>,
    ) -> Result<(), SessionStoreError> {
        let draft = self.draft(id)?;
        let made = self.fill(id, &draft, records, attachments).and_then(|()| {
            // Before the session appears, so that a crash in between cannot hide it.
            self.mark_changed(id)?;
            self.disk.rename(&draft, &self.session_folder(id)?)
        });
        if let Err(error) = made {
            // If this fails too, the next deletion removes the rest.
            let _ = self.disk.remove_folder(&draft);
            return Err(error);
        }
        // The index may have removed the mark, because there was no session.
        self.mark_changed(id)?;
        self.disk.sync_folder(self.folder())
    }

    fn fill(
        &self,
        id: &SessionId,
        draft: &Path,
        records: impl Iterator<Item = StoredRecord>,
        attachments: Option<&Path>,
    ) -> Result<(), SessionStoreError> {
        if let Some(from) = attachments {
            attachments::share(&self.disk, from, &draft.join(ATTACHMENTS))?;
        }
        let path = draft.join(RECORDS);
        let file = self.disk.create_empty(&path)?;
        for stored in records {
            let line = line::encode(&stored).map_err(unwritable(id.as_str()))?;
            self.disk.write(&file, &path, &line)?;
        }
        self.disk.sync(&file, &path)?;
        self.disk.sync_folder(draft)
    }
}
