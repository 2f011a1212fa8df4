//! Tracks sessions that a server no longer knows. If `rmcp` gets the error that a session has
//! expired, it begins a new session and sends the request again. This module returns that error
//! once for each request, regardless of the server's later responses.

use std::collections::VecDeque;

use jaato_plugin_sdk::serde_json::{Value, json};
use parking_lot::Mutex;
use rmcp::model::{ErrorData, RequestId};

/// The maximum number of remembered requests.
const REMEMBERED_MAX: usize = 64;
/// Error codes about the request: its method, its arguments, its headers.
const ABOUT_THE_REQUEST: [i32; 3] = [-32601, -32602, -32020];
/// Error codes that servers use for any error.
const ABOUT_ANYTHING: [i32; 3] = [-32000, -32001, -32600];
/// Marks an error after which the request should be sent again.
const MARK: &str = "jaato.session_lost";

/// The known sessions of a server.
#[derive(Debug, Default)]
pub struct HttpSessions(Mutex<HttpSessionsState>);

#[derive(Debug, Default)]
struct HttpSessionsState {
    lost: Option<String>,
    renewed_for: VecDeque<RequestId>,
}

impl HttpSessions {
    /// Returns true if a request should be sent again in a new session. This is the case once for
    /// each request.
    pub fn should_renew_for(&self, id: &RequestId) -> bool {
        let mut known = self.0.lock();
        if known.renewed_for.contains(id) {
            return false;
        }
        known.renewed_for.truncate(REMEMBERED_MAX - 1);
        known.renewed_for.push_front(id.clone());
        true
    }

    /// Records that the server does not know a session, as reported by a stream.
    pub fn record_lost_session(&self, session: &str) {
        self.0.lock().lost = Some(session.to_owned());
    }

    /// Returns true if a stream reported that the server does not know this session.
    pub fn is_known_lost(&self, session: &str) -> bool {
        self.0.lock().lost.as_deref() == Some(session)
    }
}

/// Returns true if a response with this status may mean that the session has expired.
pub fn can_mean_expired(
    status: u16,
    text: &str,
    error: Option<&ErrorData>,
    has_wait: bool,
) -> bool {
    match status {
        404 | 410 => true,
        400 => {
            let is_about_request = |error: &ErrorData| ABOUT_THE_REQUEST.contains(&error.code.0);
            is_about_session(text) || !error.is_some_and(is_about_request)
        }
        // An overloaded server says when to try again.
        503 => is_about_session(text) || !has_wait,
        _ => false,
    }
}

/// Returns true for an error in a successful response that means that the session has expired.
pub fn is_expired_error(error: &ErrorData) -> bool {
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
        && is_about_session(&text)
        && WORDS.iter().any(|word| text.contains(word))
}

/// Marks the error of a lost session.
pub fn mark_session_lost(error: &mut ErrorData) {
    error.data = Some(json!({ MARK: true }));
}

/// Returns true for an error that [`mark_session_lost`] has marked.
pub fn is_session_lost(error: &ErrorData) -> bool {
    error.data.as_ref().is_some_and(|data| data.get(MARK) == Some(&Value::Bool(true)))
}

fn is_about_session(text: &str) -> bool {
    text.to_lowercase().contains("session")
}
