//! The sessions that live, by id: what services reach of the one for which a plugin is called.

use std::collections::HashMap;

use jaato_session::SessionHandle;
use jaato_types::{Error, ErrorKind, SessionId};
use parking_lot::Mutex;

/// The sessions of a host.
#[derive(Default)]
pub struct Sessions {
    live: Mutex<HashMap<SessionId, SessionHandle>>,
}

impl Sessions {
    /// Takes a session that begins.
    pub fn enter(&self, id: &SessionId, handle: SessionHandle) {
        self.live.lock().insert(id.clone(), handle);
    }

    /// Forgets a session that is over.
    pub fn leave(&self, id: &SessionId) {
        self.live.lock().remove(id);
    }

    /// Finds a session.
    ///
    /// # Errors
    /// `unavailable` where there is none: a host-wide instance asks outside of calls, or the
    /// session is over.
    pub fn find(&self, id: &SessionId) -> Result<SessionHandle, Error> {
        self.live.lock().get(id).cloned().ok_or_else(|| {
            let text = "there is no session to act in";
            Error::new(ErrorKind::Unavailable, text)
                .with_hint("ask within a call: it is the call's session that is meant")
        })
    }
}
