//! The mode `plan` in whole sessions: how it begins, what the model sees, how it ends.

use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, PLAN_PROMPT, PolicyMode, Session};
use jaato_types::hooks::{Hook, Preview};
use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision as Is, PromptSubject};
use jaato_types::{Error, ErrorKind, Event};
use serde_json::json;

/// Creates a plan tool of the shipped plugin.
fn planning_tool(name: &str) -> ScriptedTool {
    let mut tool = ScriptedTool::echo(name).writing();
    tool.known.plugin = "tool-todo".into();
    tool.known.spec.annotations.destructive = false;
    tool.known.spec.annotations.open_world = false;
    tool
}

fn plan_stage() -> TestStage {
    let start = planning_tool("startPlan");
    let start =
        start.with_preview(|_| async { Ok(Preview::text("Count\n  1. pending: write two")) });
    TestStage::new([start, ScriptedTool::echo("write").writing(), ScriptedTool::echo("look")])
}

fn plan_session(stage: &TestStage, allows_all: bool) -> Session {
    let setup = TestStage::setup();
    setup
        .rules
        .change_rules(|rules| (rules.mode, rules.allow_all) = (PolicyMode::Plan, allows_all));
    stage.start(setup).unwrap()
}

fn allow_answer(mode: &str) -> PermissionAnswer {
    PermissionAnswer { mode: Some(mode.to_owned()), ..PermissionAnswer::once(Is::AllowOnce) }
}

/// Runs a turn whose answers make one call each.
async fn run_turn(stage: &TestStage, session: &mut Session, calls: &[&str]) {
    for (id, name) in calls.iter().enumerate() {
        stage.provider.add_answer([ScriptedProviderAction::call(&id.to_string(), name, json!({}))]);
    }
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("x", &Cancel::new()).await;
}

/// Lists the rule of each decision, and the changes of mode.
fn decided_rules(stage: &TestStage) -> Vec<String> {
    let told = |event| match event {
        Event::PermissionDecided { rule, .. } => Some(rule),
        Event::ModeChanged { mode } => Some(format!("mode {mode}")),
        _ => None,
    };
    stage.events.events().into_iter().filter_map(told).collect()
}

#[tokio::test(start_paused = true)]
async fn approved_plan_ends_plan_mode_and_its_system_prompt_part() {
    let stage = plan_stage();
    stage.person.add_answers([allow_answer("ask"), PermissionAnswer::once(Is::AllowOnce)]);
    let mut session = plan_session(&stage, false);
    run_turn(&stage, &mut session, &["look", "write", "startPlan", "write"]).await;
    let expected = ["shipped.read_only", "mode.plan", "mode ask", "person.once", "person.once"];
    assert_eq!(decided_rules(&stage), expected);
    let prompt = &stage.person.prompts()[0];
    assert_eq!(prompt.title, "Start this plan?");
    assert_eq!(prompt.subject, PromptSubject::Plan { steps: vec!["write two".to_owned()] });
    let labels: Vec<_> = prompt.answers.iter().map(|answer| answer.label.as_str()).collect();
    let expected = [
        "Yes, and ask before each change",
        "Yes, and edit files in this folder without asking",
        "No",
    ];
    assert_eq!(labels, expected);
    let requests = stage.provider.requests();
    let is_told = |at: usize| requests[at].system.ends_with(PLAN_PROMPT);
    assert_eq!([0, 1, 2, 3, 4].map(is_told), [true, true, true, false, false]);
    session.handle().set_mode(PolicyMode::Plan).unwrap();
    run_turn(&stage, &mut session, &[]).await;
    assert!(stage.provider.requests().last().unwrap().system.ends_with(PLAN_PROMPT));
}

#[tokio::test(start_paused = true)]
async fn plan_mode_stays_after_a_denial_or_an_answer_without_a_mode() {
    let stage = plan_stage();
    stage.person.add_answers([
        PermissionAnswer::once(Is::Deny),
        PermissionAnswer::once(Is::AllowOnce),
        allow_answer("read-only"),
    ]);
    let mut session = plan_session(&stage, false);
    run_turn(&stage, &mut session, &["startPlan", "startPlan", "startPlan", "write"]).await;
    let expected = ["person.denied", "person.not_offered", "person.not_offered", "mode.plan"];
    assert_eq!(decided_rules(&stage), expected);
}

#[tokio::test(start_paused = true)]
async fn guard_prompt_for_a_plan_still_offers_the_modes() {
    let stage = plan_stage();
    stage.hooks.add_answering_plugin(
        "a",
        Hook::BeforeTool,
        json!({ "decision": "ask", "reason": "see" }),
    );
    stage.person.add_answers([allow_answer("ask")]);
    let mut session = plan_session(&stage, true);
    run_turn(&stage, &mut session, &["startPlan"]).await;
    assert_eq!(decided_rules(&stage), ["mode ask", "person.once"]);
    let labels: Vec<_> =
        stage.person.prompts()[0].answers.iter().map(|answer| answer.label.clone()).collect();
    assert_eq!(labels, ["Yes, and run everything without asking (--yes)", "No"]);
}

#[tokio::test(start_paused = true)]
async fn the_user_is_not_asked_about_a_plan_that_does_not_exist() {
    let none = || Error::new(ErrorKind::Unavailable, "no plan");
    let start = planning_tool("startPlan")
        .with_preview(move |_| async move { Ok(Preview::refused(none())) });
    let stage = TestStage::new([start]);
    stage.person.add_answers([allow_answer("ask")]);
    let mut session = plan_session(&stage, false);
    run_turn(&stage, &mut session, &["startPlan"]).await;
    assert_eq!(decided_rules(&stage), ["preview.refuses"]);
    assert_eq!(stage.person.prompts().len(), 0);
}
