//! Plans: an invalid plan is refused completely, and a valid one applied completely.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use crate::collecting::*;
use jaato_session::testing::{ScriptedGcAction, ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, GcSettings, Random, SeededRandom};
use jaato_types::{Error, ErrorKind, GcPlan, Message, Outcome, Part};
use serde_json::json;

/// Runs turns until the gc was asked twice, and returns the gc events.
async fn misbehaving_gc_events(beat: ScriptedGcAction, settings: GcSettings) -> Vec<String> {
    let stage = TestStage::new([]);
    stage.gc.add_gc([beat]);
    let mut session = session_after_turns(&stage, gc_setup(settings), 3).await;
    for _ in 0..3 {
        stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(9_000)]);
    }
    for prompt in ["x", "y", "z"] {
        let before = session.history().messages().count();
        assert_eq!(run_turn(&mut session, prompt).await.outcome, Outcome::Done);
        assert_eq!(session.history().messages().count(), before + 2, "nothing has gone");
    }
    assert_eq!(stage.gc.requests().len(), 2);
    recorded_collections(&stage)
}

#[tokio::test(start_paused = true)]
async fn failing_gc_changes_nothing_and_is_reported_once() {
    let plan = |drop: &[usize]| ScriptedGcAction::drop_messages(drop.iter().copied());
    let summary = GcPlan {
        summary: Some(Message::user("x".repeat(999))),
        drop: vec![0, 1],
        ..GcPlan::default()
    };
    let cases = [
        (ScriptedGcAction::Fail(Error::failed("out of ideas")), "out of ideas"),
        (ScriptedGcAction::Hang, "the gc took longer than 10 s for its plan"),
        (plan(&[3, 2]), "the gc's plan is not valid: its indices do not ascend"),
        (plan(&[0, 1, 900]), "the gc's plan is not valid: it drops message 900, and there are 9"),
        (
            plan(&[0, 1, 8]),
            "the gc's plan is not valid: it drops message 8, which belongs to the last turn",
        ),
        (
            plan(&[2, 3]),
            "the gc's plan is not valid: it drops message 2, which belongs to a pinned turn",
        ),
        (
            plan(&[0]),
            "the gc's plan is not valid: the history needs a prompt next, not a message with \
             the role `model`",
        ),
        (
            ScriptedGcAction::Plan(summary),
            "the gc's plan is not valid: it does not free space: it frees 113 bytes and adds 1050 \
             bytes of summary",
        ),
    ];
    for (beat, expected) in cases {
        let settings = GcSettings { pinned_turn_indices: vec![1], ..GcSettings::default() };
        let lines = misbehaving_gc_events(beat, settings).await;
        // Plans that name the last turn by number differ in the next turn.
        let first = lines[0].split_once("cut. ").unwrap();
        assert_eq!(first.1, expected, "{lines:?}");
        assert!(
            lines.len() == 1 || expected.contains("message 8") || expected.contains("are 9"),
            "{lines:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_gc_is_awaited_once_per_turn_up_to_its_deadline() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.gc.add_gc([ScriptedGcAction::Hang]);
    let settings = GcSettings { deadline_ms: 2_000, ..GcSettings::default() };
    let mut session = session_after_turns(&stage, gc_setup(settings), 2).await;
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(9_000)]);
    run_turn(&mut session, "x").await;
    for number in 0..5 {
        stage.provider.add_answer([
            ScriptedProviderAction::call(&number.to_string(), "look", json!({})),
            usage_action(9_000),
        ]);
    }
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let start = tokio::time::Instant::now();
    run_turn(&mut session, "y").await;
    assert_eq!(start.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn deadline_of_a_gc_is_paused_while_it_waits_for_a_model() {
    let stage = TestStage::new([]);
    let plan = GcPlan { v: 1, drop: vec![0, 1], ..GcPlan::default() };
    stage.gc.add_gc([ScriptedGcAction::PlanAfterModel(60_000, plan)]);
    let settings = GcSettings { deadline_ms: 2_000, ..GcSettings::default() };
    let mut session = session_after_turns(&stage, gc_setup(settings), 2).await;
    let report = session.collect_for_user(&Cancel::new()).await.unwrap();
    assert_eq!((report.messages_removed, report.turns_removed), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn gc_that_fails_twice_is_asked_again_only_after_it_succeeded() {
    let stage = TestStage::new([]);
    let fail = || ScriptedGcAction::Fail(Error::failed("out of ideas"));
    stage.gc.add_gc([fail(), fail(), ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, gc_setup(GcSettings::default()), 3).await;
    for _ in 0..5 {
        stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(9_000)]);
    }
    for prompt in ["a", "b", "c", "d"] {
        run_turn(&mut session, prompt).await;
    }
    assert_eq!(stage.gc.requests().len(), 2);
    let told = "host: the gc `scripted` failed 2 times in a row: until it succeeds, it is asked only \
                if the context is full, or if you ask for it\n";
    assert_eq!(stage.events.notices(), told);
    assert!(session.collect_for_user(&Cancel::new()).await.unwrap().messages_removed > 0);
    assert_eq!(stage.gc.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_the_gc_thinks_ends_the_turn_at_once() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::Hang]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 2).await;
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(9_000)]);
    run_turn(&mut session, "x").await;
    let cancel = Cancel::new();
    let start = tokio::time::Instant::now();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(session.run_turn("y", &cancel), stop);
    assert_eq!((report.outcome, start.elapsed()), (Outcome::Cancelled, Duration::from_millis(500)));
    assert_eq!(
        recorded_collections(&stage),
        Vec::<String>::new(),
        "a cancellation is not a failure"
    );
}

#[tokio::test(start_paused = true)]
async fn pinned_turns_stay_pinned_after_other_turns_are_removed() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([
        ScriptedGcAction::drop_messages([0, 1, 2, 3]),
        ScriptedGcAction::drop_messages([0, 1]),
    ]);
    let settings = GcSettings { pinned_turn_indices: vec![2], ..GcSettings::default() };
    let mut session = session_after_turns(&stage, gc_setup(settings), 5).await;
    session.collect_for_user(&Cancel::new()).await.unwrap();
    session.collect_for_user(&Cancel::new()).await.unwrap_err();
    let places: Vec<_> = stage
        .gc
        .requests()
        .iter()
        .map(|asked| asked.settings["pinned_turn_indices"].clone())
        .collect();
    assert_eq!(places, [json!([2]), json!([0])]);
    assert_eq!(request_texts(&session.next_request())[0], "prompt 2");
}

#[tokio::test(start_paused = true)]
async fn gc_summary_is_put_before_the_remaining_messages() {
    let stage = TestStage::new([]);
    let summary = Some(Message::user("[before] "));
    stage.gc.add_gc([ScriptedGcAction::Plan(GcPlan {
        drop: vec![0, 1, 2, 3],
        summary,
        ..GcPlan::default()
    })]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 3).await;
    session.collect_for_user(&Cancel::new()).await.unwrap();
    assert_eq!(request_texts(&session.next_request()), ["[before] prompt 2", "so"]);
}

/// Random plans for a history with calls and incomplete turns. Each is applied completely or not at
/// all.
#[tokio::test(start_paused = true)]
async fn random_gc_plans_leave_the_history_valid() {
    let random = SeededRandom::new(11);
    let (mut applied, mut refused) = (0, 0);
    for round in 0..150_u64 {
        let stage = TestStage::new([ScriptedTool::echo("look")]);
        let seed = random.next_u64();
        let dice = SeededRandom::new(seed);
        stage.gc.add_gc([ScriptedGcAction::plan_of(move |request| {
            let count = request.messages.len() as u64;
            // Drops runs of messages, because single messages hardly ever make a valid plan.
            let (first, second) = (dice.number_below(count + 1), dice.number_below(count + 1));
            let drop = (first.min(second)..first.max(second)).map(|at| at as usize).collect();
            let summary = (dice.number_below(3) == 0).then(|| Message::user("s"));
            GcPlan { drop, summary, ..GcPlan::default() }
        })]);
        let settings = GcSettings {
            pinned_turn_indices: (0..random.number_below(2))
                .map(|_| random.number_below(5))
                .collect(),
            ..GcSettings::default()
        };
        let mut session = stage.start(gc_setup(settings)).unwrap();
        for turn_number in 0..4 {
            for call in 0..random.number_below(3) {
                let id = format!("{round}-{turn_number}-{call}");
                stage.provider.add_answer([ScriptedProviderAction::call(&id, "look", json!({}))]);
            }
            stage.provider.add_answer([ScriptedProviderAction::text("so")]);
            run_turn(&mut session, &format!("prompt {turn_number}")).await;
            for _ in 0..3 {
                let before = session.history().clone();
                match session.collect_for_user(&Cancel::new()).await {
                    Ok(report) => {
                        applied += u64::from(report.messages_removed > 0);
                        assert!(report.tokens_after <= report.tokens_before);
                    }
                    Err(error) => {
                        refused += 1;
                        assert_eq!(error.kind, ErrorKind::PluginMisbehaved);
                        assert_eq!(*session.history(), before);
                    }
                }
                let entries = session.history().entries().iter().cloned();
                assert_eq!(
                    jaato_session::History::restore(entries).as_ref(),
                    Ok(session.history())
                );
                let last = session.history().messages().next_back().unwrap();
                assert!(matches!(&last.parts[..], [Part::Text { text, .. }] if text == "so"));
                assert_eq!(session.history().entries().len(), before.entries().len());
            }
        }
    }
    assert!(applied > 50 && refused > 200, "{applied} {refused}");
}
