//! The built-in commands: about the context of a conversation, and its objects.

use std::time::Duration;

use jaato_session::{Cancel, GcPreview, GcReport, GcUndoResult, PlannedTurn, Session};
use jaato_types::count::{COUNT_WAIT_MS, ModelInput, TokenCountInput};
use jaato_types::{CommandSpec, Error, ErrorKind, Output};
use serde_json::{Value, json};

use crate::host::RuntimeHost;

/// The command that frees space in a conversation's context.
pub(super) const GC: &str = "gc";

/// The command that shows the objects that tools have given the model.
pub(super) const OBJECTS: &str = "objects";

/// The command that shows what fills a conversation's context.
pub(super) const CONTEXT: &str = "context";

/// Lists the built-in commands.
pub(super) fn built_in_specs() -> [CommandSpec; 3] {
    let spec = |name: &str, description: &str, parameters| CommandSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        ..CommandSpec::default()
    };
    let hidden = choice_schema("show", &["hidden"], "`hidden`: also what the model never sees.");
    let action = choice_schema(
        "action",
        &["plan", "undo"],
        "`plan`: shows what would go. `undo`: takes the last collection back, if it fits.",
    );
    [
        spec(GC, "Makes room in the conversation: the oldest turns are sent no more.", action),
        spec(CONTEXT, "Shows what fills the context, and how much of it is free.", Value::Null),
        spec(OBJECTS, "Shows the objects that tools have found in the conversation.", hidden),
    ]
}

/// Runs a built-in command.
///
/// # Errors
/// If the session has no model, or what the command does fails.
pub(super) async fn run_built_in(
    host: &RuntimeHost,
    (name, arguments): (&str, &Value),
    session: &mut Session,
    cancel: &Cancel,
) -> Result<Output, Error> {
    if name == OBJECTS {
        return Ok(Output::json(session.objects_json(arguments["show"] == "hidden")));
    }
    if session.facts().model.is_empty() {
        let text = format!("`{name}` works only in a conversation, and there is none here");
        return Err(Error::new(ErrorKind::Unavailable, text)
            .with_hint("`jaato run` runs the gc automatically when the context is full"));
    }
    if name == CONTEXT {
        return Ok(Output::json(context_json(host, session, cancel).await));
    }
    match arguments["action"].as_str() {
        Some("plan") => Ok(Output::json(preview_json(&session.preview_gc(cancel).await?))),
        Some("undo") => undo_collection(session),
        _ => collect_context(session, cancel).await,
    }
}

async fn collect_context(session: &mut Session, cancel: &Cancel) -> Result<Output, Error> {
    let GcReport {
        messages_removed,
        messages_cut,
        turns_removed,
        tokens_before,
        tokens_after,
        note,
    } = session.collect_for_user(cancel).await?;
    Ok(Output::json(json!({
        "messages_removed": messages_removed,
        "messages_cut": messages_cut,
        "turns_removed": turns_removed,
        "tokens_before": tokens_before,
        "tokens_after": tokens_after,
        "note": note,
    })))
}

/// Says what fills the context. The provider counts the request, if it can.
async fn context_json(host: &RuntimeHost, session: &mut Session, cancel: &Cancel) -> Value {
    let request = session.next_request();
    let input =
        ModelInput { system: request.system, tools: request.tools, messages: request.messages };
    let model = session.facts().model;
    let asked = TokenCountInput { request: Some(input), ..TokenCountInput::default() };
    let counting = host.services.shared_services().sessions().token_count_request(
        &model,
        &asked,
        session.id(),
    );
    let wait = Duration::from_millis(COUNT_WAIT_MS);
    // A provider that cannot count leaves the session's own count.
    let counted = match counting {
        Ok(counting) => tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            counted = tokio::time::timeout(wait, counting.tokens) => {
                counted.ok().and_then(Result::ok).filter(|tokens| *tokens > 0)
            }
        },
        Err(_) => None,
    };
    let usage = session.context_usage(counted);
    let preview = session.preview_gc(cancel).await.ok();
    usage.to_json(preview.map(|it| it.tokens_before.saturating_sub(it.tokens_after)))
}

/// Writes what a gc would do.
pub fn preview_json(preview: &GcPreview) -> Value {
    let turn = |turn: &PlannedTurn| {
        json!({
            "turn": turn.turn,
            "messages": turn.messages,
            "tokens": turn.tokens,
            "why": turn.why,
            "begins": turn.begins,
        })
    };
    json!({
        "gc": preview.source,
        "context_limit": preview.context_limit,
        "threshold_percent": preview.threshold_percent,
        "tokens_before": preview.tokens_before,
        "tokens_after": preview.tokens_after,
        "tokens_freed": preview.tokens_before.saturating_sub(preview.tokens_after),
        "is_summarised": preview.is_summarised,
        "turns": preview.turns.iter().map(turn).collect::<Vec<_>>(),
    })
}

fn undo_collection(session: &mut Session) -> Result<Output, Error> {
    let GcUndoResult { messages_restored, messages_whole, tokens_before, tokens_after } =
        session.undo_gc()?;
    Ok(Output::json(json!({
        "messages_restored": messages_restored,
        "messages_whole": messages_whole,
        "tokens_before": tokens_before,
        "tokens_after": tokens_after,
    })))
}

/// Returns the schema of one optional parameter with some values.
fn choice_schema(name: &str, values: &[&str], description: &str) -> Value {
    json!({
        "type": "object",
        "properties": { name: { "type": "string", "enum": values, "description": description } },
        "additionalProperties": false,
    })
}
