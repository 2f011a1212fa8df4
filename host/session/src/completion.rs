//! Turns a provider's answer into parts that the history accepts.
//!
//! The completion is authoritative, and content beyond the deltas is shown. If it contradicts the
//! deltas, a notice reports it and the whole completion follows. After deltas, an empty completion
//! represents the text that was shown. Missing, empty and duplicate call ids are replaced. Names
//! that no provider would accept back are made acceptable, arguments in a string become an object,
//! and parts that a model cannot produce are dropped.

use std::collections::HashSet;

use jaato_types::{CallId, Event, ModelId, Part, ToolCall, ToolName, arguments_as_object};

use crate::events::{EventEmitter, MODEL};
use crate::provider::ReceivedDeltas;
use crate::{History, Ids};

/// The longest call id that is accepted from a provider, in bytes.
const CALL_ID_BYTES_MAX: usize = 128;
/// Replaces a name of which nothing is left.
const NAMELESS: &str = "unnamed";

/// Settles a completion's parts against the deltas, and shows content that was not streamed.
pub(crate) fn reconcile_parts(
    parts: Vec<Part>,
    seen: &ReceivedDeltas,
    emitter: &EventEmitter,
) -> Vec<Part> {
    if !parts.iter().any(has_content) && seen.is_visible() {
        emitter.emit_notice("the provider's final answer was empty: jaato keeps the streamed text");
        return seen.parts.clone();
    }
    let rest = |shown: &[Part], whole: &[Part], kind| match find_unstreamed_text(
        &join_texts(shown, kind),
        join_texts(whole, kind),
    ) {
        UnstreamedText::Nothing => None,
        UnstreamedText::Rest(rest) => Some(rest),
        UnstreamedText::Contradiction(whole) => {
            let what = kind_name(kind);
            emitter
                .emit_notice(format!("the provider's final {what} differs from what it streamed"));
            (!whole.is_empty()).then_some(whole)
        }
    };
    let source = || MODEL.to_owned();
    if let Some(text) = rest(&seen.parts, &parts, TextPartKind::Thought) {
        emitter.emit(Event::ThoughtDelta { source: source(), text });
    }
    if let Some(text) = rest(&seen.parts, &parts, TextPartKind::Text) {
        emitter.emit(Event::TextDelta { source: source(), text });
    }
    parts
}

#[derive(Clone, Copy)]
enum TextPartKind {
    Text,
    Thought,
}

fn kind_name(kind: TextPartKind) -> &'static str {
    match kind {
        TextPartKind::Text => "answer",
        TextPartKind::Thought => "reasoning",
    }
}

fn join_texts(parts: &[Part], kind: TextPartKind) -> String {
    parts.iter().filter_map(|part| part_text(part, kind)).collect()
}

fn part_text(part: &Part, kind: TextPartKind) -> Option<&str> {
    match (part, kind) {
        (Part::Text { text, .. }, TextPartKind::Text)
        | (Part::Thought { text, .. }, TextPartKind::Thought) => Some(text),
        (Part::Text { .. }, TextPartKind::Thought)
        | (Part::Thought { .. }, TextPartKind::Text)
        | (
            Part::ToolCall(_)
            | Part::ToolResult(_)
            | Part::Data(_)
            | Part::Opaque(_)
            | Part::ToolsChanged(_)
            | Part::Unknown(_),
            _,
        ) => None,
    }
}

enum UnstreamedText {
    Nothing,
    Rest(String),
    Contradiction(String),
}

fn find_unstreamed_text(shown: &str, mut whole: String) -> UnstreamedText {
    match whole.strip_prefix(shown) {
        Some("") => UnstreamedText::Nothing,
        Some(_) => UnstreamedText::Rest(whole.split_off(shown.len())),
        None => UnstreamedText::Contradiction(whole),
    }
}

/// Returns true if a part has content.
fn has_content(part: &Part) -> bool {
    match part {
        Part::Text { text, signature, .. } | Part::Thought { text, signature, .. } => {
            !text.is_empty() || signature.is_some()
        }
        // Content from a newer provider is kept, so that the provider gets it back.
        Part::ToolCall(_) | Part::Data(_) | Part::Opaque(_) | Part::Unknown(_) => true,
        Part::ToolResult(_) | Part::ToolsChanged(_) => false,
    }
}

/// Returns true if the parts are an answer: more than blanks and thoughts.
pub(crate) fn has_answer(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Text { text, .. } => !text.trim().is_empty(),
        Part::ToolCall(_) | Part::Data(_) => true,
        Part::Thought { .. }
        | Part::ToolResult(_)
        | Part::Opaque(_)
        | Part::ToolsChanged(_)
        | Part::Unknown(_) => false,
    })
}

/// Drops parts that a model cannot produce and repairs calls, so that the history accepts the parts
/// after those of a paused answer, whose calls already use some ids.
pub(crate) fn sanitize_parts(
    parts: Vec<Part>,
    taken: HashSet<CallId>,
    history: &History,
    ids: &dyn Ids,
) -> Vec<Part> {
    let mut fresh = taken;
    let mut repair = |mut call: ToolCall| {
        let usable = !call.id.as_str().is_empty() && call.id.as_str().len() <= CALL_ID_BYTES_MAX;
        let free =
            |id: &CallId, fresh: &HashSet<CallId>| !history.has_call(id) && !fresh.contains(id);
        if !usable || !free(&call.id, &fresh) {
            call.id = std::iter::repeat_with(|| ids.create_call_id())
                .find(|id| free(id, &fresh))
                .unwrap_or(call.id);
        }
        fresh.insert(call.id.clone());
        call.name = valid_tool_name(call.name);
        // Such a call runs, so the history must not show it in a form that looks invalid.
        call.arguments = arguments_as_object(call.arguments);
        Part::ToolCall(call)
    };
    parts
        .into_iter()
        .filter(has_content)
        .map(|part| match part {
            Part::ToolCall(call) => repair(call),
            Part::Text { .. }
            | Part::Thought { .. }
            | Part::Data(_)
            | Part::ToolResult(_)
            | Part::Opaque(_)
            | Part::ToolsChanged(_)
            | Part::Unknown(_) => part,
        })
        .collect()
}

/// Makes a name valid. A provider would refuse every later request whose history has a tool name
/// that it does not accept.
fn valid_tool_name(name: ToolName) -> ToolName {
    if name.is_valid() {
        return name;
    }
    let plain: String = name
        .as_str()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .take(ToolName::BYTES_MAX)
        .collect();
    ToolName::new(if plain.is_empty() { NAMELESS.to_owned() } else { plain })
}

/// Keeps the parts that a user can have seen. The calls of a truncated answer never ran.
pub(crate) fn remove_calls(parts: Vec<Part>) -> Vec<Part> {
    parts.into_iter().filter(|part| part.as_tool_call().is_none() && has_content(part)).collect()
}

/// Records the maker in parts that only their maker understands.
pub(crate) fn record_maker(model: &ModelId, parts: &mut [Part]) {
    let (provider, model) = model.split().unwrap_or(("", model.as_str()));
    for part in parts {
        if let Part::Opaque(opaque) = part {
            opaque.provider = provider.to_owned();
            opaque.model = model.to_owned();
        }
    }
}
