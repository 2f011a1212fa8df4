//! Requests to an instance that are larger than a frame: a completion or a plan for a long history.
//!
//! The host calls the operation [`LARGE`] with a [`LargeRequest`]. During the call, the instance
//! reads the JSON of the request with the service [`REQUEST`]. It answers as it would to the same
//! request in one frame.

use serde::{Deserialize, Serialize};

/// Sends an instance a request that does not fit into a frame. Takes a [`LargeRequest`], returns
/// the answer to the request.
pub const LARGE: &str = "large";

crate::operations::service_operations! { $ request_operations, None, answered;
    /// Reads the JSON of the request behind a `large` call. Fails with `unavailable` in other
    /// calls.
    request REQUEST "request": () => StreamAnswer + stream;
}

/// The maximum size of such a request, as JSON: 128 MiB. The largest context windows today, two
/// million tokens, are about 8 MiB of text. Tool results with many bytes per token may need more.
pub const REQUEST_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The kind and size of a large request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LargeRequest {
    /// The kind of request.
    pub of: LargeRequestKind,
    /// The size of the request's JSON in bytes, at most [`REQUEST_BYTES_MAX`].
    pub bytes: u64,
}

/// The kind of a large request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LargeRequestKind {
    /// A [`Completion`](crate::Completion) for a [`CompletionRequest`](crate::CompletionRequest).
    Complete,
    /// A [`GcPlan`](crate::GcPlan) for a [`GcRequest`](crate::GcRequest).
    Plan,
    /// A kind from a newer version. It is answered with `unknown_operation`.
    #[default]
    #[serde(other)]
    Unknown,
}

impl LargeRequest {
    /// Creates a request. Only the host needs this.
    pub fn new(of: LargeRequestKind, bytes: u64) -> Self {
        Self { of, bytes }
    }
}
