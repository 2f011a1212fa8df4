//! One request to the provider: attempts, retries, silence, cancellation.

use jaato_types::text::cut;
use jaato_types::{Completion, Error, ErrorKind, Event, FinishReason, Part, Request};

use crate::events::Emitter;
use crate::pace::Pace;
use crate::provider::{Patience, Seen, Silence};
use crate::{Cancel, DeltaSink, Limits, Ports, Provider, completion, retry};

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
pub(crate) type Asked<'a> = (&'a dyn Provider, &'a Ports);

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Exchange {
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

impl Exchange {
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
enum Attempt {
    Complete(Completion),
    Failed(Error),
    Cancelled,
}

/// What to do if an attempt breaks off after a part of its answer was shown.
pub(crate) enum AfterSeen<'a> {
    /// Do not retry, because the receiver cannot take the answer back.
    Stop,
    /// Retry like any other attempt, and emit an event that the answer restarts. The partial
    /// answers are collected here, because the provider bills them.
    Restart(&'a mut Vec<Part>),
}

/// Sends a request until it is answered, fails permanently or is cancelled.
pub(crate) async fn exchange(
    request: &Request,
    (provider, ports): Asked<'_>,
    emitter: &Emitter,
    (limits, pace): (&Limits, &Pace),
    mut after_seen: AfterSeen<'_>,
    cancel: &Cancel,
) -> Exchange {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let no_room_ms = pace.no_room_for(&*ports.clock);
        if no_room_ms >= ROOM_TOLD_MS {
            let seconds = no_room_ms.div_ceil(1_000);
            let text = format!("the provider accepts the next request in {seconds} s");
            emitter.notice(text);
        }
        if !pace.wait(limits.request_interval_ms, &*ports.clock, cancel).await {
            return Exchange::Cancelled { partial: Vec::new() };
        }
        let (result, seen) = attempt(request, (provider, ports), emitter, limits, cancel).await;
        let error = match result {
            Attempt::Complete(completion) => {
                // The server itself enforces a longer wait, and it may have capacity sooner.
                let wait = completion.next_after_ms.unwrap_or(0);
                if wait > 0 && wait <= limits.retry_after_ms_max {
                    pace.room_after(wait, &*ports.clock);
                }
                return complete(completion, &seen, emitter, cancel);
            }
            Attempt::Cancelled => return Exchange::Cancelled { partial: seen.parts },
            Attempt::Failed(error) => error,
        };
        let answer_restarts = seen.is_visible();
        let may_repeat = !answer_restarts || matches!(after_seen, AfterSeen::Restart(_));
        let wait_ms = retry::wait_ms(&error, attempts, limits, &*ports.random);
        let Some(delay_ms) = wait_ms.filter(|_| may_repeat) else {
            let error = retry::explain(explain_tools(error, request), limits);
            return Exchange::Failed { partial: seen.begun.then_some(seen.parts), error };
        };
        emitter.emit(Event::Retry { attempt: attempts, delay_ms, error, answer_restarts });
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Exchange::Cancelled { partial: seen.parts },
            () = ports.clock.sleep(delay_ms) => {}
        }
        if let AfterSeen::Restart(said) = &mut after_seen {
            said.extend(seen.parts);
        }
    }
}

async fn attempt(
    request: &Request,
    (provider, ports): Asked<'_>,
    emitter: &Emitter,
    limits: &Limits,
    cancel: &Cancel,
) -> (Attempt, Seen) {
    if cancel.is_cancelled() {
        return (Attempt::Cancelled, Seen::default());
    }
    let clock = ports.clock.clone();
    let sink = DeltaSink::new(emitter.clone(), clock, provider.source(), limits.answer_bytes_max);
    let stop = cancel.child();
    let result = tokio::select! {
        biased;
        result = provider.complete(request, sink.clone(), stop.clone()) => match result {
            // The answer may end in the same piece that made it too long.
            Ok(_) if sink.is_overflowed() => Attempt::Failed(too_long(limits)),
            Ok(completion) => Attempt::Complete(completion),
            Err(_) if cancel.is_cancelled() => Attempt::Cancelled,
            Err(error) => Attempt::Failed(error),
        },
        () = cancel.cancelled() => Attempt::Cancelled,
        () = sink.overflowed() => Attempt::Failed(too_long(limits)),
        silence = sink.stalled(patience(limits)) => Attempt::Failed(silent(silence, limits)),
    };
    // Closed before the flag is set, so that later deltas of the provider are not shown.
    let seen = sink.close();
    stop.cancel();
    (result, seen)
}

fn complete(
    mut completion: Completion,
    seen: &Seen,
    emitter: &Emitter,
    cancel: &Cancel,
) -> Exchange {
    completion.parts = completion::settle(completion.parts, seen, emitter);
    if completion.finish_reason == FinishReason::Unknown {
        emitter.notice(unknown_finish(completion.finish_word.as_deref()));
    }
    let is_empty = !seen.begun && completion.parts.is_empty();
    match completion.finish_reason {
        // An empty answer is the same as a refusal because the request is too large.
        FinishReason::ContextExceeded if is_empty => {
            let text = "the context window was full before the model could answer";
            let error = Error::new(ErrorKind::ContextOverflow, text);
            Exchange::Failed { partial: None, error }
        }
        FinishReason::Stop
        | FinishReason::MaxTokens
        | FinishReason::ToolUse
        | FinishReason::Safety
        | FinishReason::Paused
        | FinishReason::ContextExceeded
        | FinishReason::Refused
        | FinishReason::Unknown => Exchange::Complete(completion),
        FinishReason::Cancelled if cancel.is_cancelled() => {
            Exchange::Cancelled { partial: completion::without_calls(completion.parts) }
        }
        FinishReason::Cancelled | FinishReason::Error => {
            let begun = seen.begun || !completion.parts.is_empty();
            let partial = begun.then(|| completion::without_calls(completion.parts));
            let text = "the provider stopped before its answer was complete";
            Exchange::Failed { partial, error: Error::new(ErrorKind::Provider, text) }
        }
    }
}

/// Describes an answer with an unknown finish reason. The answer counts as complete, because
/// servers also have their own words for an ordinary end.
fn unknown_finish(word: Option<&str>) -> String {
    let word = word.map(|word| format!(", `{}`", cut(word, FINISH_WORD_CHARS_MAX)));
    let word = word.unwrap_or_default();
    format!("the provider ended its answer for an unknown reason{word}: it may be incomplete")
}

fn too_long(limits: &Limits) -> Error {
    let text = format!("the model's answer is longer than {} bytes", limits.answer_bytes_max);
    Error::new(ErrorKind::LimitReached, text).with_hint("ask for less at once")
}

/// Adds a hint if a server refuses a request because of its tools.
fn explain_tools(error: Error, request: &Request) -> Error {
    let text = error.message.to_lowercase();
    let refuses = error.kind == ErrorKind::Provider
        && NO_TOOLS_PHRASES.iter().any(|phrase| text.contains(phrase));
    if refuses && !request.tools.is_empty() {
        // The server's text is more precise than a hint based on the status.
        return error.with_hint("run with `--tools none`, or use a model that supports tools");
    }
    error
}

fn patience(limits: &Limits) -> Patience {
    Patience { idle_ms: limits.provider_idle_ms, keep_alive_ms: limits.provider_keep_alive_ms }
}

fn silent(silence: Silence, limits: &Limits) -> Error {
    let seconds = |ms: u64| ms.div_ceil(1_000);
    match silence {
        Silence::Dead => {
            let text =
                format!("the provider sent nothing for {} s", seconds(limits.provider_idle_ms));
            Error::new(ErrorKind::Timeout, text).temporary()
        }
        // A retry would queue at the end again, for as long.
        Silence::KeptAlive => {
            let waited = seconds(limits.provider_keep_alive_ms);
            let text =
                format!("the provider kept the request open for {waited} s without an answer");
            Error::new(ErrorKind::Timeout, text)
                .with_hint("`session.provider_keep_alive_ms` sets this limit")
        }
    }
}
