//! What a model costs.

use serde::{Deserialize, Serialize};

/// What a model costs, in US dollars for a million tokens. What is absent costs as much as what it
/// is a part of: tokens that a cache gives as much as others of the request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Tokens of the request.
    pub input: f64,
    /// Tokens of the answer.
    pub output: f64,
    /// Tokens of the request that a cache gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Tokens of the request that are written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Other prices for long requests, by their length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
}

/// What all tokens of a request cost that is longer than most.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PriceTier {
    /// The tokens of the request above which it counts.
    pub above: u64,
    /// As [`Price::input`].
    pub input: f64,
    /// As [`Price::output`].
    pub output: f64,
    /// As [`Price::cache_read`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// As [`Price::cache_write`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// The price of what costs nothing, such as a model on one's own machine.
    pub fn nothing() -> Self {
        Self::default()
    }
}
