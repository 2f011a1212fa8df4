//! What computes: tokens in, logits out, over a cache that can be cut, written out and read back.
//!
//! A seam, so that another runtime can stand behind the same prompt, grammar and decoding.
//! No text, no tools, no files here.

use jaato_plugin_sdk::types::Result;

use crate::cancel::CancelFlag;

/// A loaded model with the cache of one sequence.
pub trait Engine: Send {
    /// Most tokens that the cache can hold.
    fn context_limit(&self) -> usize;

    /// Tokens that the cache holds.
    fn len(&self) -> usize;

    /// Tells whether the cache holds no token.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends tokens and returns the logits after the last. Looks at `cancel` at least every 100
    /// ms; what was computed before stays in the cache.
    ///
    /// # Errors
    /// Kind `cancelled`; `context_overflow` past the limit; `provider` when the runtime fails.
    fn forward(&mut self, tokens: &[u32], cancel: &CancelFlag) -> Result<Vec<f32>>;

    /// Forgets all tokens from `len` on.
    fn truncate(&mut self, len: usize);

    /// Bytes that [`Engine::save`] writes for one token.
    fn state_bytes_per_token(&self) -> usize;

    /// Returns the state of the first `len` tokens.
    ///
    /// # Errors
    /// Kind `provider` when the runtime fails or the cache holds fewer.
    fn save(&self, len: usize) -> Result<Vec<u8>>;

    /// Replaces the cache by the first `len` of the `stored` tokens whose state `bytes` holds.
    ///
    /// # Errors
    /// Kind `provider` when the bytes are not such a state; the cache is empty then.
    fn load(&mut self, bytes: &[u8], stored: usize, len: usize) -> Result<()>;
}
