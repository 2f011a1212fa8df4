//! The secret word by which a session knows its own marks.

use std::fmt;

/// Shortest nonce: eight letters and digits cannot be guessed in a stream.
pub const NONCE_LENGTH_MIN: usize = 8;

/// Longest nonce: a mark must stay short.
pub const NONCE_LENGTH_MAX: usize = 64;

/// Letters and digits only, so that it means nothing to any shell and needs no quotes.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// Takes a word of ASCII letters and digits. Whoever makes it draws it at random.
    pub fn new(word: &str) -> Option<Self> {
        let fits = (NONCE_LENGTH_MIN..=NONCE_LENGTH_MAX).contains(&word.len());
        let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (fits && is_plain).then(|| Self(word.to_owned()))
    }

    /// As it stands in a mark: `jaato=…`.
    pub(super) fn parameter(&self) -> String {
        format!("jaato={}", self.0)
    }
}

/// Keeps it out of logs: who knows it can forge marks.
impl fmt::Debug for Nonce {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Nonce")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_a_plain_word_within_its_limits() {
        for good in ["abcdEF12".to_owned(), "x".repeat(NONCE_LENGTH_MAX)] {
            assert_eq!(Nonce::new(&good).unwrap().parameter(), format!("jaato={good}"));
        }
        for bad in ["abcdEF1".to_owned(), "x".repeat(NONCE_LENGTH_MAX + 1), "abc;efgh".to_owned()] {
            assert_eq!(Nonce::new(&bad), None, "{bad}");
        }
        assert_eq!(format!("{:?}", Nonce::new("abcdEF12").unwrap()), "Nonce");
    }
}
