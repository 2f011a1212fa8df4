//! Tests which messages are dropped. Each plan is checked like in a session.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use gc_results::{PlanBounds, plan_drops};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::{GcReason, ToolResult};
use jaato_plugin_testkit::conformance::check_plan;

/// Returns a turn with a prompt, a call for each result of the given size, and an answer: two
/// messages, and two more per call.
fn sample_turn(results: &[usize]) -> Vec<Message> {
    let mut messages = vec![Message::user("look")];
    for (at, bytes) in results.iter().enumerate() {
        let (id, name) = (format!("call-{at}"), "read");
        let call = ToolCall::new(id.as_str(), name, json!({}));
        messages.push(Message::model(vec![Part::ToolCall(call)]));
        let content = Map::from_iter([("text".to_owned(), json!("x".repeat(*bytes)))]);
        messages.push(Message::tool([ToolResult::new(id, name, content)]));
    }
    messages.push(Message::model(vec![Part::text("seen")]));
    messages
}

fn sample_bounds() -> PlanBounds {
    PlanBounds { large_bytes: 1000, recent_turns: 1, pinned: Vec::new(), target_percent: 60 }
}

#[track_caller]
fn check_dropped(
    turns: &[&[usize]],
    bounds: &PlanBounds,
    total_tokens: u64,
    expected: &[usize],
) -> Option<String> {
    let messages: Vec<Message> = turns.iter().flat_map(|results| sample_turn(results)).collect();
    let mut request = GcRequest::new(GcReason::Threshold, messages.clone());
    (request.context_limit, request.total_tokens) = (1_000, total_tokens);
    let plan = plan_drops(&request, bounds);
    check_plan(&messages, &plan).unwrap();
    assert_eq!(plan.drop, expected);
    plan.note
}

#[test]
fn oldest_large_result_is_removed_with_its_call_but_not_its_turn() {
    let turns: [&[usize]; 3] = [&[10, 4000], &[4000], &[]];
    let note = check_dropped(&turns, &sample_bounds(), 1_100, &[3, 4]);
    assert_eq!(note.as_deref(), Some("left out 1 large results of tools, and 0 whole turns"));
    check_dropped(&turns, &sample_bounds(), 2_400, &[3, 4, 7, 8]);
}

#[test]
fn whole_turns_are_removed_when_removing_results_is_not_enough() {
    let turns: [&[usize]; 3] = [&[4000], &[], &[]];
    check_dropped(&turns, &sample_bounds(), 1_000_000, &[0, 1, 2, 3, 4, 5]);
}

#[test]
fn recent_turns_pinned_turns_and_the_last_turn_are_kept_whole() {
    let turns: [&[usize]; 3] = [&[4000], &[4000], &[4000]];
    check_dropped(
        &turns,
        &PlanBounds { recent_turns: 2, ..sample_bounds() },
        1_000_000,
        &[0, 1, 2, 3],
    );
    check_dropped(
        &turns,
        &PlanBounds { pinned: vec![0], ..sample_bounds() },
        1_000_000,
        &[4, 5, 6, 7],
    );
    check_dropped(
        &turns,
        &PlanBounds { recent_turns: 0, ..sample_bounds() },
        1_000_000,
        &[0, 1, 2, 3, 4, 5, 6, 7],
    );
    check_dropped(&turns, &PlanBounds { recent_turns: 9, ..sample_bounds() }, 1_000_000, &[]);
    check_dropped(&[], &sample_bounds(), 1_000_000, &[]);
}

#[test]
fn nothing_is_removed_when_there_is_enough_room() {
    let turns: [&[usize]; 2] = [&[4000], &[]];
    assert_eq!(check_dropped(&turns, &sample_bounds(), 600, &[]), None);
}
