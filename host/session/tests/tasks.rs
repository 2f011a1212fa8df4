//! Long calls continue as background tasks, and user messages during a turn join the next request.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, Inbox, Limits, Session, SessionSetup};
use jaato_types::hooks::Hook;
use jaato_types::tasks::TaskStatus;
use jaato_types::{DataContent, DataPart, ErrorKind, Event, Message, Outcome, Part, Role};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A second, in milliseconds.
const S: u64 = 1_000;

fn work_call(ms: u64) -> ScriptedProviderAction {
    ScriptedProviderAction::call("1", "work", json!({ "ms": ms }))
}

fn task_stage() -> TestStage {
    TestStage::new([ScriptedTool::sleeping("work").background(), ScriptedTool::sleeping("read")])
}

/// Lists the parts of a message.
fn part_texts(message: &Message) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text { text, .. } => format!("text {text}"),
        Part::ToolCall(call) => format!("call {}", call.id),
        Part::ToolResult(result) => format!("result {}", result.call_id),
        Part::Data(DataPart { content: DataContent::Json { json, .. }, .. }) => {
            let outcome = &json["task_outcome"];
            format!("{} {}", outcome["task_id"], outcome["status"]).replace('"', "")
        }
        Part::Data(_)
        | Part::Thought { .. }
        | Part::Opaque(_)
        | Part::ToolsChanged(_)
        | Part::Unknown(_) => "other".to_owned(),
    };
    message.parts.iter().map(part).collect()
}

fn task_outcome(session: &Session) -> Value {
    let found =
        session.history().messages().flat_map(|message| &message.parts).find_map(
            |part| match part {
                Part::Data(DataPart { content: DataContent::Json { json, .. }, .. }) => {
                    Some(json.clone())
                }
                _ => None,
            },
        );
    found.expect("an outcome was sent")["task_outcome"].clone()
}

#[tokio::test(start_paused = true)]
async fn long_call_becomes_a_background_task_and_the_turn_waits_for_it() {
    let stage = task_stage();
    stage
        .provider
        .add_answer([work_call(60 * S)])
        .add_answer([ScriptedProviderAction::text("started")])
        .add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let start = Instant::now();
    let report = session.run_turn("go", &Cancel::new()).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "done"));
    assert_eq!(start.elapsed(), Duration::from_secs(60));

    let messages: Vec<Vec<String>> = session.history().messages().map(part_texts).collect();
    let expected: [&[&str]; 6] = [
        &["text go"],
        &["call 1"],
        &["result 1"],
        &["text started"],
        &["task_1 completed"],
        &["text done"],
    ];
    assert_eq!(messages, expected);
    let handle = &session.history().entries()[2].message.parts[0].as_tool_result().unwrap().content;
    assert_eq!(handle["auto_backgrounded"], true);
    assert_eq!(handle["task_id"], "task_1");
    assert_eq!((&handle["plugin_name"], &handle["tool_name"]), (&json!("work"), &json!("work")));
    assert_eq!(handle["threshold_seconds"], 10.0);
    let outcome = task_outcome(&session);
    assert_eq!(outcome["result"], json!({ "slept_ms": 60 * S }));
    assert_eq!((&outcome["duration_seconds"], &outcome["call_id"]), (&json!(60.0), &json!("1")));
    assert_eq!(session.facts().turns, 1, "an outcome is not a prompt from the user");
}

#[tokio::test(start_paused = true)]
async fn turn_can_end_before_its_tasks_whose_end_wakes_the_session() {
    let stage = task_stage();
    stage
        .provider
        .add_answer([work_call(60 * S)])
        .add_answer([ScriptedProviderAction::text("started")])
        .add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    session.allow_background_tasks();
    let (start, wake) = (Instant::now(), session.wake_waiter());
    let report = session.run_turn("go", &Cancel::new()).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "started"));
    assert_eq!((start.elapsed(), session.running_task_count()), (Duration::from_secs(10), 1));
    let running = session.handle().running_tasks().unwrap();
    assert_eq!(running[0].facts.task_id, "task_1");
    assert_eq!(running[0].arguments, json!({ "ms": 60 * S }));
    wake.wait_for_wake().await;
    assert_eq!(start.elapsed(), Duration::from_secs(60));
    let report = session.run_woken_turn(&Cancel::new()).await;
    assert_eq!((report.text.as_str(), session.running_task_count()), ("done", 0));
}

#[tokio::test(start_paused = true)]
async fn waiting_user_messages_can_be_taken_back_before_a_request() {
    let stage = task_stage();
    let session = stage.start(TestStage::setup()).unwrap();
    let inbox = session.inbox();
    inbox.send_message("one").unwrap();
    session.handle().notify_model(&"moon".into(), "full".to_owned()).unwrap();
    inbox.send_message("two").unwrap();
    assert_eq!(inbox.take_back_messages(), ["one", "two"]);
    assert_eq!(
        (inbox.take_back_messages().len(), inbox.waiting_count()),
        (0, 1),
        "what a plugin said stays"
    );
}

#[tokio::test(start_paused = true)]
async fn task_outcome_joins_the_results_of_the_next_calls() {
    let stage = task_stage();
    stage.provider.add_answer([work_call(15 * S)]);
    stage.provider.add_answer([ScriptedProviderAction::call("2", "read", json!({ "ms": 20 * S }))]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    session.run_turn("go", &Cancel::new()).await;
    let messages: Vec<Vec<String>> = session.history().messages().map(part_texts).collect();
    assert_eq!(messages[4], ["result 2", "task_1 completed"]);
}

#[tokio::test(start_paused = true)]
async fn quick_calls_foreground_tools_and_user_calls_are_awaited() {
    let stage = task_stage();
    stage.provider.add_answer([
        work_call(9 * S),
        ScriptedProviderAction::call("2", "read", json!({ "ms": 50 * S })),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    session.run_turn("go", &Cancel::new()).await;
    let output =
        session.run_user_call(&"work".into(), json!({ "ms": 30 * S }), &Cancel::new()).await;
    assert_eq!(output.unwrap().content["slept_ms"], 30 * S);
    let is_task = |event: &Event| matches!(event, Event::TaskStarted { .. });
    assert!(!stage.events.events().iter().any(is_task));
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_task_limit_stay_in_the_foreground() {
    let stage = task_stage();
    let call = |id: &str| ScriptedProviderAction::call(id, "work", json!({ "ms": 60 * S }));
    stage.provider.add_answer([call("1"), call("2"), call("3")]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("started")])
        .add_answer([ScriptedProviderAction::text("done")]);
    let limits = Limits { tasks_max: 2, ..Limits::default() };
    let mut session = stage.start(SessionSetup { limits, ..TestStage::setup() }).unwrap();
    session.run_turn("go", &Cancel::new()).await;
    let results = &session.history().entries()[2].message;
    let backgrounded: Vec<bool> =
        results.tool_results().map(|it| it.content.contains_key("auto_backgrounded")).collect();
    assert_eq!(backgrounded, [true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_at_the_deadline_that_its_call_had() {
    let stage = task_stage();
    stage
        .provider
        .add_answer([work_call(10_000 * S)])
        .add_answer([ScriptedProviderAction::text("a")])
        .add_answer([ScriptedProviderAction::text("b")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let start = Instant::now();
    session.run_turn("go", &Cancel::new()).await;
    assert_eq!(start.elapsed(), Duration::from_secs(600));
    let outcome = task_outcome(&session);
    assert_eq!(outcome["status"], "timeout");
    assert_eq!(outcome["result"]["error"]["kind"], "timeout");
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_background_tasks_and_is_recorded_in_the_history() {
    let stage = task_stage();
    stage
        .provider
        .add_answer([work_call(600 * S)])
        .add_answer([ScriptedProviderAction::text("started")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let cancel = Cancel::new();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        cancel.cancel();
    };
    let start = Instant::now();
    let (report, ()) = tokio::join!(session.run_turn("go", &cancel), stop);
    assert_eq!((report.outcome, start.elapsed().as_secs()), (Outcome::Cancelled, 30));
    assert_eq!(session.running_task_count(), 0);
    let messages: Vec<Vec<String>> = session.history().messages().map(part_texts).collect();
    assert_eq!(messages[4], ["task_1 cancelled"]);
    assert_eq!(messages[5], ["text [Generation cancelled]"]);
    stage.provider.add_answer([ScriptedProviderAction::text("going on")]);
    assert_eq!(session.run_turn("continue", &Cancel::new()).await.text, "going on");
}

#[tokio::test(start_paused = true)]
async fn background_task_continues_between_turns_and_joins_the_next_prompt() {
    let stage = task_stage();
    stage.provider.add_answer([work_call(60 * S)]);
    let limits = Limits { steps_max: 2, ..Limits::default() };
    let mut session = stage.start(SessionSetup { limits, ..TestStage::setup() }).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("started")]);
    let report = session.run_turn("go", &Cancel::new()).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Limit, "started"));
    assert_eq!(session.running_task_count(), 1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(session.running_task_count(), 0);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("and?", &Cancel::new()).await;
    let messages: Vec<Vec<String>> = session.history().messages().map(part_texts).collect();
    assert_eq!(messages[4], ["task_1 completed", "text and?"]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_task_wakes_no_session_and_is_reported_with_the_next_prompt() {
    let stage = task_stage();
    stage.provider.add_answer([work_call(60 * S)]);
    let limits = Limits { steps_max: 2, ..Limits::default() };
    let mut session = stage.start(SessionSetup { limits, ..TestStage::setup() }).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("started")]);
    session.run_turn("go", &Cancel::new()).await;
    let facts = session.handle().cancel_task("task_1").unwrap();
    assert_eq!(facts.status, TaskStatus::Running);
    let wake = session.wake_waiter();
    let woken = tokio::time::timeout(Duration::from_secs(3600), wake.wait_for_wake()).await;
    assert!(woken.is_err(), "who ended it knows");
    assert_eq!(session.running_task_count(), 0);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("and?", &Cancel::new()).await;
    let messages: Vec<Vec<String>> = session.history().messages().map(part_texts).collect();
    assert_eq!(messages[4], ["task_1 cancelled", "text and?"]);
    let told = task_outcome(&session)["result"].to_string();
    assert!(told.contains("the task was stopped before it finished"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn an_outcome_whose_request_failed_is_sent_with_the_next_prompt() {
    let stage = task_stage();
    stage
        .provider
        .add_answer([work_call(60 * S)])
        .add_answer([ScriptedProviderAction::text("started")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    // The provider has no third answer, so the request with the outcome fails.
    assert_eq!(session.run_turn("go", &Cancel::new()).await.outcome, Outcome::Failed);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("and?", &Cancel::new()).await;
    let messages: Vec<Vec<String>> = session.history().messages().map(part_texts).collect();
    assert_eq!(messages[4], ["task_1 completed", "text and?"]);
    assert_eq!(messages.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_dropped_ends_its_tasks() {
    struct Ends(tokio::sync::mpsc::UnboundedSender<bool>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.send(true).unwrap();
        }
    }
    let (ended, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let tool = ScriptedTool::new("work", move |_, scope| {
        let ends = Ends(ended.clone());
        async move {
            scope.cancel.cancelled().await;
            drop(ends);
            std::future::pending().await
        }
    });
    let stage = TestStage::new([tool.background()]);
    stage.provider.add_answer([work_call(0)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    assert_eq!(session.run_turn("go", &Cancel::new()).await.outcome, Outcome::Failed);
    assert_eq!(session.running_task_count(), 1);
    drop(session);
    assert_eq!(ends.recv().await, Some(true));
}

#[tokio::test(start_paused = true)]
async fn background_task_still_shows_live_output() {
    let tool = ScriptedTool::new("work", |_, scope| async move {
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(scope.output.write("late"));
        Ok(jaato_types::Output::text("x".repeat(100_000)))
    });
    let stage = TestStage::new([tool.background()]);
    stage
        .provider
        .add_answer([work_call(0)])
        .add_answer([ScriptedProviderAction::text("a")])
        .add_answer([ScriptedProviderAction::text("b")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    session.run_turn("go", &Cancel::new()).await;
    let shown = |event: &Event| matches!(event, Event::ToolOutput { text, .. } if text == "late");
    assert!(stage.events.events().iter().any(shown));
    // An outcome is limited like any result, with the full text in a file.
    assert!(task_outcome(&session).to_string().len() < 20_000);
    assert_eq!(stage.outputs.files().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn panic_in_a_background_task_fails_only_that_task() {
    let tool = ScriptedTool::new("work", |_, _| async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        panic!("of the test")
    });
    let stage = TestStage::new([tool.background()]);
    stage
        .provider
        .add_answer([work_call(0)])
        .add_answer([ScriptedProviderAction::text("a")])
        .add_answer([ScriptedProviderAction::text("b")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    assert_eq!(session.run_turn("go", &Cancel::new()).await.text, "b");
    assert_eq!(task_outcome(&session)["status"], "failed");
}

#[tokio::test(start_paused = true)]
async fn message_sent_while_tools_run_joins_their_results() {
    let stage = task_stage();
    stage.provider.add_answer([ScriptedProviderAction::call("1", "read", json!({ "ms": 5 * S }))]);
    stage.provider.add_answer([ScriptedProviderAction::text("as you say")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let inbox = session.inbox();
    let say = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        inbox.send_message("in blue, please").unwrap();
        assert_eq!(inbox.waiting_count(), 1);
    };
    let cancel = Cancel::new();
    let (report, ()) = tokio::join!(session.run_turn("paint it", &cancel), say);
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "as you say"));
    let message = &session.history().entries()[2].message;
    assert_eq!(
        (message.role, part_texts(message)),
        (Role::Tool, vec!["result 1".to_owned(), "text in blue, please".to_owned(),])
    );
    let joined = Event::MessageJoined { text: "in blue, please".to_owned() };
    assert!(stage.events.events().contains(&joined));
}

#[tokio::test(start_paused = true)]
async fn message_sent_during_the_final_answer_is_answered_in_the_same_turn() {
    let stage = task_stage();
    stage.provider.add_answer([
        ScriptedProviderAction::text("red"),
        ScriptedProviderAction::Wait(5 * S),
        ScriptedProviderAction::text(" it is"),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("blue it is")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let inbox = session.inbox();
    let say = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        inbox.send_message("in blue, please").unwrap();
    };
    let cancel = Cancel::new();
    let (report, ()) = tokio::join!(session.run_turn("paint it", &cancel), say);
    assert_eq!(report.text, "blue it is");
    let texts: Vec<String> = session.history().messages().map(Message::text).collect();
    assert_eq!(texts, ["paint it", "red it is", "in blue, please", "blue it is"]);
}

#[tokio::test(start_paused = true)]
async fn message_is_answered_while_a_background_task_runs() {
    let stage = task_stage();
    stage
        .provider
        .add_answer([work_call(60 * S)])
        .add_answer([ScriptedProviderAction::text("started")]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("heard")])
        .add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let inbox = session.inbox();
    let say = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        inbox.send_message("how is it going?").unwrap();
    };
    let cancel = Cancel::new();
    let (report, ()) = tokio::join!(session.run_turn("go", &cancel), say);
    assert_eq!(report.text, "done");
    let messages: Vec<Vec<String>> = session.history().messages().map(part_texts).collect();
    assert_eq!(messages[4], ["text how is it going?"]);
    assert_eq!(messages[6], ["task_1 completed"]);
}

#[tokio::test(start_paused = true)]
async fn message_sent_between_turns_joins_the_next_prompt() {
    let stage = task_stage();
    stage.provider.add_answer([ScriptedProviderAction::text("hello")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let inbox = session.inbox();
    inbox.send_message("by the way").unwrap();
    session.run_turn("hi", &Cancel::new()).await;
    assert_eq!(part_texts(&session.history().entries()[0].message), ["text by the way", "text hi"]);
}

#[tokio::test]
async fn message_sent_while_a_prompt_is_prepared_follows_the_prompt() {
    let stage = task_stage();
    stage.provider.add_answer([ScriptedProviderAction::text("hello")]);
    let inbox = Arc::new(OnceLock::<Inbox>::new());
    let said = Arc::clone(&inbox);
    stage.hooks.set_answer("slow", Hook::BeforePrompt, move |_| {
        for text in ["second", "third"] {
            said.get().unwrap().send_message(text).unwrap();
        }
        std::future::ready(Ok(json!({})))
    });
    let mut session = stage.start(TestStage::setup()).unwrap();
    assert!(inbox.set(session.inbox()).is_ok());
    session.run_turn("first", &Cancel::new()).await;
    let prompt = part_texts(&session.history().entries()[0].message);
    assert_eq!(prompt, ["text first", "text second", "text third"]);
}

#[tokio::test]
async fn inbox_has_a_limit_and_refuses_blank_messages() {
    let session = task_stage().start(TestStage::setup()).unwrap();
    let inbox = session.inbox();
    assert_eq!(inbox.send_message(" \n").unwrap_err().kind, ErrorKind::InvalidArguments);
    for _ in 0..jaato_session::WAITING_MESSAGES_MAX {
        inbox.send_message("x").unwrap();
    }
    assert_eq!(inbox.send_message("x").unwrap_err().kind, ErrorKind::LimitReached);
}
