//! What a provider is asked when a person wants a model that its server can fetch.
//!
//! The host asks the operation [`PULL_MODEL`] of the provider's instance. What is emitted meanwhile
//! (progress and notices) is shown to the person; a cancel drops the call.

use serde::{Deserialize, Serialize};

/// Lets a provider's server fetch a model: [`PullModel`] in, `{}` out. Answered by
/// `unknown_operation` where the provider fetches nothing.
pub const PULL_MODEL: &str = "pull_model";

/// Which model is to be fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PullModel {
    /// The model, without its provider.
    pub model: String,
}

impl PullModel {
    /// Asks for a model; the host does.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into() }
    }
}

/// What a provider answers once the model is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulled {}
