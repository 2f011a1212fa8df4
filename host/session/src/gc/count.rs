//! Counts the tokens in use: the provider's last count, plus a quarter of the bytes added since.

use std::io;
use std::sync::Arc;

use jaato_types::{DataPart, Message, Part, Role, Usage};
use serde::Serialize;

use crate::Session;
use crate::history::HistoryEntry;
use crate::session::part_data;
use crate::shared_budget::RequestEstimate;
use crate::usage_caps::request_estimate;

/// How many bytes count as one token without a better estimate.
pub(super) const BYTES_PER_TOKEN: u64 = 4;

/// The maximum number of tokens that a server adds to a request: its own system prompt, and the
/// format of its tools.
const SERVERS_OWN_TOKENS: u64 = 16_384;

/// The maximum number of tokens of one image or file in addition to its bytes.
const IMAGE_TOKENS_MAX: u64 = 65_536;

/// The bytes that an image or file counts as when the effect of a collection is estimated: about
/// 1,000 tokens.
const MEDIA_BYTES: u64 = 4_096;

/// The highest plausible token count of one answer: more than any model produces.
const OUTPUT_TOKENS_MAX: u64 = 2_000_000;

/// The maximum number of tokens of an answer that neither its parts nor its count of reasoning
/// explain. Servers may count hidden reasoning as plain output. It is four times 131,072 tokens,
/// which is as much as models give in one answer.
const HIDDEN_TOKENS_MAX: u64 = 524_288;

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
    /// Records the provider's token count of the last request and its answer.
    pub(crate) fn record_usage(&mut self, usage: Usage, answer: &[Part]) {
        // A provider that reports no prompt tokens has not counted the prompt.
        if usage.prompt_tokens > 0 {
            let of_answer = tokens_sent_back(&usage, answer);
            self.gc.counted = Some(CountedTokens {
                tokens: usage.prompt_tokens.saturating_add(of_answer),
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

    /// Returns the most that the next request may use, as far as the session can tell.
    pub(crate) fn next_request_estimate(&self) -> RequestEstimate {
        let options = self.options_asked.as_ref().unwrap_or(&self.prefix.options);
        let asked = options.max_output_tokens.map(u64::from);
        let answer = asked.or_else(|| self.shared.model.lock().model.answer_tokens_max);
        let tokens = self.tokens_in_use();
        let is_known = self.gc.limit > 0 && !self.gc.window.is_guess();
        let room = is_known.then(|| self.gc.limit.saturating_sub(tokens));
        let answer = answer.into_iter().chain(room).min();
        request_estimate(self.price.as_ref(), tokens, answer)
    }

    /// Returns the most tokens that the request can have. A token has at least one byte, a server
    /// adds some tokens of its own, and an image can have more tokens than bytes.
    pub(crate) fn request_tokens_max(&self) -> u64 {
        let (images, bytes) = self.shown_media_size();
        self.bytes_in_use()
            .saturating_add(SERVERS_OWN_TOKENS)
            .saturating_add(images.saturating_mul(IMAGE_TOKENS_MAX))
            .saturating_add(bytes)
    }

    /// Returns the bytes of the whole request.
    pub(crate) fn bytes_in_use(&self) -> u64 {
        json_bytes(&self.prefix) + self.message_bytes().iter().sum::<u64>()
    }

    /// Returns the bytes of the whole request, with images and files at their estimated size.
    pub(super) fn weight_in_use(&self) -> u64 {
        let (media, _) = self.shown_media_size();
        self.bytes_in_use().saturating_add(media.saturating_mul(MEDIA_BYTES))
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

    /// Recounts after the request has changed, at the previous ratio of tokens to bytes
    /// (`weight_in_use`).
    pub(super) fn recount_tokens(&mut self, tokens_before: u64, weight_before: u64) {
        if self.gc.counted.is_none() {
            return;
        }
        let weight = u128::from(self.weight_in_use());
        let tokens = u128::from(tokens_before) * weight / u128::from(weight_before.max(1));
        self.record_token_count(u64::try_from(tokens).unwrap_or(u64::MAX));
    }

    /// Records a count of the whole request.
    pub(super) fn record_token_count(&mut self, tokens: u64) {
        let messages = self.history.messages().count();
        self.gc.counted = Some(CountedTokens { tokens, messages, with_answer: false });
    }

    /// Returns true if the count is based on a provider's count.
    pub(super) fn is_count_from_provider(&self) -> bool {
        self.gc.counted.is_some()
    }
}

/// Returns how many of an answer's tokens the next request contains. Hidden reasoning is not sent
/// again, whether a server counts it as reasoning or as plain output.
fn tokens_sent_back(usage: &Usage, answer: &[Part]) -> u64 {
    // A server that counts more reasoning than output counts reasoning separately.
    let said =
        usage.output_tokens.checked_sub(usage.reasoning_tokens).unwrap_or(usage.output_tokens);
    let is_reasoning = |part: &&Part| matches!(part, Part::Thought { .. } | Part::Opaque(_));
    let reasoning: u64 = answer.iter().filter(is_reasoning).map(json_bytes).sum();
    let reasoning = estimate_tokens(reasoning).min(usage.reasoning_tokens);
    said.min(answer_tokens_max(answer)).saturating_add(reasoning)
}

/// Returns true if a model can have given this many tokens for an answer.
pub(crate) fn is_possible_output(usage: &Usage, answer: &[Part]) -> bool {
    let unexplained = usage
        .output_tokens
        .saturating_sub(usage.reasoning_tokens)
        .saturating_sub(answer_tokens_max(answer));
    usage.output_tokens.max(usage.reasoning_tokens) <= OUTPUT_TOKENS_MAX
        && unexplained <= HIDDEN_TOKENS_MAX
}

/// Returns the most tokens that the parts of an answer can have. A token has at least one byte, but
/// a generated image can have more tokens than its part has bytes.
fn answer_tokens_max(answer: &[Part]) -> u64 {
    let images = answer.iter().filter(|part| matches!(part, Part::Data(_))).count() as u64;
    json_bytes(&answer).saturating_add(images.saturating_mul(IMAGE_TOKENS_MAX))
}

/// Returns the size of a message, with images and files at their estimated size.
pub(super) fn message_weight(message: &Message) -> u64 {
    estimated_weight(message, message.parts.iter().flat_map(part_data))
}

/// Returns the size of a part, with images and files at their estimated size.
pub(super) fn part_weight(part: &Part) -> u64 {
    estimated_weight(part, part_data(part))
}

fn estimated_weight<'a>(
    value: &impl Serialize,
    data: impl IntoIterator<Item = &'a DataPart>,
) -> u64 {
    let media = data.into_iter().filter(|data| data.blob_id().is_some()).count() as u64;
    json_bytes(value).saturating_add(media.saturating_mul(MEDIA_BYTES))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_tokens_that_are_sent_again_are_counted() {
        let usage = |output_tokens, reasoning_tokens| Usage {
            prompt_tokens: 60_000,
            output_tokens,
            reasoning_tokens,
            ..Usage::default()
        };
        let text = Part::text("short");
        // The part is `{"type":"thought","text":"…"}`: 4,000 bytes.
        let thought = Part::thought("t".repeat(3_971));
        let opaque = Part::opaque(json!({ "encrypted": "x".repeat(4_000) }));
        let bytes = json_bytes(&[&text]);
        for (what, usage, answer, expected) in [
            ("no reasoning", usage(10, 0), vec![text.clone()], 10..11),
            ("hidden reasoning", usage(50_000, 49_990), vec![text.clone()], 10..11),
            ("hidden and not reported", usage(50_000, 0), vec![text.clone()], bytes..bytes + 1),
            ("reported separately", usage(10, 340), vec![text.clone()], 10..11),
            ("a thought", usage(1_510, 1_500), vec![thought.clone(), text.clone()], 1_010..1_020),
            (
                "a thought that is not reported",
                usage(1_010, 0),
                vec![thought, text.clone()],
                1_010..1_011,
            ),
            (
                "sealed reasoning",
                usage(5_010, 5_000),
                vec![opaque.clone(), text.clone()],
                1_010..1_050,
            ),
            ("sealed in more bytes", usage(60, 50), vec![opaque, text], 60..61),
        ] {
            let tokens = tokens_sent_back(&usage, &answer);
            assert!(expected.contains(&tokens), "{what}: {tokens}");
        }
    }
}
