//! Checks of model providers.

mod unusual_requests;

use std::collections::BTreeSet;

use jaato_types::{
    Completion, CompletionRequest, Delta, ErrorKind, FinishReason, Message, Part, ProviderSpec,
    Result, ToolCall,
};

use super::{
    ConformanceSuite, ConformanceVerdict, check_error_text, check_nothing_left, ensure, fuzz,
    prefix_error,
};
use crate::{FakeHost, FinishedCall};

pub use unusual_requests::{
    a_history_larger_than_a_frame_is_answered_or_refused,
    a_history_of_every_kind_is_answered_or_refused, listed_options_are_accepted,
};

fn provider_spec(host: &FakeHost) -> std::result::Result<&ProviderSpec, String> {
    let description = host.description().map_err(prefix_error("description"))?;
    description.provider.as_ref().ok_or_else(|| "no provider is described".to_owned())
}

/// Returns a request that every provider can answer, as deterministic as possible.
fn simple_request(spec: &ProviderSpec) -> CompletionRequest {
    let mut request =
        CompletionRequest::new(spec.default_model.clone(), vec![Message::user("Say hello.")]);
    request.system = "Answer in one word.".to_owned();
    let honours = |option: &str| spec.options.iter().any(|one| one == option);
    request.options.max_output_tokens = honours("max_output_tokens").then_some(16);
    request.options.temperature = honours("temperature").then_some(0.0);
    request
}

/// The provider's name is valid in a model id, and its default model is in its list.
pub fn provider_name_is_valid(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let spec = provider_spec(host)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_name = !spec.name.is_empty() && spec.name.chars().all(is_plain);
    ensure(is_name, || format!("`{}` is not valid before the slash in a model id", spec.name))?;
    let mut names = BTreeSet::new();
    for model in &spec.models {
        let is_known = !model.name.is_empty() && names.insert(model.name.as_str());
        ensure(is_known, || format!("the model name `{}` is empty or a duplicate", model.name))?;
    }
    let default = spec.default_model.as_str();
    let is_listed = default.is_empty() || names.is_empty() || names.contains(default);
    ensure(is_listed, || format!("the default model `{default}` is not among the models"))
}

/// The models are listed, or the error is clear.
pub fn models_are_listed(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    match host.instance().map_err(prefix_error("an instance"))?.models() {
        Ok(models) => {
            let names: BTreeSet<_> = models.iter().map(|model| model.name.as_str()).collect();
            let is_good = names.len() == models.len() && !names.contains("");
            ensure(is_good, || "some model names are empty or duplicates".into())
        }
        Err(error) => check_error_text("models", &error),
    }
}

/// A simple request gets a completion that matches its deltas, or a clear error.
pub fn a_simple_request_is_answered(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let request = simple_request(provider_spec(host)?);
    check_finished(&request, &host.complete(&request))
}

/// Providers are stateless, so the same request can be sent again.
pub fn the_same_request_can_be_sent_again(
    _: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let request = simple_request(provider_spec(host)?);
    let (first, second) = (host.complete(&request), host.complete(&request));
    check_finished(&request, &first)?;
    check_finished(&request, &second)?;
    let kind = |finished: &FinishedCall<Completion>| {
        finished.result.as_ref().map(drop).map_err(|e| e.kind)
    };
    let (first, second) = (kind(&first), kind(&second));
    ensure(first == second, || format!("the first time {first:?}, the second time {second:?}"))
}

fn check_finished(
    request: &CompletionRequest,
    finished: &FinishedCall<Completion>,
) -> ConformanceVerdict {
    match &finished.result {
        Ok(completion) => check_completion(request, &finished.deltas, completion),
        Err(error) => check_error_text("a simple request", error),
    }
}

/// Checks that a completion matches its deltas and has a form that the session can store.
///
/// # Errors
/// A description of the fault.
pub fn check_completion(
    request: &CompletionRequest,
    deltas: &[Delta],
    completion: &Completion,
) -> ConformanceVerdict {
    let v = Completion::VERSION;
    ensure(completion.v == v, || format!("the completion has version {}, not {v}", completion.v))?;
    let (mut text, mut thought, mut calls) = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Text { text: piece, .. } => text.push_str(piece),
            Delta::Thought { text: piece, .. } => thought.push_str(piece),
            Delta::ToolCall(call) => calls.push(call),
            Delta::Output { .. }
            | Delta::Notice { .. }
            | Delta::Progress { .. }
            | Delta::FileChanged(_)
            | Delta::PlanChanged(_)
            | Delta::Alive => {}
            Delta::Unknown => return Err("it emits an unknown delta".into()),
        }
    }
    let (mut whole, mut thoughts, mut whole_calls) = (String::new(), String::new(), Vec::new());
    for part in &completion.parts {
        match part {
            Part::Text { text, .. } => whole.push_str(text),
            Part::Thought { text, .. } => thoughts.push_str(text),
            Part::ToolCall(call) => whole_calls.push(call),
            Part::Data(_) => {}
            Part::ToolResult(_) => return Err("a completion contains a tool result".into()),
            Part::Opaque(_) => {}
            Part::ToolsChanged(_) => {
                return Err("a completion changes the tools, which only the host may do".into());
            }
            Part::Unknown(_) => return Err("a completion contains an unknown part".into()),
        }
    }
    ensure(text == whole, || {
        format!("deltas show the text {text:?}, the completion has {whole:?}")
    })?;
    ensure(thought == thoughts, || "the deltas and the completion have different thoughts".into())?;
    ensure(calls == whole_calls, || "the deltas and the completion have different calls".into())?;
    check_calls(request, &whole_calls)?;
    let fits = match completion.finish_reason {
        FinishReason::ToolUse => !whole_calls.is_empty(),
        // The limit may have truncated the last call, which the session then does not run.
        FinishReason::MaxTokens | FinishReason::ContextExceeded => true,
        FinishReason::Stop
        | FinishReason::Safety
        | FinishReason::Error
        | FinishReason::Cancelled
        | FinishReason::Paused
        | FinishReason::Refused
        | FinishReason::Unknown => whole_calls.is_empty(),
    };
    ensure(fits, || {
        format!("{} calls with the finish reason {:?}", whole_calls.len(), completion.finish_reason)
    })
}

fn check_calls(request: &CompletionRequest, calls: &[&ToolCall]) -> ConformanceVerdict {
    let mut ids = BTreeSet::new();
    for call in calls {
        let id = call.id.as_str();
        ensure(!id.is_empty() && ids.insert(id), || {
            format!("the call id `{id}` is empty or a duplicate")
        })?;
        let is_offered = request.tools.iter().any(|tool| tool.name == call.name);
        ensure(is_offered, || format!("`{}` was called but not offered", call.name))?;
    }
    Ok(())
}

/// A completion that is cancelled at its first wait ends, and leaves nothing behind.
pub fn a_cancelled_completion_ends(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let request = simple_request(provider_spec(host)?);
    let instance = host.create(None).map_err(prefix_error("an instance"))?;
    let call = instance.start_complete(&request).map_err(prefix_error("a request"))?;
    call.settle().map_err(prefix_error("a request"))?;
    match call.cancel().result {
        Err(error) if error.kind != ErrorKind::Cancelled => check_error_text("a request", &error)?,
        Ok(_) | Err(_) => {}
    }
    // The cancelled request must not affect the next one.
    check_finished(&request, &instance.complete(&request))?;
    instance.close().map_err(prefix_error("close"))?;
    check_nothing_left(host)
}

/// A malformed frame is answered with an error.
pub fn bad_frames_are_refused(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    let ask = |frame| -> Result<Completion> { instance.start_complete_frame(frame).wait().result };
    fuzz::check_bad_frames_refused("a request", ask)
}
