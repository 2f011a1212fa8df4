//! Cancellation: immediate, everywhere, and with a valid history that matches the user's view.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, History, Session, SessionSetup, TurnReport};
use jaato_types::{Delta, Error, ErrorKind, Event, Outcome};
use serde_json::json;
use tokio::time::Instant;

/// Runs a turn that is cancelled after this many milliseconds. It must end at that very moment.
async fn run_cancelled_after(
    stage: &TestStage,
    setup: SessionSetup,
    after_ms: u64,
) -> (Session, TurnReport) {
    let mut session = stage.start(setup).unwrap();
    let cancel = Cancel::new();
    let after = Duration::from_millis(after_ms);
    let start = Instant::now();
    let stop = async {
        tokio::time::sleep(after).await;
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(session.run_turn("x", &cancel), stop);
    assert_eq!(start.elapsed(), after, "no simulated time passed after the cancellation");
    assert_eq!(report.outcome, Outcome::Cancelled);
    History::restore(session.history().entries().iter().cloned()).unwrap();
    (session, report)
}

fn message_texts(session: &Session) -> Vec<String> {
    session.history().messages().map(jaato_types::Message::text).collect()
}

#[tokio::test(start_paused = true)]
async fn cancel_in_mid_stream_keeps_the_partial_response_with_a_mark() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.provider.add_answer([
        ScriptedProviderAction::text("half "),
        ScriptedProviderAction::Thought("hm".into()),
        ScriptedProviderAction::text("said"),
        ScriptedProviderAction::call("1", "look", json!({})),
        ScriptedProviderAction::Hang,
    ]);
    let (mut session, report) = run_cancelled_after(&stage, TestStage::setup(), 500).await;
    assert_eq!(report.text, "half said\n\n[Generation cancelled]");
    assert_eq!(message_texts(&session), ["x", "half said\n\n[Generation cancelled]"]);
    assert_eq!(session.history().entries()[1].message.tool_calls().count(), 0);
    stage.provider.add_answer([ScriptedProviderAction::text("going on")]);
    assert_eq!(session.run_turn("continue", &Cancel::new()).await.text, "going on");
}

#[tokio::test(start_paused = true)]
async fn cancel_before_the_first_delta_keeps_the_prompt_and_adds_a_mark() {
    let stage = TestStage::new([]);
    stage.provider.add_answer([ScriptedProviderAction::Hang]);
    let (session, report) = run_cancelled_after(&stage, TestStage::setup(), 0).await;
    assert_eq!(report.text, "[Generation cancelled]");
    assert_eq!(message_texts(&session), ["x", "[Generation cancelled]"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_cancelled_before_it_begins_sends_nothing() {
    let stage = TestStage::new([]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(session.run_turn("x", &cancel).await.outcome, Outcome::Cancelled);
    assert!(stage.provider.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_the_wait_for_a_retry() {
    let stage = TestStage::new([]);
    let error = Error {
        retry_after_ms: Some(60_000),
        ..Error::new(ErrorKind::Provider, "overloaded").temporary()
    };
    stage.provider.add_answer([ScriptedProviderAction::Fail(error)]);
    let (session, _) = run_cancelled_after(&stage, TestStage::setup(), 10_000).await;
    assert_eq!(message_texts(&session), ["x", "[Generation cancelled]"]);
}

#[tokio::test(start_paused = true)]
async fn cancel_while_tools_run_gives_each_open_call_a_result() {
    let stage =
        TestStage::new([ScriptedTool::sleeping("read"), ScriptedTool::sleeping("write").writing()]);
    let ms = |ms: u64| json!({ "ms": ms });
    stage.provider.add_answer([
        ScriptedProviderAction::text("working"),
        ScriptedProviderAction::call("done", "read", ms(10)),
        ScriptedProviderAction::call("running", "read", ms(1_000)),
        ScriptedProviderAction::call("waiting", "write", ms(10)),
    ]);
    let setup = TestStage::setup();
    setup.rules.lock().allow_all = true;
    let (session, report) = run_cancelled_after(&stage, setup, 500).await;
    assert_eq!(report.text, "[Generation cancelled]");
    let results: Vec<(String, String)> = session.history().entries()[2]
        .message
        .tool_results()
        .map(|result| {
            let message = result.content.get("error").map(|error| error["message"].to_string());
            (result.call_id.to_string(), message.unwrap_or_default())
        })
        .collect();
    let expected = [
        ("done", ""),
        ("running", "\"the user cancelled this call while it ran\""),
        ("waiting", "\"the user cancelled the turn before this call began\""),
    ];
    assert_eq!(results, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
    let begun = stage.events.events().into_iter().filter_map(|event| match event {
        Event::ToolCallStarted { call_id, .. } => Some(call_id.to_string()),
        _ => None,
    });
    assert_eq!(begun.collect::<Vec<_>>(), ["done", "running"], "no event tells of what never was");
    let seats = stage.tools.recorded_calls();
    assert_eq!((seats.len(), seats[1].ended), (2, false));
}

#[tokio::test(start_paused = true)]
async fn cancel_during_a_permission_prompt_ends_the_call() {
    let stage = TestStage::new([ScriptedTool::echo("write").writing()]);
    stage.person.add_answers([]);
    stage.provider.add_answer([ScriptedProviderAction::call("1", "write", json!({}))]);
    let (session, _) = run_cancelled_after(&stage, TestStage::setup(), 500).await;
    assert_eq!(stage.person.form_questions().len(), 1);
    assert!(stage.tools.recorded_calls().is_empty());
    assert!(session.history().entries()[2].message.tool_results().all(|result| result.is_error));
}

#[tokio::test(start_paused = true)]
async fn deltas_after_a_cancel_are_ignored() {
    let stage = TestStage::new([]);
    stage.provider.add_answer([
        ScriptedProviderAction::text("seen"),
        ScriptedProviderAction::Wait(1_000),
        ScriptedProviderAction::text("unseen"),
    ]);
    run_cancelled_after(&stage, TestStage::setup(), 500).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.events.shown_text(), "seen");
    let events = stage.events.events();
    assert!(matches!(events.last(), Some(Event::TurnFinished { outcome: Outcome::Cancelled, .. })));
}

#[tokio::test(start_paused = true)]
async fn response_that_completes_at_the_moment_of_the_cancel_is_kept() {
    let stage = TestStage::new([]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::Wait(500), ScriptedProviderAction::text("all")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let cancel = Cancel::new();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cancel.cancel();
    };
    let ((), report) = tokio::join!(biased; stop, session.run_turn("x", &cancel));
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "all"));
}

#[tokio::test(start_paused = true)]
async fn session_continues_after_a_turn_future_is_dropped() {
    let stage = TestStage::new([ScriptedTool::sleeping("read")]);
    stage.provider.add_answer([ScriptedProviderAction::call("1", "read", json!({ "ms": 1_000 }))]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let cancel = Cancel::new();
    let turn = tokio::time::timeout(Duration::from_millis(100), session.run_turn("x", &cancel));
    turn.await.unwrap_err();
    stage.provider.add_answer([
        ScriptedProviderAction::Shown(Delta::notice("hm")),
        ScriptedProviderAction::text("fine"),
    ]);
    assert_eq!(session.run_turn("y", &Cancel::new()).await.outcome, Outcome::Done);
    History::restore(session.history().entries().iter().cloned()).unwrap();
}
