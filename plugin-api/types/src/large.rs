//! What an instance is asked that is larger than a frame: a completion or a plan over a long
//! history.
//!
//! The host asks the operation [`LARGE`], whose JSON is a [`Large`]. Within that call the instance
//! reads the JSON of the request by the service [`REQUEST`], and answers as it would have to the
//! request in one frame.

use serde::{Deserialize, Serialize};

/// Asks an instance what does not fit into a frame: [`Large`]; the answer is that of what is asked.
pub const LARGE: &str = "large";

crate::operations::service_operations! { $ request_operations, None, answered;
    /// Reads the JSON of the request that a call of the operation `large` stands for. The error is
    /// `unavailable` in other calls.
    request REQUEST "request": () => StreamAnswer + stream;
}

/// Most bytes of such a request, as JSON: 128 MiB. The largest windows of today, two million
/// tokens, are some 8 MiB of text; results of tools that few tokens stand for may be more.
pub const REQUEST_BYTES_MAX: usize = 128 * 1024 * 1024;

/// What is asked, and how much there is to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Large {
    /// What is asked.
    pub of: LargeOf,
    /// Bytes of the request's JSON, at most [`REQUEST_BYTES_MAX`].
    pub bytes: u64,
}

/// What may be asked in a large request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LargeOf {
    /// A [`Completion`](crate::Completion) for a [`Request`](crate::Request).
    Complete,
    /// A [`GcPlan`](crate::GcPlan) for a [`GcRequest`](crate::GcRequest).
    Plan,
    /// What this side does not know: answered by `unknown_operation`.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Large {
    /// Asks for something; the host does.
    pub fn new(of: LargeOf, bytes: u64) -> Self {
        Self { of, bytes }
    }
}
