//! Deletes sessions, by name or by age and size.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jaato_types::SessionId;

use crate::error::SessionStoreError;
use crate::owner::{OwnerState, lock_folder, owner_state};
use crate::store::{RECORDS, SessionStore, names_in};

/// The beginning of the names of folders that hold no session: one that is being copied, or
/// deleted.
const DRAFT: &str = ".draft-";
const DELETED: &str = ".deleted-";

/// How long a copy may take. An older draft is the rest of a crash.
const DRAFT_AGE_MAX: Duration = Duration::from_hours(24);

/// The sessions that [`SessionStore::expire_sessions`] deleted.
#[derive(Debug, Default)]
pub struct ExpiredSessions {
    /// The deleted sessions, the oldest first.
    pub deleted: Vec<SessionId>,
    /// Sessions that should be deleted, and why they were not. A session that is open is not among
    /// them.
    pub failed: Vec<(SessionId, SessionStoreError)>,
}

/// A session that may expire.
struct AgedSession {
    id: SessionId,
    changed: SystemTime,
    bytes: u64,
}

impl SessionStore {
    /// Deletes a session with its attachments. A crash leaves all of it, or nothing that a list
    /// shows.
    ///
    /// # Errors
    /// If there is no such session, or another process has it open.
    pub fn delete_session(&self, id: &SessionId) -> Result<(), SessionStoreError> {
        let folder = self.existing_folder(id)?;
        let lock = lock_folder(&folder, id.as_str())?;
        if let OwnerState::InUse { pid } = owner_state(&folder)? {
            return Err(SessionStoreError::InUse { id: id.as_str().to_owned(), pid });
        }
        // On a full disk this may fail until the session is gone.
        let marked = self.mark_changed(id);
        let name = format!("{DELETED}{id}-{}", std::process::id());
        let away = self.folder().join(name);
        self.disk.rename(&folder, &away)?;
        drop(lock);
        self.disk.sync_folder(self.folder())?;
        self.disk.remove_folder(&away)?;
        marked.or_else(|_| self.mark_changed(id))?;
        self.remove_leftovers()
    }

    /// Deletes the sessions that have not changed for `max_age`, then the oldest ones until all
    /// together have at most `max_total_bytes`. Never deletes a session that is open.
    ///
    /// # Errors
    /// If the sessions cannot be listed.
    pub fn expire_sessions(
        &self,
        max_age: Option<Duration>,
        max_total_bytes: Option<u64>,
    ) -> Result<ExpiredSessions, SessionStoreError> {
        let mut expired = ExpiredSessions::default();
        if max_age.is_none() && max_total_bytes.is_none() {
            return Ok(expired);
        }
        let now = SystemTime::now();
        let sessions = self.list_sessions()?.into_iter().filter_map(|id| self.session_age(id));
        let mut sessions: Vec<AgedSession> = sessions.collect();
        sessions.sort_by_key(|session| session.changed);
        let mut total: u64 = sessions.iter().map(|session| session.bytes).sum();
        for AgedSession { id, changed, bytes } in sessions {
            // A time in the future is not an age.
            let age = now.duration_since(changed).unwrap_or_default();
            let is_old = max_age.is_some_and(|most| age > most);
            if !is_old && max_total_bytes.is_none_or(|most| total <= most) {
                continue;
            }
            match self.delete_session(&id) {
                Ok(()) => {
                    total = total.saturating_sub(bytes);
                    expired.deleted.push(id);
                }
                // Open, or deleted by another process.
                Err(SessionStoreError::InUse { .. } | SessionStoreError::NotFound(_)) => {}
                Err(error) => expired.failed.push((id, error)),
            }
        }
        Ok(expired)
    }

    /// Creates an empty folder in which a session is made.
    pub(crate) fn create_draft_folder(&self, id: &SessionId) -> Result<PathBuf, SessionStoreError> {
        let folder = self.folder().join(format!("{DRAFT}{id}-{}", std::process::id()));
        self.disk.remove_folder(&folder)?;
        self.disk.make_folder(&folder)?;
        Ok(folder)
    }

    /// Removes the rest of copies and deletions that crashed.
    pub(crate) fn remove_leftovers(&self) -> Result<(), SessionStoreError> {
        for name in names_in(self.folder())? {
            let is_leftover = name.starts_with(DELETED)
                || (name.starts_with(DRAFT) && is_old_folder(&self.folder().join(&name)));
            if is_leftover {
                self.disk.remove_folder(&self.folder().join(name))?;
            }
        }
        Ok(())
    }

    fn session_age(&self, id: SessionId) -> Option<AgedSession> {
        let folder = self.existing_folder(&id).ok()?;
        let changed = fs::metadata(folder.join(RECORDS)).ok()?.modified().ok()?;
        Some(AgedSession { id, changed, bytes: folder_bytes(&folder) })
    }
}

fn is_old_folder(folder: &Path) -> bool {
    let modified = fs::metadata(folder).and_then(|found| found.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > DRAFT_AGE_MAX))
}

/// Returns the bytes of a folder's files. A file that cannot be read counts as empty. Copies of a
/// session share files, so each counts a part of them.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
        Ok(found) => found.len() / found.nlink().max(1),
        Err(_) => 0,
    });
    bytes.sum()
}
