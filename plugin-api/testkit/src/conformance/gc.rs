//! Checks of gcs.

use jaato_types::{
    ErrorKind, GcPlan, GcReason, GcRequest, Message, Part, Result, ToolCall, ToolResult,
};
use serde_json::{Map, Value, json};

use super::{
    ConformanceSuite, ConformanceVerdict, check_error_text, check_plan, ensure, fuzz, prefix_error,
};
use crate::FakeHost;

/// The error kinds that a gc may return if the bare host lacks something that it needs.
const WANTING: [ErrorKind; 3] =
    [ErrorKind::Configuration, ErrorKind::Unavailable, ErrorKind::UnknownOperation];

/// Creates a history in which each turn is a prompt, a tool call, its result and an answer.
pub(super) fn sample_history(turns: usize) -> Vec<Message> {
    let filler = "words that fill the context window ".repeat(20);
    let turn = |turn: usize| {
        let (id, name) = (format!("call-{turn}"), "word_count");
        let call = ToolCall::new(id.as_str(), name, json!({}));
        let content = Map::from_iter([("text".to_owned(), Value::String(filler.clone()))]);
        let result = ToolResult::new(id, name, content);
        [
            Message::user(format!("Prompt {turn}: {filler}")),
            Message::model(vec![Part::ToolCall(call)]),
            Message::tool([result]),
            Message::model(vec![Part::text(format!("Answer {turn}: {filler}"))]),
        ]
    };
    (0..turns).flat_map(turn).collect()
}

fn gc_request(reason: GcReason, messages: Vec<Message>) -> GcRequest {
    let mut request = GcRequest::new(reason, messages);
    request.total_tokens = if request.messages.is_empty() { 0 } else { 8000 };
    request.context_limit = 8192;
    request.settings = json!({});
    request
}

fn is_shrinking(plan: &GcPlan) -> bool {
    !plan.drop.is_empty() || !plan.edits.is_empty()
}

/// A history that fills its context window gets a plan that drops or shortens something and
/// keeps pairs together. A gc that lacks a service or a setting may say so instead.
pub fn a_full_history_shrinks(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    for reason in [GcReason::Threshold, GcReason::Manual, GcReason::ContextLimit] {
        let messages = sample_history(20);
        let plan = match instance.plan(&gc_request(reason, messages.clone())) {
            Err(error) if WANTING.contains(&error.kind) => {
                return check_error_text("a history", &error);
            }
            plan => plan.map_err(prefix_error("a plan"))?,
        };
        check_plan(&messages, &plan)?;
        ensure(is_shrinking(&plan), || format!("{reason:?}: a full history does not shrink"))?;
    }
    Ok(())
}

/// A history that is larger than a frame reaches the gc, which plans for all of it. A gc that lacks
/// a service or a setting may say so instead. One that does not know the operation `large` is only
/// old, and hosts ask it about less.
pub fn a_history_larger_than_a_frame_shrinks(
    _: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    let messages = sample_history(5_000);
    match instance.plan(&gc_request(GcReason::ContextLimit, messages.clone())) {
        Err(error) if WANTING.contains(&error.kind) => check_error_text("a large history", &error),
        plan => {
            let plan = plan.map_err(prefix_error("a plan"))?;
            check_plan(&messages, &plan)?;
            ensure(is_shrinking(&plan), || "a history of 10 MiB does not shrink".to_owned())
        }
    }
}

/// An empty history gets an empty plan, or a clear error.
pub fn empty_history_is_unchanged(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    match instance.plan(&gc_request(GcReason::Manual, Vec::new())) {
        Ok(plan) => check_plan(&[], &plan),
        Err(error) => check_error_text("an empty history", &error),
    }
}

/// A malformed frame is answered with an error.
pub fn bad_frames_are_refused(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    let ask = |frame| -> Result<GcPlan> { instance.start_plan_frame(frame).wait().result };
    fuzz::check_bad_frames_refused("a request", ask)
}
