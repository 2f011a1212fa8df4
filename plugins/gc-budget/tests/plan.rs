//! Tests in which order content goes, and that no more goes than must.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use gc_budget::draft_plan;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::{GcReason, ToolResult};
use jaato_plugin_sdk_gc::PlanSettings;
use jaato_plugin_testkit::conformance::check_plan;

jaato_plugin_testkit::conformance!(gc_budget: gc);

/// Returns a turn with a result of 1,000 bytes: about 275 tokens for the call and its result, and
/// 275 for its prompt and its answer.
fn turn_with_result(number: usize) -> Vec<Message> {
    let id = format!("call-{number}");
    let call = ToolCall::new(id.as_str(), "look", json!({ "at": number }));
    let content = Map::from_iter([("text".to_owned(), json!("x".repeat(880)))]);
    vec![
        Message::user(format!("prompt {number}")),
        Message::model(vec![Part::ToolCall(call)]),
        Message::tool([ToolResult::new(id.as_str(), "look", content)]),
        Message::model(vec![Part::text("y".repeat(980))]),
    ]
}

/// Plans for 8 turns and an open one in a window of 5,000 tokens, of which 2 turns are recent.
fn plan_for_tokens(tokens: u64, reason: GcReason, settings: &PlanSettings) -> GcPlan {
    let messages: Vec<Message> =
        (0..8).flat_map(turn_with_result).chain([Message::user("and now?")]).collect();
    let mut request = GcRequest::new(reason, messages.clone());
    (request.context_limit, request.total_tokens) = (5_000, tokens);
    let plan = draft_plan(&request, settings).finish(None);
    check_plan(&messages, &plan).unwrap();
    plan
}

fn plan_settings() -> PlanSettings {
    PlanSettings { preserve_recent_turns: 2, ..PlanSettings::default() }
}

#[test]
fn calls_go_before_turns_and_only_as_many_as_needed() {
    let plan = plan_for_tokens(3_500, GcReason::Threshold, &plan_settings());
    assert_eq!(plan.drop, [1, 2, 5, 6], "two calls bring it below 3,000 tokens");
    let text = plan.summary.unwrap().text();
    assert!(text.contains("- look {\"at\":0} → {\"text\":\"xx"), "{text}");
    assert_eq!(plan.note.as_deref(), Some("Removed 2 finished calls and their results."));
    let calls: Vec<usize> = (0..6).flat_map(|turn| [turn * 4 + 1, turn * 4 + 2]).collect();
    let plan = plan_for_tokens(4_700, GcReason::Threshold, &plan_settings());
    assert!(calls.iter().all(|at| plan.drop.contains(at)), "{:?}", plan.drop);
    assert!(plan.drop.contains(&0) && !plan.drop.contains(&20), "{:?}", plan.drop);
}

#[test]
fn recent_turns_go_only_under_pressure_or_if_nothing_else_fits() {
    let has_recent = |plan: &GcPlan| plan.drop.iter().any(|at| *at >= 24);
    let locked = |plan: &GcPlan| plan.drop.iter().all(|at| *at < 32);
    let relaxed = PlanSettings { pressure_percent: 0, ..plan_settings() };
    let strict = PlanSettings { target_percent: 10, ..plan_settings() };
    let full = plan_for_tokens(4_600, GcReason::Threshold, &strict);
    assert!(has_recent(&full) && locked(&full), "{:?}", full.drop);
    let below = plan_for_tokens(4_400, GcReason::Threshold, &strict);
    assert!(!has_recent(&below), "{:?}", below.drop);
    let relaxed = PlanSettings { target_percent: 10, ..relaxed };
    assert!(!has_recent(&plan_for_tokens(4_600, GcReason::Threshold, &relaxed)));
    assert!(has_recent(&plan_for_tokens(4_400, GcReason::ContextLimit, &relaxed)));
}

#[test]
fn pinned_turns_are_locked() {
    let settings = PlanSettings { pinned_turn_indices: vec![0], ..plan_settings() };
    let plan = plan_for_tokens(4_700, GcReason::Threshold, &settings);
    assert!(!plan.drop.is_empty() && plan.drop.iter().all(|at| *at >= 4), "{:?}", plan.drop);
}

#[test]
fn user_and_turn_limit_remove_all_old_turns_of_a_context_with_room() {
    for reason in [GcReason::Manual, GcReason::TurnLimit] {
        assert_eq!(
            plan_for_tokens(1_000, reason, &plan_settings()).drop,
            (0..24).collect::<Vec<_>>()
        );
    }
    assert_eq!(plan_for_tokens(1_000, GcReason::Threshold, &plan_settings()).drop, [0; 0]);
}
