//! Produces the model's answer token by token, as text or as a tool call. The answer is streamed
//! and can be cancelled.
//!
//! The model writes freely until it begins a call, and then follows the grammar. Output that may be
//! the start of a call is held back, so that the user never sees a call's raw JSON as text. If the
//! answer has a schema, the model follows the grammar from the start and writes either a call or
//! matching JSON.

use jaato_plugin_sdk::types::{Error, ErrorKind, FinishReason, Result};
use serde_json::{Map, Value};

use crate::cancel::CancelFlag;
use crate::engine::InferenceEngine;
use crate::grammar::{CallFormat, CallGrammar, CallMatcher, FENCE};
use crate::sampler::TokenSampler;
use crate::stop::StopTexts;
use crate::tokenizer::ModelTokenizer;

/// How much of a call must be written after other text before it counts as a call, because an
/// answer may contain JSON.
const SURE_BEHIND_TEXT: usize = "```json\n{\"name\"".len();

/// Whether the model may make a tool call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ToolCallPermission {
    /// A call is allowed. The number is added to the logits of tokens that begin a call.
    Allowed(f32),
    /// A call is not allowed. The answer cannot begin with anything that could start a call.
    Barred,
    /// The model must make a call.
    Wanted,
}

/// The constant inputs of decoding.
pub struct DecodingInputs<'a> {
    /// The vocabulary.
    pub tokenizer: &'a ModelTokenizer,
    /// The model's compiled grammar.
    pub grammar: &'a CallGrammar,
    /// The tools that the model may call.
    pub format: &'a CallFormat,
    /// The maximum number of tokens to produce.
    pub tokens_max: usize,
    /// Whether the model may make a call.
    pub calls: ToolCallPermission,
    /// Texts before which the answer stops. Arguments of calls may contain them.
    pub stops: &'a StopTexts,
    /// The schema of a JSON answer.
    pub schema: Option<&'a Value>,
    /// Cancels the decoding.
    pub cancel: &'a CancelFlag,
}

/// The model's answer.
#[derive(Debug, PartialEq)]
pub struct LocalModelAnswer {
    /// The text without the call.
    pub text: String,
    /// The call's name and arguments, if there is a call.
    pub call: Option<(String, Map<String, Value>)>,
    /// Why the model stopped.
    pub finish_reason: FinishReason,
    /// The produced tokens in order.
    pub tokens: Vec<u32>,
    /// How many of the produced tokens are in the engine's cache.
    pub fed: usize,
}

/// Produces the answer after `logits`. Passes each piece of text to `sink` as soon as it cannot be
/// part of a call.
///
/// # Errors
/// Kind `cancelled`, or `provider` if the engine or the grammar fails. A sink that returns false
/// has no receiver, which counts as cancelled.
pub fn decode_answer(
    engine: &mut dyn InferenceEngine,
    logits: Vec<f32>,
    sampler: TokenSampler,
    decoding: &DecodingInputs<'_>,
    sink: &mut dyn FnMut(&str) -> bool,
) -> Result<LocalModelAnswer> {
    let is_wanted = decoding.calls == ToolCallPermission::Wanted;
    let matcher = match decoding.schema {
        _ if is_wanted => Some(decoding.grammar.start_matcher(decoding.format, "")?),
        Some(schema) => Some(decoding.grammar.start_answer_matcher(decoding.format, schema)?),
        None => None,
    };
    let mut run = DecodingRun {
        decoding,
        sampler,
        output: Vec::new(),
        tokens: Vec::new(),
        unfed: Vec::new(),
        sent: 0,
        call_start: is_wanted.then_some(0),
        matcher,
    };
    let finish_reason = run.decode_tokens(engine, logits, sink)?;
    run.finish_answer(finish_reason, sink)
}

struct DecodingRun<'a> {
    decoding: &'a DecodingInputs<'a>,
    sampler: TokenSampler,
    /// Bytes produced so far.
    output: Vec<u8>,
    tokens: Vec<u32>,
    /// Tokens that were produced but not given to the engine yet.
    unfed: Vec<u32>,
    /// Number of output bytes that the sink has received.
    sent: usize,
    /// The start of the call in the output.
    call_start: Option<usize>,
    matcher: Option<CallMatcher>,
}

impl DecodingRun<'_> {
    fn decode_tokens(
        &mut self,
        engine: &mut dyn InferenceEngine,
        mut logits: Vec<f32>,
        sink: &mut dyn FnMut(&str) -> bool,
    ) -> Result<FinishReason> {
        loop {
            self.decoding.cancel.check_cancelled()?;
            if self.tokens.len() >= self.decoding.tokens_max {
                return Ok(FinishReason::MaxTokens);
            }
            let Some(token) = self.pick_token(&mut logits)? else { return Ok(FinishReason::Stop) };
            if self.decoding.tokenizer.is_end_token(token) {
                return Ok(FinishReason::Stop);
            }
            self.push_token(token);
            if let Some(matcher) = &mut self.matcher {
                matcher.consume_token(token)?;
            }
            if self.decoding.schema.is_none() && self.matcher.is_none() {
                if self.remove_stop_text() {
                    return Ok(FinishReason::Stop);
                }
                self.detect_call(sink)?;
            }
            let is_done = self.append_forced_tokens()?;
            if self.decoding.schema.is_some() && self.send_json_or_detect_call(sink)? {
                return Ok(FinishReason::Stop);
            }
            if is_done {
                let is_call = self.call_start.is_some();
                return Ok(if is_call { FinishReason::ToolUse } else { FinishReason::Stop });
            }
            if engine.len() + self.unfed.len() > engine.context_limit() {
                return Ok(FinishReason::MaxTokens);
            }
            logits = engine.forward_tokens(&self.unfed, self.decoding.cancel)?;
            self.unfed.clear();
        }
    }

    fn push_token(&mut self, token: u32) {
        self.output.extend_from_slice(self.decoding.tokenizer.token_bytes(token));
        self.tokens.push(token);
        self.unfed.push(token);
    }

    /// Picks the next token among the allowed ones.
    fn pick_token(&mut self, logits: &mut [f32]) -> Result<Option<u32>> {
        let tokenizer = self.decoding.tokenizer;
        // A call ends with its grammar. A JSON answer may also end where the model ends it.
        let may_end = self.matcher.is_none() || self.is_json();
        for token in tokenizer.control_tokens() {
            let may_end = may_end && tokenizer.is_end_token(token);
            if !may_end && let Some(logit) = logits.get_mut(token as usize) {
                *logit = f32::NEG_INFINITY;
            }
        }
        let added = match self.decoding.calls {
            _ if self.matcher.is_some() || !self.output.trim_ascii().is_empty() => 0.0,
            ToolCallPermission::Allowed(weight) => weight,
            ToolCallPermission::Barred => f32::NEG_INFINITY,
            ToolCallPermission::Wanted => 0.0,
        };
        if added != 0.0 {
            for (token, logit) in logits.iter_mut().enumerate() {
                let text = tokenizer.token_bytes(token as u32).trim_ascii_start();
                if matches!(text.first(), Some(b'`' | b'{')) {
                    *logit += added;
                }
            }
        }
        // Logits after the vocabulary are padding.
        let len = logits.len().min(tokenizer.vocabulary_len());
        let logits = &mut logits[..len];
        let Some(matcher) = &mut self.matcher else { return Ok(self.sampler.pick_token(logits)) };
        if self.sampler.is_greedy() {
            // The most likely token is nearly always allowed. Checking it alone is a hundred times
            // faster than a mask over the whole vocabulary, with the same result.
            if let Some(token) = self.sampler.pick_token(logits)
                && matcher.is_token_allowed(token)?
            {
                return Ok(Some(token));
            }
        }
        matcher.mask_logits(logits)?;
        match self.sampler.pick_token(logits) {
            Some(token) => Ok(Some(token)),
            None => Err(Error::new(ErrorKind::Provider, "the grammar allows no token")),
        }
    }

    /// Sends output that is certainly text. Starts to follow the grammar when a call has certainly
    /// begun.
    fn detect_call(&mut self, sink: &mut dyn FnMut(&str) -> bool) -> Result<()> {
        let begun = self.decoding.format.call_prefix_length(&self.output);
        let start = self.output.len() - begun;
        let may_stop = self.output.len() - self.decoding.stops.stop_prefix_length(&self.output);
        let sure = if self.output[..start].trim_ascii().is_empty() {
            FENCE.len()
        } else {
            SURE_BEHIND_TEXT
        };
        self.send_up_to(start.min(may_stop), sink)?;
        if begun >= sure {
            let written = String::from_utf8_lossy(&self.output[start..]).into_owned();
            self.matcher =
                Some(self.decoding.grammar.start_matcher(self.decoding.format, &written)?);
            self.call_start = Some(start);
        }
        Ok(())
    }

    /// Returns true if the answer so far is JSON and not a call.
    fn is_json(&self) -> bool {
        self.decoding.schema.is_some() && !self.output.starts_with(&FENCE.as_bytes()[..1])
    }

    /// Sends output that certainly belongs to a JSON answer, or detects a call. Returns true if the
    /// answer stops here.
    fn send_json_or_detect_call(&mut self, sink: &mut dyn FnMut(&str) -> bool) -> Result<bool> {
        if !self.is_json() {
            self.call_start = Some(0);
            return Ok(false);
        }
        if self.remove_stop_text() {
            return Ok(true);
        }
        let may_stop = self.output.len() - self.decoding.stops.stop_prefix_length(&self.output);
        self.send_up_to(may_stop, sink)?;
        Ok(false)
    }

    /// Removes a stop text from the output. Returns true if there was one.
    fn remove_stop_text(&mut self) -> bool {
        // Sent output is not part of a stop text.
        let from = self.sent.max(self.leading_blanks_length());
        let found = self.decoding.stops.find_stop_text(&self.output[from..]);
        self.output.truncate(found.map_or(self.output.len(), |at| from + at));
        found.is_some()
    }

    /// Appends the tokens that the grammar forces. Returns true if the call is complete.
    fn append_forced_tokens(&mut self) -> Result<bool> {
        let Some(matcher) = &mut self.matcher else { return Ok(false) };
        let forced = matcher.take_forced_tokens()?;
        let is_done = matcher.is_done();
        for token in forced {
            self.push_token(token);
        }
        Ok(is_done)
    }

    /// Sends the text before `end` to the sink, up to the last complete character.
    fn send_up_to(&mut self, end: usize, sink: &mut dyn FnMut(&str) -> bool) -> Result<()> {
        // An answer does not begin with whitespace, and whitespace before a call is not an answer.
        let start = self.sent.max(self.leading_blanks_length()).min(end);
        let text = complete_characters(&self.output[start..end]);
        if text.is_empty() {
            return Ok(());
        }
        self.sent = start + text.len();
        if sink(&String::from_utf8_lossy(text)) { Ok(()) } else { Err(Error::cancelled()) }
    }

    /// Returns the length of the output's leading whitespace.
    fn leading_blanks_length(&self) -> usize {
        self.output.len() - self.output.trim_ascii_start().len()
    }

    fn finish_answer(
        mut self,
        finish_reason: FinishReason,
        sink: &mut dyn FnMut(&str) -> bool,
    ) -> Result<LocalModelAnswer> {
        let text_end = self.call_start.unwrap_or(self.output.len());
        let text_start = self.leading_blanks_length().min(text_end);
        let rest_start = self.sent.max(text_start).min(text_end);
        let rest = String::from_utf8_lossy(&self.output[rest_start..text_end]);
        if !rest.is_empty() && !sink(&rest) {
            return Err(Error::cancelled());
        }
        let text = String::from_utf8_lossy(&self.output[text_start..text_end]).into_owned();
        let call = match (self.call_start, finish_reason) {
            (Some(start), FinishReason::ToolUse) => Some(parse_call(&self.output[start..])?),
            // An incomplete call is discarded.
            (_, _) => None,
        };
        let fed = self.tokens.len() - self.unfed.len();
        let tokens = std::mem::take(&mut self.tokens);
        Ok(LocalModelAnswer { text, call, finish_reason, tokens, fed })
    }
}

/// Removes an incomplete character at the end.
fn complete_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes,
        // Invalid bytes are passed on and shown as such.
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        Err(_) => {
            let tail = bytes.len().saturating_sub(3);
            let cut = (tail..bytes.len()).find(|&at| is_unfinished_text(&bytes[at..]));
            &bytes[..cut.unwrap_or(bytes.len())]
        }
    }
}

fn is_unfinished_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

fn parse_call(text: &[u8]) -> Result<(String, Map<String, Value>)> {
    let text = String::from_utf8_lossy(text);
    let json = text.strip_prefix(FENCE).and_then(|rest| rest.trim_end().strip_suffix("```"));
    let call = json.and_then(|json| serde_json::from_str::<Value>(json).ok());
    let parts = call.and_then(|mut call| {
        let arguments = call.get_mut("arguments").map(Value::take);
        let name = call.get("name").and_then(Value::as_str).map(str::to_owned);
        match (name, arguments) {
            (Some(name), Some(Value::Object(arguments))) => Some((name, arguments)),
            _ => None,
        }
    });
    parts
        .ok_or_else(|| Error::new(ErrorKind::Provider, "the grammar accepted an invalid tool call"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_character_is_held_back_until_it_is_whole() {
        let euro = "a€".as_bytes();
        assert_eq!(complete_characters(&euro[..1]), b"a");
        assert_eq!(complete_characters(&euro[..2]), b"a");
        assert_eq!(complete_characters(&euro[..3]), b"a");
        assert_eq!(complete_characters(euro), euro);
        assert_eq!(complete_characters(b"a\xffb\xe2\x82"), b"a\xffb");
        assert_eq!(complete_characters(b"\xff"), b"\xff");
    }
}
