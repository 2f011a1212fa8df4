//! Sessions that a server no longer knows. If `rmcp` gets the error that a session has expired, it
//! begins a new session and sends the request again. This module gives that error once for each
//! request, whatever the server says then.

use std::collections::VecDeque;

use jaato_plugin_sdk::serde_json::{Value, json};
use parking_lot::Mutex;
use rmcp::model::{ErrorData, RequestId};

/// Requests that are remembered.
const REMEMBERED_MAX: usize = 64;
/// Codes of errors that are about the request: its method, its arguments, its headers.
const ABOUT_THE_REQUEST: [i32; 3] = [-32601, -32602, -32020];
/// Codes by which servers say anything.
const ABOUT_ANYTHING: [i32; 3] = [-32000, -32001, -32600];
/// Marks an error of ours by which a request is to be sent again.
const MARK: &str = "jaato.session_lost";

/// What is known of a server's sessions.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    lost: Option<String>,
    renewed_for: VecDeque<RequestId>,
}

impl Sessions {
    /// Returns true if a new session is to be begun for a request: once each.
    pub fn renew_for(&self, id: &RequestId) -> bool {
        let mut known = self.0.lock();
        if known.renewed_for.contains(id) {
            return false;
        }
        known.renewed_for.truncate(REMEMBERED_MAX - 1);
        known.renewed_for.push_front(id.clone());
        true
    }

    /// Notes that the server does not know a session, where only a stream says so.
    pub fn lose(&self, session: &str) {
        self.0.lock().lost = Some(session.to_owned());
    }

    /// Returns true for a session of which a stream has said that the server does not know it.
    pub fn is_lost(&self, session: &str) -> bool {
        self.0.lock().lost.as_deref() == Some(session)
    }
}

/// Returns true if an answer with this status may say that the session is over.
pub fn may_be_over(status: u16, text: &str, error: Option<&ErrorData>, has_wait: bool) -> bool {
    match status {
        404 | 410 => true,
        400 => {
            let is_about_request = |error: &ErrorData| ABOUT_THE_REQUEST.contains(&error.code.0);
            names_session(text) || !error.is_some_and(is_about_request)
        }
        // An overloaded server says when it can be asked again.
        503 => names_session(text) || !has_wait,
        _ => false,
    }
}

/// Returns true for an error in an answer of success that says that the session is over.
pub fn is_over(error: &ErrorData) -> bool {
    const WORDS: [&str; 9] = [
        "expired",
        "gone",
        "invalid",
        "missing",
        "no valid",
        "not exist",
        "not found",
        "terminated",
        "unknown",
    ];
    let text = error.message.to_lowercase();
    ABOUT_ANYTHING.contains(&error.code.0)
        && names_session(&text)
        && WORDS.iter().any(|word| text.contains(word))
}

/// Marks the error of a lost session.
pub fn mark(error: &mut ErrorData) {
    error.data = Some(json!({ MARK: true }));
}

/// Returns true for an error that [`mark`] has marked.
pub fn is_marked(error: &ErrorData) -> bool {
    error.data.as_ref().is_some_and(|data| data.get(MARK) == Some(&Value::Bool(true)))
}

fn names_session(text: &str) -> bool {
    text.to_lowercase().contains("session")
}
