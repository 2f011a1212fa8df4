//! The inference engine: takes tokens and returns logits, with a cache that can be truncated, saved
//! and loaded.
//!
//! The trait allows another runtime to work with the same prompt, grammar and decoding. It knows
//! nothing about text, tools or files.

use jaato_plugin_sdk::types::Result;

use crate::cancel::CancelFlag;

/// A loaded model with the cache of one sequence.
pub trait InferenceEngine: Send {
    /// Returns the maximum number of tokens in the cache.
    fn context_limit(&self) -> usize;

    /// Returns the number of tokens in the cache.
    fn len(&self) -> usize;

    /// Returns true if the cache is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends tokens and returns the logits after the last one. Checks `cancel` at least every 100
    /// ms, and keeps the tokens computed so far in the cache.
    ///
    /// # Errors
    /// Kind `cancelled`, `context_overflow` beyond the limit, or `provider` if the runtime fails.
    fn forward_tokens(&mut self, tokens: &[u32], cancel: &CancelFlag) -> Result<Vec<f32>>;

    /// Removes all tokens from position `len`.
    fn truncate_cache(&mut self, len: usize);

    /// Returns the bytes per token that [`InferenceEngine::save_state`] writes.
    fn state_bytes_per_token(&self) -> usize;

    /// Returns the state of the first `len` tokens.
    ///
    /// # Errors
    /// Kind `provider` if the runtime fails or the cache has fewer tokens.
    fn save_state(&self, len: usize) -> Result<Vec<u8>>;

    /// Replaces the cache with the first `len` of the `stored` tokens whose state is in `bytes`.
    ///
    /// # Errors
    /// Kind `provider` if the bytes are not a valid state. The cache is then empty.
    fn load_state(&mut self, bytes: &[u8], stored: usize, len: usize) -> Result<()>;
}
