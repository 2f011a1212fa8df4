//! One request to the provider: attempts, retries, silence, cancellation.

use jaato_types::text::truncate_chars;
use jaato_types::{Completion, CompletionRequest, Error, ErrorKind, Event, FinishReason, Part};

use crate::events::EventEmitter;
use crate::pace::RequestPace;
use crate::provider::{ReceivedDeltas, SilenceLimits, SilenceTimeout};
use crate::session::is_media_refusal;
use crate::{Cancel, DeltaSink, Limits, Provider, SessionPorts, completion, retry};

/// The shortest wait for the provider's capacity that the session reports to the user.
const ROOM_TOLD_MS: u64 = 2_000;

/// The longest finish word of a server that the user sees, in characters.
const FINISH_WORD_CHARS_MAX: usize = 60;

/// Phrases of servers that refuse tools for a model, or for the way it is served, in lower case:
/// Ollama, OpenRouter, vLLM, llama.cpp, Groq, Mistral.
const NO_TOOLS_PHRASES: [&str; 9] = [
    "does not support tool",
    "not support tools",
    "support tool use",
    "does not support function",
    "tool choice requires --enable-auto-tool-choice",
    "tools param requires --jinja",
    "tool calling` is not supported",
    "tool calling is not supported",
    "function calling is not enabled",
];

/// The model's provider, and the ports that a request needs.
pub(crate) type ProviderAndPorts<'a> = (&'a dyn Provider, &'a SessionPorts);

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum RequestOutcome {
    /// The provider answered. The parts are settled against the deltas.
    Complete(Completion),
    /// The request failed permanently.
    Failed {
        /// The answer so far. `None` if the request failed before its first delta.
        partial: Option<Vec<Part>>,
        /// The error.
        error: Error,
    },
    /// The request was cancelled.
    Cancelled {
        /// The answer so far, possibly empty.
        partial: Vec<Part>,
    },
}

impl RequestOutcome {
    /// Returns the parts of the answer, complete or not.
    pub(crate) fn parts_mut(&mut self) -> &mut [Part] {
        match self {
            Self::Complete(completion) => &mut completion.parts,
            Self::Failed { partial, .. } => partial.as_deref_mut().unwrap_or_default(),
            Self::Cancelled { partial } => partial,
        }
    }
}

/// The outcome of one attempt.
enum AttemptOutcome {
    Complete(Completion),
    Failed(Error),
    Cancelled,
}

/// What to do if an attempt breaks off after a part of its answer was shown.
pub(crate) enum BrokenAnswerPolicy<'a> {
    /// Do not retry, because the receiver cannot take the answer back.
    Stop,
    /// Retry like any other attempt, and emit an event that the answer restarts. The partial
    /// answers are collected here, because the provider bills them.
    Restart(&'a mut Vec<Part>),
}

/// Sends a request until it is answered, fails permanently or is cancelled.
pub(crate) async fn exchange_with_retries(
    request: &CompletionRequest,
    (provider, ports): ProviderAndPorts<'_>,
    emitter: &EventEmitter,
    (limits, pace): (&Limits, &RequestPace),
    mut after_seen: BrokenAnswerPolicy<'_>,
    cancel: &Cancel,
) -> RequestOutcome {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let no_room_ms = pace.busy_ms(&*ports.clock);
        if no_room_ms >= ROOM_TOLD_MS {
            let seconds = no_room_ms.div_ceil(1_000);
            let text = format!("the provider accepts the next request in {seconds} s");
            emitter.emit_notice(text);
        }
        if !pace.wait_for_interval(limits.request_interval_ms, &*ports.clock, cancel).await {
            return RequestOutcome::Cancelled { partial: Vec::new() };
        }
        let (result, seen) =
            attempt_request(request, (provider, ports), emitter, limits, cancel).await;
        let error = match result {
            AttemptOutcome::Complete(completion) => {
                // The server itself enforces a longer wait, and it may have capacity sooner.
                let wait = completion.next_after_ms.unwrap_or(0);
                if wait > 0 && wait <= limits.retry_after_ms_max {
                    pace.record_busy_time(wait, &*ports.clock);
                }
                return complete_exchange(completion, &seen, emitter, cancel);
            }
            AttemptOutcome::Cancelled => return RequestOutcome::Cancelled { partial: seen.parts },
            AttemptOutcome::Failed(error) => error,
        };
        let answer_restarts = seen.is_visible();
        // A server that refuses an image may answer 500. More tries would not help.
        let is_hopeless = attempts > 1 && is_media_refusal(&error, request);
        let may_repeat = !is_hopeless
            && (!answer_restarts || matches!(after_seen, BrokenAnswerPolicy::Restart(_)));
        let wait_ms = retry::retry_wait_ms(&error, attempts, limits, &*ports.random);
        let Some(delay_ms) = wait_ms.filter(|_| may_repeat) else {
            let error = retry::explain_long_wait(add_tools_hint(error, request), limits);
            return RequestOutcome::Failed { partial: seen.begun.then_some(seen.parts), error };
        };
        emitter.emit(Event::Retry { attempt: attempts, delay_ms, error, answer_restarts });
        tokio::select! {
            biased;
            () = cancel.cancelled() => return RequestOutcome::Cancelled { partial: seen.parts },
            () = ports.clock.sleep(delay_ms) => {}
        }
        if let BrokenAnswerPolicy::Restart(said) = &mut after_seen {
            said.extend(seen.parts);
        }
    }
}

async fn attempt_request(
    request: &CompletionRequest,
    (provider, ports): ProviderAndPorts<'_>,
    emitter: &EventEmitter,
    limits: &Limits,
    cancel: &Cancel,
) -> (AttemptOutcome, ReceivedDeltas) {
    if cancel.is_cancelled() {
        return (AttemptOutcome::Cancelled, ReceivedDeltas::default());
    }
    let clock = ports.clock.clone();
    let sink = DeltaSink::new(emitter.clone(), clock, provider.source(), limits.answer_bytes_max);
    let stop = cancel.child_token();
    let result = tokio::select! {
        biased;
        result = provider.complete(request, sink.clone(), stop.clone()) => match result {
            // The answer may end in the same piece that made it too long.
            Ok(_) if sink.is_overflowed() => AttemptOutcome::Failed(answer_too_long_error(limits)),
            Ok(completion) => AttemptOutcome::Complete(completion),
            Err(_) if cancel.is_cancelled() => AttemptOutcome::Cancelled,
            Err(error) => AttemptOutcome::Failed(error),
        },
        () = cancel.cancelled() => AttemptOutcome::Cancelled,
        () = sink.wait_for_overflow() => AttemptOutcome::Failed(answer_too_long_error(limits)),
        silence = sink.wait_for_silence(silence_limits(limits)) => AttemptOutcome::Failed(silence_error(silence, limits)),
    };
    // Closed before the flag is set, so that later deltas of the provider are not shown.
    let seen = sink.close();
    stop.cancel();
    (result, seen)
}

fn complete_exchange(
    mut completion: Completion,
    seen: &ReceivedDeltas,
    emitter: &EventEmitter,
    cancel: &Cancel,
) -> RequestOutcome {
    completion.parts = completion::reconcile_parts(completion.parts, seen, emitter);
    if completion.finish_reason == FinishReason::Unknown {
        emitter.emit_notice(describe_unknown_finish(completion.finish_word.as_deref()));
    }
    let is_empty = !seen.begun && completion.parts.is_empty();
    match completion.finish_reason {
        // An empty answer is the same as a refusal because the request is too large.
        FinishReason::ContextExceeded if is_empty => {
            let text = "the context window was full before the model could answer";
            let error = Error::new(ErrorKind::ContextOverflow, text);
            RequestOutcome::Failed { partial: None, error }
        }
        FinishReason::Stop
        | FinishReason::MaxTokens
        | FinishReason::ToolUse
        | FinishReason::Safety
        | FinishReason::Paused
        | FinishReason::ContextExceeded
        | FinishReason::Refused
        | FinishReason::Unknown => RequestOutcome::Complete(completion),
        FinishReason::Cancelled if cancel.is_cancelled() => {
            RequestOutcome::Cancelled { partial: completion::remove_calls(completion.parts) }
        }
        FinishReason::Cancelled | FinishReason::Error => {
            let begun = seen.begun || !completion.parts.is_empty();
            let partial = begun.then(|| completion::remove_calls(completion.parts));
            let text = "the provider stopped before its answer was complete";
            RequestOutcome::Failed { partial, error: Error::new(ErrorKind::Provider, text) }
        }
    }
}

/// Describes an answer with an unknown finish reason. The answer counts as complete, because
/// servers also have their own words for an ordinary end.
fn describe_unknown_finish(word: Option<&str>) -> String {
    let word = word.map(|word| format!(", `{}`", truncate_chars(word, FINISH_WORD_CHARS_MAX)));
    let word = word.unwrap_or_default();
    format!("the provider ended its answer for an unknown reason{word}: it may be incomplete")
}

fn answer_too_long_error(limits: &Limits) -> Error {
    let text = format!("the model's answer is longer than {} bytes", limits.answer_bytes_max);
    Error::new(ErrorKind::LimitReached, text).with_hint("ask for a shorter answer")
}

/// Adds a hint if a server refuses a request because of its tools.
fn add_tools_hint(error: Error, request: &CompletionRequest) -> Error {
    let text = error.message.to_lowercase();
    let refuses = error.kind == ErrorKind::Provider
        && NO_TOOLS_PHRASES.iter().any(|phrase| text.contains(phrase));
    if refuses && !request.tools.is_empty() {
        // The server's text is more precise than a hint based on the status.
        return error.with_hint("run with `--tools none`, or use a model that supports tools");
    }
    error
}

fn silence_limits(limits: &Limits) -> SilenceLimits {
    SilenceLimits { idle_ms: limits.provider_idle_ms, keep_alive_ms: limits.provider_keep_alive_ms }
}

fn silence_error(silence: SilenceTimeout, limits: &Limits) -> Error {
    let seconds = |ms: u64| ms.div_ceil(1_000);
    match silence {
        SilenceTimeout::Dead => {
            let text =
                format!("the provider sent nothing for {} s", seconds(limits.provider_idle_ms));
            Error::new(ErrorKind::Timeout, text).temporary()
        }
        // A retry would queue at the end again, for as long.
        SilenceTimeout::KeptAlive => {
            let waited = seconds(limits.provider_keep_alive_ms);
            let text =
                format!("the provider kept the request open for {waited} s without an answer");
            Error::new(ErrorKind::Timeout, text)
                .with_hint("`session.provider_keep_alive_ms` sets this limit")
        }
    }
}
