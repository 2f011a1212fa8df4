//! Tests which entries a history accepts and which it refuses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_session::{History, HistoryEntry, HistoryError, MessageMark};
use jaato_types::{CallId, DataPart, Message, Part, Role, ToolCall, ToolResult};
use serde_json::{Map, json};

fn call_part(id: &str) -> Part {
    Part::ToolCall(ToolCall::new(id, "look", json!({})))
}

fn result_part(id: &str) -> Part {
    let (call_id, content) = (CallId::from(id), Map::new());
    Part::ToolResult(ToolResult { call_id, name: "look".into(), content, ..ToolResult::default() })
}

fn data_part() -> Part {
    Part::Data(DataPart::blob("image/png", "b1"))
}

fn text_part() -> Part {
    Part::text("t")
}

fn history_entry(role: Role, parts: impl IntoIterator<Item = Part>) -> HistoryEntry {
    HistoryEntry {
        message: Message { role, parts: parts.into_iter().collect() },
        mark: None,
        ..HistoryEntry::default()
    }
}

fn user_entry() -> HistoryEntry {
    history_entry(Role::User, [text_part()])
}

fn mark_entry(entry: HistoryEntry, mark: MessageMark) -> HistoryEntry {
    HistoryEntry { mark: Some(mark), ..entry }
}

#[track_caller]
fn check_accepted(entries: Vec<HistoryEntry>) -> History {
    let history = History::restore(entries.clone()).unwrap();
    let kept: Vec<&HistoryEntry> = history.entries().iter().map(|entry| &**entry).collect();
    assert_eq!(kept, entries.iter().collect::<Vec<_>>());
    let json = serde_json::to_string(&kept).unwrap();
    let read: Vec<HistoryEntry> = serde_json::from_str(&json).unwrap();
    assert_eq!(read, entries, "an entry survives its JSON");
    history
}

#[track_caller]
fn check_refused(entries: Vec<HistoryEntry>, expected: HistoryError) {
    assert_eq!(History::restore(entries), Err(expected));
}

#[test]
fn unknown_parts_are_accepted_and_unknown_roles_are_refused() {
    let smell = || Part::Unknown(json!({ "type": "smell", "of": 1 }).as_object().unwrap().clone());
    check_accepted(vec![
        history_entry(Role::User, [text_part(), smell()]),
        history_entry(Role::Model, [smell(), call_part("1")]),
        history_entry(Role::Tool, [result_part("1"), smell()]),
        history_entry(Role::Model, [smell()]),
    ]);
    check_refused(
        vec![user_entry(), history_entry(Role::Unknown, [text_part()])],
        HistoryError::Role { expected: "an answer", found: Role::Unknown },
    );
}

#[test]
fn histories_that_providers_accept_are_valid() {
    check_accepted(vec![]);
    check_accepted(vec![
        history_entry(Role::User, [text_part(), data_part()]),
        history_entry(Role::Model, [text_part()]),
        user_entry(),
    ]);
    check_accepted(vec![
        user_entry(),
        history_entry(Role::Model, [call_part("1"), text_part(), call_part("2")]),
        history_entry(Role::Tool, [result_part("1"), result_part("2"), text_part(), data_part()]),
        history_entry(Role::Model, [call_part("3")]),
        history_entry(Role::Tool, [result_part("3")]),
        mark_entry(history_entry(Role::Model, [text_part()]), MessageMark::Partial),
    ]);
}

#[test]
fn unsent_prompts_are_recorded_but_not_sent() {
    let unsent = || mark_entry(user_entry(), MessageMark::Unsent);
    let history = check_accepted(vec![
        unsent(),
        unsent(),
        user_entry(),
        history_entry(Role::Model, [text_part()]),
        unsent(),
    ]);
    assert_eq!((history.messages().count(), history.turn_count()), (2, 1));
}

#[test]
fn collected_and_truncated_messages_stay_in_the_record() {
    let collected = |entry| mark_entry(entry, MessageMark::Collected);
    let summary = Part::text("before: much");
    let sent = Message { role: Role::User, parts: vec![summary, Part::text("short"), data_part()] };
    let cut = HistoryEntry {
        sent: Some(sent.clone()),
        ..history_entry(Role::User, [text_part(), data_part()])
    };
    let history = check_accepted(vec![
        collected(user_entry()),
        collected(history_entry(Role::Model, [call_part("1")])),
        collected(history_entry(Role::Tool, [result_part("1")])),
        collected(history_entry(Role::Model, [text_part()])),
        cut,
        history_entry(Role::Model, [call_part("2")]),
        history_entry(Role::Tool, [result_part("2")]),
    ]);
    assert_eq!((history.messages().count(), history.turn_count()), (3, 2));
    assert_eq!(history.messages().next(), Some(&sent));
    assert!(history.has_call(&"1".into()), "an id stays taken");
}

#[test]
fn sent_message_of_another_kind_than_its_entry_is_refused() {
    let instead = |sent: Message| HistoryEntry { sent: Some(sent), ..user_entry() };
    check_refused(vec![instead(Message::model(vec![text_part()]))], HistoryError::Sent);
    check_refused(vec![instead(Message { role: Role::User, parts: vec![] })], HistoryError::Sent);
    check_refused(
        vec![instead(Message { role: Role::User, parts: vec![data_part()] })],
        HistoryError::Sent,
    );
    let answered = |sent: Part| {
        let sent = Message { role: Role::Tool, parts: vec![sent] };
        let results =
            HistoryEntry { sent: Some(sent), ..history_entry(Role::Tool, [result_part("1")]) };
        vec![user_entry(), history_entry(Role::Model, [call_part("1")]), results]
    };
    check_accepted(answered(result_part("1")));
    check_refused(answered(result_part("2")), HistoryError::Sent);
    check_refused(answered(text_part()), HistoryError::Sent);
}

#[test]
fn roles_out_of_order_are_refused() {
    let model = || history_entry(Role::Model, [text_part()]);
    let role = |expected, found| HistoryError::Role { expected, found };
    check_refused(vec![model()], role("a prompt", Role::Model));
    check_refused(vec![user_entry(), user_entry()], role("an answer", Role::User));
    check_refused(vec![user_entry(), model(), model()], role("a prompt", Role::Model));
    check_refused(
        vec![user_entry(), history_entry(Role::Tool, [result_part("1")])],
        role("an answer", Role::Tool),
    );
    let open = || vec![user_entry(), history_entry(Role::Model, [call_part("1")])];
    check_refused([open(), vec![user_entry()]].concat(), role("tool results", Role::User));
    let answered = || [open(), vec![history_entry(Role::Tool, [result_part("1")])]].concat();
    check_refused([answered(), vec![user_entry()]].concat(), role("an answer", Role::User));
}

#[test]
fn results_must_match_the_calls_one_to_one_in_order() {
    let results = |parts: Vec<Part>| {
        let ids = parts.iter().filter_map(Part::as_tool_result);
        let results = ids.map(|result| result.call_id.clone()).collect();
        let entries = vec![
            user_entry(),
            history_entry(Role::Model, [call_part("1"), call_part("2")]),
            history_entry(Role::Tool, parts),
        ];
        check_refused(
            entries,
            HistoryError::Results { calls: vec!["1".into(), "2".into()], results },
        );
    };
    results(vec![result_part("1")]);
    results(vec![result_part("2"), result_part("1")]);
    results(vec![result_part("1"), result_part("1")]);
    results(vec![result_part("1"), result_part("2"), result_part("3")]);
    results(vec![text_part()]);
    let between = history_entry(Role::Tool, [result_part("1"), text_part(), result_part("2")]);
    let entries =
        vec![user_entry(), history_entry(Role::Model, [call_part("1"), call_part("2")]), between];
    check_refused(entries, HistoryError::Part(Role::Tool));
}

#[test]
fn empty_and_duplicate_call_ids_are_refused() {
    check_refused(
        vec![user_entry(), history_entry(Role::Model, [call_part("")])],
        HistoryError::EmptyCallId,
    );
    let twice = HistoryError::DuplicateCallId("1".into());
    check_refused(
        vec![user_entry(), history_entry(Role::Model, [call_part("1"), call_part("1")])],
        twice.clone(),
    );
    let later = vec![
        user_entry(),
        history_entry(Role::Model, [call_part("1")]),
        history_entry(Role::Tool, [result_part("1")]),
        history_entry(Role::Model, [call_part("1")]),
    ];
    check_refused(later, twice);
}

#[test]
fn empty_messages_and_misplaced_parts_and_marks_are_refused() {
    check_refused(vec![history_entry(Role::User, [])], HistoryError::Empty(Role::User));
    check_refused(
        vec![user_entry(), history_entry(Role::Model, [])],
        HistoryError::Empty(Role::Model),
    );
    check_refused(
        vec![history_entry(Role::User, [call_part("1")])],
        HistoryError::Part(Role::User),
    );
    check_refused(
        vec![user_entry(), history_entry(Role::Model, [result_part("1")])],
        HistoryError::Part(Role::Model),
    );
    check_refused(
        vec![mark_entry(user_entry(), MessageMark::Partial)],
        HistoryError::Mark(Role::User),
    );
    let unsent = mark_entry(history_entry(Role::Model, [text_part()]), MessageMark::Unsent);
    check_refused(vec![user_entry(), unsent], HistoryError::Mark(Role::Model));
}

#[test]
fn results_error_names_the_calls_and_the_results() {
    let entries = vec![
        user_entry(),
        history_entry(Role::Model, [call_part("1")]),
        history_entry(Role::Tool, [text_part()]),
    ];
    let error = History::restore(entries).unwrap_err();
    let expected = "the tool results (none) do not answer the tool calls `1` in order";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn refused_append_leaves_the_history_unchanged() {
    let mut history = check_accepted(vec![user_entry()]);
    let before = history.clone();
    history.append_answer(vec![call_part("1"), call_part("1")], None).unwrap_err();
    history.append_prompt(vec![text_part()]).unwrap_err();
    history.append_results(vec![], vec![]).unwrap_err();
    assert_eq!(history, before);
    history.append_answer(vec![call_part("1")], None).unwrap();
}
