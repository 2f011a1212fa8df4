//! The user's possible answers, how long they hold, and what happens without one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_policy::SessionRule;
use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{
    Agent, AnswerStore, CallOrigin, Cancel, DeadlineHold, NoAnswer, PermissionAsker, Session,
    SessionRules, SessionSetup, UserAsker,
};
use jaato_types::hooks::{Hook, Preview};
use jaato_types::permission_prompt::{
    PermissionAnswer, PermissionDecision as Is, PermissionPrompt,
};
use jaato_types::{ErrorKind, Event, Result, SessionId, ToolName};
use parking_lot::Mutex;
use serde_json::{Value, json};

fn asking_stage() -> TestStage {
    let path = json!({ "type": "string", "x-jaato-touches": "write" });
    let schema = json!({ "type": "object", "properties": { "path": path } });
    TestStage::new([
        ScriptedTool::echo("write").writing().with_schema(schema),
        ScriptedTool::echo("look"),
    ])
}

/// Runs a turn whose first answer makes these calls to `write`. Returns their results.
async fn play_calls(stage: &TestStage, session: &mut Session, calls: &[Value]) -> Vec<Value> {
    let beat = |(id, arguments): (usize, &Value)| {
        ScriptedProviderAction::call(&id.to_string(), "write", arguments.clone())
    };
    stage.provider.add_answer(calls.iter().enumerate().map(beat));
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("x", &Cancel::new()).await;
    let message = session.history().messages().rev().nth(1).unwrap();
    message.tool_results().map(|result| Value::Object(result.content.clone())).collect()
}

fn pattern_answer(decision: Is, pattern: usize) -> PermissionAnswer {
    PermissionAnswer { pattern: Some(pattern), ..PermissionAnswer::once(decision) }
}

fn allow_answer() -> PermissionAnswer {
    PermissionAnswer::once(Is::AllowOnce)
}

fn edit_answer(arguments: Value) -> PermissionAnswer {
    PermissionAnswer { arguments: Some(arguments), ..PermissionAnswer::once(Is::Edit) }
}

fn echo_call(arguments: &Value) -> Value {
    json!({ "echo": arguments })
}

/// Lists each decision as its rule, its source and how long it holds.
fn recorded_decisions(stage: &TestStage) -> Vec<String> {
    let decided = |event| match event {
        Event::PermissionDecided { allowed, rule, answered_by, scope, .. } => {
            Some(format!("{allowed} {rule} {answered_by} {scope}").trim_end().to_owned())
        }
        _ => None,
    };
    stage.events.events().into_iter().filter_map(decided).collect()
}

#[tokio::test(start_paused = true)]
async fn identical_calls_in_one_response_share_one_prompt_with_a_count() {
    let stage = asking_stage();
    let mut session = stage.start(TestStage::setup()).unwrap();
    let (a, b) = (json!({ "path": "a" }), json!({ "path": "b" }));
    let comment = Some("not b".to_owned());
    let no = PermissionAnswer { comment, ..PermissionAnswer::once(Is::Deny) };
    stage.person.add_answers([allow_answer(), no, allow_answer()]);
    let results = play_calls(&stage, &mut session, &[a.clone(), b.clone(), a.clone(), b]).await;
    assert_eq!((&results[0], &results[2]), (&echo_call(&a), &echo_call(&a)));
    for denied in [&results[1], &results[3]] {
        assert!(denied["error"]["message"].as_str().unwrap().contains("not b"), "{denied}");
    }
    let times: Vec<_> = stage.person.prompts().iter().map(|prompt| prompt.times).collect();
    assert_eq!(times, [2, 2]);
    // The model's next answer is asked about separately.
    play_calls(&stage, &mut session, &[a]).await;
    assert_eq!(stage.person.form_questions().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn permission_answer_applies_to_its_scope_and_chosen_pattern() {
    let stage = asking_stage();
    let mut session = stage.start(TestStage::setup()).unwrap();
    let (a, b) = (json!({ "path": "/x/a" }), json!({ "path": "/x/b" }));
    stage.person.add_answers([pattern_answer(Is::AllowInTurn, 0), allow_answer(), allow_answer()]);
    // For the turn, and exactly this call. The other call is still asked about.
    stage.provider.add_answer([ScriptedProviderAction::call("0", "write", a.clone())]);
    stage.provider.add_answer([ScriptedProviderAction::call("1", "write", a.clone())]);
    play_calls(&stage, &mut session, &[a.clone(), b.clone()]).await;
    assert_eq!(stage.person.form_questions().len(), 2);
    // The turn is over.
    play_calls(&stage, &mut session, std::slice::from_ref(&a)).await;
    assert_eq!(stage.person.form_questions().len(), 3);
    let patterns = &stage.person.prompts()[2].patterns;
    assert_eq!(patterns.last().unwrap(), "`write` in `/x`");
    stage.person.add_answers([pattern_answer(Is::AllowInSession, patterns.len() - 1)]);
    play_calls(&stage, &mut session, &[b]).await;
    play_calls(&stage, &mut session, &[a, json!({ "path": "/x/c" })]).await;
    assert_eq!(stage.person.form_questions().len(), 4);
    let decisions = recorded_decisions(&stage);
    assert_eq!(decisions[0], "true session.always host turn");
    assert_eq!(decisions[1], "true session.always");
    assert_eq!(decisions[4], "true person.once host once");
    assert_eq!(decisions[5], "true session.always host session");
}

#[tokio::test(start_paused = true)]
async fn answer_for_a_turn_outlives_it_only_in_a_session_that_shares_its_openers_rules() {
    for (shares_rules, prompts) in [(false, 2), (true, 1)] {
        let stage = asking_stage();
        let (name, opener) = ("scout".to_owned(), SessionId::from("program"));
        let agent = Agent { name, opener, shares_rules, hold: DeadlineHold::default() };
        let setup = SessionSetup { agent: Some(agent), ..TestStage::setup() };
        let mut session = stage.start(setup).unwrap();
        stage.person.add_answers([pattern_answer(Is::AllowInTurn, 0), allow_answer()]);
        for _ in 0..2 {
            play_calls(&stage, &mut session, &[json!({ "path": "/x/a" })]).await;
        }
        assert_eq!(stage.person.form_questions().len(), prompts);
    }
}

#[tokio::test(start_paused = true)]
async fn permission_answer_that_was_not_offered_denies_this_call_only() {
    let stage = asking_stage();
    let mut session = stage.start(TestStage::setup()).unwrap();
    let with_mode = PermissionAnswer { mode: Some("accept-edits".to_owned()), ..allow_answer() };
    let wrong =
        [pattern_answer(Is::AllowInSession, 99), pattern_answer(Is::AllowOnce, 0), with_mode];
    stage.person.add_answers(wrong);
    for _ in 0..3 {
        let results = play_calls(&stage, &mut session, &[json!({ "path": "/x/a" })]).await;
        let message = results[0]["error"]["message"].as_str().unwrap();
        let why = "the prompt does not offer this answer (rule `person.not_offered`)";
        assert!(message.ends_with(why), "{message}");
    }
    assert_eq!(recorded_decisions(&stage), ["false person.not_offered host once"; 3]);
}

#[tokio::test(start_paused = true)]
async fn session_denial_applies_to_a_pattern_or_the_whole_tool() {
    let stage = asking_stage();
    let mut session = stage.start(TestStage::setup()).unwrap();
    let deny = |pattern| PermissionAnswer { pattern, ..PermissionAnswer::once(Is::DenyInSession) };
    stage.person.add_answers([deny(Some(0)), allow_answer(), deny(None)]);
    let (a, b) = (json!({ "path": "a" }), json!({ "path": "b" }));
    for (arguments, asked) in [(&a, 1), (&a, 1), (&b, 2), (&json!({}), 3), (&b, 3)] {
        play_calls(&stage, &mut session, std::slice::from_ref(arguments)).await;
        assert_eq!(stage.person.form_questions().len(), asked, "{arguments}");
    }
}

#[tokio::test(start_paused = true)]
async fn edited_arguments_are_prompted_again_and_history_keeps_the_original_call() {
    let stage = asking_stage();
    let mut session = stage.start(TestStage::setup()).unwrap();
    let (made, edited) = (json!({ "path": "/" }), json!({ "path": "/tmp/x" }));
    stage.person.add_answers([edit_answer(edited.clone()), allow_answer()]);
    let results = play_calls(&stage, &mut session, std::slice::from_ref(&made)).await;
    let expected = json!({
        "echo": edited, "arguments_changed_by": ["the user"], "arguments_that_ran": edited,
    });
    assert_eq!(results, [expected]);
    let questions = stage.person.form_questions();
    let shown = "write {\"path\":\"/tmp/x\"}: ask.silence";
    assert_eq!(questions[1], shown);
    let calls: Vec<_> = session.history().messages().flat_map(|it| it.tool_calls()).collect();
    assert_eq!(calls[0].arguments, made);
    let changed = |event: &Event| matches!(event, Event::ToolCallChanged { source, .. } if source == "the user");
    assert!(stage.events.events().iter().any(changed));
}

#[tokio::test(start_paused = true)]
async fn edited_arguments_are_checked_by_schema_guards_and_rules() {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let stage = TestStage::new([ScriptedTool::echo("write").writing().with_schema(schema)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    // Arguments that do not match the schema cause an error and another prompt.
    stage
        .person
        .add_answers([edit_answer(json!({ "text": 1 })), edit_answer(json!({ "text": "b" }))]);
    stage.hooks.set_answer("a", Hook::BeforeTool, |asked| async move {
        Ok(match asked["arguments"]["text"].as_str() {
            Some("b") => json!({ "decision": "deny", "reason": "no b" }),
            _ => json!({ "decision": "go_on" }),
        })
    });
    let results = play_calls(&stage, &mut session, &[json!({ "text": "a" })]).await;
    let message = results[0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("no b"), "{message}");
    assert!(stage.events.notices().contains("the arguments are invalid"));
    // A user who keeps editing is stopped eventually.
    let stage = asking_stage();
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.person.add_answers((0..20).map(|number| edit_answer(json!({ "number": number }))));
    let results = play_calls(&stage, &mut session, &[json!({})]).await;
    let message = results[0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("changed more than 8 times (rule `person.edits`)"), "{message}");
    assert_eq!(stage.person.form_questions().len(), 9);
}

#[tokio::test(start_paused = true)]
async fn unanswered_permission_prompt_is_denied_after_its_timeout() {
    let stage = asking_stage();
    let mut setup = TestStage::setup();
    setup.patience_ms = Some(30_000);
    let mut session = stage.start(setup).unwrap();
    stage.person.add_answers([]);
    let results = play_calls(&stage, &mut session, &[json!({})]).await;
    let message = "the call to `write` is denied: no answer came to the permission prompt within 30 s (rule `person.late`)";
    assert_eq!(results[0]["error"]["message"], message);
    assert_eq!(recorded_decisions(&stage), ["false person.late"]);
    let patience = |event| match event {
        Event::PermissionAsked(prompt) => prompt.patience_ms,
        _ => None,
    };
    assert_eq!(stage.events.events().into_iter().find_map(patience), Some(30_000));
}

/// Answers only on demand, and waits less long than the setup allows.
#[derive(Default)]
struct SlowAsker(tokio::sync::Notify);

impl UserAsker for SlowAsker {}

impl PermissionAsker for SlowAsker {
    fn unavailable_reason(&self) -> Option<String> {
        None
    }

    fn channel(&self) -> &str {
        "slow"
    }

    fn answer_timeout_ms(&self) -> Option<u64> {
        Some(1_000)
    }

    fn ask_permission<'a>(
        &'a self,
        _session: &'a SessionId,
        _prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, std::result::Result<PermissionAnswer, NoAnswer>> {
        Box::pin(async {
            self.0.notified().await;
            Ok(pattern_answer(Is::AllowInSession, 0))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn client_sets_the_prompt_timeout_unless_the_setup_does() {
    for (patience_ms, expected) in [(None, "1 s"), (Some(5_000), "5 s")] {
        let stage = asking_stage();
        let setup = SessionSetup { patience_ms, ..TestStage::setup() };
        let mut ports = stage.ports();
        ports.asker = Arc::new(SlowAsker::default());
        let mut session = Session::start(setup, ports).unwrap();
        let results = play_calls(&stage, &mut session, &[json!({})]).await;
        let message = results[0]["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("within {expected}")), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn session_answer_also_settles_identical_waiting_prompts() {
    let stage = asking_stage();
    let mut ports = stage.ports();
    let person = Arc::new(SlowAsker::default());
    ports.asker = person.clone();
    let setup = SessionSetup { patience_ms: Some(60_000), ..TestStage::setup() };
    let session = Session::start(setup, ports).unwrap();
    let call = || {
        let handle = session.handle();
        tokio::spawn(async move {
            let origin = CallOrigin {
                plugin: "tool-x".into(),
                parent: None,
                depth: 1,
                hold: DeadlineHold::default(),
            };
            handle.call_tool(&ToolName::from("write"), json!({}), &origin, &Cancel::new()).await
        })
    };
    let calls = [call(), call(), call()];
    tokio::time::sleep(Duration::from_millis(10)).await;
    // Answering one question for the session settles the others.
    person.0.notify_one();
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
    let mut decisions = recorded_decisions(&stage);
    decisions.sort();
    let rule = "true session.always";
    assert_eq!(decisions, [rule, rule, "true session.always slow session"]);
}

/// Keeps answers in memory, or fails.
#[derive(Default)]
struct AnswersInMemory {
    fails: bool,
    rules: Mutex<Vec<SessionRule>>,
}

impl AnswerStore for AnswersInMemory {
    fn save_answer(&self, rule: &SessionRule) -> Result<String> {
        if self.fails {
            return Err(jaato_types::Error::new(ErrorKind::Io, "the disk is full"));
        }
        self.rules.lock().push(rule.clone());
        Ok("written into `/rules`".to_owned())
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_answer_is_saved_or_else_applies_to_the_session() {
    let failed = "cannot save the answer, so it applies only to this session: the disk is full";
    for (fails, scope, notice) in
        [(false, "always", "written into `/rules`"), (true, "session", failed)]
    {
        let stage = asking_stage();
        let kept = Arc::new(AnswersInMemory { fails, ..AnswersInMemory::default() });
        let mut setup = TestStage::setup();
        setup.rules = Arc::new(SessionRules::default().with_answer_store(kept.clone()));
        let mut session = stage.start(setup).unwrap();
        stage.person.add_answers([pattern_answer(Is::AllowAlways, 0)]);
        for _ in 0..2 {
            let results = play_calls(&stage, &mut session, &[json!({})]).await;
            assert_eq!(results, [echo_call(&json!({}))]);
        }
        assert_eq!(recorded_decisions(&stage)[0], format!("true session.always host {scope}"));
        assert!(stage.events.notices().contains(notice), "{}", stage.events.notices());
        assert_eq!(kept.rules.lock().len(), usize::from(!fails));
    }
}

#[tokio::test(start_paused = true)]
async fn permission_event_lists_the_offered_answers_and_the_asking_agent() {
    let stage = TestStage::new([ScriptedTool::echo("write")
        .writing()
        .with_preview(|_| async { Ok(Preview::text("it writes")) })]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.person.add_answers([allow_answer()]);
    play_calls(&stage, &mut session, &[json!({})]).await;
    let asked = stage.events.events().into_iter().find_map(|event| match event {
        event @ Event::PermissionAsked(_) => Some(serde_json::to_value(event).unwrap()),
        _ => None,
    });
    let mut asked = asked.unwrap();
    let answers = asked["answers"].take();
    assert_eq!(answers[0], json!({ "decision": "allow_once", "label": "Yes" }));
    assert_eq!(
        asked,
        json!({
            "event": "permission_asked", "call_id": "0", "name": "write", "arguments": {},
            "plugin": "tool-write", "shipped": true, "title": "Use `write`?",
            "subject": { "kind": "arguments" }, "rule": "ask.silence",
            "preview": { "text": "it writes" }, "answers": null, "times": 1,
            "patterns": ["exactly `write()`"], "agent_type": "main",
        })
    );
}
