//! Tools that are offered once messages were left out, and the notes that name them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::collecting::*;
use jaato_session::testing::{ScriptedGcAction, ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, History, Session, SessionSetup};
use jaato_types::{CompletionRequest, Condition, ErrorKind, GcPlan, Message};

fn collecting_stage() -> TestStage {
    let find = ScriptedTool::echo("find").available_if(Condition::MessagesCollected, "later");
    TestStage::new([ScriptedTool::echo("look"), find])
}

fn offered_tool_names(request: &CompletionRequest) -> Vec<&str> {
    request.tools.iter().map(|spec| spec.name.as_str()).collect()
}

async fn send_prompt(stage: &TestStage, session: &mut Session, prompt: &str) -> CompletionRequest {
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(200)]);
    run_turn(session, prompt).await;
    last_request(stage)
}

#[tokio::test(start_paused = true)]
async fn tool_joins_with_the_collection_and_a_note_names_it() {
    let stage = collecting_stage();
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 3).await;
    assert_eq!(offered_tool_names(&last_request(&stage)), ["look"]);
    session.collect_for_user(&Cancel::new()).await.unwrap();
    let request = send_prompt(&stage, &mut session, "next").await;
    assert_eq!(offered_tool_names(&request), ["look", "find"]);
    let note = "[Earlier turns of this conversation were removed here to save room. `find` finds \
                what they contain.]\n\nprompt 2";
    assert_eq!(request.messages[0].text(), note);
    let later = send_prompt(&stage, &mut session, "later").await;
    assert_eq!(later.tools, request.tools);
    assert_eq!(later.messages[..3], request.messages[..3], "the request stays as it was sent");

    let setup = SessionSetup { history: session.history().clone(), ..TestStage::setup() };
    let mut session = stage.start(setup).unwrap();
    let request = send_prompt(&stage, &mut session, "after a restart").await;
    assert_eq!(offered_tool_names(&request), ["look", "find"]);
}

#[tokio::test(start_paused = true)]
async fn replaced_answer_offers_no_tool() {
    let stage = collecting_stage();
    let mut session = session_after_turns(&stage, TestStage::setup(), 2).await;
    stage.provider.add_answer([ScriptedProviderAction::text("another"), usage_action(100)]);
    session.repeat_last_turn(&Cancel::new()).await;
    assert_eq!(offered_tool_names(&last_request(&stage)), ["look"]);
    let setup = SessionSetup { history: session.history().clone(), ..TestStage::setup() };
    let mut session = stage.start(setup).unwrap();
    assert_eq!(offered_tool_names(&send_prompt(&stage, &mut session, "go on").await), ["look"]);
}

#[tokio::test(start_paused = true)]
async fn summary_says_which_tool_has_the_rest() {
    let stage = collecting_stage();
    stage.gc.add_gc([ScriptedGcAction::plan_of(|_| GcPlan {
        drop: vec![0, 1, 2, 3],
        summary: Some(Message::user("They spoke.\n\n")),
        ..GcPlan::default()
    })]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 3).await;
    session.collect_for_user(&Cancel::new()).await.unwrap();
    let request = send_prompt(&stage, &mut session, "next").await;
    let expected = "They spoke.\n\n[The summary above replaces earlier turns. `find` finds what \
                    they contain.]\n\nprompt 2";
    assert_eq!(request.messages[0].text(), expected);
}

#[tokio::test(start_paused = true)]
async fn record_says_what_was_collected_and_in_which_turn() {
    let stage = collecting_stage();
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 2).await;
    session.collect_for_user(&Cancel::new()).await.unwrap();
    send_prompt(&stage, &mut session, "next").await;
    let record = session.handle().published_record().unwrap();
    let collected: Vec<bool> = record.entries.iter().map(|entry| entry.is_collected()).collect();
    assert_eq!(collected, [true, true, false, false, false, false]);
    assert!(record.entries.iter().all(|entry| !entry.is_shortened()), "a note shortens nothing");
    assert_eq!(record.turns_forgotten, 0);
    let history = History::restore(record.entries).unwrap();
    assert_eq!(history.turn_count(), 3);
}

#[tokio::test(start_paused = true)]
async fn collection_is_taken_back_once_with_its_messages_and_without_its_notes() {
    let stage = collecting_stage();
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1), ScriptedGcAction::keep_last_turns(1)]);
    let mut session = session_after_turns(&stage, TestStage::setup(), 3).await;
    assert_eq!(session.undo_gc().unwrap_err().kind, ErrorKind::NotFound);
    let before = session.next_request();
    session.collect_for_user(&Cancel::new()).await.unwrap();
    let undone = session.undo_gc().unwrap();
    assert_eq!((undone.messages_restored, undone.messages_whole), (4, 0));
    assert!(undone.tokens_after > undone.tokens_before, "{undone:?}");
    assert_eq!(session.next_request(), before, "the tool has left, too");
    assert_eq!(session.undo_gc().unwrap_err().kind, ErrorKind::NotFound);

    session.collect_for_user(&Cancel::new()).await.unwrap();
    send_prompt(&stage, &mut session, "next").await;
    session.undo_gc().unwrap();
    let expected = [&request_texts(&before)[..], &["next".to_owned(), "so".to_owned()]].concat();
    assert_eq!(request_texts(&session.next_request()), expected, "what came since stays");
}

#[tokio::test(start_paused = true)]
async fn collection_that_does_not_fit_is_not_taken_back() {
    let stage = collecting_stage();
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(1)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    for tokens in [4_300, 8_600] {
        stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(tokens)]);
        run_turn(&mut session, &"long ".repeat(3_400)).await;
    }
    stage.provider.add_answer([ScriptedProviderAction::text("so"), usage_action(600)]);
    run_turn(&mut session, "prompt 2").await;
    let collected = session.next_request();
    let error = session.undo_gc().unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitReached);
    assert!(error.message.starts_with("the messages do not fit: with them"), "{error}");
    assert!(error.message.ends_with("of 10000 tokens, and jaato makes room at 80 %"), "{error}");
    assert_eq!(session.next_request(), collected);
}
