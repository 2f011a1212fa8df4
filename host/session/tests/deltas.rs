//! Streaming: deltas, completions, and providers that get them wrong.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, Session};
use jaato_types::{Delta, Event, Outcome, Part, ToolCall, ToolResult};
use serde_json::{Map, json};

async fn play_turn(stage: &TestStage) -> Session {
    let mut session = stage.start(TestStage::setup()).unwrap();
    let report = session.run_turn("x", &Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Done, "{report:?}");
    session
}

fn delta_action(text: &str) -> ScriptedProviderAction {
    ScriptedProviderAction::Shown(Delta::text(text.to_owned()))
}

/// Checks the last answer in the history, the text that the user saw, and the notices.
async fn check_deltas(beats: Vec<ScriptedProviderAction>, answer: &str, seen: &str, notices: &str) {
    let stage = TestStage::new([]);
    stage.provider.add_answer(beats);
    let session = play_turn(&stage).await;
    assert_eq!(session.history().entries()[1].message.text(), answer);
    assert_eq!(stage.events.shown_text(), seen);
    assert_eq!(stage.events.notices(), notices);
}

#[tokio::test(start_paused = true)]
async fn text_missing_from_the_deltas_is_shown_at_the_end() {
    check_deltas(
        vec![delta_action("one "), ScriptedProviderAction::Unseen(Part::text("one two"))],
        "one two",
        "one two",
        "",
    )
    .await;
    check_deltas(vec![ScriptedProviderAction::Unseen(Part::text("all"))], "all", "all", "").await;
}

#[tokio::test(start_paused = true)]
async fn completion_overrides_its_deltas_and_the_user_gets_a_notice() {
    let notice = "host: the provider's final answer differs from what it streamed\n";
    check_deltas(
        vec![delta_action("two"), ScriptedProviderAction::Unseen(Part::text("one"))],
        "one",
        "twoone",
        notice,
    )
    .await;
    check_deltas(
        vec![delta_action("longer"), ScriptedProviderAction::Unseen(Part::text("long"))],
        "long",
        "longerlong",
        notice,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn empty_completion_is_replaced_by_the_streamed_text() {
    let notice = "host: the provider's final answer was empty: jaato keeps the streamed text\n";
    check_deltas(vec![delta_action("one "), delta_action("two")], "one two", "one two", notice)
        .await;
}

#[tokio::test(start_paused = true)]
async fn thoughts_are_events_of_their_own_and_stay_in_place() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.provider.add_answer([
        ScriptedProviderAction::Thought("hm".into()),
        ScriptedProviderAction::text("a"),
        ScriptedProviderAction::call("1", "look", json!({})),
        ScriptedProviderAction::text("b"),
        ScriptedProviderAction::call("2", "look", json!({})),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let session = play_turn(&stage).await;
    let kinds: Vec<&str> = session.history().entries()[1]
        .message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text { .. } => "text",
            Part::Thought { .. } => "thought",
            Part::ToolCall(_) => "call",
            Part::ToolResult(_)
            | Part::Data(_)
            | Part::Opaque(_)
            | Part::ToolsChanged(_)
            | Part::Unknown(_) => "other",
        })
        .collect();
    assert_eq!(kinds, ["thought", "text", "call", "text", "call"]);
    let thought = Event::ThoughtDelta { source: "model".into(), text: "hm".into() };
    assert!(stage.events.events().contains(&thought));
}

#[tokio::test(start_paused = true)]
async fn duplicate_empty_and_too_long_call_ids_are_replaced() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    let call = |id: &str| ScriptedProviderAction::call(id, "look", json!({}));
    let long = "x".repeat(200);
    stage.provider.add_answer([call("a"), call("a"), call(""), call(&long)]);
    // The provider itself already uses the counter's first value.
    stage.provider.add_answer([call("a"), call("fresh-4"), call("fresh-5")]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let session = play_turn(&stage).await;
    let ids = |at: usize| -> Vec<String> {
        let message = &session.history().entries()[at].message;
        message.tool_calls().map(|call| call.id.to_string()).collect()
    };
    assert_eq!(ids(1), ["a", "fresh-1", "fresh-2", "fresh-3"]);
    assert_eq!(ids(3), ["fresh-4", "fresh-5", "fresh-6"]);
    assert_eq!(stage.tools.recorded_calls().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn invalid_parts_are_dropped_and_bad_tool_names_are_sanitized() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    let result = ToolResult {
        call_id: "9".into(),
        name: "look".into(),
        content: Map::new(),
        is_error: false,
        ..ToolResult::default()
    };
    stage.provider.add_answer([
        ScriptedProviderAction::Unseen(Part::ToolResult(result)),
        ScriptedProviderAction::Unseen(Part::text("")),
        ScriptedProviderAction::Unseen(Part::ToolCall(ToolCall {
            id: "1".into(),
            name: "fs.look at".into(),
            arguments: json!({}),
            ..ToolCall::default()
        })),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let session = play_turn(&stage).await;
    let parts = &session.history().entries()[1].message.parts;
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].as_tool_call().unwrap().name.as_str(), "fs_look_at");
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_newer_provider_is_kept_and_given_back_as_it_was() {
    let smell = json!({ "type": "smell", "of": "roses" }).as_object().unwrap().clone();
    let stage = TestStage::new([]);
    stage.provider.add_answer([
        ScriptedProviderAction::Unseen(Part::Unknown(smell.clone())),
        ScriptedProviderAction::text("a rose"),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("again")]);
    let mut session = play_turn(&stage).await;
    let report = session.run_turn("y", &Cancel::new()).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "again"));
    let sent = &stage.provider.requests()[1].messages[1].parts;
    assert_eq!(sent, &[Part::Unknown(smell), Part::text("a rose")]);
}

#[tokio::test(start_paused = true)]
async fn progress_and_notices_carry_the_providers_name() {
    let stage = TestStage::new([]);
    stage.provider.add_answer([
        ScriptedProviderAction::Shown(Delta::notice("loading")),
        ScriptedProviderAction::Shown(Delta::progress("weights", 1, 4)),
        ScriptedProviderAction::text("hi"),
    ]);
    play_turn(&stage).await;
    let source = || "scripted".to_owned();
    let events = stage.events.events();
    assert!(events.contains(&Event::Notice { source: source(), text: "loading".into() }));
    let progress = Event::Progress { source: source(), label: "weights".into(), done: 1, total: 4 };
    assert!(events.contains(&progress));
}
