//! Marks arguments without storing them: their size, and a digest that no one can reverse.
//!
//! To an attacker with a list of passwords, a plain hash of a password is as good as the password.
//! So the digest is keyed, and the key exists only in the process. Within a session, equal
//! arguments are recognizable, and nothing else can be learned.

use std::io;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Bytes of a digest to write: enough that two arguments of a session never collide.
const DIGEST_BYTES: usize = 8;

/// The key of a session's digests. Never written anywhere.
#[derive(Clone)]
pub struct DigestKey([u8; 32]);

/// The recorded facts about a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentsDigest {
    /// Their size as JSON, in bytes.
    pub bytes: u64,
    /// Their digest in hexadecimal digits, or `None` without a key.
    pub digest: Option<String>,
}

impl DigestKey {
    /// Creates a key from bytes that must be random.
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }
}

impl ArgumentsDigest {
    /// Marks arguments.
    pub fn from_arguments(arguments: &impl Serialize, key: Option<&DigestKey>) -> Self {
        let mut sink =
            DigestWriter { bytes: 0, hash: key.map(|key| Sha256::new().chain_update(key.0)) };
        // Neither a hash nor a counter rejects bytes, and JSON values can always be written.
        let _infallible = serde_json::to_writer(&mut sink, arguments);
        let DigestWriter { bytes, hash } = sink;
        let digest = hash.map(|hash| {
            let digest = hash.finalize();
            digest.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
        });
        Self { bytes, digest }
    }
}

/// Returns the size of a value as JSON, without writing it anywhere.
pub(crate) fn json_bytes(value: &impl Serialize) -> u64 {
    ArgumentsDigest::from_arguments(value, None).bytes
}

struct DigestWriter {
    bytes: u64,
    hash: Option<Sha256>,
}

impl io::Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_digest_depends_on_the_arguments_and_the_key() {
        let (one, other) = (DigestKey::new([1; 32]), DigestKey::new([2; 32]));
        let arguments = json!({ "pin": "1234" });
        let mark = ArgumentsDigest::from_arguments(&arguments, Some(&one));
        assert_eq!(mark.bytes, r#"{"pin":"1234"}"#.len() as u64);
        assert_eq!(mark, ArgumentsDigest::from_arguments(&arguments, Some(&one)));
        assert_ne!(mark, ArgumentsDigest::from_arguments(&json!({ "pin": "1235" }), Some(&one)));
        assert_ne!(mark, ArgumentsDigest::from_arguments(&arguments, Some(&other)));
        assert_eq!(mark.digest.unwrap().len(), 2 * DIGEST_BYTES);
        assert_eq!(ArgumentsDigest::from_arguments(&arguments, None).digest, None);
    }
}
