//! Counts the tokens in use: the provider's last count, plus a quarter of the bytes added since.

use std::io;
use std::sync::Arc;

use jaato_types::{Role, Usage};
use serde::Serialize;

use crate::Session;
use crate::history::HistoryEntry;

/// How many bytes count as one token without a better estimate.
pub(super) const BYTES_PER_TOKEN: u64 = 4;

/// The most tokens that a server adds to a request: its own system prompt, and the format of its
/// tools.
const SERVERS_OWN_TOKENS: u64 = 16_384;

/// The most tokens of one image or file in addition to its bytes.
const IMAGE_TOKENS_MAX: u64 = 65_536;

/// A token count, and which messages it covers.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedTokens {
    tokens: u64,
    /// The number of messages that it covers, starting at the first.
    messages: usize,
    /// Whether it includes the answer that followed them.
    with_answer: bool,
}

/// An entry of the record, and the bytes of its message. As it is shared, a change of the record
/// replaces it.
pub(super) type EntrySize = (Arc<HistoryEntry>, u64);

impl Session {
    /// Records the provider's token count of the last request.
    pub(crate) fn record_usage(&mut self, usage: Usage) {
        // A provider that reports no prompt tokens has not counted the prompt.
        if usage.prompt_tokens > 0 {
            self.gc.counted = Some(CountedTokens {
                tokens: usage.total_tokens(),
                messages: self.history.messages().count(),
                with_answer: true,
            });
        }
    }

    /// Returns the tokens in use.
    pub(crate) fn tokens_in_use(&self) -> u64 {
        let Some(counted) = self.gc.counted else {
            return estimate_tokens(self.bytes_in_use());
        };
        let messages = self.history.messages().zip(self.message_bytes());
        // The answer is the first message after the counted ones.
        let is_counted =
            |(at, role): (usize, Role)| at == 0 && counted.with_answer && role == Role::Model;
        let since = messages.skip(counted.messages).enumerate();
        let since = since.filter(|(at, (message, _))| !is_counted((*at, message.role)));
        let bytes: u64 = since.map(|(_, (_, bytes))| bytes).sum();
        counted.tokens.saturating_add(estimate_tokens(bytes))
    }

    /// Returns the most tokens that the request can have. A token has at least one byte, a server
    /// adds some tokens of its own, and an image can have more tokens than bytes.
    pub(crate) fn request_tokens_max(&self) -> u64 {
        let (images, bytes) = self.shown_bytes();
        self.bytes_in_use()
            .saturating_add(SERVERS_OWN_TOKENS)
            .saturating_add(images.saturating_mul(IMAGE_TOKENS_MAX))
            .saturating_add(bytes)
    }

    /// Returns the bytes of the whole request.
    pub(crate) fn bytes_in_use(&self) -> u64 {
        json_bytes(&self.prefix) + self.message_bytes().iter().sum::<u64>()
    }

    /// Returns the bytes of each message that the model receives. Counts only those that have
    /// changed since the last time, because long conversations would be counted several times with
    /// each request.
    fn message_bytes(&self) -> Vec<u64> {
        let mut sizes = self.gc.sizes.lock();
        let entries = self.history.entries();
        let sized =
            |entry: &Arc<HistoryEntry>| (Arc::clone(entry), json_bytes(entry.sent_message()));
        sizes.truncate(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            match sizes.get_mut(at) {
                Some((counted, _)) if Arc::ptr_eq(counted, entry) => {}
                Some(changed) => *changed = sized(entry),
                None => sizes.push(sized(entry)),
            }
        }
        sizes.iter().filter(|(entry, _)| entry.is_sent()).map(|(_, bytes)| *bytes).collect()
    }

    /// Recounts after the request has changed, at the previous ratio of tokens to bytes.
    pub(super) fn recount(&mut self, tokens_before: u64, bytes_before: u64) {
        if self.gc.counted.is_none() {
            return;
        }
        let bytes = u128::from(self.bytes_in_use());
        let tokens = u128::from(tokens_before) * bytes / u128::from(bytes_before.max(1));
        self.count_as(u64::try_from(tokens).unwrap_or(u64::MAX));
    }

    /// Records a count of the whole request.
    pub(super) fn count_as(&mut self, tokens: u64) {
        let messages = self.history.messages().count();
        self.gc.counted = Some(CountedTokens { tokens, messages, with_answer: false });
    }

    /// Returns true if the count is based on a provider's count.
    pub(super) fn is_counted(&self) -> bool {
        self.gc.counted.is_some()
    }
}

pub(crate) fn estimate_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Returns the size of a value as JSON, which is close to what a provider receives.
pub(crate) fn json_bytes<T: Serialize>(value: &T) -> u64 {
    let mut sink = ByteCounter(0);
    // Our types always serialize. If one failed, the bytes written so far would count.
    let _ = serde_json::to_writer(&mut sink, value);
    sink.0
}

/// Counts the bytes that are written.
struct ByteCounter(u64);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
