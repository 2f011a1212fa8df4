//! Validates keys, and the current value before it is replaced.

use jaato_types::store::{ABSENT, KEY_BYTES_MAX};
use jaato_types::{Error, ErrorKind};

/// The condition on the current value before it is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueCondition {
    /// Any value or none.
    Anything,
    /// No value.
    Absent,
    /// The value with this digest.
    Digest(String),
}

impl ValueCondition {
    /// Parses the condition from a request.
    ///
    /// # Errors
    /// `invalid_arguments` if the text is neither [`ABSENT`] nor a digest.
    pub fn parse_condition(word: Option<String>) -> Result<Self, Error> {
        match word {
            None => Ok(Self::Anything),
            Some(word) if word == ABSENT => Ok(Self::Absent),
            Some(word) if word.len() == 64 && word.bytes().all(|it| it.is_ascii_hexdigit()) => {
                Ok(Self::Digest(word.to_ascii_lowercase()))
            }
            Some(_) => {
                let text = format!(
                    "`expected` is the SHA-256 of a value in hex, or `{ABSENT}`, and this is neither"
                );
                Err(Error::new(ErrorKind::InvalidArguments, text))
            }
        }
    }

    /// Returns an error if the current value does not match.
    pub(super) fn check_value(&self, key: &str, has: Option<&str>) -> Result<(), Error> {
        let is_so = match self {
            Self::Anything => true,
            Self::Absent => has.is_none(),
            Self::Digest(wants) => has == Some(wants.as_str()),
        };
        if is_so {
            return Ok(());
        }
        let there = has.map_or_else(|| "no value".to_owned(), |has| format!("the value {has}"));
        let text = format!("`{key}` has changed: it has {there}");
        Err(Error::new(ErrorKind::Conflict, text).with_hint("read it again"))
    }
}

/// Rejects an invalid key.
pub(super) fn check_key(key: &str) -> Result<(), Error> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        let text = format!("a key has 1 to {KEY_BYTES_MAX} bytes, this one has {}", key.len());
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    Ok(())
}
