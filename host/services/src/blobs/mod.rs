//! What is no text (images, files, PDF), kept for each session under the SHA-256 of its content.
//!
//! A blob is a file of mode 0600 in a folder of the session, beside its output files. It is
//! written to a temporary name and renamed when it is whole, so a blob is never half there. The
//! same bytes twice are one blob.
//!
//! Not here: who may ask. Whoever is called for a session may read and add blobs of that session,
//! and of no other.
//!
//! Invariants:
//! - What is written counts against the session's bounds before it is written.
//! - What is never finished leaves nothing behind: dropping an [`Upload`] removes its file.

mod session;
mod upload;
mod uploads;

use std::collections::HashMap;
use std::sync::Arc;

use jaato_environments::Outputs;
use jaato_types::{Error, ErrorKind, SessionId};
use parking_lot::Mutex;

pub use session::{Kept, SessionBlobs};

pub use uploads::{Piece, Uploads, Written};

/// The blobs of all sessions of a host.
#[derive(Debug)]
pub struct Blobs {
    outputs: Arc<Outputs>,
    sessions: Mutex<HashMap<SessionId, Arc<SessionBlobs>>>,
}

impl Blobs {
    /// Keeps blobs beside these output files. Makes no folder.
    pub fn beside(outputs: Arc<Outputs>) -> Self {
        Self { outputs, sessions: Mutex::default() }
    }

    /// Returns the blobs of a session. Makes no folder.
    ///
    /// # Errors
    /// `unavailable` where there is no session.
    pub fn of(&self, session: &SessionId) -> Result<Arc<SessionBlobs>, Error> {
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

    /// Removes the blobs of a session that is over.
    pub async fn leave(&self, session: &SessionId) {
        let Some(blobs) = self.sessions.lock().remove(session) else { return };
        // What cannot be removed goes with the host's folder. A panic there costs nothing else.
        let _ = tokio::task::spawn_blocking(move || blobs.remove()).await;
    }
}

/// Runs work on files where it may block.
///
/// # Errors
/// What the work answers; `host_bug` when it panicked.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::new(ErrorKind::HostBug, error.to_string())),
    }
}

fn io(what: &str, error: &std::io::Error) -> Error {
    let text = format!("cannot {what} a blob: {error}");
    let made = Error::new(ErrorKind::Io, text);
    jaato_places::hint_of(error).into_iter().fold(made, Error::with_hint)
}

#[cfg(test)]
mod tests;
