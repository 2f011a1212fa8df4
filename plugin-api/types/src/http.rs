//! The service `http.request`: the request of a plugin, and the head of the response.
//!
//! The body of a request is in the raw bytes of its frame. If that is too small, the plugin first
//! assembles the body with [`HTTP_BODY`]. The body of a response is a stream, read with `next` and
//! closed with `close`. Neither contains a secret: a request only names a credential, and the host
//! adds it.

use serde::{Deserialize, Serialize};

crate::operations::service_operations! { $ http_operations, None, passed_on;
    /// Sends an HTTP request. The body is the bytes, or a body that `http.body` assembled.
    request HTTP_REQUEST "http.request": HttpRequest + bytes => HttpAnswer + stream;
    /// Assembles a request body piece by piece, for a request that names it.
    body HTTP_BODY "http.body": HttpBody + bytes => HttpBodyAnswer;
    /// Returns whether the user has set a credential of the plugin's description.
    [reads] credential HTTP_CREDENTIAL "http.credential": HttpCredential => HttpCredentialAnswer;
}

/// The maximum size of an assembled body, in bytes: 200 MiB, which is two blobs.
pub const HTTP_BODY_BYTES_MAX: u64 = 200 * 1024 * 1024;

/// The maximum size of a response with the purpose [`HttpPurpose::Web`], in bytes after
/// decompression: 10 MiB.
pub const HTTP_WEB_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// The maximum number of bodies that one context may have begun and not sent. They take up disk
/// space.
pub const HTTP_BODIES_MAX: usize = 4;

/// Appends to a body: first the bytes of the frame, then the blob, if there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpBody {
    /// The number of the body, from its first answer. If absent, a new body begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<u64>,
    /// The id of a blob in the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// Whether to append the blob as base64 with padding, for use in JSON.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub base64: bool,
}

/// The state of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HttpBodyAnswer {
    /// The number of the body. One request can use it.
    pub body: u64,
    /// The number of bytes in the body.
    #[serde(default)]
    pub bytes: u64,
}

crate::operations::made_by_host!(HttpBodyAnswer(body: u64, bytes: u64));

/// A credential of the plugin's description.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpCredential {
    /// Its variable.
    pub variable: String,
}

/// Whether a credential can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HttpCredentialAnswer {
    /// Whether the user has set it, and the plugin may use it.
    #[serde(default)]
    pub is_set: bool,
}

crate::operations::made_by_host!(HttpCredentialAnswer(is_set: bool));

/// An HTTP request. A response with any status is a success. Only a missing response is an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// The method, in upper case.
    pub method: String,
    /// The absolute URL, `http` or `https`.
    pub url: String,
    /// The headers in order, except those that the host sets itself (host, lengths, connection).
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The maximum wait for the head of the response, and for each piece of its body, in
    /// milliseconds. If absent, the host's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The credential that the host adds, by its variable in the plugin's description. Such a
    /// request does not follow redirects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Whether the request requires the credential. If the user does not have it, the request fails
    /// with `not_found`, and the plugin may try another credential. Otherwise only requests to the
    /// vendor's own server require it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub credential_required: bool,
    /// The number of the assembled body to send instead of the bytes of the frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<u64>,
    /// Which servers the request may reach, and what it may contain.
    #[serde(default, skip_serializing_if = "HttpPurpose::is_api")]
    pub purpose: HttpPurpose,
    /// Whether any certificate of the server is accepted. Only with the purpose `web`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// Whether the request goes to the server directly, without the user's proxy. Only with the
    /// purpose `web`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_proxy: bool,
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HttpPurpose {
    /// A request to a server that the plugin or the user's configuration names.
    #[default]
    Api,
    /// A read from anywhere on the public web: a `GET` or `HEAD` without body, credential, cookies
    /// and referrer. The host refuses addresses that are not public, unless the user named the
    /// host, and checks the address again after each redirect. It decompresses the body. It follows
    /// redirects on the same host only: a redirect to another host is the response. The timeout
    /// limits the whole exchange, and a response has at most [`HTTP_WEB_BYTES_MAX`].
    Web,
}

impl HttpPurpose {
    /// Returns true for [`HttpPurpose::Api`].
    pub fn is_api(&self) -> bool {
        *self == Self::Api
    }
}

/// The head of a response. Its body is the stream with this handle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// The headers in the order of the response, with names in lower case.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Whether the host knew the requested credential and sent it.
    #[serde(default)]
    pub with_credential: bool,
    /// The URL that answered, after redirects. Empty unless the purpose is `web`, because other
    /// URLs may contain a key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The stream of the body.
    pub handle: u64,
}
