//! The operation `pull_model`, with which a provider downloads a model to its server.
//!
//! The host calls the operation [`PULL_MODEL`] of the provider's instance. It shows the progress
//! and notices that the provider emits to the user. Cancelling drops the call.

use serde::{Deserialize, Serialize};

/// Downloads a model to a provider's server. Takes a [`PullModel`], returns `{}`, or
/// `unknown_operation` if the provider cannot download models.
pub const PULL_MODEL: &str = "pull_model";

/// The model to download.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PullModel {
    /// The model, without its provider.
    pub model: String,
}

impl PullModel {
    /// Creates a request. Only the host needs this.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into() }
    }
}

/// A provider's answer after the download.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullModelAnswer {}
