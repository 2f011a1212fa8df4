//! Stores a session's binary data (images, files, PDF) under the SHA-256 of its content.
//!
//! A blob is a file with mode 0600 in the session's folder, next to its output files. It is written
//! to a temporary file that is renamed when complete, so a blob is never partial. Identical bytes
//! are stored once.
//!
//! Not here: access control. Any caller that acts for a session may read and add blobs of that
//! session, and of no other.
//!
//! Invariants:
//! - Bytes count against the session's limits before they are written.
//! - Unfinished blobs leave nothing behind: dropping an [`BlobUpload`] removes its file.

mod session;
mod upload;
mod uploads;

use std::collections::HashMap;
use std::sync::Arc;

use jaato_environments::OutputFolder;
use jaato_types::{Error, ErrorKind, SessionId};
use parking_lot::Mutex;

pub use session::{SessionBlobs, StoredBlob};

pub use uploads::{BlobPiece, BlobUploads, PieceWriteResult};

/// The blobs of all sessions of a host.
#[derive(Debug)]
pub struct BlobStore {
    outputs: Arc<OutputFolder>,
    sessions: Mutex<HashMap<SessionId, Arc<SessionBlobs>>>,
}

impl BlobStore {
    /// Creates a store next to these output files. Creates no folder.
    pub fn next_to_outputs(outputs: Arc<OutputFolder>) -> Self {
        Self { outputs, sessions: Mutex::default() }
    }

    /// Returns the blobs of a session. Creates no folder.
    ///
    /// # Errors
    /// `unavailable` without a session.
    pub fn session_blobs(&self, session: &SessionId) -> Result<Arc<SessionBlobs>, Error> {
        if session.as_str().is_empty() {
            let text = "there is no session to keep blobs in";
            return Err(Error::new(ErrorKind::Unavailable, text));
        }
        let mut sessions = self.sessions.lock();
        let blobs = sessions.entry(session.clone()).or_insert_with(|| {
            let outputs = Arc::clone(&self.outputs);
            Arc::new(SessionBlobs::new(outputs, session))
        });
        Ok(Arc::clone(blobs))
    }

    /// Removes the blobs of a finished session.
    pub async fn remove_session(&self, session: &SessionId) {
        let Some(blobs) = self.sessions.lock().remove(session) else { return };
        // Files that cannot be removed go with the host's folder. A panic there affects nothing
        // else.
        let _ = tokio::task::spawn_blocking(move || blobs.remove()).await;
    }
}

/// Runs blocking work on files.
///
/// # Errors
/// The work's error, or `host_bug` if it panicked.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::new(ErrorKind::HostBug, error.to_string())),
    }
}

fn file_error(what: &str, error: &std::io::Error) -> Error {
    let text = format!("cannot {what} a blob: {error}");
    let made = Error::new(ErrorKind::Io, text);
    jaato_places::io_error_hint(error).into_iter().fold(made, Error::with_hint)
}

#[cfg(test)]
mod tests;
