//! The file format of a saved state.
//!
//! Magic, version, model digest, number of tokens, bytes per token, tokens, state, and a SHA-256 of
//! everything before it. Numbers are little-endian.

use sha2::{Digest, Sha256};

/// Increased if the engine computes a different state from the same tokens, or if this layout
/// changes.
pub(super) const FORMAT_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"JAATOPFX";
const DIGEST_BYTES: usize = 32;
/// The size of everything before the tokens.
pub(super) const HEAD_BYTES: usize = 8 + 4 + DIGEST_BYTES + 4 + 4;
/// More tokens than any context has, so that a damaged count cannot cause a read of gigabytes.
const TOKENS_MAX: usize = 1 << 20;

/// Identifies the model of a state by the digest of its weights.
pub type ModelDigest = [u8; DIGEST_BYTES];

/// The header before the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateFileHeader {
    pub(super) model: ModelDigest,
    pub(super) tokens: usize,
    pub(super) bytes_per_token: usize,
}

impl StateFileHeader {
    /// Reads the header. Returns `None` if it is not of this version.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (version, rest) = split_number(rest)?;
        let (model, rest) = rest.split_at_checked(DIGEST_BYTES)?;
        let (tokens, rest) = split_number(rest)?;
        let (bytes_per_token, _) = split_number(rest)?;
        let tokens = tokens as usize;
        let is_ours = version == FORMAT_VERSION && tokens > 0 && tokens <= TOKENS_MAX;
        let model = model.try_into().ok()?;
        is_ours.then_some(Self { model, tokens, bytes_per_token: bytes_per_token as usize })
    }

    /// Returns the size of a whole file with this header.
    pub(super) fn file_bytes(&self) -> u64 {
        let per_token = 4 + self.bytes_per_token as u64;
        HEAD_BYTES as u64 + self.tokens as u64 * per_token + DIGEST_BYTES as u64
    }
}

fn split_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_at_checked(4)?;
    Some((u32::from_le_bytes(number.try_into().ok()?), rest))
}

/// Reads tokens. Ignores a rest of less than four bytes.
pub(super) fn parse_tokens(bytes: &[u8]) -> Vec<u32> {
    let token = |four: &[u8]| u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    bytes.chunks_exact(4).map(token).collect()
}

/// Encodes a whole file.
pub(super) fn encode_file(model: &ModelDigest, tokens: &[u32], state: &[u8]) -> Vec<u8> {
    let bytes_per_token = state.len() / tokens.len().max(1);
    let mut out = Vec::with_capacity(HEAD_BYTES + tokens.len() * 4 + state.len() + DIGEST_BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(model);
    out.extend_from_slice(&(tokens.len() as u32).to_le_bytes());
    out.extend_from_slice(&(bytes_per_token as u32).to_le_bytes());
    out.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
    out.extend_from_slice(state);
    let digest = Sha256::digest(&out);
    out.extend_from_slice(&digest);
    out
}

/// Returns the header and state of a whole file, or `None` if any bit is wrong.
pub(super) fn decode_file(mut bytes: Vec<u8>) -> Option<(StateFileHeader, Vec<u8>)> {
    let head = StateFileHeader::parse(&bytes)?;
    if bytes.len() as u64 != head.file_bytes() {
        return None;
    }
    let digest = bytes.split_off(bytes.len() - DIGEST_BYTES);
    if Sha256::digest(&bytes).as_slice() != digest {
        return None;
    }
    bytes.drain(..HEAD_BYTES + head.tokens * 4);
    Some((head, bytes))
}

/// Returns the file name for the state of these tokens.
pub(super) fn state_file_name(model: &ModelDigest, tokens: &[u32]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(model);
    hasher.update(FORMAT_VERSION.to_le_bytes());
    for token in tokens {
        hasher.update(token.to_le_bytes());
    }
    let key: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{key}.prefix")
}
