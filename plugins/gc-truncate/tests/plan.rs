//! Tests which turns the plan removes: examples, random histories, and the conformance suite.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use gc_truncate::{PlanSettings, plan_truncation};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::{GcReason, ToolResult};
use jaato_plugin_testkit::conformance::{apply_plan, check_plan};

jaato_plugin_testkit::conformance!(gc_truncate: gc);

/// A pseudo-random number generator with the same sequence in every run.
struct PseudoRandomGenerator(u64);

impl PseudoRandomGenerator {
    fn next_below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Returns a turn with a prompt, an answer, and `calls` tool calls between them, each of this many
/// bytes.
fn turn_with_calls(number: usize, calls: u64, bytes: usize) -> Vec<Message> {
    let filler = "x".repeat(bytes);
    let mut messages = vec![Message::user(format!("prompt {number} {filler}"))];
    for call in 0..calls {
        let (id, name) = (format!("{number}-{call}"), "look");
        let content = jaato_plugin_sdk::serde_json::Map::from_iter([(
            "text".to_owned(),
            Value::String(filler.clone()),
        )]);
        let result = ToolResult::new(id.as_str(), name, content);
        let call = ToolCall::new(id.as_str(), name, json!({}));
        messages.push(Message::model(vec![Part::ToolCall(call)]));
        messages.push(Message::tool([result]));
    }
    messages.push(Message::model(vec![Part::text(format!("answer {number}"))]));
    messages
}

/// Returns finished turns without tool calls, followed by an open turn if `open` is set.
fn conversation_of_turns(finished: usize, open: bool) -> Vec<Message> {
    let mut messages: Vec<Message> =
        (0..finished).flat_map(|n| turn_with_calls(n, 0, 40)).collect();
    messages.extend(open.then(|| Message::user("and now?")));
    messages
}

fn gc_request(messages: Vec<Message>, total_tokens: u64) -> GcRequest {
    let mut request = GcRequest::new(GcReason::Threshold, messages);
    request.context_limit = 1_000;
    request.total_tokens = total_tokens;
    request.settings = json!({});
    request
}

#[track_caller]
fn check_dropped_turns(
    finished: usize,
    open: bool,
    settings: &PlanSettings,
    dropped_turns: &[usize],
) {
    let messages = conversation_of_turns(finished, open);
    let planned = plan_truncation(&gc_request(messages.clone(), 800), settings);
    check_plan(&messages, &planned).unwrap();
    let expected: Vec<usize> = dropped_turns.iter().flat_map(|n| [2 * n, 2 * n + 1]).collect();
    assert_eq!(planned.drop, expected);
}

#[test]
fn the_last_five_finished_turns_stay() {
    let settings = PlanSettings::default();
    check_dropped_turns(10, false, &settings, &[0, 1, 2, 3, 4]);
    check_dropped_turns(10, true, &settings, &[0, 1, 2, 3, 4]);
    check_dropped_turns(5, true, &settings, &[]);
    check_dropped_turns(0, true, &settings, &[]);
    check_dropped_turns(0, false, &settings, &[]);
}

#[test]
fn number_of_kept_turns_follows_the_setting() {
    let keep =
        |preserve_recent_turns| PlanSettings { preserve_recent_turns, ..PlanSettings::default() };
    check_dropped_turns(3, true, &keep(1), &[0, 1]);
    check_dropped_turns(3, true, &keep(0), &[0, 1, 2]);
    check_dropped_turns(3, false, &keep(0), &[0, 1]);
    check_dropped_turns(3, true, &keep(usize::MAX), &[]);
}

#[test]
fn pinned_turns_stay() {
    let settings = PlanSettings {
        preserve_recent_turns: 1,
        pinned_turn_indices: vec![1, 99],
        ..PlanSettings::default()
    };
    check_dropped_turns(4, true, &settings, &[0, 2]);
}

#[test]
fn recent_turns_are_dropped_only_if_the_request_overflows() {
    // Each turn has about a hundred tokens.
    let messages: Vec<Message> = (0..6).flat_map(|n| turn_with_calls(n, 0, 300)).collect();
    let settings = PlanSettings { pinned_turn_indices: vec![1], ..PlanSettings::default() };
    let dropped = |reason, total_tokens| {
        let mut request = gc_request(messages.clone(), total_tokens);
        request.reason = reason;
        let planned = plan_truncation(&request, &settings);
        check_plan(&messages, &planned).unwrap();
        planned.drop.iter().map(|at| at / 2).step_by(2).collect::<Vec<_>>()
    };
    assert_eq!(dropped(GcReason::Threshold, 900), [0]);
    assert_eq!(dropped(GcReason::TurnLimit, 100), [0]);
    // Still full without the first turn. Turns are removed down to 60 %, and the pinned one is
    // kept.
    assert_eq!(dropped(GcReason::Threshold, 1_100), [0, 2, 3, 4]);
    assert_eq!(dropped(GcReason::ContextLimit, 900), [0, 2, 3]);
    // The provider refused a request that seemed small, so removing turns beyond the preserved ones
    // is enough.
    assert_eq!(dropped(GcReason::ContextLimit, 600), [0]);
}

#[test]
fn manual_gc_frees_space_even_if_all_turns_are_recent() {
    let dropped = |finished, open, settings: &PlanSettings| {
        let messages = conversation_of_turns(finished, open);
        let mut request = gc_request(messages.clone(), 10);
        request.reason = GcReason::Manual;
        let planned = plan_truncation(&request, settings);
        check_plan(&messages, &planned).unwrap();
        planned.drop.iter().map(|at| at / 2).step_by(2).collect::<Vec<_>>()
    };
    let settings = PlanSettings::default();
    assert_eq!(dropped(5, true, &settings), [0, 1, 2]);
    assert_eq!(dropped(4, false, &settings), [0, 1], "the last turn stays");
    assert_eq!(dropped(2, false, &settings), [0]);
    assert_eq!(dropped(1, false, &settings), [0; 0]);
    assert_eq!(dropped(8, true, &settings), [0, 1, 2], "removing old turns is enough");
    let pinned = PlanSettings { pinned_turn_indices: vec![0, 2], ..PlanSettings::default() };
    assert_eq!(dropped(4, true, &pinned), [1]);
}

#[test]
fn note_to_the_user_follows_the_notify_setting() {
    let told = |settings: &PlanSettings| {
        plan_truncation(&gc_request(conversation_of_turns(8, true), 800), settings).note
    };
    let expected = "Context cleaned: removed 3 old turns, kept 5 recent turns.";
    assert_eq!(told(&PlanSettings::default()).as_deref(), Some(expected));
    assert_eq!(told(&PlanSettings { notify_on_gc: false, ..PlanSettings::default() }), None);
    assert_eq!(
        plan_truncation(&gc_request(conversation_of_turns(2, true), 800), &PlanSettings::default())
            .note,
        None
    );
}

#[test]
fn host_message_inside_a_turn_does_not_start_a_turn() {
    let mut messages = turn_with_calls(0, 1, 10);
    messages.push(Message { role: Role::User, parts: vec![Part::json(json!({ "task": 1 }))] });
    messages.push(Message::model(vec![Part::text("the task is done")]));
    messages.extend(turn_with_calls(1, 0, 10));
    messages.extend(turn_with_calls(2, 0, 10));
    let settings = PlanSettings { preserve_recent_turns: 1, ..PlanSettings::default() };
    let planned = plan_truncation(&gc_request(messages.clone(), 800), &settings);
    assert_eq!(planned.drop, (0..8).collect::<Vec<_>>());
}

#[test]
fn random_histories_lose_only_whole_turns_that_may_be_dropped() {
    let reasons =
        [GcReason::Threshold, GcReason::Manual, GcReason::TurnLimit, GcReason::ContextLimit];
    let mut dice = PseudoRandomGenerator(7);
    for _ in 0..2_000 {
        let count = dice.next_below(12) as usize;
        let turns: Vec<Vec<Message>> = (0..count)
            .map(|n| turn_with_calls(n, dice.next_below(4), dice.next_below(400) as usize))
            .collect();
        let mut messages = turns.concat();
        if dice.next_below(2) == 0 {
            messages.pop();
        }
        let settings = PlanSettings {
            preserve_recent_turns: dice.next_below(7) as usize,
            pinned_turn_indices: (0..dice.next_below(3))
                .map(|_| dice.next_below(13) as usize)
                .collect(),
            target_percent: dice.next_below(101),
            notify_on_gc: dice.next_below(2) == 0,
            ..PlanSettings::default()
        };
        let reason = reasons[dice.next_below(4) as usize];
        let mut request = gc_request(messages.clone(), dice.next_below(2_000));
        request.reason = reason;
        let planned = plan_truncation(&request, &settings);
        check_plan(&messages, &planned).unwrap();
        let is_dropped = |at: usize| planned.drop.contains(&at);
        let mut at = 0;
        for (number, turn) in turns.iter().enumerate() {
            let end = (at + turn.len()).min(messages.len());
            let gone = is_dropped(at);
            assert!((at..end).all(|at| is_dropped(at) == gone), "turn {number} is split");
            let must_stay = settings.pinned_turn_indices.contains(&number) || number + 1 == count;
            assert!(!(gone && must_stay), "turn {number} must stay");
            at = end;
        }
    }
}

#[test]
fn long_results_are_shortened_before_any_turn_goes() {
    let mut messages: Vec<Message> = (0..3).flat_map(|n| turn_with_calls(n, 1, 3_000)).collect();
    messages.push(Message::user("and now?"));
    let settings = PlanSettings { preserve_recent_turns: 1, ..PlanSettings::default() };
    let planned = |total_tokens| {
        let mut request = gc_request(messages.clone(), total_tokens);
        request.context_limit = 10_000;
        let planned = plan_truncation(&request, &settings);
        check_plan(&messages, &planned).unwrap();
        planned
    };
    let enough = planned(7_000);
    assert_eq!((enough.drop.len(), enough.edits.len()), (0, 2));
    assert_eq!(enough.note.as_deref(), Some("Shortened 2 old results."));
    assert_eq!(planned(9_000).drop, (0..8).collect::<Vec<_>>(), "that would not be enough");
}

/// Returns the constraint of a turn.
fn constraint_text(number: usize) -> String {
    format!("In module {number}, keep the name `blue_{number}` and port {}.", 8_000 + number)
}

#[test]
fn user_statements_and_finished_calls_survive_twenty_collections() {
    let settings = PlanSettings { preserve_recent_turns: 1, ..PlanSettings::default() };
    let mut messages: Vec<Message> = Vec::new();
    for number in 0..40 {
        let mut next = turn_with_calls(number, 1, 800);
        next[0] = Message::user(constraint_text(number));
        messages.extend(next);
        if number % 2 == 0 {
            continue;
        }
        let mut request = gc_request(messages.clone(), 9_000);
        request.context_limit = 16_000;
        request.reason = GcReason::TurnLimit;
        let planned = plan_truncation(&request, &settings);
        check_plan(&messages, &planned).unwrap();
        assert!(!planned.drop.is_empty() && planned.summary.is_some(), "{planned:?}");
        messages = apply_plan(&messages, &planned);
    }
    let text: String = messages.iter().map(Message::text).collect();
    for number in 0..40 {
        assert!(text.contains(&constraint_text(number)), "{number} is lost: {text}");
    }
    let finished = text.matches("look {} → {\"text\":\"xxx").count();
    assert!(finished >= 1, "{text}");
    assert_eq!(text.matches("[End Context Summary]").count(), 1);
}

#[test]
fn statements_that_no_longer_fit_are_reported() {
    let long = |n: usize| format!("Never forget rule {n}: {}", "y".repeat(400));
    let mut messages: Vec<Message> = (0..6)
        .flat_map(|n| [Message::user(long(n)), Message::model(vec![Part::text("z".repeat(900))])])
        .collect();
    messages.push(Message::user("and now?"));
    let settings = PlanSettings { preserve_recent_turns: 0, ..PlanSettings::default() };
    let planned = plan_truncation(&gc_request(messages.clone(), 1_900), &settings);
    check_plan(&messages, &planned).unwrap();
    let note = planned.note.unwrap();
    let lost = "3 statements of yours no longer fit and are only in the session's file.";
    assert!(note.ends_with(lost), "{note}");
}
