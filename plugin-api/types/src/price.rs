//! The price of a model.

use serde::{Deserialize, Serialize};

/// The price of a model, in US dollars per million tokens. If a cache price is absent, the price of
/// other request tokens applies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Tokens of the request.
    pub input: f64,
    /// Tokens of the answer.
    pub output: f64,
    /// Tokens of the request that are read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Tokens of the request that are written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Prices for long requests, by their length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
}

/// The prices of all tokens in a request that exceeds a certain length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PriceTier {
    /// The number of request tokens above which the tier applies.
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
    /// Returns the price of a free model, such as one on the user's own machine.
    pub fn zero() -> Self {
        Self::default()
    }
}
