//! Adds whole sessions: copies of others, and sessions from elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use jaato_types::SessionId;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::attachments;
use crate::effective::{effective_records, is_rewind_target};
use crate::error::SessionStoreError;
use crate::export::Transcript;
use crate::line;
use crate::record::{SessionHeader, SessionRecord, StoredRecord, record_type};
use crate::store::{ATTACHMENTS, RECORDS, SessionStore};
use crate::writer::{now_ms, unwritable_record_error};

/// The letters and digits of ids, without those that are easy to confuse.
const ID_LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// How many of them an id has.
const ID_LETTERS_COUNT: usize = 6;

/// The attachments of a session that is added.
#[derive(Clone, Copy)]
enum NewAttachments<'a> {
    /// Those in the folder of another session.
    Of(&'a Path),
    /// These contents.
    Contents(&'a BTreeMap<String, Vec<u8>>),
}

/// Returns the id of a session that another program made. It is the same each time, so a session
/// is not added twice, and it looks like the ids of jaato.
pub fn foreign_session_id(program: &str, id: &SessionId, begun_ms: i64) -> SessionId {
    let at = Timestamp::from_millisecond(begun_ms).unwrap_or_default();
    let digest = Sha256::digest(format!("{program}\n{id}"));
    let letter = |byte: &u8| char::from(ID_LETTERS[usize::from(*byte) % ID_LETTERS.len()]);
    let letters: String = digest.iter().take(ID_LETTERS_COUNT).map(letter).collect();
    SessionId::new(format!("{}-{letters}", at.strftime("%Y%m%d-%H%M%S")))
}

impl SessionStore {
    /// Copies the conversation of a session, up to a record or to its end, into a new session with
    /// the same workspace, name, answers to permission prompts and attachments. The records keep
    /// their numbers and times. Results name the outputs of the copy. The session appears when it
    /// is complete and durable. Returns the number of the last record of the shared conversation.
    ///
    /// # Errors
    /// If there is no such session or record, the new id is taken, or the disk refuses.
    pub fn fork_session(
        &self,
        from: &SessionId,
        to: &SessionId,
        up_to_seq: Option<u64>,
    ) -> Result<u64, SessionStoreError> {
        let source = self.existing_folder(from)?;
        self.check_id_is_free(to)?;
        let mut reader = self.read_session(from)?;
        let mut records = effective_records(reader.read_rest()?);
        if let Some(seq) = up_to_seq {
            if !is_rewind_target(&records, seq) {
                let id = from.as_str().to_owned();
                return Err(SessionStoreError::NoRecord { id, seq });
            }
            // As with a rewind, the newest ones hold. What the original spends later is its own.
            let survives = |stored: &StoredRecord| {
                [record_type::NAME, record_type::RULES].contains(&stored.record.kind.as_str())
            };
            records.retain(|stored| stored.seq <= seq || survives(stored));
        }
        let [from_folder, to_folder] =
            [from, to].map(|id| self.attachments_folder(id).display().to_string());
        for stored in &mut records {
            attachments::rename_folder(&mut stored.record, &from_folder, &to_folder);
        }
        let last = up_to_seq.or_else(|| Some(records.last()?.seq)).unwrap_or(0);
        let workspace = &reader.header().workspace;
        let mut header = SessionHeader::new(to, workspace);
        header.forked_from = Some((from.as_str().to_owned(), last));
        let header = header.to_record();
        let header = StoredRecord { seq: 0, at_ms: now_ms(), epoch: 0, record: header };
        let records = [header].into_iter().chain(records);
        let attachments = NewAttachments::Of(&source.join(ATTACHMENTS));
        self.create_in_place(to, records, attachments)?;
        Ok(last)
    }

    /// Adds the session of a transcript, with these records of its messages and their times. The
    /// session appears when it is complete and durable.
    ///
    /// # Errors
    /// If the id is taken, or the disk refuses.
    pub fn add_session(
        &self,
        id: &SessionId,
        transcript: &Transcript,
        mut records: Vec<(i64, SessionRecord)>,
    ) -> Result<(), SessionStoreError> {
        self.check_id_is_free(id)?;
        let Transcript { workspace, begun_ms, attachments, attachments_folder, .. } = transcript;
        if !attachments_folder.is_empty() {
            let folder = self.attachments_folder(id).display().to_string();
            for (_, record) in &mut records {
                attachments::rename_folder(record, attachments_folder, &folder);
            }
        }
        let header = (*begun_ms, SessionHeader::new(id, workspace).to_record());
        let records = [header].into_iter().chain(records);
        let stored = |(seq, (at_ms, record))| StoredRecord { seq, at_ms, epoch: 0, record };
        self.create_in_place(
            id,
            (0..).zip(records).map(stored),
            NewAttachments::Contents(attachments),
        )
    }

    /// Lists the session and those of which it is a copy, of a copy, and so on. Each comes with the
    /// time of the last record that the first one has of it. A session that was deleted ends the
    /// list.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub fn lineage(&self, id: &SessionId) -> Result<Vec<(SessionId, i64)>, SessionStoreError> {
        let mut lineage = vec![(id.clone(), i64::MAX)];
        let mut forked_from = self.read_session(id)?.header().forked_from.clone();
        while let Some((original, last)) = forked_from {
            let original = SessionId::new(original);
            // Copied folders could name each other.
            if lineage.iter().any(|(known, _)| *known == original) {
                break;
            }
            let reader = self.read_session(&lineage[lineage.len() - 1].0);
            let records = reader.and_then(|mut it| it.read_rest()).unwrap_or_default();
            let shared = records.iter().filter(|stored| stored.seq <= last);
            let until_ms = shared.map(|stored| stored.at_ms).max().unwrap_or(i64::MIN);
            // A copy of a copy lacks the same parts.
            let until_ms = until_ms.min(lineage[lineage.len() - 1].1);
            // The original may be deleted, but its id is known.
            forked_from =
                self.read_session(&original).ok().and_then(|it| it.header().forked_from.clone());
            lineage.push((original, until_ms));
        }
        Ok(lineage)
    }

    fn check_id_is_free(&self, id: &SessionId) -> Result<(), SessionStoreError> {
        match self.session_folder(id)?.exists() {
            true => Err(SessionStoreError::AlreadyExists(id.as_str().to_owned())),
            false => Ok(()),
        }
    }

    /// Makes a session in a folder that no list shows, and then gives the folder its name.
    fn create_in_place(
        &self,
        id: &SessionId,
        records: impl Iterator<Item = StoredRecord>,
        attachments: NewAttachments<'_>,
    ) -> Result<(), SessionStoreError> {
        let draft = self.create_draft_folder(id)?;
        let made = self.fill_folder(id, &draft, records, attachments).and_then(|()| {
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

    fn fill_folder(
        &self,
        id: &SessionId,
        draft: &Path,
        records: impl Iterator<Item = StoredRecord>,
        attachments: NewAttachments<'_>,
    ) -> Result<(), SessionStoreError> {
        let folder = draft.join(ATTACHMENTS);
        match attachments {
            NewAttachments::Of(from) => attachments::link_contents(&self.disk, from, &folder)?,
            NewAttachments::Contents(contents) => {
                for content in contents.values() {
                    attachments::store_content(&self.disk, &folder, content)?;
                }
            }
        }
        let path = draft.join(RECORDS);
        let file = self.disk.create_empty(&path)?;
        for stored in records {
            let line =
                line::encode_record(&stored).map_err(unwritable_record_error(id.as_str()))?;
            self.disk.append_bytes(&file, &path, &line)?;
        }
        self.disk.sync_file(&file, &path)?;
        self.disk.sync_folder(draft)
    }
}
