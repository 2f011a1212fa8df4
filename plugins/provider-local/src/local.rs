//! A loaded model that answers requests. It combines prompt, cache, saved states and decoding.

use std::path::Path;
use std::sync::Arc;

use jaato_plugin_sdk::types::{
    CallId, Completion, CompletionRequest, Error, ErrorKind, FinishReason, Message, Part, Result,
    Role, ToolCall, ToolSpec, Usage,
};
use sha2::{Digest, Sha256};

use crate::cancel::CancelFlag;
use crate::decode::{DecodingInputs, LocalModelAnswer, ToolCallPermission, decode_answer};
use crate::engine::InferenceEngine;
use crate::gguf::GgufFile;
use crate::grammar::{CallFormat, CallGrammar};
use crate::prompt::{
    ExampleExchanges, FAILURES_MAX, SHELL, TokenPrompt, example_answers, render_prompt, shown_tools,
};
use crate::qwen2::Qwen2;
use crate::sampler::TokenSampler;
use crate::state::{ModelStateStore, common_prefix_length};
use crate::stop::StopTexts;
use crate::tokenizer::ModelTokenizer;
use crate::turn::{call_weight, count_failures, is_repeated_call};

/// The default output limit in tokens, which takes two minutes on two cores.
pub const OUTPUT_TOKENS_DEFAULT: usize = 1024;

/// The minimum number of tokens that a saved state must spare to be worth reading.
const GAIN_TOKENS_MIN: usize = 16;

/// From this number of tokens, reading the prompt takes long enough for a notice.
const NOTICE_TOKENS_MIN: usize = 200;

/// The maximum number of prompt tokens to read between two progress reports.
const FED_TOKENS: usize = 128;

/// Receives the pieces of a completion in progress.
pub trait CompletionSink {
    /// Receives a piece of text. Returns false if no one listens any longer.
    fn send_text(&mut self, text: &str) -> bool;
    /// Receives a complete call.
    fn send_call(&mut self, _call: &ToolCall) {}
    /// Called when the prompt is read and the first token of the answer is there.
    fn on_first_token(&mut self) {}
    /// Shows the user a notice.
    fn show_notice(&mut self, text: String);
    /// Receives the progress of reading the prompt, in tokens.
    fn report_progress(&mut self, _read: usize, _of: usize) {}
    /// Writes a line to the log.
    fn log(&mut self, text: String);
}

/// Counts the tokens of requests with a model's vocabulary.
#[derive(Clone)]
pub struct TokenCounter(Arc<ModelTokenizer>);

impl TokenCounter {
    /// Counts the tokens of a request's prompt.
    ///
    /// # Errors
    /// Kind `provider` if the tokenizer fails.
    pub fn count_prompt_tokens(&self, request: &CompletionRequest) -> Result<u64> {
        let prompt = render_first_prompt(request, &self.0)?;
        Ok(u64::try_from(prompt.tokens.len()).unwrap_or(u64::MAX))
    }
}

/// A loaded model and the contents of its cache.
pub struct LocalModel {
    engine: Box<dyn InferenceEngine>,
    tokenizer: Arc<ModelTokenizer>,
    grammar: CallGrammar,
    store: Option<ModelStateStore>,
    /// The tokens in the engine's cache.
    cached: Vec<u32>,
    /// The length of a prefix of the cached tokens that is worth saving.
    unsaved: Option<usize>,
}

impl LocalModel {
    /// Loads weights, vocabulary and grammar in parallel.
    ///
    /// # Errors
    /// Kind `configuration` if the file is not a supported model.
    pub fn load_model(path: &Path, context_tokens_max: usize) -> Result<Self> {
        let gguf = GgufFile::open(path)?;
        let (engine, language) = std::thread::scope(|scope| {
            let language = scope.spawn(|| {
                let tokenizer = Arc::new(ModelTokenizer::from_gguf(&gguf)?);
                Ok((CallGrammar::new(&tokenizer)?, tokenizer))
            });
            let engine = Qwen2::load_gguf(&gguf, context_tokens_max);
            let panicked =
                |_| Err(Error::new(ErrorKind::Provider, "the vocabulary cannot be loaded"));
            (engine, language.join().unwrap_or_else(panicked))
        });
        let (grammar, tokenizer) = language?;
        Ok(Self::new(Box::new(engine?), tokenizer, grammar))
    }

    /// Creates a model from its components. The engine's cache must be empty.
    pub fn new(
        engine: Box<dyn InferenceEngine>,
        tokenizer: Arc<ModelTokenizer>,
        grammar: CallGrammar,
    ) -> Self {
        Self { engine, tokenizer, grammar, store: None, cached: Vec::new(), unsaved: None }
    }

    /// Returns the bytes of saved state per token.
    pub fn state_bytes_per_token(&self) -> usize {
        self.engine.state_bytes_per_token()
    }

    /// Returns the maximum number of tokens in prompt and answer together.
    pub fn context_limit(&self) -> usize {
        self.engine.context_limit()
    }

    /// Sets the store in which the model saves and finds states.
    pub fn set_store(&mut self, store: ModelStateStore) {
        self.store = Some(store);
    }

    /// Counts the tokens of the prompt's start: system text, tools and examples.
    ///
    /// # Errors
    /// Kind `provider` if the tokenizer fails.
    pub fn prefix_tokens(&self, request: &CompletionRequest) -> Result<usize> {
        Ok(render_first_prompt(request, &self.tokenizer)?.prefix_len)
    }

    /// Returns a token counter, which also works while the model computes.
    pub fn token_counter(&self) -> TokenCounter {
        TokenCounter(Arc::clone(&self.tokenizer))
    }

    /// Answers a request.
    ///
    /// # Errors
    /// Kind `context_overflow` if the prompt leaves no room for an answer, `cancelled`, or
    /// `provider`.
    pub fn complete_request(
        &mut self,
        request: &CompletionRequest,
        cancel: &CancelFlag,
        sink: &mut dyn CompletionSink,
    ) -> Result<Completion> {
        // The marked prefix belongs to the previous prompt. Keeping it could save parts of this
        // conversation.
        self.unsaved = None;
        let shown = shown_tools(request);
        let tools: Vec<&ToolSpec> = shown.iter().collect();
        let mut prompt = render_prompt(request, &tools, ExampleExchanges::Shown, &self.tokenizer)?;
        let wanted = request
            .options
            .max_output_tokens
            .map_or(OUTPUT_TOKENS_DEFAULT, |tokens| tokens as usize);
        let format = CallFormat::new(&tools);
        let has_shell = tools.iter().any(|tool| tool.name.as_str() == SHELL);
        let (logits, mut reused) = self.read_prompt(&prompt, cancel, sink)?;
        sink.on_first_token();
        self.mark_unsaved(&prompt);
        let tokens_max = wanted.clamp(1, self.remaining_context(&prompt)?);
        let temperature = request.options.temperature.unwrap_or(0.0);
        let seed = request.options.seed.unwrap_or_else(|| seed_from_prompt(&prompt.tokens));
        let sampler = TokenSampler::new(temperature, seed);
        let calls = AnswerSettings {
            format: &format,
            calls: match count_failures(&request.messages) {
                0..FAILURES_MAX => {
                    ToolCallPermission::Allowed(call_weight(&request.messages, has_shell))
                }
                _ => ToolCallPermission::Barred,
            },
            tokens_max,
            stops: &StopTexts::new(&request.options.stop),
            schema: request.options.output_schema.as_ref(),
            streams: request.options.stream != Some(false),
            copied: &copied_answers(request),
            cancel,
        };
        let mut answer = self.generate_answer(logits, sampler.clone(), &calls, sink)?;
        if calls.is_copied_from_examples(&answer) {
            sink.log("the model repeated an example and answers again without them".to_owned());
            // Save the cached examples first, because the next prompt removes them from the cache.
            self.save_prefix()?;
            prompt = render_prompt(request, &tools, ExampleExchanges::Hidden, &self.tokenizer)?;
            let (logits, found) = self.read_prompt(&prompt, cancel, sink)?;
            reused = found;
            let again = AnswerSettings { copied: &[], ..calls };
            answer = self.generate_answer(logits, sampler.clone(), &again, sink)?;
        }
        if let Some(name) = repeated_call_tool(request, &answer) {
            sink.log(format!("the model repeated a call of `{name}` and must do something else"));
            let ways = other_tools(&tools, &name);
            if count_failures(&request.messages) > 0 && !ways.is_empty() {
                let format = CallFormat::new(&ways);
                let call =
                    AnswerSettings { format: &format, calls: ToolCallPermission::Wanted, ..calls };
                answer = self.answer_differently(answer, &prompt, sampler.clone(), &call, sink)?;
            }
            if repeated_call_tool(request, &answer).is_some() {
                let format = CallFormat::new(&[]);
                let text =
                    AnswerSettings { format: &format, calls: ToolCallPermission::Barred, ..calls };
                answer = self.answer_differently(answer, &prompt, sampler, &text, sink)?;
            }
        }
        self.cached.extend(&answer.tokens[..answer.fed]);
        if !calls.streams && !answer.text.is_empty() && !sink.send_text(&answer.text) {
            return Err(Error::cancelled());
        }
        let completion = to_completion(answer, &prompt, reused);
        for call in completion.parts.iter().filter_map(Part::as_tool_call) {
            sink.send_call(call);
        }
        Ok(completion)
    }

    /// Reads a prompt. Returns the logits after its end and the number of tokens that were not
    /// computed again.
    fn read_prompt(
        &mut self,
        prompt: &TokenPrompt,
        cancel: &CancelFlag,
        sink: &mut dyn CompletionSink,
    ) -> Result<(Vec<f32>, usize)> {
        self.remaining_context(prompt)?;
        let reused = self.reuse_prefix(prompt, sink);
        let rest = prompt.tokens.len() - reused;
        if rest >= NOTICE_TOKENS_MIN {
            sink.show_notice(format!("the local model reads {rest} tokens"));
        }
        Ok((self.feed_prompt(&prompt.tokens, reused, cancel, sink)?, reused))
    }

    fn generate_answer(
        &mut self,
        logits: Vec<f32>,
        sampler: TokenSampler,
        answering: &AnswerSettings<'_>,
        sink: &mut dyn CompletionSink,
    ) -> Result<LocalModelAnswer> {
        let decoding = DecodingInputs {
            tokenizer: &self.tokenizer,
            grammar: &self.grammar,
            format: answering.format,
            tokens_max: answering.tokens_max,
            calls: answering.calls,
            stops: answering.stops,
            schema: answering.schema,
            cancel: answering.cancel,
        };
        // A text is held back while it may still become one of the examples.
        let mut held = String::new();
        let mut send = |text: &str| {
            held.push_str(text);
            if answering.copied.iter().any(|copied| copied.starts_with(held.trim())) {
                return true;
            }
            !answering.streams || sink.send_text(&std::mem::take(&mut held))
        };
        let answer = decode_answer(self.engine.as_mut(), logits, sampler, &decoding, &mut send)?;
        let is_held =
            answering.streams && !held.is_empty() && !answering.is_copied_from_examples(&answer);
        if is_held && !sink.send_text(&held) {
            return Err(Error::cancelled());
        }
        Ok(answer)
    }

    /// Replaces a repeated call with the text before it, or with another attempt.
    fn answer_differently(
        &mut self,
        repeated: LocalModelAnswer,
        prompt: &TokenPrompt,
        sampler: TokenSampler,
        instead: &AnswerSettings<'_>,
        sink: &mut dyn CompletionSink,
    ) -> Result<LocalModelAnswer> {
        if !repeated.text.is_empty() {
            return Ok(LocalModelAnswer {
                call: None,
                finish_reason: FinishReason::Stop,
                ..repeated
            });
        }
        let last = prompt.tokens.len() - 1;
        self.engine.truncate_cache(last);
        let logits = self.engine.forward_tokens(&prompt.tokens[last..], instead.cancel)?;
        self.generate_answer(logits, sampler, instead, sink)
    }

    /// Saves the start of the last prompt if it is new. Called when no request waits.
    ///
    /// # Errors
    /// Kind `io` if the file cannot be written, or `provider` if the engine fails.
    pub fn save_prefix(&mut self) -> Result<()> {
        let (Some(store), Some(len)) = (&self.store, self.unsaved.take()) else { return Ok(()) };
        let tokens = &self.cached[..len.min(self.cached.len())];
        if tokens.is_empty() || store.has_state(tokens) {
            return Ok(());
        }
        store.write_state(tokens, &self.engine.save_state(tokens.len())?)
    }

    fn remaining_context(&self, prompt: &TokenPrompt) -> Result<usize> {
        let limit = self.engine.context_limit();
        let has = prompt.tokens.len();
        limit.checked_sub(has).filter(|&room| room > 0).ok_or_else(|| {
            Error::new(
                ErrorKind::ContextOverflow,
                format!(
                    "the request has {has} tokens, but the local model's context holds {limit}"
                ),
            )
            .with_hint("shorten the conversation, or give fewer tools with `--tools`")
        })
    }

    /// Makes the cache contain the longest prefix that it or a saved state shares with the prompt.
    fn reuse_prefix(&mut self, prompt: &TokenPrompt, sink: &mut dyn CompletionSink) -> usize {
        // At least one token must be computed to get logits.
        let most = prompt.tokens.len() - 1;
        let in_cache = common_prefix_length(&self.cached, &prompt.tokens).min(most);
        let reused = self.load_saved_state(prompt, in_cache, most, sink).unwrap_or(in_cache);
        self.engine.truncate_cache(reused);
        self.cached.clear();
        self.cached.extend(&prompt.tokens[..reused]);
        reused
    }

    /// Loads a saved state if it spares more tokens than the cache. Returns the number of cached
    /// tokens.
    fn load_saved_state(
        &mut self,
        prompt: &TokenPrompt,
        in_cache: usize,
        most: usize,
        sink: &mut dyn CompletionSink,
    ) -> Option<usize> {
        if in_cache >= prompt.prefix_len {
            return None;
        }
        let store = self.store.as_ref()?;
        let found = store.find_longest_prefix(&prompt.tokens, &mut |text| sink.log(text))?;
        let usable = found.usable.min(most);
        if usable < in_cache + GAIN_TOKENS_MIN {
            return None;
        }
        let state = store.read_state(&found, &mut |text| sink.log(text))?;
        match self.engine.load_state(&state, found.stored, usable) {
            Ok(()) => Some(usable),
            Err(error) => {
                sink.log(error.to_string());
                // The engine's cache is empty.
                Some(0)
            }
        }
    }

    /// Gives the engine the missing part of the prompt. Computed tokens stay in the cache, even
    /// after a cancel.
    fn feed_prompt(
        &mut self,
        tokens: &[u32],
        reused: usize,
        cancel: &CancelFlag,
        sink: &mut dyn CompletionSink,
    ) -> Result<Vec<f32>> {
        let rest = &tokens[reused..];
        // All pieces have the same size, because a last piece of a few tokens would take almost as
        // long as a whole one.
        let size = rest.len().div_ceil(rest.len().div_ceil(FED_TOKENS).max(1));
        let (first, more) = rest.split_at(size);
        let mut logits = self.engine.forward_tokens(first, cancel);
        let mut read = first.len();
        for piece in more.chunks(size.max(1)) {
            if logits.is_err() {
                break;
            }
            if rest.len() >= NOTICE_TOKENS_MIN {
                sink.report_progress(read, rest.len());
            }
            logits = self.engine.forward_tokens(piece, cancel);
            read += piece.len();
        }
        self.cached.clear();
        self.cached.extend(&tokens[..self.engine.len()]);
        logits
    }

    fn mark_unsaved(&mut self, prompt: &TokenPrompt) {
        let is_new = self
            .store
            .as_ref()
            .is_some_and(|store| !store.has_state(&prompt.tokens[..prompt.prefix_len]));
        self.unsaved = is_new.then_some(prompt.prefix_len);
    }
}

/// The settings of one answer.
struct AnswerSettings<'a> {
    format: &'a CallFormat,
    calls: ToolCallPermission,
    tokens_max: usize,
    stops: &'a StopTexts,
    schema: Option<&'a serde_json::Value>,
    /// Whether text is sent as it is produced. Otherwise it is sent at the end.
    streams: bool,
    /// Answers of the examples, which the model must not copy.
    copied: &'a [&'static str],
    cancel: &'a CancelFlag,
}

impl AnswerSettings<'_> {
    /// Returns true if the answer is a sentence of the examples.
    fn is_copied_from_examples(&self, answer: &LocalModelAnswer) -> bool {
        answer.call.is_none() && self.copied.contains(&answer.text.trim())
    }
}

/// Writes the first prompt of a request.
fn render_first_prompt(
    request: &CompletionRequest,
    tokenizer: &ModelTokenizer,
) -> Result<TokenPrompt> {
    let shown = shown_tools(request);
    render_prompt(request, &shown.iter().collect::<Vec<_>>(), ExampleExchanges::Shown, tokenizer)
}

/// Returns the tool's name if the answer repeats a call that was already made without success.
fn repeated_call_tool(request: &CompletionRequest, answer: &LocalModelAnswer) -> Option<String> {
    let (name, arguments) = answer.call.as_ref()?;
    is_repeated_call(&request.messages, name, arguments).then(|| name.clone())
}

/// Returns the tools to try after a failed call: the shell, or all others if the call was the
/// shell.
fn other_tools<'a>(tools: &[&'a ToolSpec], failed: &str) -> Vec<&'a ToolSpec> {
    let others = || tools.iter().copied().filter(|tool| tool.name.as_str() != failed);
    let shell: Vec<&ToolSpec> = others().filter(|tool| tool.name.as_str() == SHELL).collect();
    if shell.is_empty() { others().collect() } else { shell }
}

/// Lists the answers that can only be copied from the examples, because they answer a different
/// user message.
fn copied_answers(request: &CompletionRequest) -> Vec<&'static str> {
    let user = request.messages.iter().rfind(|message| message.role == Role::User);
    let said = user.map(Message::text).unwrap_or_default();
    let plain = |text: &str| text.trim().trim_end_matches(['.', '!', '?']).to_lowercase();
    let is_other = |(phrase, _): &(&str, &str)| plain(phrase) != plain(&said);
    example_answers().filter(is_other).map(|(_, answer)| answer).collect()
}

fn to_completion(answer: LocalModelAnswer, prompt: &TokenPrompt, reused: usize) -> Completion {
    let usage = Usage {
        prompt_tokens: prompt.tokens.len() as u64,
        output_tokens: answer.tokens.len() as u64,
        cached_tokens: reused as u64,
        ..Usage::default()
    };
    let mut parts = Vec::new();
    if !answer.text.is_empty() {
        parts.push(Part::text(answer.text));
    }
    let finish_reason = answer.finish_reason;
    if let Some((name, arguments)) = answer.call {
        let id = call_id(&prompt.tokens, &answer.tokens);
        let arguments = serde_json::Value::Object(arguments);
        parts.push(Part::ToolCall(ToolCall::new(id, name, arguments)));
    }
    Completion::new(parts, finish_reason, usage)
}

/// Creates an id from all tokens up to and including the call. It is unique in its session and the
/// same in a replay.
fn call_id(prompt: &[u32], answer: &[u32]) -> CallId {
    let digest = digest_tokens(prompt.iter().chain(answer));
    let hex: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    CallId::new(format!("call_{hex}"))
}

fn seed_from_prompt(prompt: &[u32]) -> u64 {
    let digest = digest_tokens(prompt.iter());
    digest[..8].iter().fold(0, |seed, &byte| seed << 8 | u64::from(byte))
}

fn digest_tokens<'a>(tokens: impl Iterator<Item = &'a u32>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for token in tokens {
        hasher.update(token.to_le_bytes());
    }
    hasher.finalize().into()
}
