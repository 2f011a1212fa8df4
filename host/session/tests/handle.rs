//! A handle on a session: its tools can be called while a turn runs.

use std::sync::{Arc, OnceLock};

use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{CallOrigin, CallScope, Cancel, Session, SessionHandle};
use jaato_types::{ErrorKind, Event, Outcome, ToolName, ToolResult};
use serde_json::json;

/// Returns the origin of a call that a tool makes within its own.
fn call_origin(scope: &CallScope) -> CallOrigin {
    let (parent, depth) = (Some(scope.call.clone()), scope.depth + 1);
    CallOrigin {
        parent,
        depth,
        hold: scope.hold.clone(),
        ..CallOrigin::outside_of_calls("tool-outer".into())
    }
}

/// Runs a turn in which the model calls `outer`, which calls this tool through the handle. Returns
/// the result of `outer`, and the session.
async fn play_tool(inner: ScriptedTool) -> (ToolResult, Session, TestStage) {
    let (given, name) = (Arc::<OnceLock<SessionHandle>>::default(), inner.known.spec.name.clone());
    let handle = Arc::clone(&given);
    let outer = ScriptedTool::new("outer", move |_, scope| {
        let (handle, name) = (handle.get().unwrap().clone(), name.clone());
        let origin = call_origin(&scope);
        async move { handle.call_tool(&name, json!({ "at": "sky" }), &origin, &scope.cancel).await }
    });
    let stage = TestStage::new([outer, inner]);
    stage.provider.add_answer([ScriptedProviderAction::call("1", "outer", json!({}))]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    assert!(given.set(session.handle()).is_ok());
    let report = session.run_turn("x", &Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Done);
    let message = session.history().messages().rev().nth(1).unwrap();
    let results: Vec<ToolResult> = message.tool_results().cloned().collect();
    let [result] = results.as_slice() else { panic!("{results:?}") };
    (result.clone(), session, stage)
}

#[tokio::test(start_paused = true)]
async fn nested_tool_call_has_events_but_is_not_in_the_history() {
    let (result, session, stage) = play_tool(ScriptedTool::echo("inner")).await;
    assert!(!result.is_error);
    assert_eq!(json!(result.content), json!({ "echo": { "at": "sky" } }));
    // It is not in the history, because the model made only one call.
    let calls = session.history().messages().flat_map(|message| message.tool_calls());
    assert_eq!(calls.count(), 1);
    let began = stage.events.events().into_iter().filter_map(|event| match event {
        Event::ToolCallStarted { name, parent, by, .. } => {
            Some((name.to_string(), parent.map(|it| it.to_string()), by))
        }
        _ => None,
    });
    let inner = ("inner".to_owned(), Some("1".to_owned()), Some("tool-outer".to_owned()));
    assert_eq!(began.collect::<Vec<_>>(), [("outer".to_owned(), None, None), inner]);
}

#[tokio::test(start_paused = true)]
async fn nested_call_is_checked_under_the_name_of_the_called_tool() {
    let (result, ..) = play_tool(ScriptedTool::echo("inner").writing()).await;
    assert!(result.is_error);
    assert_eq!(result.content["error"]["kind"], "permission_denied");
    let text = result.content["error"]["message"].as_str().unwrap();
    assert!(text.starts_with("the call to `inner` is denied"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn session_handle_does_not_keep_the_session_alive() {
    let (_, session, stage) = play_tool(ScriptedTool::echo("inner")).await;
    let handle = session.handle();
    drop((session, stage));
    let origin = CallOrigin::outside_of_calls("tool-outer".into());
    let called =
        handle.call_tool(&ToolName::from("inner"), json!({}), &origin, &Cancel::new()).await;
    assert_eq!(called.unwrap_err().kind, ErrorKind::Unavailable);
}
