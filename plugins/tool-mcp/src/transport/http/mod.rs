//! Streamable HTTP. `rmcp` implements the protocol: sessions, resumed streams, headers.
//!
//! [`backend`] is the interface that sends a request, and [`host`] implements it with the host's
//! client. [`client`] connects it to `rmcp`: [`answer`] reads a body, [`events`] reads a stream,
//! and [`sessions`] tracks expired sessions. [`authorize`] provides the tokens, and [`challenge`]
//! reads a server's refusal.

pub mod answer;
pub mod authorize;
pub mod backend;
pub mod challenge;
pub mod client;
pub mod create_transport;
pub mod events;
pub mod failure;
pub mod host;
pub mod sessions;

pub use authorize::Authorize;
pub use backend::{HttpBackend, HttpBodyStream, McpHttpRequest, McpHttpResponse};
pub use challenge::AuthChallenge;
pub use client::HttpClient;
pub use create_transport::{HttpTransport, create_http_transport, has_authorization};
pub use failure::HttpFailure;
pub use host::HostHttp;
