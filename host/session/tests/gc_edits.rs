//! Edits of a plan: results that are shortened, reads that are repeated, images that are described,
//! and summaries that are replaced.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::collecting::*;
use jaato_session::testing::{ScriptedGcAction, ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, GcSettings, History, Session, UserPrompt};
use jaato_types::{DataPart, Event, GcChange, GcEdit, GcPlan, Message, Outcome, Part};
use serde_json::{Value, json};

fn plan_with_edits(edits: Vec<GcEdit>) -> GcPlan {
    GcPlan { edits, note: Some("smaller".to_owned()), ..GcPlan::default() }
}

/// Runs a turn with two reads of one file, and a second one with an image.
async fn session_after_reads(stage: &TestStage, settings: GcSettings) -> Session {
    let mut session = stage.start(gc_setup(settings)).unwrap();
    let text = "0123456789 ".repeat(300);
    for id in ["1", "2"] {
        let arguments = json!({ "path": "a", "text": text });
        stage.provider.add_answer([ScriptedProviderAction::call(id, "readFile", arguments)]);
    }
    stage.provider.add_answer([ScriptedProviderAction::text("read"), usage_action(4_000)]);
    assert_eq!(run_turn(&mut session, "read it twice").await.outcome, Outcome::Done);
    stage.provider.add_answer([ScriptedProviderAction::text("a cat"), usage_action(4_100)]);
    let image = DataPart::blob("image/png", "00");
    let prompt = UserPrompt::from("what is this?").with_file(image);
    assert_eq!(session.run_turn(prompt, &Cancel::new()).await.outcome, Outcome::Done);
    stage.provider.add_answer([ScriptedProviderAction::text("fine"), usage_action(4_200)]);
    run_turn(&mut session, "thanks").await;
    session
}

/// The messages: 0 prompt, 1 call, 2 result, 3 call, 4 result, 5 answer, 6 prompt with an image,
/// 7 answer, 8 prompt, 9 answer.
fn all_edits() -> Vec<GcEdit> {
    vec![
        GcEdit::new(2, 0, GcChange::Repeated { by: "2".into() }),
        GcEdit::new(4, 0, GcChange::Shorten { bytes_max: 700 }),
        GcEdit::new(6, 0, GcChange::Describe { attachment: None, text: "[a cat]".to_owned() }),
        GcEdit::new(0, 0, GcChange::Unknown),
    ]
}

fn result_content(message: &Message) -> Value {
    Value::Object(message.tool_results().next().unwrap().content.clone())
}

#[tokio::test(start_paused = true)]
async fn results_are_shortened_reads_are_replaced_and_images_described() {
    let stage = TestStage::new([ScriptedTool::echo("readFile")]);
    let again = vec![GcEdit::new(4, 0, GcChange::Shorten { bytes_max: 700 })];
    stage
        .gc
        .add_gc([plan_with_edits(all_edits()), plan_with_edits(again)].map(ScriptedGcAction::Plan));
    let mut session = session_after_reads(&stage, GcSettings::default()).await;
    let before = session.history().clone();
    let report = session.collect_for_user(&Cancel::new()).await.unwrap();
    assert_eq!((report.messages_removed, report.messages_cut), (0, 3));
    assert!(report.tokens_after < report.tokens_before * 2 / 3, "{report:?}");
    assert_eq!(recorded_collections(&stage), ["Manual scripted: 0/0 removed, 3 cut. smaller"]);
    let request = session.next_request();
    let outdated = "the later call `2` of `readFile` has the current result";
    assert_eq!(result_content(&request.messages[2]), json!({ "outdated": outdated }));
    let short = result_content(&request.messages[4]);
    assert!(short.to_string().len() < 800 && short["output_file"].is_string(), "{short}");
    assert_eq!(request.messages[6].parts[0], Part::text("[a cat]"));
    // The record has the originals, and a restored session sends the same.
    let of_record = |history: &History| {
        history.entries().iter().map(|entry| entry.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of_record(session.history()), of_record(&before));
    let json = serde_json::to_string(session.history().entries()).unwrap();
    let saved: Vec<jaato_session::HistoryEntry> = serde_json::from_str(&json).unwrap();
    let restored = History::restore(saved).unwrap();
    assert!(restored.messages().eq(session.history().messages()));
    // A result that is short already stays.
    assert_eq!(session.collect_for_user(&Cancel::new()).await.unwrap().messages_cut, 0);
}

#[tokio::test(start_paused = true)]
async fn bad_edit_is_refused_in_one_event_and_the_conversation_continues() {
    let shorten = || GcChange::Shorten { bytes_max: 700 };
    let cases = [
        (GcEdit::new(99, 0, shorten()), "it changes message 99, and there are 13"),
        (GcEdit::new(12, 0, shorten()), "it changes message 12, but it belongs to the last turn"),
        (GcEdit::new(6, 0, shorten()), "it changes message 6, but it belongs to a pinned turn"),
        (GcEdit::new(3, 0, shorten()), "it changes part 0 of message 3, but it is the model's"),
        (
            GcEdit::new(0, 0, GcChange::Remove),
            "it changes part 0 of message 0, but it is not a summary",
        ),
    ];
    for (edit, expected) in cases {
        let stage = TestStage::new([ScriptedTool::echo("readFile")]);
        let good = GcEdit::new(4, 0, shorten());
        stage.gc.add_gc([ScriptedGcAction::Plan(plan_with_edits(vec![good, edit]))]);
        let settings = GcSettings { pinned_turn_indices: vec![1], ..GcSettings::default() };
        let mut session = session_after_reads(&stage, settings).await;
        stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(9_000)]);
        run_turn(&mut session, "more").await;
        stage.provider.add_answer([ScriptedProviderAction::text("done")]);
        let before = session.history().messages().cloned().collect::<Vec<_>>();
        assert_eq!(run_turn(&mut session, "and now?").await.outcome, Outcome::Done);
        let line = format!(
            "Threshold scripted: 0/0 removed, 0 cut. the gc's plan is not valid: {expected}"
        );
        assert_eq!(recorded_collections(&stage), [line]);
        assert!(session.history().messages().take(before.len()).eq(before.iter()));
    }
}

#[tokio::test(start_paused = true)]
async fn summary_takes_the_place_of_the_removed_turns_and_can_be_replaced() {
    let stage = TestStage::new([]);
    let summary = |text: &str| Some(Message::user(text));
    let first = GcPlan { drop: vec![2, 3], summary: summary("[one] "), ..GcPlan::default() };
    let second = GcPlan {
        drop: vec![4, 5],
        summary: summary("[one and two] "),
        edits: vec![GcEdit::new(2, 0, GcChange::Remove)],
        ..GcPlan::default()
    };
    let own = GcPlan { edits: vec![GcEdit::new(2, 1, GcChange::Remove)], ..GcPlan::default() };
    stage.gc.add_gc([first, second, own].map(ScriptedGcAction::Plan));
    let mut session = session_after_turns(&stage, TestStage::setup(), 5).await;
    session.collect_for_user(&Cancel::new()).await.unwrap();
    let texts_now = |session: &Session| request_texts(&session.next_request());
    assert_eq!(texts_now(&session)[..3], ["prompt 0", "so", "[one] prompt 2"]);
    session.collect_for_user(&Cancel::new()).await.unwrap();
    let expected = ["prompt 0", "so", "prompt 2", "so", "[one and two] prompt 4", "so"];
    assert_eq!(texts_now(&session), expected);
    let error = session.collect_for_user(&Cancel::new()).await.unwrap_err();
    assert!(error.message.ends_with("but that part does not exist"), "{error}");
    let has_event = |event: &Event| matches!(event, Event::Gc { error: Some(_), .. });
    assert_eq!(stage.events.events().iter().filter(|event| has_event(event)).count(), 1);
}
