//! The service `http.request`: what a plugin asks for, and the head of what comes back.
//!
//! The body of a request is the raw bytes of its frame, or where that is too small one that was put
//! together before by [`HTTP_BODY`]; the body of an answer is a stream, read by `next` and ended by
//! `close`. A secret is never in either: a request only names it, and the host
//! adds it.

use serde::{Deserialize, Serialize};

crate::operations::service_operations! { $ http_operations, None, passed_on;
    /// Sends an HTTP request whose body is the bytes or was put together before.
    request HTTP_REQUEST "http.request": HttpRequest + bytes => HttpAnswer + stream;
    /// Puts a body together, piece by piece, for a request that names it.
    body HTTP_BODY "http.body": HttpBody + bytes => HttpBodyAnswer;
}

/// Most bytes of a body that was put together: 200 MiB, two blobs.
pub const HTTP_BODY_BYTES_MAX: u64 = 200 * 1024 * 1024;

/// Bodies that one context may have begun and not sent: each takes room on the disk.
pub const HTTP_BODIES_MAX: usize = 4;

/// Appends to a body: the frame's bytes, then the blob where one is named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpBody {
    /// The number of the body, as its first answer told. Without one a new body begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<u64>,
    /// A blob of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// Whether the blob is written as base64, with padding, as JSON wants it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub base64: bool,
}

/// What a body is by then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HttpBodyAnswer {
    /// Its number. One request takes it.
    pub body: u64,
    /// Bytes in it.
    #[serde(default)]
    pub bytes: u64,
}

crate::operations::made_by_host!(HttpBodyAnswer(body: u64, bytes: u64));

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
    /// Whether the request is not sent if the user has no such credential: the answer is
    /// `not_found` then, and the plugin may name another one. Otherwise only the vendor's own
    /// server is not asked without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub credential_required: bool,
    /// The number of the body that was put together for it, in place of the frame's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<u64>,
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
