//! Tests which turns stay, which are summarised and which go.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::GcReason;
use jaato_plugin_testkit::FakeHost;
use jaato_plugin_testkit::conformance::check_plan;

jaato_plugin_testkit::conformance!(gc_hybrid: gc);

/// Plans for 20 turns and an open one, with these settings. Returns the numbers of the turns that
/// go, the transcript for the model, and the plan.
fn plan_with_settings(settings: &Value) -> (Vec<usize>, String, GcPlan) {
    let turn = |number: usize| {
        let answer = format!("answer {number} {}", "y".repeat(300));
        [Message::user(format!("prompt {number}")), Message::model(vec![Part::text(answer)])]
    };
    let messages: Vec<Message> =
        (0..20).flat_map(turn).chain([Message::user("and now?")]).collect();
    let mut request = GcRequest::new(GcReason::Threshold, messages.clone());
    (request.context_limit, request.total_tokens) = (16_000, 14_000);
    request.settings = settings.clone();
    let asked = Arc::<Mutex<String>>::default();
    let recorded = Arc::clone(&asked);
    let host = FakeHost::new(gc_hybrid::__jaato::MODULE).with_model(move |request| {
        recorded.lock().unwrap().push_str(&request.messages[0].text());
        Ok("Task: words.".to_owned())
    });
    let plan = host.instance().unwrap().plan(&request).unwrap();
    check_plan(&messages, &plan).unwrap();
    let turns = plan.drop.iter().filter(|at| *at % 2 == 0).map(|at| at / 2).collect();
    let asked = asked.lock().unwrap().clone();
    (turns, asked, plan)
}

#[test]
fn recent_turns_stay_middle_turns_are_summarised_and_older_ones_only_go() {
    let settings = json!({ "preserve_recent_turns": 3, "summarize_middle_turns": 4 });
    let (turns, asked, plan) = plan_with_settings(&settings);
    assert_eq!(turns, (0..17).collect::<Vec<_>>());
    for number in 0..20 {
        let is_asked = asked.contains(&format!("answer {number} "));
        assert_eq!(is_asked, (13..17).contains(&number), "{number}");
    }
    let text = plan.summary.unwrap().text();
    assert!(text.contains("Summary:\nTask: words.\n") && text.contains("\n- prompt 0\n"), "{text}");
}

#[test]
fn pinned_turns_stay_and_are_not_summarised() {
    let settings = json!({
        "preserve_recent_turns": 3, "summarize_middle_turns": 4, "pinned_turn_indices": [0, 15],
    });
    let (turns, asked, _) = plan_with_settings(&settings);
    assert_eq!(turns, (1..17).filter(|turn| *turn != 15).collect::<Vec<_>>());
    assert!(asked.contains("answer 12 ") && !asked.contains("answer 15 "), "{asked}");
}

#[test]
fn no_middle_turns_means_truncation() {
    let settings = json!({ "preserve_recent_turns": 3, "summarize_middle_turns": 0 });
    let (turns, asked, plan) = plan_with_settings(&settings);
    assert_eq!((turns.len(), asked.as_str()), (17, ""));
    assert!(!plan.summary.unwrap().text().contains("Summary:\n"));
}

#[test]
fn recent_turns_alone_are_left_alone() {
    let (turns, asked, plan) = plan_with_settings(&json!({ "preserve_recent_turns": 20 }));
    assert_eq!((turns, asked.as_str(), plan), (vec![], "", GcPlan { v: 1, ..GcPlan::default() }));
}
