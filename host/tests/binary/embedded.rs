//! Tests jaato inside another program: the runtime in this process, with the real plugins, and the
//! installed binary as guardian and worker.

use std::fs;
use std::sync::{Arc, OnceLock};

use jaato_runtime::session_loop::{Cancel, EventSink, Inbox, Session};
use jaato_runtime::types::{Event, EventEnvelope, Message, Outcome, Part, Role};
use jaato_runtime::{Runtime, SessionOptions};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::house;
use crate::support::command::DEADLINE;
use crate::support::embedded::read_setup;
use crate::support::{House, fixture};

const SAID: &str = "in blue, please";

type EventReaction = Box<dyn Fn(&Event) + Send + Sync>;

/// Stores all events, and runs the test's reaction to each.
#[derive(Default)]
pub struct RecordingEventSink {
    seen: Mutex<Vec<Event>>,
    reaction: OnceLock<EventReaction>,
}

impl EventSink for RecordingEventSink {
    fn receive_event(&self, envelope: EventEnvelope) {
        if let Some(react) = self.reaction.get() {
            react(&envelope.event);
        }
        self.seen.lock().push(envelope.event);
    }
}

impl RecordingEventSink {
    fn set_reaction(&self, reaction: impl Fn(&Event) + Send + Sync + 'static) {
        assert!(self.reaction.set(Box::new(reaction)).is_ok(), "a reaction is already set");
    }

    /// Returns the position of the first event of a kind.
    #[track_caller]
    fn event_position(&self, what: &str, is: impl Fn(&Event) -> bool) -> usize {
        let seen = self.seen.lock();
        seen.iter().position(is).unwrap_or_else(|| panic!("no {what} in {seen:#?}"))
    }
}

fn is_joined(event: &Event) -> bool {
    *event == Event::MessageJoined { text: SAID.to_owned() }
}

/// The result of a turn: its outcome, its text, and the history with its parts as JSON.
struct TurnResult {
    outcome: Outcome,
    text: String,
    history: Vec<(Role, Vec<Value>)>,
}

/// Runs one turn as an embedder does, to the end of the runtime.
#[track_caller]
fn run_turn(
    house: &House,
    task: &str,
    events: &Arc<RecordingEventSink>,
    react: impl FnOnce(&Session, &Runtime, &RecordingEventSink),
) -> TurnResult {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = tokio.block_on(async {
        let runtime = Runtime::start(read_setup(house)).await;
        assert_eq!(runtime.problems(), Vec::<String>::new());
        let mut options = SessionOptions::unattended(Arc::clone(events) as _);
        options.allow_all = true;
        let mut session = runtime.open_session(options).unwrap();
        react(&session, &runtime, events);
        let cancel = Cancel::new();
        let report = tokio::time::timeout(DEADLINE, session.run_turn(task, &cancel)).await;
        let report = report.expect("the turn ends in time");
        assert_eq!(report.error, None);
        let of = |message: &Message| {
            let json = |part: &Part| serde_json::to_value(part).unwrap();
            (message.role, message.parts.iter().map(json).collect())
        };
        let history = session.history().messages().map(of).collect();
        runtime.close_session(session.id()).await;
        let ending = runtime.close().await;
        assert_eq!(ending.ledger, Vec::<String>::new());
        assert!(ending.processes.is_empty());
        TurnResult { outcome: report.outcome, text: report.text, history }
    });
    house.assert_no_processes();
    told
}

/// Sends a message into a running turn.
#[track_caller]
fn send_message(inbox: &Inbox) {
    inbox.send_message(SAID).unwrap();
    assert_eq!(inbox.waiting_count(), 1, "the message waits for the next step");
}

/// Checks that a message that arrives while a tool runs follows the tool's result in the next
/// request.
#[track_caller]
fn check_message_joins_results(house: &House, in_worker: bool) {
    let go = house.path().join("go");
    let arguments = json!({ "until": go });
    let heard = json!([{ "type": "text", "text": SAID }]).to_string();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "job", "arguments": arguments } }] },
        {
            // The end of the last message. Nothing follows the sent text.
            "expect": { "messages": 3, "tool_result": heard.trim_start_matches('[') },
            "steps": [{ "text": "as you say" }],
        },
    ] }));
    let events = Arc::new(RecordingEventSink::default());
    let told = run_turn(house, "paint it", &events, |session, runtime, events| {
        let registry = runtime.registry();
        let plugin = registry.plugin("fixture-probe").expect("the plugin was found");
        assert_eq!(runtime.worker_reason(plugin).is_some(), in_worker);
        let inbox = session.inbox();
        events.set_reaction(move |event| match event {
            Event::ToolOutput { text, .. } if text == "job runs" => {
                send_message(&inbox);
                // Only now can the tool end.
                fs::write(&go, "").unwrap();
            }
            _ => {}
        });
    });
    assert_eq!((told.outcome, told.text.as_str()), (Outcome::Done, "as you say"));
    let [(Role::User, _), (Role::Model, _), (Role::Tool, parts), (Role::Model, _)] =
        told.history.as_slice()
    else {
        panic!("{:#?}", told.history);
    };
    let [result, said] = parts.as_slice() else { panic!("{parts:#?}") };
    assert_eq!(result["type"], "tool_result", "{parts:#?}");
    assert!(result.to_string().contains("thread"), "{parts:#?}");
    assert_eq!(*said, json!({ "type": "text", "text": SAID }));
    let finished =
        events.event_position("end of the call", |it| matches!(it, Event::ToolCallFinished { .. }));
    let joined = events.event_position("message", is_joined);
    let answered = events.event_position("answer", |it| matches!(it, Event::TextDelta { .. }));
    assert!(finished < joined && joined < answered, "{finished}, {joined}, {answered}");
}

#[test]
fn embedded_message_during_a_tool_call_joins_its_result() {
    let house = house!(ships "probe");
    check_message_joins_results(&house, false);
}

#[test]
fn embedded_message_during_a_worker_tool_call_joins_its_result() {
    let house = house!();
    let probe = fixture("probe");
    let name = probe.file_name().unwrap().to_str().unwrap();
    house.write_given_file(name, &fs::read(&probe).unwrap());
    check_message_joins_results(&house, true);
}

#[test]
fn embedded_message_during_the_final_answer_is_answered_in_that_turn() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "text": "red" }, { "text": " it is" }] },
        { "expect": { "prompt": SAID, "messages": 3 }, "steps": [{ "text": "blue it is" }] },
    ] }));
    let events = Arc::new(RecordingEventSink::default());
    let told = run_turn(&house, "paint it", &events, |session, _, events| {
        let inbox = session.inbox();
        events.set_reaction(move |event| match event {
            Event::TextDelta { text, .. } if text == "red" => send_message(&inbox),
            _ => {}
        });
    });
    assert_eq!((told.outcome, told.text.as_str()), (Outcome::Done, "blue it is"));
    let text = |text: &str| vec![json!({ "type": "text", "text": text })];
    let history = [
        (Role::User, text("paint it")),
        (Role::Model, text("red it is")),
        (Role::User, text(SAID)),
        (Role::Model, text("blue it is")),
    ];
    assert_eq!(told.history, history);
    let joined = events.event_position("message", is_joined);
    let went_on = events.event_position(
        "answer",
        |it| matches!(it, Event::TextDelta { text, .. } if text == "blue it is"),
    );
    let ended = events.event_position("end", |it| matches!(it, Event::TurnFinished { .. }));
    assert!(joined < went_on && went_on < ended, "{joined}, {went_on}, {ended}");
}
