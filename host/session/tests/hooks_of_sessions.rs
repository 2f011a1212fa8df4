//! Hooks at the start and the end of a session, at the end of a turn and before a gc, and how long
//! hooks may take.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use jaato_session::testing::{ScriptedGcAction, ScriptedProviderAction, TestStage};
use jaato_session::{Cancel, Session, TurnReport};
use jaato_types::hooks::{Hook, TURN_CONTINUATIONS_MAX};
use jaato_types::{ErrorKind, Event, Outcome, Part};
use serde_json::json;

async fn run_turn(stage: &TestStage, session: &mut Session, prompt: &str) -> TurnReport {
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn(prompt, &Cancel::new()).await
}

/// Lists the questions so far by their names.
fn asked_hooks(stage: &TestStage) -> Vec<&'static str> {
    stage.hooks.asked_hooks().iter().map(|(_, hook, _)| hook.name()).collect()
}

#[tokio::test(start_paused = true)]
async fn session_hooks_are_asked_once_at_the_first_prompt_and_at_the_end() {
    let stage = TestStage::new([]);
    stage.hooks.add_answering_plugin("notes", Hook::SessionStart, json!({ "text": "buy milk" }));
    stage.hooks.add_answering_plugin("notes", Hook::SessionEnd, json!({}));
    let mut session = stage.start(TestStage::setup()).unwrap();
    session.handle().notify_end().await;
    assert!(asked_hooks(&stage).is_empty(), "a session without a prompt has no end");
    run_turn(&stage, &mut session, "one").await;
    run_turn(&stage, &mut session, "two").await;
    session.handle().notify_end().await;
    session.handle().notify_end().await;
    assert_eq!(asked_hooks(&stage), ["session_start", "session_end"]);
    let added = json!({ "added_by_plugin": "notes", "text": "buy milk" });
    let first = session.history().messages().next().unwrap().parts.clone();
    assert_eq!(first, [Part::json(added), Part::text("one")]);
    let (_, _, request) = stage.hooks.asked_hooks().remove(0);
    assert_eq!(request["is_continued"], false);
}

#[tokio::test(start_paused = true)]
async fn refused_prompt_reaches_neither_the_model_nor_the_history() {
    let stage = TestStage::new([]);
    stage.hooks.add_answering_plugin(
        "filter",
        Hook::BeforePrompt,
        json!({ "refusal": "it names a customer" }),
    );
    let mut session = stage.start(TestStage::setup()).unwrap();
    let report = session.run_turn("Mr Moon", &Cancel::new()).await;
    let error = report.error.unwrap();
    assert_eq!((report.outcome, error.kind), (Outcome::Failed, ErrorKind::PermissionDenied));
    assert_eq!(error.message, "plugin `filter` refused the prompt: it names a customer");
    assert_eq!(session.history().messages().count(), 0);
    assert!(stage.provider.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn text_of_a_session_start_joins_the_first_prompt_that_is_not_refused() {
    let stage = TestStage::new([]);
    stage.hooks.add_answering_plugin("notes", Hook::SessionStart, json!({ "text": "buy milk" }));
    stage.hooks.set_answer("filter", Hook::BeforePrompt, |asked| async move {
        let is_refused = asked["prompt"] == "Mr Moon";
        Ok(json!({ "refusal": if is_refused { "it names a customer" } else { "" } }))
    });
    let mut session = stage.start(TestStage::setup()).unwrap();
    assert_eq!(session.run_turn("Mr Moon", &Cancel::new()).await.outcome, Outcome::Failed);
    run_turn(&stage, &mut session, "one").await;
    let added = json!({ "added_by_plugin": "notes", "text": "buy milk" });
    let first = session.history().messages().next().unwrap().parts.clone();
    assert_eq!(first, [Part::json(added), Part::text("one")]);
}

#[tokio::test(start_paused = true)]
async fn end_of_a_session_does_not_wait_longer_than_the_limit_for_a_model() {
    let stage = TestStage::new([]);
    stage.hooks.set_model_wait(3_600_000).add_answering_plugin(
        "notes",
        Hook::SessionEnd,
        json!({}),
    );
    let mut session = stage.start(TestStage::setup()).unwrap();
    run_turn(&stage, &mut session, "one").await;
    let begun = tokio::time::Instant::now();
    session.handle().notify_end().await;
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn turn_continues_with_the_message_of_a_plugin_up_to_a_limit() {
    let stage = TestStage::new([]);
    stage.hooks.add_answering_plugin(
        "tests",
        Hook::TurnEnd,
        json!({ "continue_with": "two tests fail" }),
    );
    let mut session = stage.start(TestStage::setup()).unwrap();
    for _ in 0..=TURN_CONTINUATIONS_MAX {
        stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    }
    let report = session.run_turn("fix it", &Cancel::new()).await;
    assert_eq!((report.outcome, report.steps), (Outcome::Done, TURN_CONTINUATIONS_MAX + 1));
    let message = json!({ "continued_by_plugin": "tests", "text": "two tests fail" });
    let last = stage.provider.requests().pop().unwrap().messages.pop().unwrap();
    assert_eq!(last.parts, [Part::json(message)]);
    let counts: Vec<_> = stage
        .hooks
        .asked_hooks()
        .iter()
        .map(|(_, _, asked)| asked["continuations"].clone())
        .collect();
    assert_eq!(counts, [0, 1, 2, 3]);
    let continued = |event: &Event| matches!(event, Event::TurnContinued { .. });
    assert_eq!(stage.events.events().iter().filter(|event| continued(event)).count(), 3);
    let told =
        "although plugin `tests` wants it to continue: plugins have made it continue 3 times";
    assert!(stage.events.notices().contains(told), "{}", stage.events.notices());
}

#[tokio::test(start_paused = true)]
async fn turn_that_is_cancelled_is_not_continued() {
    let stage = TestStage::new([]);
    stage.hooks.add_answering_plugin("tests", Hook::TurnEnd, json!({ "continue_with": "go on" }));
    let mut session = stage.start(TestStage::setup()).unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    assert_eq!(session.run_turn("x", &cancel).await.outcome, Outcome::Cancelled);
    assert!(asked_hooks(&stage).is_empty());
}

#[tokio::test(start_paused = true)]
async fn plugins_act_before_the_gc_does() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    stage.hooks.add_answering_plugin("notes", Hook::BeforeGc, json!({}));
    let mut session = stage.start(TestStage::setup()).unwrap();
    run_turn(&stage, &mut session, "one").await;
    run_turn(&stage, &mut session, "two").await;
    assert!(session.collect_for_user(&Cancel::new()).await.unwrap().messages_removed > 0);
    let (_, hook, request) = stage.hooks.asked_hooks().remove(0);
    assert_eq!((hook, &request["reason"]), (Hook::BeforeGc, &json!("manual")));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_can_refuse_a_gc() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    stage.hooks.add_answering_plugin("guard", Hook::BeforeGc, json!({ "refusal": "not now" }));
    let mut session = stage.start(TestStage::setup()).unwrap();
    run_turn(&stage, &mut session, "one").await;
    run_turn(&stage, &mut session, "two").await;
    let refused = session.collect_for_user(&Cancel::new()).await.unwrap_err();
    assert_eq!(refused.to_string(), "plugin `guard` refused the gc: not now");
    assert!(stage.gc.requests().is_empty(), "the gc is not asked");
}

/// Runs a turn in which a hook hangs. Returns how long that took.
async fn hang_duration_ms(deadline_ms: Option<u64>, limit_ms: u64) -> u64 {
    let stage = TestStage::new([]);
    stage.hooks.add_hanging_plugin("slow", Hook::TurnEnd);
    if let Some(ms) = deadline_ms {
        stage.hooks.set_deadline(Hook::TurnEnd, ms);
    }
    let mut setup = TestStage::setup();
    setup.limits.hook_deadline_ms = limit_ms;
    let mut session = stage.start(setup).unwrap();
    run_turn(&stage, &mut session, "x").await.duration_ms
}

#[tokio::test(start_paused = true)]
async fn hook_has_the_deadline_that_its_plugin_asks_for_up_to_the_users_limit() {
    assert_eq!(hang_duration_ms(None, 60_000).await, 1_000);
    assert_eq!(hang_duration_ms(Some(30_000), 60_000).await, 30_000);
    assert_eq!(hang_duration_ms(Some(90_000), 60_000).await, 60_000);
}

#[tokio::test(start_paused = true)]
async fn deadline_of_a_hook_is_paused_while_it_waits_for_a_model() {
    let stage = TestStage::new([]);
    stage.hooks.add_answering_plugin("judge", Hook::TurnEnd, json!({})).set_model_wait(20_000);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let report = run_turn(&stage, &mut session, "x").await;
    assert!(report.duration_ms >= 20_000, "{}", report.duration_ms);
    assert_eq!(stage.events.notices(), "");
}
