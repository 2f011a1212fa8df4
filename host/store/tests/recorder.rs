//! Tests which records events produce, and what must never be recorded.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::expect;
use jaato_store::{DigestKey, EventRecorder, EventTime, LedgerRecord, LedgerStage};
use jaato_types::{
    CallId, Error, ErrorKind, Event, EventEnvelope, FinishReason, Outcome, SessionId, ToolName,
    Usage,
};
use serde_json::{Value, json};

/// 2026-11-21T19:40:03.123Z.
const START_MS: u64 = 1_795_290_003_123;

/// Feeds events at intervals of ten milliseconds, and returns the records.
fn record_events(events: Vec<Event>) -> Vec<LedgerRecord> {
    let mut recorder = EventRecorder::new(Some(DigestKey::new([7; 32])));
    let mut made = Vec::new();
    for (at, event) in events.into_iter().enumerate() {
        let at = at as u64;
        let session = SessionId::from("s1");
        let envelope = EventEnvelope { v: 1, seq: at + 1, session, event };
        let now = EventTime { wall_ms: START_MS + at * 10, monotonic_ms: at * 10 };
        made.extend(recorder.records_for_event(&envelope, now));
    }
    made
}

fn format_records(records: &[LedgerRecord]) -> String {
    let line = |record: &LedgerRecord| String::from_utf8(record.to_line().unwrap()).unwrap();
    records.iter().map(line).collect()
}

fn start_events() -> Vec<Event> {
    let turn = Event::TurnStarted { prompt: "my password is hunter2".into(), woken_by: Vec::new() };
    let (tools, agent, opener) = (Vec::new(), None, None);
    let model = "test/moon".into();
    vec![Event::SessionStarted { model, tools, agent, opener }, turn]
}

fn ask_event(call_id: &CallId, name: &ToolName) -> Event {
    let words = json!({
        "call_id": call_id, "name": name, "arguments": { "password": "hunter2" },
        "rule": "file.ask", "place": "/rules.toml:3", "why": "hunter2", "title": "hunter2",
        "patterns": ["hunter2"], "commands": ["hunter2"], "risks": ["hunter2"],
        "hosts": ["hunter2"], "times": 1, "agent_type": "subagent", "agent_name": "Scout",
    });
    Event::PermissionAsked(serde_json::from_value(words).unwrap())
}

fn call_events(arguments: Value, result: Value, is_error: bool) -> Vec<Event> {
    let (call_id, name) = (CallId::from("c1"), ToolName::from("look"));
    let result = result.as_object().unwrap().clone();
    vec![
        ask_event(&call_id, &name),
        Event::PermissionDecided {
            call_id: call_id.clone(),
            name: name.clone(),
            allowed: !is_error,
            rule: "ask.silence".into(),
            place: Some("/rules.toml:3".into()),
            comment: Some("my hunter2 comment".into()),
            answered_by: "terminal".into(),
            scope: "session".into(),
            remembered: Some("calls of `look` that only run `hunter2`".into()),
            pattern: "command".into(),
            agent_type: "subagent".into(),
            agent_name: "Scout".into(),
        },
        Event::ToolCallStarted {
            call_id: call_id.clone(),
            name: name.clone(),
            source: "eye".into(),
            arguments,
            parent: None,
            by: None,
        },
        Event::ToolOutput {
            call_id: call_id.clone(),
            source: "eye".into(),
            text: "hunter2".into(),
        },
        Event::ToolCallFinished {
            call_id,
            name,
            source: "eye".into(),
            result,
            is_error,
            duration_ms: 5,
        },
    ]
}

fn step_events(step: u32, usage: Option<Usage>, finish_reason: FinishReason) -> Vec<Event> {
    let text = Event::TextDelta { source: "model".into(), text: "hunter2".into() };
    let usage = usage.map(|usage| Event::Usage { usage });
    [Event::StepStarted { step }, text]
        .into_iter()
        .chain(usage)
        .chain([Event::StepFinished { step, finish_reason }])
        .collect()
}

fn end_events(outcome: Outcome, error: Option<Error>) -> Vec<Event> {
    vec![Event::TurnFinished { outcome, text: "hunter2".into(), error }]
}

#[test]
fn turn_is_recorded_as_responses_calls_decisions_and_end() {
    let usage = Usage { prompt_tokens: 20, output_tokens: 5, cached_tokens: 8, ..Usage::default() };
    let made = record_events(
        [
            start_events(),
            step_events(1, Some(usage), FinishReason::ToolUse),
            call_events(json!({ "at": "hunter2" }), json!({ "seen": "hunter2" }), false),
            step_events(2, None, FinishReason::Stop),
            end_events(Outcome::Done, None),
        ]
        .concat(),
    );
    expect![[r#"
        {"v":1,"ts":"2026-11-21T19:40:03.173Z","session":"s1","turn":1,"event_index":1,"stage":"response","model":"test/moon","step":1,"attempt":1,"prompt_tokens":20,"output_tokens":5,"total_tokens":25,"cached_tokens":8,"finish_reason":"tool_use","duration_ms":30}
        {"v":1,"ts":"2026-11-21T19:40:03.183Z","session":"s1","turn":1,"event_index":2,"stage":"permission-request","call_id":"c1","tool":"look","rule":"file.ask","place":"/rules.toml:3","agent_type":"subagent","agent_name":"Scout"}
        {"v":1,"ts":"2026-11-21T19:40:03.193Z","session":"s1","turn":1,"event_index":3,"stage":"permission-check","call_id":"c1","tool":"look","allowed":true,"rule":"ask.silence","place":"/rules.toml:3","answered_by":"terminal","scope":"session","pattern":"command","agent_type":"subagent","agent_name":"Scout"}
        {"v":1,"ts":"2026-11-21T19:40:03.223Z","session":"s1","turn":1,"event_index":4,"stage":"tool-call","step":1,"call_id":"c1","tool":"look","source":"eye","arguments_bytes":16,"arguments_digest":"DIGEST","result_bytes":18,"ok":true,"duration_ms":5}
        {"v":1,"ts":"2026-11-21T19:40:03.253Z","session":"s1","turn":1,"event_index":5,"stage":"response","model":"test/moon","step":2,"attempt":1,"finish_reason":"stop","duration_ms":20}
        {"v":1,"ts":"2026-11-21T19:40:03.263Z","session":"s1","turn":1,"event_index":6,"stage":"turn","model":"test/moon","outcome":"done","steps":2,"duration_ms":130}
    "#]]
    .assert_eq(&without_digest(&format_records(&made)));
}

fn without_digest(lines: &str) -> String {
    let (before, rest) = lines.split_once("\"arguments_digest\":\"").unwrap();
    format!("{before}\"arguments_digest\":\"DIGEST{}", &rest[16..])
}

#[test]
fn records_contain_no_text_of_arguments_results_or_errors() {
    let failed = Error::new(ErrorKind::Provider, "the key hunter2 is wrong").with_hint("hunter2");
    let error = json!({ "error": { "kind": "invalid_arguments", "message": "hunter2 is wrong" } });
    let retry =
        Event::Retry { attempt: 1, delay_ms: 9, error: failed.clone(), answer_restarts: false };
    let made = record_events(
        [
            start_events(),
            call_events(json!({ "password": "hunter2" }), error, true),
            vec![Event::StepStarted { step: 1 }, retry],
            step_events(1, None, FinishReason::Error).split_off(1),
            end_events(Outcome::Failed, Some(failed)),
        ]
        .concat(),
    );
    let text = format_records(&made);
    assert!(!text.contains("hunter2") && !text.contains("password"), "{text}");
    let kind = |record: &LedgerRecord| match &record.stage {
        LedgerStage::ToolCall { error_kind, .. } | LedgerStage::Turn { error_kind, .. } => {
            *error_kind
        }
        LedgerStage::ApiError { error_kind, .. } => Some(*error_kind),
        _ => None,
    };
    let kinds: Vec<_> = made.iter().filter_map(kind).collect();
    let provider = ErrorKind::Provider;
    assert_eq!(kinds, [ErrorKind::InvalidArguments, provider, provider, provider]);
}

#[test]
fn each_retry_and_the_final_failure_are_separate_records() {
    let busy = Error::new(ErrorKind::Timeout, "busy").temporary();
    let retry = |attempt| Event::Retry {
        attempt,
        delay_ms: 3,
        error: busy.clone(),
        answer_restarts: false,
    };
    let made = record_events(
        [
            start_events(),
            vec![Event::StepStarted { step: 1 }, retry(1), retry(2)],
            vec![Event::StepFinished { step: 1, finish_reason: FinishReason::Error }],
            end_events(Outcome::Failed, Some(busy.clone())),
        ]
        .concat(),
    );
    let attempts: Vec<_> = made
        .iter()
        .filter_map(|record| match &record.stage {
            LedgerStage::ApiError { attempt, transient, retry_delay_ms, .. } => {
                Some((*attempt, *transient, *retry_delay_ms))
            }
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [(1, true, Some(3)), (2, true, Some(3)), (3, false, None)]);
}

#[test]
fn user_actions_outside_of_turns_are_recorded_with_turn_0() {
    let call = call_events(json!({}), json!({}), false);
    let command = |event: fn(CallId) -> Event| event(CallId::from("k1"));
    let commands = vec![
        command(|call_id| Event::CommandStarted {
            call_id,
            name: "note".into(),
            source: "book".into(),
            arguments: json!({ "text": "hunter2" }),
        }),
        command(|call_id| Event::CommandFinished {
            call_id,
            name: "note".into(),
            source: "book".into(),
            result: json!({ "kept": true }).as_object().unwrap().clone(),
            is_error: false,
            shared: true,
            duration_ms: 2,
        }),
    ];
    let turn = [start_events().split_off(1), end_events(Outcome::Cancelled, None)].concat();
    let made =
        record_events([start_events()[..1].to_vec(), call.clone(), turn, commands, call].concat());
    let turns: Vec<_> = made.iter().map(|record| (record.turn, record.event_index)).collect();
    assert_eq!(turns, [(0, 1), (0, 2), (0, 3), (1, 4), (0, 5), (0, 6), (0, 7), (0, 8)]);
    let text = format_records(&made);
    assert!(text.contains(r#""stage":"command","command":"note","source":"book""#), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn records_read_back_unchanged_and_unknown_stages_are_accepted() {
    let made = record_events(
        [
            start_events(),
            step_events(1, Some(Usage::default()), FinishReason::ToolUse),
            call_events(json!({}), json!({}), false),
            end_events(Outcome::Limit, None),
        ]
        .concat(),
    );
    for record in made {
        let line = record.to_line().unwrap();
        assert_eq!(serde_json::from_slice::<LedgerRecord>(&line).unwrap(), record);
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
    }
    let line = r#"{"v":2,"ts":"t","session":"s","turn":1,"event_index":1,"stage":"moon","x":1}"#;
    assert_eq!(serde_json::from_str::<LedgerRecord>(line).unwrap().stage, LedgerStage::Unknown);
}
