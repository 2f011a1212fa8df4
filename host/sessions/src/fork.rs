//! Copies a session into a new one.

use jaato_types::SessionId;

use crate::attachments;
use crate::effective::{effective_records, is_target};
use crate::error::SessionStoreError;
use crate::line;
use crate::record::StoredRecord;
use crate::store::{ATTACHMENTS, RECORDS, SessionStore, header_record};
use crate::writer::now_ms;

impl SessionStore {
    /// Copies the conversation of a session, up to a record or to its end, into a new session with
    /// the same workspace, name and attachments. The records keep their numbers and times. The
    /// session appears when it is whole and durable. Returns the number of its last record.
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
        let target = self.session_folder(to)?;
        if target.exists() {
            return Err(SessionStoreError::AlreadyExists(to.as_str().to_owned()));
        }
        let mut reader = self.read(from)?;
        let mut records = effective_records(reader.read_rest()?);
        if let Some(seq) = up_to_seq {
            if !is_target(&records, seq) {
                let id = from.as_str().to_owned();
                return Err(SessionStoreError::NoRecord { id, seq });
            }
            records.retain(|stored| stored.seq <= seq);
        }
        let last = records.last().map_or(0, |stored| stored.seq);
        let workspace = &reader.header().workspace;
        let header = header_record(to, workspace, Some((from.as_str().to_owned(), last)));
        let header = StoredRecord { seq: 0, at_ms: now_ms(), epoch: 0, record: header };
        let draft = self.draft(to)?;
        let attachments = draft.join(ATTACHMENTS);
        let made = attachments::share(&self.disk, &source.join(ATTACHMENTS), &attachments)
            .and_then(|()| {
                let path = draft.join(RECORDS);
                let file = self.disk.create_empty(&path)?;
                for stored in [&header].into_iter().chain(&records) {
                    self.disk.write(&file, &path, &line::encode(stored))?;
                }
                self.disk.sync(&file, &path)?;
                self.disk.sync_folder(&draft)?;
                // Before the session appears, so that a crash in between cannot hide it.
                self.mark_changed(to)?;
                self.disk.rename(&draft, &target)
            });
        if let Err(error) = made {
            // If this fails too, the next deletion removes the rest.
            let _ = self.disk.remove_folder(&draft);
            return Err(error);
        }
        // The index may have removed the mark, because there was no session.
        self.mark_changed(to)?;
        self.disk.sync_folder(self.folder())?;
        Ok(last)
    }
}
