//! How many tokens are in use: what the provider told last, and a quarter of the bytes since.

use std::io;

use jaato_types::{Role, Usage};
use serde::Serialize;

use crate::Session;

/// Bytes that count as one token where nobody knows better.
pub(super) const BYTES_PER_TOKEN: u64 = 4;

/// Most tokens that a server adds to a request: its own system prompt, the form of its tools.
const SERVERS_OWN_TOKENS: u64 = 16_384;

/// Most tokens of one image or file beside its bytes.
const IMAGE_TOKENS_MAX: u64 = 65_536;

/// What was counted, and how far it reaches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    tokens: u64,
    /// The messages that it covers, from the first on.
    messages: usize,
    /// Whether the answer that followed them is part of it.
    with_answer: bool,
}

impl Session {
    /// Takes the tokens that the provider told of the request that was sent last.
    pub(crate) fn counted(&mut self, usage: Usage) {
        // Who tells no prompt has not counted it.
        if usage.prompt_tokens > 0 {
            self.gc.counted = Some(Counted {
                tokens: usage.total_tokens(),
                messages: self.history.messages().count(),
                with_answer: true,
            });
        }
    }

    /// Returns the tokens in use.
    pub(crate) fn tokens_in_use(&self) -> u64 {
        let Some(counted) = self.gc.counted else {
            return tokens_of(self.bytes_in_use());
        };
        let since = self.history.messages().skip(counted.messages);
        // The answer stands first among what came since.
        let is_counted =
            |(at, role): (usize, Role)| at == 0 && counted.with_answer && role == Role::Model;
        let since = since.enumerate().filter(|(at, message)| !is_counted((*at, message.role)));
        let bytes: u64 = since.map(|(_, message)| json_bytes(message)).sum();
        counted.tokens.saturating_add(tokens_of(bytes))
    }

    /// Returns the most tokens that the request can have: a token has at least one byte. A server
    /// adds something of its own, and an image is more than its bytes.
    pub(crate) fn request_tokens_max(&self) -> u64 {
        let (images, bytes) = self.shown_bytes();
        self.bytes_in_use()
            .saturating_add(SERVERS_OWN_TOKENS)
            .saturating_add(images.saturating_mul(IMAGE_TOKENS_MAX))
            .saturating_add(bytes)
    }

    /// Returns the bytes of all that is sent.
    pub(crate) fn bytes_in_use(&self) -> u64 {
        json_bytes(&self.prefix) + self.history.messages().map(json_bytes).sum::<u64>()
    }

    /// Counts anew after what is sent has changed: each byte stands for as many tokens as before.
    pub(super) fn recount(&mut self, tokens_before: u64, bytes_before: u64) {
        if self.gc.counted.is_none() {
            return;
        }
        let bytes = u128::from(self.bytes_in_use());
        let tokens = u128::from(tokens_before) * bytes / u128::from(bytes_before.max(1));
        self.count_as(u64::try_from(tokens).unwrap_or(u64::MAX));
    }

    /// Takes a count of all that is sent.
    pub(super) fn count_as(&mut self, tokens: u64) {
        let messages = self.history.messages().count();
        self.gc.counted = Some(Counted { tokens, messages, with_answer: false });
    }

    /// Tells whether the count rests on what a provider told.
    pub(super) fn is_counted(&self) -> bool {
        self.gc.counted.is_some()
    }
}

pub(crate) fn tokens_of(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Returns the bytes of a value as JSON, which is near to what crosses to a provider.
pub(crate) fn json_bytes<T: Serialize>(value: &T) -> u64 {
    let mut sink = Sink(0);
    // Our types always have a JSON; one that had none would count as what was written of it.
    let _ = serde_json::to_writer(&mut sink, value);
    sink.0
}

/// Counts what is written.
struct Sink(u64);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
