//! The user's commands: their events, their end, and what the model sees of them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use futures_util::future::BoxFuture;
use jaato_session::testing::{ScriptedProviderAction, TestStage};
use jaato_session::{CallScope, Cancel, CommandCall, SHARED_ANSWERS_MAX, Session};
use jaato_types::{DataContent, DataPart, Error, ErrorKind, Event, Outcome, Output, Part, Result};
use serde_json::{Value, json};

fn command_call(name: &str, share_with_model: bool) -> CommandCall {
    let (name, source, arguments) = (name.to_owned(), "book".to_owned(), json!({ "text": "a" }));
    CommandCall { name, source, arguments, share_with_model }
}

fn answer_with(value: Value) -> impl FnOnce(CallScope) -> BoxFuture<'static, Result<Output>> {
    move |scope| {
        scope.output.write("writing");
        Box::pin(std::future::ready(Ok(Output::json(value))))
    }
}

fn hanging_answer(_scope: CallScope) -> BoxFuture<'static, Result<Output>> {
    Box::pin(std::future::pending())
}

fn event_names(stage: &TestStage) -> Vec<String> {
    let name = |event: Event| serde_json::to_value(event).unwrap()["event"].clone();
    let names = stage.events.events().into_iter().map(name);
    names.skip(1).map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Returns the last request's data about commands, as the model gets it.
fn sent_objects(stage: &TestStage) -> Vec<Value> {
    let request = stage.provider.requests().pop().unwrap();
    let parts = request.messages.into_iter().flat_map(|message| message.parts);
    let json = |part| match part {
        Part::Data(DataPart { content: DataContent::Json { json, .. }, .. }) => Some(json),
        _ => None,
    };
    parts.filter_map(json).collect()
}

fn start_session(stage: &TestStage) -> Session {
    stage.start(TestStage::setup()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn only_shared_command_results_are_sent_once_with_the_next_prompt() {
    let stage = TestStage::new([]);
    let session = &mut start_session(&stage);
    let cancel = Cancel::new();
    let output =
        session.run_command(command_call("note", true), answer_with(json!({ "kept": 1 })), &cancel);
    assert_eq!(output.await.unwrap().content["kept"], 1);
    session
        .run_command(command_call("secret", false), answer_with(json!({ "x": 2 })), &cancel)
        .await
        .unwrap();
    assert_eq!(
        event_names(&stage),
        [
            "command_started",
            "tool_output",
            "command_finished",
            "command_started",
            "tool_output",
            "command_finished"
        ]
    );
    let is_shared = |event| match event {
        Event::CommandFinished { shared, .. } => Some(shared),
        _ => None,
    };
    let shared: Vec<_> = stage.events.events().into_iter().filter_map(is_shared).collect();
    assert_eq!(shared, [true, false]);

    stage
        .provider
        .add_answer([ScriptedProviderAction::text("one")])
        .add_answer([ScriptedProviderAction::text("two")]);
    session.run_turn("first", &cancel).await;
    let expected = [json!({ "user_command": "note", "answer": { "kept": 1 } })];
    assert_eq!(sent_objects(&stage), expected);
    let last = stage.provider.requests().pop().unwrap().messages.pop().unwrap();
    assert_eq!(last.text(), "first", "it is next to the prompt, not in it");
    session.run_turn("second", &cancel).await;
    assert_eq!(sent_objects(&stage), expected, "it stays in the history and is not told again");
}

#[tokio::test(start_paused = true)]
async fn shared_command_result_survives_a_failed_request() {
    let stage = TestStage::new([]);
    let session = &mut start_session(&stage);
    let cancel = Cancel::new();
    session.run_command(command_call("note", true), answer_with(json!({})), &cancel).await.unwrap();
    stage
        .provider
        .add_answer([ScriptedProviderAction::Fail(Error::new(ErrorKind::Provider, "no"))]);
    assert_eq!(session.run_turn("first", &cancel).await.outcome, Outcome::Failed);
    stage.provider.add_answer([ScriptedProviderAction::text("ok")]);
    session.run_turn("second", &cancel).await;
    assert_eq!(sent_objects(&stage), [json!({ "user_command": "note", "answer": {} })]);
}

#[tokio::test(start_paused = true)]
async fn shared_command_results_are_limited_in_number_and_size() {
    let stage = TestStage::new([]);
    let session = &mut start_session(&stage);
    let cancel = Cancel::new();
    for number in 0..=SHARED_ANSWERS_MAX {
        session
            .run_command(command_call("n", true), answer_with(json!({ "n": number })), &cancel)
            .await
            .unwrap();
    }
    let large = json!({ "text": "x".repeat(100_000) });
    let output =
        session.run_command(command_call("n", true), answer_with(large), &cancel).await.unwrap();
    assert_eq!(output.content["text"].as_str().unwrap().len(), 100_000, "the person has it whole");
    stage.provider.add_answer([ScriptedProviderAction::text("ok")]);
    session.run_turn("go", &cancel).await;
    let told = sent_objects(&stage);
    assert_eq!((told.len(), &told[0]["answer"]["n"]), (SHARED_ANSWERS_MAX, &json!(2)));
    assert!(told.last().unwrap().to_string().len() < 20_000);
    assert_eq!(stage.outputs.files().len(), 1, "the full answer is in a file");
}

#[tokio::test(start_paused = true)]
async fn a_command_that_hangs_ends_with_the_cancel_or_its_deadline() {
    let stage = TestStage::new([]);
    let session = &mut start_session(&stage);
    let cancel = Cancel::new();
    let waiting = session.run_command(command_call("note", true), hanging_answer, &cancel);
    let (ended, ()) = tokio::join!(waiting, async { cancel.cancel() });
    assert_eq!(ended.unwrap_err().kind, ErrorKind::Cancelled);
    let before = event_names(&stage).len();
    let refused = session.run_command(command_call("note", true), hanging_answer, &cancel).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(event_names(&stage).len(), before, "a command that never began causes no event");
    let late =
        session.run_command(command_call("note", true), hanging_answer, &Cancel::new()).await;
    assert_eq!(late.unwrap_err().kind, ErrorKind::Timeout);
    stage.provider.add_answer([ScriptedProviderAction::text("ok")]);
    session.run_turn("go", &Cancel::new()).await;
    assert!(sent_objects(&stage).is_empty(), "a failure is not shared");
}
