//! Tests of a gc with a state, from its source: it conforms, and remembers what earlier instances
//! have dropped.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../fixtures/recalls/src/lib.rs"]
mod recalls;

use jaato_plugin_testkit::FakeHost;
use jaato_plugin_testkit::conformance::check_plan;
use jaato_types::{GcPlan, GcReason, GcRequest, Message, Part, Role};
use serde_json::json;

jaato_plugin_testkit::conformance!(crate::recalls: gc);

fn gc_request(messages: Vec<Message>) -> GcRequest {
    let mut request = GcRequest::new(GcReason::Manual, messages);
    request.context_limit = 100;
    request.total_tokens = 99;
    request.settings = json!({});
    request
}

fn named_turns(names: &[&str]) -> Vec<Message> {
    let turn = |name: &&str| [Message::user(*name), Message::model(vec![Part::text("yes")])];
    names.iter().flat_map(turn).collect()
}

fn plan_summary(plan: &GcPlan) -> String {
    plan.summary.as_ref().unwrap().text()
}

#[test]
fn gc_summary_survives_several_collections_and_a_restart() {
    let host = FakeHost::new(recalls::__jaato::MODULE);
    let first = host.create(None).unwrap();
    let messages = named_turns(&["sun", "moon", "star"]);
    let plan = first.plan(&gc_request(messages.clone())).unwrap();
    check_plan(&messages, &plan).unwrap();
    assert_eq!(plan.drop, [0, 1, 2, 3]);
    assert_eq!(plan_summary(&plan), "[2 earlier prompts, dropped in 1 steps: sun; moon]");
    let saved = first.close().unwrap();
    let second = host.create(saved.as_ref()).unwrap();
    let plan = second.plan(&gc_request(named_turns(&["star", "sky"]))).unwrap();
    assert_eq!(plan_summary(&plan), "[3 earlier prompts, dropped in 2 steps: sun; moon; star]");
}

#[test]
fn unknown_parts_and_roles_do_not_break_the_plan() {
    let host = FakeHost::new(recalls::__jaato::MODULE);
    let mut messages = named_turns(&["sun", "moon"]);
    let smell = json!({ "type": "smell", "of": "roses" }).as_object().unwrap().clone();
    messages[0].parts.push(Part::Unknown(smell));
    messages[1].role = Role::Unknown;
    let plan = host.instance().unwrap().plan(&gc_request(messages)).unwrap();
    assert_eq!(plan.drop, [0, 1]);
    assert_eq!(plan_summary(&plan), "[1 earlier prompts, dropped in 1 steps: sun]");
}
