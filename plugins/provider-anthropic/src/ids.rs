//! Writes call ids and tool names with the characters that the vendor accepts: letters, digits, `_`
//! and `-`. Pure.
//!
//! Equal ids are always written the same way, and different ids differently, because a session's
//! history must stay identical byte for byte.

use std::borrow::Cow;

/// The longest id that is sent unchanged. Some vendors create ids of hundreds of characters.
const CHARS_MAX: usize = 64;

/// How many characters of a longer or unusual id are kept, so that users recognise it.
const KEPT_CHARS: usize = 40;

/// Writes an id or a name.
pub(crate) fn format_id(id: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.len() <= CHARS_MAX && id.chars().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let kept: String =
        id.chars().take(KEPT_CHARS).map(|c| if is_plain(c) { c } else { '_' }).collect();
    Cow::Owned(format!("{kept}-{:016x}", fnv1a_hash(id)))
}

/// Computes an FNV-1a hash. It is the same on every machine and in every version, unlike the hash
/// of the standard library.
fn fnv1a_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_id_is_kept_and_an_invalid_id_is_rewritten() {
        for id in ["toolu_01A09q90qw90lq917835lq9", "call-0", &"x".repeat(64)] {
            assert_eq!(format_id(id), id);
        }
        for (id, expected) in [
            ("a|b", "a_b-e71fa3190540c5d1"),
            ("a b", "a_b-e70e4c190531d8e4"),
            ("", "-cbf29ce484222325"),
        ] {
            assert_eq!(format_id(id).split('-').next(), expected.split('-').next(), "{id}");
            assert!(format_id(id).bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
        }
        assert_ne!(format_id("a|b"), format_id("a b"));
        assert_ne!(format_id("a|b"), format_id("a_b"));
        let long = "x".repeat(65);
        assert!(
            format_id(&long).len() <= CHARS_MAX && format_id(&long) != format_id(&"x".repeat(66))
        );
    }
}
