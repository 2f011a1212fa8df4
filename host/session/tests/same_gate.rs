//! A single permission check: a rule that forbids a call stops it, regardless of who makes it and
//! how.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use jaato_policy::{
    Glob, Rule, RuleConditions, RuleFile, RuleLayer, RuleOutcome as Wanted, WorkspaceTrust,
};
use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{
    Agent, CallEnvironment, CallGate, CallOrigin, Cancel, DeadlineHold, PolicyMode, Session,
    SessionHandle, SessionPorts, SessionSetup,
};
use jaato_types::files::{FileIdentity, ResolvedPath};
use jaato_types::hooks::Hook;
use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision as Is};
use jaato_types::tasks::TaskStart;
use jaato_types::{Condition, Event, ToolName};
use serde_json::{Value, json};

/// Creates a user's file that denies access to `/etc`, and denies everything to an agent called
/// Scout.
fn deny_rules() -> RuleFile {
    let deny = |when, line| Rule { outcome: Wanted::Deny, when, line, why: None };
    let path = ("path".to_owned(), Glob::new("/etc/*"));
    RuleFile {
        layer: RuleLayer::User,
        path: "rules.toml".into(),
        default: None,
        rules: vec![
            deny(RuleConditions { arguments: vec![path], ..RuleConditions::default() }, 3),
            deny(
                RuleConditions {
                    agent_name: Some(Glob::new("Scout")),
                    ..RuleConditions::default()
                },
                7,
            ),
        ],
        broken: None,
    }
}

/// A setup that allows everything. Only the file forbids.
fn allow_all_setup() -> SessionSetup {
    let setup = TestStage::setup();
    setup.rules.change_rules(|it| {
        it.files = vec![deny_rules()];
        it.allow_all = true;
        it.mode = PolicyMode::AcceptEdits;
    });
    setup
}

fn write_tool() -> ScriptedTool {
    ScriptedTool::echo("write").writing()
}

fn forbidden_arguments() -> Value {
    json!({ "path": "/etc/passwd" })
}

/// Lists the place of the rule for each denial.
fn recorded_denials(stage: &TestStage) -> Vec<String> {
    let denied = |event| match event {
        Event::PermissionDecided { allowed: false, rule, place, .. } => {
            Some(format!("{rule} {}", place.unwrap_or_default()))
        }
        _ => None,
    };
    stage.events.events().into_iter().filter_map(denied).collect()
}

fn executed_calls(stage: &TestStage) -> Vec<String> {
    let calls = stage.tools.recorded_calls().into_iter();
    calls
        .filter(|it| it.call.name.as_str() == "write")
        .map(|it| it.call.arguments.to_string())
        .collect()
}

/// Checks that the rule stopped one call, and that nothing ran.
#[track_caller]
fn check_stopped(stage: &TestStage) {
    assert_eq!(recorded_denials(stage), ["file.deny rules.toml:3"]);
    assert_eq!(executed_calls(stage), [""; 0]);
    assert_eq!(stage.person.form_questions().len(), 0);
}

async fn run_turn(stage: &TestStage, session: &mut Session, calls: &[(&str, Value)]) {
    let beats = calls.iter().enumerate();
    let beats = beats.map(|(id, (name, arguments))| {
        ScriptedProviderAction::call(&id.to_string(), name, arguments.clone())
    });
    stage.provider.add_answer(beats);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("x", &Cancel::new()).await;
}

#[tokio::test(start_paused = true)]
async fn deny_rule_stops_a_model_call() {
    let stage = TestStage::new([write_tool()]);
    stage.person.add_answers([PermissionAnswer::once(Is::AllowOnce)]);
    let mut session = stage.start(allow_all_setup()).unwrap();
    run_turn(&stage, &mut session, &[("write", forbidden_arguments())]).await;
    check_stopped(&stage);
}

#[tokio::test(start_paused = true)]
async fn deny_rule_stops_a_user_call() {
    let stage = TestStage::new([write_tool()]);
    let session = stage.start(allow_all_setup()).unwrap();
    let called = session
        .run_user_call(&ToolName::from("write"), forbidden_arguments(), &Cancel::new())
        .await;
    assert!(called.is_err());
    check_stopped(&stage);
}

/// Runs a turn in which the model calls `outer`, a tool that does this with the session's handle.
async fn run_in_outer_tool<F>(act: impl Fn(SessionHandle) -> F + Send + Sync + 'static) -> TestStage
where
    F: Future<Output = ()> + Send + 'static,
{
    let given = Arc::<OnceLock<SessionHandle>>::default();
    let handle = Arc::clone(&given);
    let outer = ScriptedTool::new("outer", move |_, _| {
        let acting = act(handle.get().unwrap().clone());
        async move {
            acting.await;
            Ok(jaato_types::Output::text("done"))
        }
    });
    let stage = TestStage::new([outer, write_tool()]);
    let mut session = stage.start(allow_all_setup()).unwrap();
    assert!(given.set(session.handle()).is_ok());
    run_turn(&stage, &mut session, &[("outer", json!({}))]).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn deny_rule_stops_a_nested_tool_call() {
    let stage = run_in_outer_tool(|handle| async move {
        let (name, origin) =
            (ToolName::from("write"), CallOrigin::outside_of_calls("tool-outer".into()));
        let called = handle.call_tool(&name, forbidden_arguments(), &origin, &Cancel::new()).await;
        assert!(called.is_err());
    });
    check_stopped(&stage.await);
}

#[tokio::test(start_paused = true)]
async fn deny_rule_stops_a_background_task() {
    let stage = run_in_outer_tool(|handle| async move {
        let origin = CallOrigin::outside_of_calls("tool-outer".into());
        let mut asked = TaskStart::default();
        (asked.name, asked.arguments) = ("write".into(), forbidden_arguments());
        assert!(handle.start_task(asked, &origin, &Cancel::new()).await.is_err());
    });
    check_stopped(&stage.await);
}

#[tokio::test(start_paused = true)]
async fn deny_rule_stops_a_self_running_tool() {
    let itself = write_tool().run_if(Condition::Asked).with_condition_answer(|_, _| async {
        let mut answer = jaato_types::ConditionAnswer::default();
        (answer.holds, answer.arguments) = (true, Some(forbidden_arguments()));
        Ok(answer)
    });
    let stage = TestStage::new([itself]);
    let mut session = stage.start(allow_all_setup()).unwrap();
    run_turn(&stage, &mut session, &[]).await;
    check_stopped(&stage);
}

#[tokio::test(start_paused = true)]
async fn deny_rule_stops_arguments_rewritten_by_a_guard_or_the_user() {
    let stage = TestStage::new([write_tool()]);
    let rewrite = json!({ "decision": "rewrite", "arguments": forbidden_arguments() });
    stage.hooks.add_answering_plugin("a", Hook::BeforeTool, rewrite);
    let mut session = stage.start(allow_all_setup()).unwrap();
    run_turn(&stage, &mut session, &[("write", json!({ "path": "/tmp/x" }))]).await;
    check_stopped(&stage);

    let stage = TestStage::new([write_tool()]);
    stage.person.add_answers([
        PermissionAnswer {
            arguments: Some(forbidden_arguments()),
            ..PermissionAnswer::once(Is::Edit)
        },
        PermissionAnswer::once(Is::AllowOnce),
    ]);
    let setup = allow_all_setup();
    setup.rules.change_rules(|rules| rules.allow_all = false);
    let mut session = stage.start(setup).unwrap();
    run_turn(&stage, &mut session, &[("write", json!({ "path": "/tmp/x" }))]).await;
    assert_eq!(recorded_denials(&stage), ["file.deny rules.toml:3"]);
    assert_eq!((executed_calls(&stage).len(), stage.person.form_questions().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn deny_rules_apply_to_child_sessions_and_match_agent_names() {
    let stage = TestStage::new([write_tool()]);
    let opener = stage.start(allow_all_setup()).unwrap();
    for (name, place) in [("Helper", "file.deny rules.toml:3"), ("Scout", "file.deny rules.toml:7")]
    {
        let stage = TestStage::new([write_tool()]);
        let lent = opener.handle().share_state(&DeadlineHold::default()).unwrap();
        let (name, opener) = (name.to_owned(), opener.id().clone());
        let (shares_rules, hold) = (true, DeadlineHold::default());
        let agent = Some(Agent { name, opener, shares_rules, hold });
        let setup = SessionSetup { rules: lent.rules, agent, ..TestStage::setup() };
        let mut child = stage.start(setup).unwrap();
        let arguments = if place.ends_with('3') { forbidden_arguments() } else { json!({}) };
        run_turn(&stage, &mut child, &[("write", arguments)]).await;
        assert_eq!(recorded_denials(&stage), [place]);
        assert_eq!(executed_calls(&stage), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn read_only_mode_denies_all_writing_calls_except_user_calls() {
    let stage = run_in_outer_tool(|handle| async move {
        let (name, origin) =
            (ToolName::from("write"), CallOrigin::outside_of_calls("tool-outer".into()));
        assert!(handle.call_tool(&name, json!({}), &origin, &Cancel::new()).await.is_ok());
    });
    drop(stage.await);
    let stage = TestStage::new([write_tool()]);
    let mut session = stage.start(allow_all_setup()).unwrap();
    session.handle().set_mode(PolicyMode::ReadOnly).unwrap();
    run_turn(&stage, &mut session, &[("write", json!({}))]).await;
    let (name, cancel) = (ToolName::from("write"), Cancel::new());
    let origin = CallOrigin::outside_of_calls("tool-outer".into());
    assert!(session.handle().call_tool(&name, json!({}), &origin, &cancel).await.is_err());
    assert_eq!(recorded_denials(&stage), ["mode.read_only ", "mode.read_only "]);
    assert!(session.run_user_call(&name, json!({}), &cancel).await.is_ok());
    session.handle().set_mode(PolicyMode::Ask).unwrap();
    run_turn(&stage, &mut session, &[("write", json!({}))]).await;
    assert_eq!(executed_calls(&stage).len(), 2);
}

/// A link that leads out of the folder.
struct LinkGate;

impl CallGate for LinkGate {
    fn call_environment(&self) -> CallEnvironment {
        let workspace = WorkspaceTrust::Trusted;
        CallEnvironment {
            directory: Some("/project".into()),
            workspace,
            ..CallEnvironment::default()
        }
    }

    fn resolve_paths<'a>(
        &'a self,
        paths: &'a [PathBuf],
    ) -> BoxFuture<'a, Option<Vec<Option<ResolvedPath>>>> {
        let resolved = paths.iter().map(|path| {
            let asked = path.display().to_string();
            let hook = "/project/.git/hooks/pre-commit".to_owned();
            let leads_to = if path.ends_with("link") { hook } else { asked.clone() };
            Some(ResolvedPath {
                entry: asked.clone(),
                asked,
                path: leads_to,
                identity: Some(FileIdentity::default()),
                ..ResolvedPath::default()
            })
        });
        Box::pin(std::future::ready(Some(resolved.collect())))
    }
}

#[tokio::test(start_paused = true)]
async fn accept_edits_mode_denies_outside_and_protected_files_even_via_links() {
    let written = json!({ "type": "string", "x-jaato-touches": "write" });
    let schema = json!({ "type": "object", "properties": { "path": written } });
    let mut edit = ScriptedTool::echo("updateFile").writing().with_schema(schema);
    edit.known.plugin = "tool-file-edit".into();
    edit.known.spec.annotations.open_world = false;
    let mut stranger = ScriptedTool::echo("strangersEdit").writing();
    (stranger.known.plugin, stranger.known.shipped) = ("tool-file-edit".into(), false);
    let stage = TestStage::new([edit, stranger, write_tool()]);
    let setup = TestStage::setup();
    setup.rules.change_rules(|rules| rules.mode = PolicyMode::AcceptEdits);
    let ports = SessionPorts { gate: Arc::new(LinkGate), ..stage.ports() };
    let mut session = Session::start(setup, ports).unwrap();
    let path = |path: &str| json!({ "path": path });
    let calls = [
        ("updateFile", path("src/main.rs")),
        ("updateFile", path("/project/a")),
        ("updateFile", path("../out")),
        ("updateFile", path(".git/config")),
        ("updateFile", path(".jaato/config.toml")),
        ("updateFile", path("AGENTS.md")),
        ("updateFile", path("link")),
        ("strangersEdit", path("a")),
        ("write", path("a")),
    ];
    run_turn(&stage, &mut session, &calls).await;
    let decided = stage.events.events().into_iter().filter_map(|event| match event {
        Event::PermissionDecided { allowed, rule, .. } => Some((allowed, rule)),
        _ => None,
    });
    let decided: Vec<_> = decided.collect();
    let accepted = (true, "mode.accept_edits".to_owned());
    assert_eq!(decided[..2], [accepted.clone(), accepted]);
    assert!(decided[2..].iter().all(|(allowed, _)| !allowed), "{decided:?}");
    assert_eq!(decided.len(), 9);
}
