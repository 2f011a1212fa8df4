//! When the gc runs, and what is sent to the model afterwards.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use crate::collecting::*;
use futures_util::future::BoxFuture;
use jaato_session::testing::{ScriptedGcAction, ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{
    COLLECTED_BYTES_MAX, Cancel, GcReport, GcSettings, HistoryEntry, MessageMark, OVERFLOWS_MAX,
    RecordChange, SavedRecord, SavedState, Session, SessionPorts, SessionSaver, SharedObjects,
    SharedRules, WindowOrigin,
};
use jaato_types::{
    Error, ErrorKind, Event, GcPlan, GcReason, Outcome, ToolCall, ToolResult, Usage,
};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn gc_at_the_threshold_removes_old_turns_but_the_record_keeps_them() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 2).await;
    assert!(stage.gc.requests().is_empty(), "nothing is asked before it is needed");
    // 7,990 and 10, and a few for the next prompt.
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("so"), usage_action(7_989)])
        .add_answer([ScriptedProviderAction::text("done"), usage_action(300)]);
    run_turn(&mut session, "prompt 2").await;
    run_turn(&mut session, "prompt 3").await;
    let asked = stage.gc.requests();
    assert_eq!(
        (asked.len(), asked[0].reason, asked[0].context_limit),
        (1, GcReason::Threshold, 10_000)
    );
    assert!((8_000..8_050).contains(&asked[0].total_tokens), "{}", asked[0].total_tokens);
    assert_eq!(asked[0].messages.len(), 7);
    assert_eq!(asked[0].settings["preserve_recent_turns"], 5);
    assert_eq!(recorded_collections(&stage), ["Threshold scripted: 6/3 removed, 0 cut. "]);
    assert_eq!(request_texts(&last_request(&stage)), ["prompt 3"]);
    let marks: Vec<_> = session.history().entries().iter().map(|entry| entry.mark).collect();
    assert_eq!(marks, [vec![Some(MessageMark::Collected); 6], vec![None; 2]].concat());
    assert_eq!(session.facts().turns, 4, "turns that went were turns all the same");
}

#[tokio::test(start_paused = true)]
async fn gc_does_not_run_below_the_threshold() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 2).await;
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("so"), usage_action(7_950)])
        .add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "x").await;
    run_turn(&mut session, "y").await;
    assert!(stage.gc.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn missing_token_count_is_estimated_as_a_quarter_of_the_bytes() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    for _ in 0..3 {
        stage.provider.add_answer([ScriptedProviderAction::text("so")]);
        run_turn(&mut session, &"word ".repeat(2_400)).await;
    }
    let asked = stage.gc.requests();
    assert_eq!(asked.len(), 1, "three times 3,000 tokens of 10,000");
    assert!((9_000..9_500).contains(&asked[0].total_tokens), "{}", asked[0].total_tokens);
    assert_eq!(last_request(&stage).messages.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn gc_runs_when_the_turn_limit_is_exceeded() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(2)]);
    let settings = GcSettings { max_turns: 3, ..GcSettings::default() };
    session_after_turns(&stage, gc_setup(settings), 5).await;
    let reasons: Vec<_> = stage.gc.requests().iter().map(|asked| asked.reason).collect();
    assert_eq!(reasons, [GcReason::TurnLimit]);
    assert_eq!(
        request_texts(&last_request(&stage)),
        ["prompt 2", "so", "prompt 3", "so", "prompt 4"]
    );
}

#[tokio::test(start_paused = true)]
async fn gc_does_not_run_automatically_if_auto_trigger_is_off() {
    let settings = GcSettings { auto_trigger: false, ..GcSettings::default() };
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, gc_setup(settings), 2).await;
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("so"), usage_action(9_000)])
        .add_answer([ScriptedProviderAction::text("so"), usage_action(9_001)]);
    run_turn(&mut session, "x").await;
    run_turn(&mut session, "y").await;
    assert!(stage.gc.requests().is_empty());
    // It still helps a refused request.
    stage
        .provider
        .add_answer([overflow_action()])
        .add_answer([ScriptedProviderAction::text("done")]);
    assert_eq!(run_turn(&mut session, "z").await.outcome, Outcome::Done);
    assert_eq!(stage.gc.requests()[0].reason, GcReason::ContextLimit);
}

#[tokio::test(start_paused = true)]
async fn gc_can_run_after_a_turn_instead_of_before_a_request() {
    let settings = GcSettings { check_before_send: false, ..GcSettings::default() };
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, gc_setup(settings), 2).await;
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(9_000)]);
    run_turn(&mut session, "x").await;
    assert_eq!(stage.gc.requests().len(), 1);
    assert_eq!(request_texts(&session.next_request()), ["x", "so"]);
    let events = stage.events.events();
    assert!(matches!(events.last(), Some(Event::TurnFinished { .. })), "the turn's end comes last");
}

#[tokio::test(start_paused = true)]
async fn refused_request_is_sent_again_after_a_gc() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 3).await;
    stage
        .provider
        .add_answer([overflow_action()])
        .add_answer([ScriptedProviderAction::text("done"), usage_action(50)]);
    let report = run_turn(&mut session, "now").await;
    assert_eq!((report.outcome, report.steps), (Outcome::Done, 1));
    let asked = stage.gc.requests();
    assert_eq!((asked.len(), asked[0].reason), (1, GcReason::ContextLimit));
    assert!(asked[0].total_tokens >= 10_000, "what was refused fills the window");
    assert_eq!(recorded_collections(&stage), ["ContextLimit scripted: 6/3 removed, 0 cut. "]);
    assert_eq!(request_texts(&last_request(&stage)), ["now"]);
    // The next turn uses the provider's count, and needs no gc.
    stage.provider.add_answer([ScriptedProviderAction::text("more")]);
    run_turn(&mut session, "again").await;
    assert_eq!(stage.gc.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn repeated_overflow_is_retried_up_to_the_limit() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 3).await;
    let before = stage.provider.requests().len();
    for _ in 0..20 {
        stage.provider.add_answer([overflow_action()]);
    }
    let report = run_turn(&mut session, &"word ".repeat(4_000)).await;
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::ContextOverflow, "prompt is too long")
    );
    assert!(error.hint.unwrap().contains("larger window"));
    let requests = stage.provider.requests().len() - before;
    assert_eq!(requests, usize::try_from(OVERFLOWS_MAX).unwrap() + 1);
    // The prompt stays, and can be sent again.
    stage.provider.drop_unused_answers();
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    assert_eq!(session.repeat_last_turn(&Cancel::new()).await.outcome, Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn overflow_with_nothing_to_remove_fails_at_once() {
    let stage = TestStage::new([]);
    stage.provider.add_answer([overflow_action()]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let report = run_turn(&mut session, "hi").await;
    assert_eq!(report.error.unwrap().kind, ErrorKind::ContextOverflow);
    assert_eq!(stage.provider.requests().len(), 1);
    assert_eq!(recorded_collections(&stage), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn overflow_after_partial_output_is_not_retried() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 3).await;
    stage.provider.add_answer([ScriptedProviderAction::text("so "), overflow_action()]);
    let report = run_turn(&mut session, "now").await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(stage.gc.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn user_can_start_a_gc_between_turns() {
    let stage = TestStage::new([]);
    let planner = |request: &jaato_types::GcRequest| GcPlan {
        note: Some("n".repeat(1_000)),
        drop: (0..request.messages.len() - 2).collect(),
        ..GcPlan::default()
    };
    stage
        .gc
        .add_gc([ScriptedGcAction::plan_of(planner), ScriptedGcAction::Plan(GcPlan::default())]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 4).await;
    let report = session.collect_for_user(&Cancel::new()).await.unwrap();
    let GcReport { messages_removed, turns_removed, tokens_before, tokens_after, note, .. } =
        report;
    assert_eq!((messages_removed, turns_removed, tokens_before), (6, 3, 110));
    assert!(tokens_after < 110);
    assert_eq!(note.unwrap().len(), 400, "a note has its bound");
    let report = session.collect_for_user(&Cancel::new()).await.unwrap();
    assert_eq!((report.messages_removed, report.tokens_after), (0, report.tokens_before));
    let lines = recorded_collections(&stage);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1], "Manual scripted: 0/0 removed, 0 cut. ");
}

#[tokio::test(start_paused = true)]
async fn manual_gc_without_a_gc_plugin_fails_with_a_hint() {
    let stage = TestStage::new([]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 1).await;
    let error = session.collect_for_user(&Cancel::new()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "this session has no gc\nhint: name a plugin under `[gc] plugin`"
    );
    assert_eq!(session.facts().gc, None);
}

#[tokio::test(start_paused = true)]
async fn tools_can_read_the_gc_settings() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([]);
    let settings =
        GcSettings { threshold_percent: 70.into(), max_turns: 9, ..GcSettings::default() };
    let facts = stage.start(gc_setup(settings)).unwrap().facts().gc.unwrap();
    assert!((facts.threshold_percent - 70.0).abs() < 1e-9);
    assert_eq!((facts.max_turns, facts.preserve_recent_turns), (Some(9), 5));
}

#[tokio::test(start_paused = true)]
async fn assumed_window_is_reported_once_when_it_matters() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut setup = TestStage::setup();
    setup.model.origin = WindowOrigin::Assumed;
    let mut session = session_after_turns(&stage, setup, 2).await;
    assert_eq!(stage.events.notices(), "");
    for _ in 0..3 {
        stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(9_000)]);
        run_turn(&mut session, "x").await;
    }
    assert_eq!(
        stage.events.notices(),
        "host: unknown context window for `test/model`, assuming 10000 tokens; set \
         `context_limit` under `[models.\"test/model\"]`\n"
    );
}

#[tokio::test(start_paused = true)]
async fn assumed_window_shrinks_to_the_refused_size() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut setup = TestStage::setup();
    setup.model.origin = WindowOrigin::Assumed;
    let mut session = session_after_turns(&stage, setup, 2).await;
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(4_990)]);
    run_turn(&mut session, "x").await;
    stage
        .provider
        .add_answer([overflow_action()])
        .add_answer([ScriptedProviderAction::text("so"), usage_action(4_100)]);
    run_turn(&mut session, "y").await;
    stage.provider.add_answer([ScriptedProviderAction::text("so")]);
    run_turn(&mut session, "z").await;
    let asked = stage.gc.requests();
    let reasons: Vec<_> = asked.iter().map(|asked| asked.reason).collect();
    assert_eq!(reasons, [GcReason::ContextLimit, GcReason::Threshold]);
    // 4,990 and 10, and the refused prompt.
    assert!((5_000..5_030).contains(&asked[1].context_limit), "{}", asked[1].context_limit);
}

#[tokio::test(start_paused = true)]
async fn finished_turns_are_removed_before_the_open_turn_is_changed() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    // At its threshold the gc keeps everything. When it is asked again because the window is full,
    // it helps.
    stage
        .gc
        .add_gc([ScriptedGcAction::Plan(GcPlan::default()), ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 2).await;
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(8_500)]);
    run_turn(&mut session, "prompt 2").await;
    let look = |id: &str, tokens| {
        [ScriptedProviderAction::call(id, "look", json!({ "n": id })), usage_action(tokens)]
    };
    stage
        .provider
        .add_answer(look("1", 9_000))
        .add_answer(look("2", 9_600))
        .add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "prompt 3").await;
    let reasons: Vec<_> = stage.gc.requests().iter().map(|asked| asked.reason).collect();
    assert_eq!(reasons, [GcReason::Threshold, GcReason::ContextLimit]);
    assert_eq!(recorded_collections(&stage), ["ContextLimit scripted: 6/3 removed, 0 cut. "]);
    let request = last_request(&stage);
    assert_eq!(request.messages.len(), 5, "the open turn is whole: {:?}", request_texts(&request));
}

#[tokio::test(start_paused = true)]
async fn note_about_removed_turns_is_sent_once_and_keeps_its_place() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 2).await;
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("so"), usage_action(9_000)])
        .add_answer([ScriptedProviderAction::text("done"), usage_action(300)]);
    run_turn(&mut session, "prompt 2").await;
    run_turn(&mut session, "prompt 3").await;
    let first = last_request(&stage);
    let told: Vec<String> = first.messages.iter().map(jaato_types::Message::text).collect();
    assert_eq!(told, [format!("{REMOVED}prompt 3")]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("done"), usage_action(9_000)])
        .add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "prompt 4").await;
    assert_eq!(last_request(&stage).messages[..1], first.messages[..]);
    // After another collection the note appears once, at the new position.
    run_turn(&mut session, "prompt 5").await;
    let told: Vec<String> =
        last_request(&stage).messages.iter().map(jaato_types::Message::text).collect();
    assert_eq!(told, [format!("{REMOVED}prompt 5")]);
    let record = session.history().entries();
    assert_eq!(record[record.len() - 2].message.text(), "prompt 5");
}

#[tokio::test(start_paused = true)]
async fn impossible_token_counts_are_ignored() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = stage.start(TestStage::setup_with_limit(1_000_000)).unwrap();
    for prompt_tokens in [5_000_000, u64::MAX] {
        stage
            .provider
            .add_answer([ScriptedProviderAction::text("so"), usage_action(prompt_tokens)]);
        run_turn(&mut session, "hi").await;
    }
    assert!(stage.gc.requests().is_empty());
    assert!(session.facts().prompt_tokens < 1_000, "{:?}", session.facts());
    let notices = stage.events.notices();
    assert_eq!(notices.matches("which is impossible").count(), 1, "{notices}");
}

fn output_usage_action(
    prompt_tokens: u64,
    output_tokens: u64,
    reasoning_tokens: u64,
) -> ScriptedProviderAction {
    let usage = Usage { prompt_tokens, output_tokens, reasoning_tokens, ..Usage::default() };
    ScriptedProviderAction::Usage(usage)
}

#[tokio::test(start_paused = true)]
async fn impossible_output_counts_neither_remove_turns_nor_reach_a_cap() {
    for (output, reasoning) in [(u64::MAX, 0), (1_900_000, 0), (u64::MAX, u64::MAX - 5)] {
        let stage = TestStage::new([]);
        stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
        let mut setup = TestStage::setup_with_limit(32_000);
        setup.caps.tokens = Some(1_000);
        let mut session = session_after_turns(&stage, setup, 2).await;
        for _ in 0..3 {
            let used = output_usage_action(20, output, reasoning);
            stage.provider.add_answer([ScriptedProviderAction::text("so"), used]);
            assert_eq!(run_turn(&mut session, "hi").await.outcome, Outcome::Done);
        }
        assert!(stage.gc.requests().is_empty());
        assert_eq!(last_request(&stage).messages.len(), 9, "the history is whole");
        assert!(session.facts().output_tokens < 50, "{:?}", session.facts());
        let notices = stage.events.notices();
        assert_eq!(notices.matches("which is impossible").count(), 1, "{notices}");
    }
}

#[tokio::test(start_paused = true)]
async fn hidden_reasoning_removes_no_turns_but_is_paid_for() {
    for reasoning in [49_990, 0] {
        let stage = TestStage::new([]);
        stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
        let mut session = stage.start(TestStage::setup_with_limit(128_000)).unwrap();
        for _ in 0..2 {
            let used = output_usage_action(60_000, 50_000, reasoning);
            stage.provider.add_answer([ScriptedProviderAction::text("short"), used]);
            run_turn(&mut session, &"word ".repeat(12_000)).await;
        }
        assert!(stage.gc.requests().is_empty());
        assert_eq!(last_request(&stage).messages.len(), 3, "the history is whole");
        assert_eq!(session.usage().tokens, 220_000);
        assert_eq!(stage.events.notices(), "");
    }
}

/// Records how a saved session's record changes.
#[derive(Default)]
struct RecordedChanges(parking_lot::Mutex<(SavedRecord, Vec<String>)>);

impl SessionSaver for RecordedChanges {
    fn save_record(&self, entries: &[Arc<HistoryEntry>]) {
        let (record, changes) = &mut *self.0.lock();
        changes.extend(record.take_changes(entries).iter().map(|change| match change {
            RecordChange::Append { .. } => "append".to_owned(),
            RecordChange::Replace { index, entry } => format!("replace {index} {:?}", entry.mark),
            RecordChange::Cut { length } => format!("cut {length}"),
            RecordChange::Forget { index, count } => format!("forget {index}+{count}"),
        }));
    }

    fn save_rules(&self, _: &SharedRules) {}
    fn save_state(&self, _: SavedState, _: &SharedObjects) {}
    fn save_name(&self, _: &str) {}
    fn save_pending(&self) {}
    fn save_call_result(&self, _: &ToolResult) {}

    fn save_call_start<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn wait_until_written(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn is_saving(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn saved_session_gets_each_mark_before_the_message_is_forgotten() {
    let stage = TestStage::new([]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let saver = Arc::<RecordedChanges>::default();
    let ports = SessionPorts { saver: Some(saver.clone()), ..stage.ports() };
    let mut session =
        Session::start(TestStage::setup_with_limit(u64::from(u32::MAX)), ports).unwrap();
    // Two of these are more than a session keeps in memory.
    let large = "x".repeat(usize::try_from(COLLECTED_BYTES_MAX / 2).unwrap());
    for prompt in [&large, &large, "third"] {
        stage.provider.add_answer([ScriptedProviderAction::text("so")]);
        run_turn(&mut session, prompt).await;
    }
    saver.0.lock().1.clear();
    session.collect_for_user(&Cancel::new()).await.unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "fourth").await;
    let marks = (0..4).map(|index| format!("replace {index} Some(Collected)"));
    let changes = saver.0.lock().1.clone();
    assert_eq!(changes[..4], marks.collect::<Vec<_>>());
    let forgotten: Vec<_> = changes.iter().filter(|it| it.starts_with("forget")).collect();
    assert_eq!(forgotten, ["forget 0+1"]);
    assert!(changes.iter().all(|change| !change.starts_with("cut")), "{changes:?}");
    assert_eq!(session.history().entries().len(), 7);
    assert_eq!(session.facts().turns, 4);
}
