//! Call ids and tool names in the form that servers accept. Pure.
//!
//! The same id is always written in the same way, and different ids differently, because a
//! session's history must stay identical byte by byte.

use std::borrow::Cow;

/// The longest tool name.
const NAME_CHARS_MAX: usize = 64;

/// The number of characters kept of a long or invalid id, so that users can recognize it.
const KEPT_CHARS: usize = 20;

/// The letters of [`CallIdFormat::Short`].
const ALPHANUMERICS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The form of call ids that a server accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallIdFormat {
    /// Any id.
    #[default]
    AsTheyAre,
    /// Letters, digits, `_` and `-`, up to this number of characters.
    Plain(usize),
    /// Exactly this number of letters and digits, at most 64.
    Short(usize),
}

impl CallIdFormat {
    /// Writes an id in this form.
    pub fn format_id(self, id: &str) -> Cow<'_, str> {
        match self {
            Self::AsTheyAre => Cow::Borrowed(id),
            Self::Plain(chars_max) => to_alphanumeric_id(id, chars_max),
            Self::Short(chars) => {
                if id.len() == chars && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                    return Cow::Borrowed(id);
                }
                Cow::Owned(shorten_id(id, chars))
            }
        }
    }
}

/// Writes a tool name in valid characters, because servers reject some names that models invent.
pub fn to_valid_name(name: &str) -> Cow<'_, str> {
    to_alphanumeric_id(name, NAME_CHARS_MAX)
}

fn to_alphanumeric_id(id: &str, chars_max: usize) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.len() <= chars_max && id.chars().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let kept: String =
        id.chars().take(KEPT_CHARS).map(|c| if is_plain(c) { c } else { '_' }).collect();
    Cow::Owned(format!("{kept}-{:016x}", fnv1a_hash(id, 0)))
}

fn shorten_id(id: &str, chars: usize) -> String {
    let mut letters = String::new();
    let mut number = 0;
    for place in 0..chars {
        // One hash is enough for ten letters.
        if place % 10 == 0 {
            number = fnv1a_hash(id, place as u8);
        }
        letters.push(char::from(ALPHANUMERICS[(number % 62) as usize]));
        number /= 62;
    }
    letters
}

/// FNV-1a, which is the same on every machine and in every version, unlike the hash of std.
fn fnv1a_hash(text: &str, salt: u8) -> u64 {
    text.bytes().chain([salt]).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_call_id_is_kept_and_any_other_is_rewritten() {
        let ids = CallIdFormat::Plain(40);
        for id in ["call_A09", "call-0", &"x".repeat(40)] {
            assert_eq!(ids.format_id(id), id);
        }
        let long = "x".repeat(41);
        for id in ["a|b", "a b", "", "é", &long] {
            let written = ids.format_id(id);
            assert!(written.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
            assert!(!written.is_empty() && written.len() <= 40, "{written}");
            assert_eq!(written, ids.format_id(id));
        }
        assert_ne!(ids.format_id("a|b"), ids.format_id("a b"));
        assert_ne!(ids.format_id(&long), ids.format_id(&"x".repeat(42)));
        assert_eq!(CallIdFormat::AsTheyAre.format_id("a|b"), "a|b");
    }

    #[test]
    fn short_call_id_has_the_exact_length_and_is_alphanumeric() {
        let ids = CallIdFormat::Short(9);
        assert_eq!(ids.format_id("abcDEF123"), "abcDEF123");
        for id in ["call_1", "call_2", "toolu_01A09q90qw90lq917835lq9", "", "abcDEF12-"] {
            let written = ids.format_id(id);
            assert_eq!(written.len(), 9, "{written}");
            assert!(written.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{written}");
        }
        assert_ne!(ids.format_id("call_1"), ids.format_id("call_2"));
        assert_eq!(CallIdFormat::Short(25).format_id("call_1").len(), 25);
    }

    #[test]
    fn invalid_tool_name_is_rewritten_in_a_form_servers_accept() {
        assert_eq!(to_valid_name("get_time"), "get_time");
        assert!(to_valid_name("functions.get_time").starts_with("functions_get_time-"));
        assert!(to_valid_name(&"x".repeat(99)).len() <= NAME_CHARS_MAX);
    }
}
