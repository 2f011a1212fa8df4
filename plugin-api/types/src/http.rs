//! The service `http.request`: what a plugin asks for, and the head of what comes back.
//!
//! The body of a request is the raw bytes of its frame; the body of an answer is a stream, read by
//! `next` and ended by `close`. A secret is never in either: a request only names it, and the host
//! adds it.

use serde::{Deserialize, Serialize};

/// Sends one HTTP request: [`HttpRequest`] with the body as the frame's bytes, [`HttpAnswer`].
pub const HTTP_REQUEST: &str = "http.request";

/// A request. Any status is an answer; only what keeps an answer from coming is an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// The method, in upper case.
    pub method: String,
    /// The URL, `http` or `https`, absolute.
    pub url: String,
    /// Headers in order, beside those that the host sets itself (host, lengths, connection).
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Longest wait for the answer's head, and then for each next piece of its body, in
    /// milliseconds. Without one it is the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The credential that the host adds, by the variable in the plugin's description. Such a
    /// request is not sent on by redirects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// The head of an answer; its body is the stream of this handle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// The headers, names in lower case, in the order in which they came.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Whether the credential that was asked for is known to the host and went with the request.
    #[serde(default)]
    pub with_credential: bool,
    /// The body's stream.
    pub handle: u64,
}
