//! Finding out the size of the context window, without any turn waiting long or failing for it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::collecting::*;
use jaato_session::testing::{ScriptedGcAction, ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Session, SessionSetup, WINDOW_WAIT_MS, WindowOrigin};
use jaato_types::{Error, ErrorKind, GcReason, Outcome, Output};
use serde_json::json;

fn setup_with_unknown_window(context_limit: u64) -> SessionSetup {
    let mut setup = TestStage::setup_with_limit(context_limit);
    setup.model.origin = WindowOrigin::Assumed;
    setup
}

/// Runs a conversation of two turns. The second asks for the window in parallel with its request.
async fn session_after_window_query(stage: &TestStage, setup: SessionSetup) -> Session {
    let mut session = stage.start(setup).unwrap();
    for prompt_tokens in [1_100, 1_200] {
        stage.provider.add_answer([
            ScriptedProviderAction::Wait(500),
            ScriptedProviderAction::text("so"),
            usage_action(prompt_tokens),
        ]);
        assert_eq!(run_turn(&mut session, "x").await.outcome, Outcome::Done);
    }
    session
}

#[tokio::test(start_paused = true)]
async fn window_size_from_the_provider_applies_from_the_next_request() {
    for origin in [WindowOrigin::Assumed, WindowOrigin::Described] {
        let stage = TestStage::new([]);
        stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
        stage.provider.set_window(2_048, 300);
        let mut setup = setup_with_unknown_window(32_768);
        setup.model.origin = origin;
        let mut session = session_after_window_query(&stage, setup).await;
        assert_eq!(
            (session.facts().context_limit, stage.provider.window_query_count()),
            (2_048, 1)
        );
        stage
            .provider
            .add_answer([ScriptedProviderAction::text("so"), usage_action(1_700)])
            .add_answer([ScriptedProviderAction::text("so"), usage_action(300)]);
        run_turn(&mut session, "y").await;
        run_turn(&mut session, "z").await;
        let asked = stage.gc.requests();
        assert_eq!(asked.len(), 1, "1,700 tokens of 2,048 are too many");
        assert_eq!((asked[0].reason, asked[0].context_limit), (GcReason::Threshold, 2_048));
        assert_eq!((stage.provider.window_query_count(), stage.events.notices().as_str()), (1, ""));
    }
}

#[tokio::test(start_paused = true)]
async fn a_larger_window_than_the_guess_is_used_too() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    stage.provider.set_window(400_000, 300);
    let mut session = session_after_window_query(&stage, setup_with_unknown_window(32_768)).await;
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("so"), usage_action(200_000)])
        .add_answer([ScriptedProviderAction::text("so")]);
    run_turn(&mut session, "y").await;
    run_turn(&mut session, "z").await;
    assert!(stage.gc.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn window_is_not_queried_if_configured_or_in_short_conversations() {
    let stage = TestStage::new([]);
    stage.provider.set_window(2_048, 0);
    session_after_window_query(&stage, TestStage::setup()).await;
    assert_eq!(stage.provider.window_query_count(), 0);

    let stage = TestStage::new([]);
    stage.provider.set_window(2_048, 0);
    session_after_turns(&stage, setup_with_unknown_window(32_768), 2).await;
    assert_eq!(stage.provider.window_query_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn turn_does_not_wait_for_the_window_size_while_there_is_room() {
    let stage = TestStage::new([]);
    stage.provider.set_window(2_048, 3_600_000);
    let mut session = stage.start(setup_with_unknown_window(32_768)).unwrap();
    for prompt_tokens in [1_100, 1_200, 1_300] {
        stage
            .provider
            .add_answer([ScriptedProviderAction::text("so"), usage_action(prompt_tokens)]);
        assert_eq!(run_turn(&mut session, "x").await.duration_ms, 0);
    }
    assert_eq!(stage.provider.window_query_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn turn_waits_briefly_for_the_window_size_before_it_truncates() {
    let prompt = "word ".repeat(30_000);
    let stage = TestStage::new([]);
    stage.provider.set_window(400_000, WINDOW_WAIT_MS - 1);
    stage.provider.add_answer([ScriptedProviderAction::text("so")]);
    let mut session = stage.start(setup_with_unknown_window(32_768)).unwrap();
    let report = run_turn(&mut session, &prompt).await;
    assert_eq!(report.duration_ms, WINDOW_WAIT_MS - 1);
    assert_eq!(request_texts(&last_request(&stage)), [prompt.as_str()], "it is sent whole");
    assert_eq!(stage.events.notices(), "");

    // A provider that does not answer in time costs that wait once, and a notice reports it.
    let stage = TestStage::new([]);
    stage.provider.set_window(400_000, 3_600_000);
    let mut session = stage.start(setup_with_unknown_window(32_768)).unwrap();
    for wait_ms in [WINDOW_WAIT_MS, 0] {
        stage.provider.add_answer([ScriptedProviderAction::text("so")]);
        assert_eq!(run_turn(&mut session, &prompt).await.duration_ms, wait_ms);
        assert!(last_request(&stage).messages[0].text().len() < prompt.len());
    }
    assert!(stage.events.notices().starts_with("host: unknown context window"));
}

#[tokio::test(start_paused = true)]
async fn invalid_window_sizes_are_ignored_and_a_refusal_overrides_a_known_size() {
    let stage = TestStage::new([]);
    stage.provider.set_window(0, 0);
    let session = session_after_window_query(&stage, setup_with_unknown_window(32_768)).await;
    assert_eq!(session.facts().context_limit, 32_768);

    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    stage.provider.set_window(131_072, 0);
    let mut session = session_after_window_query(&stage, setup_with_unknown_window(32_768)).await;
    assert_eq!(session.facts().context_limit, 131_072);
    stage
        .provider
        .add_answer([overflow_action()])
        .add_answer([ScriptedProviderAction::text("so"), usage_action(500)]);
    run_turn(&mut session, "y").await;
    let limit = session.facts().context_limit;
    assert!((1_200..1_300).contains(&limit), "{limit}");
}

/// Refuses with unknown words.
fn refusal_action() -> ScriptedProviderAction {
    ScriptedProviderAction::Fail(Error::new(
        ErrorKind::Provider,
        "`http://h` answered 400 (bad request): zu lang",
    ))
}

#[tokio::test(start_paused = true)]
async fn unclear_refusal_near_the_window_limit_is_retried_once_after_a_gc() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 3).await;
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(6_000)]);
    run_turn(&mut session, "x").await;
    stage
        .provider
        .add_answer([refusal_action()])
        .add_answer([ScriptedProviderAction::text("so"), usage_action(500)]);
    assert_eq!(run_turn(&mut session, "now").await.outcome, Outcome::Done);
    assert_eq!(recorded_collections(&stage), ["ContextLimit scripted: 8/4 removed, 0 cut. "]);

    // If the provider refuses again, its error counts as it is.
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(6_000)]);
    run_turn(&mut session, "y").await;
    stage
        .provider
        .add_answer([refusal_action()])
        .add_answer([refusal_action()])
        .add_answer([ScriptedProviderAction::text("too late")]);
    let report = run_turn(&mut session, "z").await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.error.unwrap().message.ends_with("zu lang"));
    stage.provider.drop_unused_answers();
}

#[tokio::test(start_paused = true)]
async fn assumed_window_stays_if_a_smaller_request_is_refused_too() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, setup_with_unknown_window(32_768), 3).await;
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(3_000)]);
    run_turn(&mut session, "x").await;
    stage.provider.add_answer([refusal_action()]).add_answer([refusal_action()]);
    assert_eq!(run_turn(&mut session, "now").await.outcome, Outcome::Failed);
    assert_eq!(session.facts().context_limit, 32_768);

    // If a smaller request helped, the refused size counts as too large.
    let mut session = session_after_turns(&stage, setup_with_unknown_window(32_768), 3).await;
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(3_000)]);
    run_turn(&mut session, "x").await;
    stage.provider.add_answer([refusal_action()]).add_answer([ScriptedProviderAction::text("so")]);
    assert_eq!(run_turn(&mut session, "now").await.outcome, Outcome::Done);
    let limit = session.facts().context_limit;
    assert!((3_000..3_100).contains(&limit), "{limit}");
}

#[tokio::test(start_paused = true)]
async fn refusal_far_below_the_window_limit_starts_no_gc() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 3).await;
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(4_000)]);
    run_turn(&mut session, "x").await;
    stage.provider.add_answer([refusal_action()]);
    assert_eq!(run_turn(&mut session, "now").await.outcome, Outcome::Failed);
    assert!(stage.gc.requests().is_empty());
    // Neither does a refusal that does not blame the request, however full the window is.
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(7_000)]);
    run_turn(&mut session, "x").await;
    let text = "`http://h` answered 401 (unauthorized)";
    stage
        .provider
        .add_answer([ScriptedProviderAction::Fail(Error::new(ErrorKind::Provider, text))]);
    assert_eq!(run_turn(&mut session, "now").await.outcome, Outcome::Failed);
    assert!(stage.gc.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn manual_gc_frees_room_after_a_refusal_or_in_a_full_window() {
    let loud = ScriptedTool::new("loud", |_, _| async { Ok(Output::text("x".repeat(8_000))) });
    let stage = TestStage::new([loud]);
    stage.gc.add_gc([ScriptedGcAction::drop_messages([])]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    for number in 0..3 {
        stage.provider.add_answer([ScriptedProviderAction::call(
            &format!("c{number}"),
            "loud",
            json!({}),
        )]);
    }
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(100)]);
    run_turn(&mut session, "x").await;
    let before = serde_json::to_string(&session.next_request()).unwrap().len();

    // With enough room and without a failure, a short conversation is left as it is.
    let report = session.collect_for_user(&jaato_session::Cancel::new()).await.unwrap();
    assert_eq!((report.messages_removed, report.messages_cut), (0, 0));

    stage.provider.add_answer([refusal_action()]);
    assert_eq!(run_turn(&mut session, "dead").await.outcome, Outcome::Failed);
    let report = session.collect_for_user(&jaato_session::Cancel::new()).await.unwrap();
    assert!(report.messages_removed + report.messages_cut > 0, "{report:?}");
    let after = serde_json::to_string(&session.next_request()).unwrap().len();
    assert!(after < before * 2 / 3, "{after} of {before}");
    assert!(
        recorded_collections(&stage).last().unwrap().starts_with("Manual host: "),
        "{:?}",
        recorded_collections(&stage)
    );
}
