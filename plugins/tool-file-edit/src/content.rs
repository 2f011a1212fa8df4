//! Bytes of a file, with their digest.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::history::ContentId;

/// Bytes whose digest is made at most once: for a large file that takes as long as writing it.
#[derive(Debug, Clone, Default)]
pub struct Content {
    bytes: Vec<u8>,
    digest: OnceLock<ContentId>,
}

impl Content {
    /// Returns the digest. Takes its time the first time; another thread that asks meanwhile waits.
    pub fn digest(&self) -> &ContentId {
        self.digest.get_or_init(|| ContentId::of(&self.bytes))
    }

    /// Gives the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, digest: OnceLock::new() }
    }
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What has the same bytes is the same, whether its digest was made or not.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Content {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_bytes_and_says_nothing_of_equality() {
        let content = Content::from(b"password".to_vec());
        assert_eq!(content.digest(), &ContentId::of(b"password"));
        assert_eq!(content, Content::from(b"password".to_vec()));
        assert_eq!(content.into_bytes(), b"password");
    }
}
