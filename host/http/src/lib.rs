//! The host's only HTTP client, for its own downloads and for plugins.
//!
//! Retries, credentials and caching belong to layers above. This crate provides HTTP/1.1, streaming
//! bodies, byte ranges, proxies from variables, and the system's root certificates.
//!
//! Invariants:
//! - Creating a [`Client`] takes microseconds. Certificates are read at the first `https` request.
//! - A client with [`NetworkAccess::Offline`] refuses each request before any name is looked up.
//! - No error text contains a URL's user, password or query ([`MaskedUrl`]).
//! - A client for [`ReachableServers::Public`] connects only to addresses that it checked, even
//!   after redirects.
//! - Dropping a future or a [`Response`] ends the exchange.
//!
//! ```
//! use jaato_http::{Client, HttpClientSettings, NetworkAccess, OutgoingRequest};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let settings = HttpClientSettings {
//!     network: NetworkAccess::Offline,
//!     ..HttpClientSettings::default()
//! };
//! let client = Client::new(settings);
//! let request = OutgoingRequest::get("https://example.org/weights?token=secret").unwrap();
//! let error = client.send(request).await.unwrap_err();
//! assert_eq!(error.to_string(), "cannot reach `https://example.org/weights?…`: jaato is offline");
//! # }
//! ```

mod body;
mod cause;
mod client;
mod decode;
mod error;
mod mask;
mod own_machine;
mod proxy;
mod public_addresses;
mod request;
mod response;
mod servers;
mod tls;

pub use body::FileBody;
pub use bytes::Bytes;
pub use client::{CertificateCheck, Client, HttpClientSettings, NetworkAccess};
pub use error::{HttpError, HttpErrorKind, RedirectProblem, RequestPhase};
pub use jaato_types::Retry;
pub use mask::MaskedUrl;
pub use own_machine::is_loopback;
pub use proxy::Proxies;
pub use request::{BodyDecoding, ByteRange, ExchangeLimits, OutgoingRequest, RedirectPolicy};
pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode, Url};
pub use response::{ContentRange, Response};
pub use servers::{NameLookup, NameLookupFuture, PublicServers, ReachableServers};
