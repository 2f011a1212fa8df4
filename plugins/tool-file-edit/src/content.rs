//! The bytes of a file, with their digest.

use std::ops::Deref;
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use crate::diff::common_prefix_length;
use crate::history::ContentId;

/// The distance between the stored states of a digest. Each state takes about 100 bytes.
const STATE_BYTES: usize = 1024 * 1024;

/// Bytes whose digest is computed at most once. For a large file, that takes as long as writing it.
#[derive(Debug, Clone, Default)]
pub struct HashedContent {
    bytes: Vec<u8>,
    digest: OnceLock<ContentDigest>,
}

#[derive(Debug, Clone)]
struct ContentDigest {
    id: ContentId,
    /// The states of the digest after each [`STATE_BYTES`].
    states: Vec<Sha256>,
}

impl HashedContent {
    /// Returns the digest. The first call takes long, and other threads wait for it.
    pub fn digest(&self) -> &ContentId {
        &self.digest.get_or_init(|| ContentDigest::compute_digest(&self.bytes, &[])).id
    }

    /// Returns the digest. If the digest of `other` is known, it is reused for the common
    /// beginning.
    pub fn digest_reusing_prefix(&self, other: &Self) -> &ContentId {
        let digested = self.digest.get_or_init(|| {
            let states = other.digest.get().map_or(&[][..], |digested| &digested.states);
            let same = common_prefix_length(&self.bytes, &other.bytes) / STATE_BYTES;
            ContentDigest::compute_digest(&self.bytes, &states[..states.len().min(same)])
        });
        &digested.id
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl ContentDigest {
    /// Digests bytes from the last of the known states.
    fn compute_digest(bytes: &[u8], known: &[Sha256]) -> Self {
        let mut states = known.to_vec();
        let mut state = known.last().cloned().unwrap_or_default();
        for piece in bytes[known.len() * STATE_BYTES..].chunks(STATE_BYTES) {
            state.update(piece);
            if piece.len() == STATE_BYTES {
                states.push(state.clone());
            }
        }
        Self { id: ContentId::from_digest_state(state), states }
    }
}

impl From<Vec<u8>> for HashedContent {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, digest: OnceLock::new() }
    }
}

impl Deref for HashedContent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Compares only the bytes, whether or not the digests are known.
impl PartialEq for HashedContent {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for HashedContent {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_matches_the_bytes_and_does_not_affect_equality() {
        let content = HashedContent::from(b"password".to_vec());
        assert_eq!(content.digest(), &ContentId::from_bytes(b"password"));
        assert_eq!(content, HashedContent::from(b"password".to_vec()));
        assert_eq!(content.into_bytes(), b"password");
    }

    #[test]
    fn digest_of_content_with_a_shared_prefix_is_correct() {
        let old: Vec<u8> = (0..3 * STATE_BYTES + 7).map(|at| (at / 5) as u8).collect();
        let before = HashedContent::from(old.clone());
        let check = |new: Vec<u8>| {
            let after = HashedContent::from(new.clone());
            assert_eq!(after.digest_reusing_prefix(&before), &ContentId::from_bytes(&new));
        };
        let all = || {
            check(old.clone());
            for at in [0, STATE_BYTES - 1, STATE_BYTES, 2 * STATE_BYTES + 1, old.len()] {
                check(old[..at].to_vec());
                check([&old[..at], b"moon", &old[at..]].concat());
            }
        };
        all();
        before.digest();
        all();
    }
}
