//! The secret word that identifies a session's own marks.

use std::fmt;

/// The minimum length of a nonce. Eight letters and digits cannot be guessed in a stream.
pub const NONCE_LENGTH_MIN: usize = 8;

/// The maximum length of a nonce, because a mark must stay short.
pub const NONCE_LENGTH_MAX: usize = 64;

/// A word of letters and digits, which have no meaning in any shell and need no quotes.
#[derive(Clone, PartialEq, Eq)]
pub struct MarkNonce(String);

impl MarkNonce {
    /// Creates a nonce from ASCII letters and digits. The caller must choose them at random.
    pub fn new(word: &str) -> Option<Self> {
        let fits = (NONCE_LENGTH_MIN..=NONCE_LENGTH_MAX).contains(&word.len());
        let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (fits && is_plain).then(|| Self(word.to_owned()))
    }

    /// Returns the parameter in a mark: `jaato=…`.
    pub(super) fn mark_parameter(&self) -> String {
        format!("jaato={}", self.0)
    }
}

/// Keeps the nonce out of logs, because it allows marks to be forged.
impl fmt::Debug for MarkNonce {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Nonce")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonce_allows_only_plain_words_of_limited_length() {
        for good in ["abcdEF12".to_owned(), "x".repeat(NONCE_LENGTH_MAX)] {
            assert_eq!(MarkNonce::new(&good).unwrap().mark_parameter(), format!("jaato={good}"));
        }
        for bad in ["abcdEF1".to_owned(), "x".repeat(NONCE_LENGTH_MAX + 1), "abc;efgh".to_owned()] {
            assert_eq!(MarkNonce::new(&bad), None, "{bad}");
        }
        assert_eq!(format!("{:?}", MarkNonce::new("abcdEF12").unwrap()), "Nonce");
    }
}
