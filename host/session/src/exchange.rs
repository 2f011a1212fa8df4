//! One request to the provider: attempts, retries, silence, cancellation.

use jaato_types::{Completion, Error, ErrorKind, Event, FinishReason, Part, Request};

use crate::events::Emitter;
use crate::provider::Seen;
use crate::{Cancel, DeltaSink, Limits, Ports, completion, retry};

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Exchange {
    /// The provider answered; parts are settled against the deltas.
    Complete(Completion),
    /// It failed for good.
    Failed {
        /// What was seen of an answer; nothing if it failed before its first delta.
        partial: Option<Vec<Part>>,
        /// Why.
        error: Error,
    },
    /// It was cancelled.
    Cancelled {
        /// What was seen of the answer, possibly nothing.
        partial: Vec<Part>,
    },
}

/// What one attempt came to.
enum Attempt {
    Complete(Completion),
    Failed(Error),
    Cancelled,
}

/// Sends a request until it is answered, fails for good, or is cancelled.
/// An attempt of which a person saw something is never repeated.
pub(crate) async fn exchange(
    request: &Request,
    ports: &Ports,
    emitter: &Emitter,
    limits: &Limits,
    cancel: &Cancel,
) -> Exchange {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (result, seen) = attempt(request, ports, emitter, limits, cancel).await;
        let error = match result {
            Attempt::Complete(completion) => return complete(completion, &seen, emitter, cancel),
            Attempt::Cancelled => return Exchange::Cancelled { partial: seen.parts },
            Attempt::Failed(error) => error,
        };
        let wait_ms = if seen.is_visible() {
            None
        } else {
            retry::wait_ms(&error, attempts, limits, &*ports.random)
        };
        let Some(delay_ms) = wait_ms else {
            let error = retry::explain(error, limits);
            return Exchange::Failed { partial: seen.begun.then_some(seen.parts), error };
        };
        emitter.emit(Event::Retry { attempt: attempts, delay_ms, error });
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Exchange::Cancelled { partial: Vec::new() },
            () = ports.clock.sleep(delay_ms) => {}
        }
    }
}

async fn attempt(
    request: &Request,
    ports: &Ports,
    emitter: &Emitter,
    limits: &Limits,
    cancel: &Cancel,
) -> (Attempt, Seen) {
    if cancel.is_cancelled() {
        return (Attempt::Cancelled, Seen::default());
    }
    let provider = &ports.provider;
    let clock = ports.clock.clone();
    let sink = DeltaSink::new(emitter.clone(), clock, provider.source(), limits.answer_bytes_max);
    let stop = cancel.child();
    let result = tokio::select! {
        biased;
        result = provider.complete(request, sink.clone(), stop.clone()) => match result {
            // Its end may come together with the piece that was too much.
            Ok(_) if sink.is_overflowed() => Attempt::Failed(too_long(limits)),
            Ok(completion) => Attempt::Complete(completion),
            Err(_) if cancel.is_cancelled() => Attempt::Cancelled,
            Err(error) => Attempt::Failed(error),
        },
        () = cancel.cancelled() => Attempt::Cancelled,
        () = sink.overflowed() => Attempt::Failed(too_long(limits)),
        () = sink.stalled(limits.provider_idle_ms) => Attempt::Failed(silent(limits)),
    };
    // Closed before the flag is set: what the provider still says then is not seen.
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
    match completion.finish_reason {
        FinishReason::Stop
        | FinishReason::MaxTokens
        | FinishReason::ToolUse
        | FinishReason::Safety
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

fn too_long(limits: &Limits) -> Error {
    let text = format!("the model's answer is longer than {} bytes", limits.answer_bytes_max);
    Error::new(ErrorKind::LimitReached, text).with_hint("ask for less at once")
}

fn silent(limits: &Limits) -> Error {
    let text =
        format!("the provider sent nothing for {} s", limits.provider_idle_ms.div_ceil(1_000));
    Error::new(ErrorKind::Timeout, text).temporary()
}
