//! Streamable HTTP. `rmcp` has the protocol: sessions, streams that are taken up again, headers.
//!
//! [`backend`] is what sends a request, [`host`] the host's client behind it. [`client`] is how
//! `rmcp` uses it: [`answer`] reads a body, [`events`] a stream, and [`sessions`] knows which
//! sessions are over. [`authorize`] is where it has its token from, when [`challenge`] is what the
//! server answers.

pub mod answer;
pub mod authorize;
pub mod backend;
pub mod challenge;
pub mod client;
pub mod events;
pub mod failure;
pub mod host;
pub mod reach;
pub mod sessions;

pub use authorize::Authorize;
pub use backend::{Body, Exchange, HttpBackend, Reply};
pub use challenge::Challenge;
pub use client::HttpClient;
pub use failure::HttpFailure;
pub use host::HostHttp;
pub use reach::{HttpTransport, has_authorization, transport};
