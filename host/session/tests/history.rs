//! Tests which entries a history accepts and which it refuses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_session::{History, HistoryEntry, HistoryError, MessageMark};
use jaato_types::{CallId, DataPart, Message, Part, Role, ToolCall, ToolResult};
use serde_json::{Map, json};

fn call(id: &str) -> Part {
    Part::ToolCall(ToolCall::new(id, "look", json!({})))
}

fn result(id: &str) -> Part {
    let (call_id, content) = (CallId::from(id), Map::new());
    Part::ToolResult(ToolResult { call_id, name: "look".into(), content, ..ToolResult::default() })
}

fn data_part() -> Part {
    Part::Data(DataPart::blob("image/png", "b1"))
}

fn text() -> Part {
    Part::text("t")
}

fn entry(role: Role, parts: impl IntoIterator<Item = Part>) -> HistoryEntry {
    HistoryEntry {
        message: Message { role, parts: parts.into_iter().collect() },
        mark: None,
        ..HistoryEntry::default()
    }
}

fn user() -> HistoryEntry {
    entry(Role::User, [text()])
}

fn mark_entry(entry: HistoryEntry, mark: MessageMark) -> HistoryEntry {
    HistoryEntry { mark: Some(mark), ..entry }
}

#[track_caller]
fn takes(entries: Vec<HistoryEntry>) -> History {
    let history = History::restore(entries.clone()).unwrap();
    let kept: Vec<&HistoryEntry> = history.entries().iter().map(|entry| &**entry).collect();
    assert_eq!(kept, entries.iter().collect::<Vec<_>>());
    let json = serde_json::to_string(&kept).unwrap();
    let read: Vec<HistoryEntry> = serde_json::from_str(&json).unwrap();
    assert_eq!(read, entries, "an entry survives its JSON");
    history
}

#[track_caller]
fn refuses(entries: Vec<HistoryEntry>, expected: HistoryError) {
    assert_eq!(History::restore(entries), Err(expected));
}

#[test]
fn unknown_parts_are_accepted_and_unknown_roles_are_refused() {
    let smell = || Part::Unknown(json!({ "type": "smell", "of": 1 }).as_object().unwrap().clone());
    takes(vec![
        entry(Role::User, [text(), smell()]),
        entry(Role::Model, [smell(), call("1")]),
        entry(Role::Tool, [result("1"), smell()]),
        entry(Role::Model, [smell()]),
    ]);
    refuses(
        vec![user(), entry(Role::Unknown, [text()])],
        HistoryError::Role { expected: "an answer", found: Role::Unknown },
    );
}

#[test]
fn histories_that_providers_accept_are_valid() {
    takes(vec![]);
    takes(vec![entry(Role::User, [text(), data_part()]), entry(Role::Model, [text()]), user()]);
    takes(vec![
        user(),
        entry(Role::Model, [call("1"), text(), call("2")]),
        entry(Role::Tool, [result("1"), result("2"), text(), data_part()]),
        entry(Role::Model, [call("3")]),
        entry(Role::Tool, [result("3")]),
        mark_entry(entry(Role::Model, [text()]), MessageMark::Partial),
    ]);
}

#[test]
fn unsent_prompts_are_recorded_but_not_sent() {
    let unsent = || mark_entry(user(), MessageMark::Unsent);
    let history = takes(vec![unsent(), unsent(), user(), entry(Role::Model, [text()]), unsent()]);
    assert_eq!((history.messages().count(), history.turn_count()), (2, 1));
}

#[test]
fn collected_and_truncated_messages_stay_in_the_record() {
    let collected = |entry| mark_entry(entry, MessageMark::Collected);
    let summary = Part::text("before: much");
    let sent = Message { role: Role::User, parts: vec![summary, Part::text("short"), data_part()] };
    let cut = HistoryEntry { sent: Some(sent.clone()), ..entry(Role::User, [text(), data_part()]) };
    let history = takes(vec![
        collected(user()),
        collected(entry(Role::Model, [call("1")])),
        collected(entry(Role::Tool, [result("1")])),
        collected(entry(Role::Model, [text()])),
        cut,
        entry(Role::Model, [call("2")]),
        entry(Role::Tool, [result("2")]),
    ]);
    assert_eq!((history.messages().count(), history.turn_count()), (3, 2));
    assert_eq!(history.messages().next(), Some(&sent));
    assert!(history.has_call(&"1".into()), "an id stays taken");
}

#[test]
fn sent_message_of_another_kind_than_its_entry_is_refused() {
    let instead = |sent: Message| HistoryEntry { sent: Some(sent), ..user() };
    refuses(vec![instead(Message::model(vec![text()]))], HistoryError::Sent);
    refuses(vec![instead(Message { role: Role::User, parts: vec![] })], HistoryError::Sent);
    refuses(
        vec![instead(Message { role: Role::User, parts: vec![data_part()] })],
        HistoryError::Sent,
    );
    let answered = |sent: Part| {
        let sent = Message { role: Role::Tool, parts: vec![sent] };
        let results = HistoryEntry { sent: Some(sent), ..entry(Role::Tool, [result("1")]) };
        vec![user(), entry(Role::Model, [call("1")]), results]
    };
    takes(answered(result("1")));
    refuses(answered(result("2")), HistoryError::Sent);
    refuses(answered(text()), HistoryError::Sent);
}

#[test]
fn roles_out_of_order_are_refused() {
    let model = || entry(Role::Model, [text()]);
    let role = |expected, found| HistoryError::Role { expected, found };
    refuses(vec![model()], role("a prompt", Role::Model));
    refuses(vec![user(), user()], role("an answer", Role::User));
    refuses(vec![user(), model(), model()], role("a prompt", Role::Model));
    refuses(vec![user(), entry(Role::Tool, [result("1")])], role("an answer", Role::Tool));
    let open = || vec![user(), entry(Role::Model, [call("1")])];
    refuses([open(), vec![user()]].concat(), role("tool results", Role::User));
    let answered = || [open(), vec![entry(Role::Tool, [result("1")])]].concat();
    refuses([answered(), vec![user()]].concat(), role("an answer", Role::User));
}

#[test]
fn results_must_match_the_calls_one_to_one_in_order() {
    let results = |parts: Vec<Part>| {
        let ids = parts.iter().filter_map(Part::as_tool_result);
        let results = ids.map(|result| result.call_id.clone()).collect();
        let entries =
            vec![user(), entry(Role::Model, [call("1"), call("2")]), entry(Role::Tool, parts)];
        refuses(entries, HistoryError::Results { calls: vec!["1".into(), "2".into()], results });
    };
    results(vec![result("1")]);
    results(vec![result("2"), result("1")]);
    results(vec![result("1"), result("1")]);
    results(vec![result("1"), result("2"), result("3")]);
    results(vec![text()]);
    let between = entry(Role::Tool, [result("1"), text(), result("2")]);
    let entries = vec![user(), entry(Role::Model, [call("1"), call("2")]), between];
    refuses(entries, HistoryError::Part(Role::Tool));
}

#[test]
fn empty_and_duplicate_call_ids_are_refused() {
    refuses(vec![user(), entry(Role::Model, [call("")])], HistoryError::EmptyCallId);
    let twice = HistoryError::DuplicateCallId("1".into());
    refuses(vec![user(), entry(Role::Model, [call("1"), call("1")])], twice.clone());
    let later = vec![
        user(),
        entry(Role::Model, [call("1")]),
        entry(Role::Tool, [result("1")]),
        entry(Role::Model, [call("1")]),
    ];
    refuses(later, twice);
}

#[test]
fn empty_messages_and_misplaced_parts_and_marks_are_refused() {
    refuses(vec![entry(Role::User, [])], HistoryError::Empty(Role::User));
    refuses(vec![user(), entry(Role::Model, [])], HistoryError::Empty(Role::Model));
    refuses(vec![entry(Role::User, [call("1")])], HistoryError::Part(Role::User));
    refuses(vec![user(), entry(Role::Model, [result("1")])], HistoryError::Part(Role::Model));
    refuses(vec![mark_entry(user(), MessageMark::Partial)], HistoryError::Mark(Role::User));
    let unsent = mark_entry(entry(Role::Model, [text()]), MessageMark::Unsent);
    refuses(vec![user(), unsent], HistoryError::Mark(Role::Model));
}

#[test]
fn results_error_names_the_calls_and_the_results() {
    let entries = vec![user(), entry(Role::Model, [call("1")]), entry(Role::Tool, [text()])];
    let error = History::restore(entries).unwrap_err();
    let expected = "the tool results (none) do not answer the tool calls `1` in order";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn refused_append_leaves_the_history_unchanged() {
    let mut history = takes(vec![user()]);
    let before = history.clone();
    history.append_answer(vec![call("1"), call("1")], None).unwrap_err();
    history.append_prompt(vec![text()]).unwrap_err();
    history.append_results(vec![], vec![]).unwrap_err();
    assert_eq!(history, before);
    history.append_answer(vec![call("1")], None).unwrap();
}
