//! Plugins with hooks: what they may change, and what happens if they fail.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use expect_test::{Expect, expect};
use jaato_policy::AllowedTool;
use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{
    ADDITION_TOKENS_MAX, ADDITIONS_TOKENS_MAX, CallOrigin, Cancel, HOOK_FAILURES_MAX, Session,
    SessionSetup, TurnReport,
};
use jaato_types::hooks::{HOOK_MS_MAX, Hook, Preview};
use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision as Is};
use jaato_types::{CompletionRequest, DataContent, Error, Event, Outcome, Part, ToolName};
use serde_json::{Value, json};

/// Creates a tool that takes a text and needs permission.
fn write_tool() -> ScriptedTool {
    ScriptedTool::echo("write").writing().with_schema(json!({
        "type": "object",
        "properties": { "text": { "type": "string" } },
        "required": ["text"],
        "additionalProperties": false,
    }))
}

/// The setup of a session in which `write` is allowed.
fn allowing_setup() -> SessionSetup {
    let setup = TestStage::setup();
    setup.rules.lock().allowed.insert(AllowedTool::parse("write"));
    setup
}

/// Runs a turn that calls `write` once and ends. Returns the result as JSON.
async fn call_write(stage: &TestStage, session: &mut Session, id: &str) -> (Value, TurnReport) {
    stage.provider.add_answer([ScriptedProviderAction::call(id, "write", json!({ "text": "a" }))]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let report = session.run_turn("x", &Cancel::new()).await;
    let message = session.history().messages().rev().nth(1).unwrap();
    let result = message.tool_results().next().unwrap().clone();
    (Value::Object(result.content), report)
}

async fn check_call(stage: &TestStage, expected: Expect) {
    let mut session = stage.start(allowing_setup()).unwrap();
    let (result, _) = call_write(stage, &mut session, "0").await;
    expected.assert_eq(&format!("{result}\n{}", recorded_events(stage)));
}

/// Lists call events and notices to the user, one per line.
fn recorded_events(stage: &TestStage) -> String {
    let lines = stage.events.events().into_iter().filter_map(|event| match event {
        Event::ToolCallChanged { source, arguments, .. } => {
            Some(format!("{source} changes to {arguments}\n"))
        }
        Event::PermissionAsked(prompt) => {
            Some(format!("asked by {}: {}\n", prompt.rule, prompt.arguments))
        }
        Event::PermissionDecided { allowed, rule, comment, .. } => {
            Some(format!("allowed {allowed} by {rule} {}\n", comment.unwrap_or_default()))
        }
        Event::ToolCallStarted { arguments, .. } => Some(format!("started {arguments}\n")),
        Event::ToolResultChanged { source, .. } => Some(format!("{source} changes the result\n")),
        Event::RequestChanged { source, options, tokens } => {
            Some(format!("{source} changes {options:?} and adds {tokens}\n"))
        }
        Event::PromptAdded { source, tokens, cut } => {
            Some(format!("{source} adds {tokens} before the prompt, cut {cut}\n"))
        }
        Event::Notice { text, .. } => Some(format!("{text}\n")),
        _ => None,
    });
    lines.collect()
}

/// Returns the data in a request's newest message.
fn request_data(request: &CompletionRequest) -> Vec<Value> {
    let parts = request.messages.last().unwrap().parts.iter();
    let values = parts.filter_map(|part| match part {
        Part::Data(data) => match &data.content {
            DataContent::Json { json, .. } => Some(json.clone()),
            _ => None,
        },
        _ => None,
    });
    values.collect()
}

fn continue_answer() -> Value {
    json!({ "decision": "go_on" })
}

fn rewrite_answer(text: &str) -> Value {
    json!({ "decision": "rewrite", "arguments": { "text": text } })
}

#[tokio::test(start_paused = true)]
async fn guard_that_answers_go_on_changes_nothing() {
    let stage = TestStage::new([write_tool()]);
    stage.hooks.add_answering_plugin("guard", Hook::BeforeTool, continue_answer());
    let expected = expect![[r#"
        {"echo":{"text":"a"}}
        allowed true by option.allow 
        started {"text":"a"}
    "#]];
    check_call(&stage, expected).await;
    let (_, _, asked) = stage.hooks.asked_hooks().remove(0);
    let expected = expect![[
        r#"{"call_id":"0","tool":"write","plugin":"tool-write","arguments":{"text":"a"},"annotations":{"read_only":false,"destructive":true,"idempotent":false,"open_world":true,"parallel_safe":false},"called_by":"model","caller":""}"#
    ]];
    expected.assert_eq(&asked.to_string());
}

#[tokio::test(start_paused = true)]
async fn guards_rewrite_arguments_in_order_and_history_keeps_the_models_call() {
    let stage = TestStage::new([write_tool()]);
    stage.hooks.add_answering_plugin("a", Hook::BeforeTool, rewrite_answer("b"));
    stage.hooks.set_answer("b", Hook::BeforeTool, |asked| async move {
        let text = asked["arguments"]["text"].as_str().unwrap().to_owned();
        Ok(rewrite_answer(&format!("{text}c")))
    });
    let expected = expect![[r#"
        {"echo":{"text":"bc"},"arguments_changed_by":["a","b"],"arguments_that_ran":{"text":"bc"}}
        a changes to {"text":"b"}
        b changes to {"text":"bc"}
        allowed true by option.allow 
        started {"text":"bc"}
    "#]];
    check_call(&stage, expected).await;
    let sent = &stage.provider.requests()[1].messages;
    let call = sent.iter().flat_map(|it| it.tool_calls()).next().unwrap();
    assert_eq!(call.arguments, json!({ "text": "a" }));
}

#[tokio::test(start_paused = true)]
async fn first_guard_that_denies_stops_the_check_and_is_named() {
    let stage = TestStage::new([write_tool()]);
    let deny = json!({ "decision": "deny", "reason": "not on a Friday" });
    stage.hooks.add_answering_plugin("a", Hook::BeforeTool, deny).add_answering_plugin(
        "b",
        Hook::BeforeTool,
        continue_answer(),
    );
    let expected = expect![[r#"
        {"error":{"kind":"permission_denied","message":"plugin `a` denied the call to `write`: not on a Friday (rule `guard.denied`)"}}
        allowed false by guard.denied plugin `a`
        started {"text":"a"}
    "#]];
    check_call(&stage, expected).await;
    assert_eq!((stage.hooks.asked_hooks().len(), stage.tools.recorded_calls().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn guard_can_require_a_prompt_for_an_allowed_call() {
    let stage = TestStage::new([write_tool()]);
    let ask = json!({ "decision": "ask", "reason": "it is Friday" });
    stage.hooks.add_answering_plugin("a", Hook::BeforeTool, ask);
    let mut session = stage.start(allowing_setup()).unwrap();
    // Each such call gets a permission prompt, which offers no answer for later ones.
    let once = PermissionAnswer::once;
    stage.person.add_answers([once(Is::AllowOnce), once(Is::Deny)]);
    let (result, _) = call_write(&stage, &mut session, "0").await;
    assert_eq!(result, json!({ "echo": { "text": "a" } }));
    let (result, _) = call_write(&stage, &mut session, "1").await;
    assert_eq!(
        result["error"]["message"],
        "the user denied the call to `write` (rule `person.denied`)"
    );
    let question = "write {\"text\":\"a\"}: plugin `a` wants you to decide: it is Friday";
    assert_eq!(stage.person.form_questions(), [question, question]);
    let prompt = &stage.person.prompts()[0];
    let labels: Vec<_> = prompt.answers.iter().map(|answer| answer.label.as_str()).collect();
    assert_eq!((labels, prompt.patterns.len()), (vec!["Yes", "No"], 0));
}

#[tokio::test(start_paused = true)]
async fn guard_can_require_a_prompt_for_the_call_that_it_changed() {
    let stage = TestStage::new([write_tool()]);
    let mut answer = rewrite_answer("b");
    answer["ask"] = "it is Friday".into();
    stage.hooks.add_answering_plugin("a", Hook::BeforeTool, answer);
    let mut session = stage.start(allowing_setup()).unwrap();
    stage.person.add_answers([PermissionAnswer::once(Is::AllowOnce)]);
    let (result, _) = call_write(&stage, &mut session, "0").await;
    assert_eq!(result["echo"], json!({ "text": "b" }));
    let question = "write {\"text\":\"b\"}: plugin `a` wants you to decide: it is Friday";
    assert_eq!(stage.person.form_questions(), [question]);
}

#[tokio::test(start_paused = true)]
async fn guard_that_requires_a_prompt_denies_the_call_without_a_user() {
    let stage = TestStage::new([write_tool()]);
    stage.hooks.add_answering_plugin(
        "a",
        Hook::BeforeTool,
        json!({ "decision": "ask", "reason": "Friday" }),
    );
    let mut session = stage.start(allowing_setup()).unwrap();
    let (result, report) = call_write(&stage, &mut session, "0").await;
    assert_eq!(report.outcome, Outcome::Denied);
    let message = "the call to `write` is denied: plugin `a` wants you to decide: Friday, and no user \
                   can be asked (standard input is not a terminal) (rule `guard.asks`)";
    assert_eq!(result["error"]["message"], message);
}

#[tokio::test(start_paused = true)]
async fn denying_rule_overrides_a_guard_that_requires_a_prompt() {
    let stage = TestStage::new([write_tool()]);
    stage.person.add_answers([PermissionAnswer::once(Is::AllowOnce)]);
    stage.hooks.add_answering_plugin(
        "a",
        Hook::BeforeTool,
        json!({ "decision": "ask", "reason": "Friday" }),
    );
    let setup = allowing_setup();
    setup.rules.lock().disabled.insert(ToolName::from("write"));
    let mut session = stage.start(setup).unwrap();
    let (result, _) = call_write(&stage, &mut session, "0").await;
    assert!(
        result["error"]["message"].as_str().unwrap().contains("`[tools] disabled`"),
        "{result}"
    );
    assert_eq!(stage.person.form_questions().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn invalid_guard_answer_denies_the_call() {
    let wrong = [
        (rewrite_answer("a"), None),
        (
            json!({ "decision": "rewrite", "arguments": { "text": 7 } }),
            Some("do not match its schema"),
        ),
        (json!({ "decision": "rewrite", "arguments": [] }), Some("must be a JSON object")),
        (json!({ "decision": "rewrite" }), Some("missing field `arguments`")),
        (json!({ "decision": "perhaps" }), Some("its answer has an unknown value")),
        (json!({}), Some("missing field `decision`")),
        (json!(null), Some("its answer is invalid")),
    ];
    for (answer, expected) in wrong {
        let stage = TestStage::new([write_tool()]);
        stage.hooks.add_answering_plugin("guard", Hook::BeforeTool, answer.clone());
        let mut session = stage.start(allowing_setup()).unwrap();
        let (result, _) = call_write(&stage, &mut session, "0").await;
        let Some(expected) = expected else {
            assert_eq!(result, json!({ "echo": { "text": "a" } }));
            continue;
        };
        let message = result["error"]["message"].as_str().unwrap();
        let begins = "the call to `write` is denied because the guard plugin `guard` failed";
        assert!(message.starts_with(begins) && message.contains(expected), "{answer}: {message}");
        assert_eq!(result["error"]["hint"], "`jaato plugin disable guard` disables the plugin");
        assert_eq!(stage.tools.recorded_calls().len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn guard_that_times_out_three_times_is_disabled_and_denies_calls() {
    let stage = TestStage::new([write_tool()]);
    stage.hooks.add_hanging_plugin("guard", Hook::BeforeTool);
    let mut session = stage.start(allowing_setup()).unwrap();
    for times in 0..=HOOK_FAILURES_MAX {
        let before_ms = stage.clock.monotonic_ms();
        let (result, _) = call_write(&stage, &mut session, &times.to_string()).await;
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains("it did not answer within 1000 ms"), "{message}");
        let took_ms = stage.clock.monotonic_ms() - before_ms;
        assert_eq!(took_ms >= HOOK_MS_MAX, times < HOOK_FAILURES_MAX, "{times}: {took_ms} ms");
    }
    let expected = expect![[r#"
        host: plugin `guard` denies the call, because it failed: `before_tool`: it did not answer within 1000 ms
        host: plugin `guard` denies the call, because it failed: `before_tool`: it did not answer within 1000 ms
        host: plugin `guard` denies the call, because it failed: `before_tool`: it did not answer within 1000 ms
        host: plugin `guard` is no longer asked `before_tool` in this session, because it failed 3 times in a row; every further call is denied; run `jaato plugin disable guard` to disable it
    "#]];
    expected.assert_eq(&stage.events.notices());
    assert_eq!(stage.tools.recorded_calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn only_consecutive_failures_disable_a_guard() {
    let stage = TestStage::new([write_tool()]);
    let times = Arc::new(AtomicU32::new(0));
    stage.hooks.set_answer("guard", Hook::BeforeTool, move |_| {
        let time = times.fetch_add(1, Ordering::Relaxed);
        async move { if time % 3 == 2 { Ok(continue_answer()) } else { Err(Error::failed("no")) } }
    });
    let mut session = stage.start(allowing_setup()).unwrap();
    let mut ran = 0;
    for id in 0..9 {
        let (result, _) = call_write(&stage, &mut session, &id.to_string()).await;
        ran += u32::from(result.get("echo").is_some());
    }
    assert_eq!(ran, 3);
}

#[tokio::test(start_paused = true)]
async fn guard_sees_calls_by_users_plugins_and_self_running_tools() {
    let itself = ScriptedTool::echo("itself").run_if(jaato_types::Condition::NoObjects);
    let stage = TestStage::new([write_tool(), itself]);
    let deny = json!({ "decision": "deny", "reason": "no" });
    stage.hooks.add_answering_plugin("guard", Hook::BeforeTool, deny);
    let mut session = stage.start(allowing_setup()).unwrap();
    let (name, arguments) = (ToolName::from("write"), json!({ "text": "a" }));
    let refused =
        session.run_user_call(&name, arguments.clone(), &Cancel::new()).await.unwrap_err();
    assert_eq!(
        refused.message,
        "plugin `guard` denied the call to `write`: no (rule `guard.denied`)"
    );
    let origin = CallOrigin::outside_of_calls("tool-sun".into());
    session.handle().call_tool(&name, arguments, &origin, &Cancel::new()).await.unwrap_err();
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("x", &Cancel::new()).await;
    let asked = stage.hooks.asked_hooks();
    let by = asked.iter().map(|(_, _, asked)| (&asked["called_by"], &asked["caller"]));
    let by: Vec<String> = by.map(|(by, caller)| format!("{by} {caller}")).collect();
    assert_eq!(by, [r#""person" """#, r#""plugin" "tool-sun""#, r#""itself" """#]);
    assert_eq!(stage.tools.recorded_calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_a_guard_thinks_drops_the_call() {
    let stage = TestStage::new([write_tool()]);
    let (cancel, seen) = (Cancel::new(), Arc::new(AtomicBool::new(false)));
    let (stop, heard) = (cancel.clone(), Arc::clone(&seen));
    stage.hooks.set_answer("guard", Hook::BeforeTool, move |_| {
        heard.store(true, Ordering::Relaxed);
        stop.cancel();
        std::future::pending()
    });
    let mut session = stage.start(allowing_setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call("0", "write", json!({ "text": "a" }))]);
    let report = session.run_turn("x", &cancel).await;
    assert!(seen.load(Ordering::Relaxed));
    assert_eq!((report.outcome, recorded_events(&stage).as_str()), (Outcome::Cancelled, ""));
}

#[tokio::test(start_paused = true)]
async fn after_tool_hooks_replace_and_extend_the_result_with_events() {
    let stage = TestStage::new([write_tool()]);
    stage.hooks.add_answering_plugin("a", Hook::AfterTool, json!({ "replace": { "seen": 1 } }));
    stage.hooks.add_answering_plugin("b", Hook::AfterTool, json!({ "add": { "more": 2 } }));
    stage.hooks.add_answering_plugin("c", Hook::AfterTool, json!({}));
    let expected = expect![[r#"
        {"seen":1,"more":2}
        allowed true by option.allow 
        started {"text":"a"}
        a changes the result
        b changes the result
    "#]];
    check_call(&stage, expected).await;
    let asked = stage.hooks.asked_hooks();
    let results: Vec<&Value> = asked.iter().map(|(_, _, asked)| &asked["result"]).collect();
    let whole = json!({ "seen": 1, "more": 2 });
    assert_eq!(results, [&json!({ "echo": { "text": "a" } }), &json!({ "seen": 1 }), &whole]);
}

#[tokio::test(start_paused = true)]
async fn result_that_a_hook_makes_too_long_is_truncated() {
    let stage = TestStage::new([write_tool()]);
    stage.hooks.add_answering_plugin(
        "a",
        Hook::AfterTool,
        json!({ "add": { "text": "x".repeat(100_000) } }),
    );
    let mut session = stage.start(allowing_setup()).unwrap();
    let (result, _) = call_write(&stage, &mut session, "0").await;
    assert!(result.to_string().len() <= session_bytes_max(), "{}", result.to_string().len());
    assert_eq!(stage.outputs.files().len(), 1);
}

fn session_bytes_max() -> usize {
    TestStage::setup().limits.output_bytes_max
}

#[tokio::test(start_paused = true)]
async fn failing_after_tool_hook_is_skipped_and_reported() {
    let stage = TestStage::new([write_tool()]);
    stage.hooks.add_hanging_plugin("a", Hook::AfterTool);
    stage.hooks.add_answering_plugin("b", Hook::AfterTool, json!({ "replace": 7 }));
    stage.hooks.add_answering_plugin("c", Hook::AfterTool, json!({ "add": { "seen": true } }));
    let expected = expect![[r#"
        {"echo":{"text":"a"},"seen":true}
        allowed true by option.allow 
        started {"text":"a"}
        plugin `a` is skipped: `after_tool`: it did not answer within 1000 ms
        plugin `b` is skipped: `after_tool`: its answer is invalid: invalid type: integer `7`, expected a map
        c changes the result
    "#]];
    check_call(&stage, expected).await;
}

#[tokio::test(start_paused = true)]
async fn hooks_also_change_the_full_output_of_a_user_call() {
    let stage = TestStage::new([write_tool()]);
    stage.hooks.add_answering_plugin("a", Hook::BeforeTool, rewrite_answer("b"));
    stage.hooks.add_answering_plugin("a", Hook::AfterTool, json!({ "add": { "seen": true } }));
    let session = stage.start(allowing_setup()).unwrap();
    let (name, arguments) = (ToolName::from("write"), json!({ "text": "a" }));
    let output = session.run_user_call(&name, arguments, &Cancel::new()).await.unwrap();
    let expected = json!({
        "echo": { "text": "b" }, "seen": true, "arguments_changed_by": ["a"],
        "arguments_that_ran": { "text": "b" },
    });
    assert_eq!(Value::Object(output.content), expected);
}

#[tokio::test(start_paused = true)]
async fn before_prompt_text_is_a_message_part_that_names_its_plugin() {
    let stage = TestStage::new([]);
    stage.hooks.add_answering_plugin("notes", Hook::BeforePrompt, json!({ "text": "buy milk" }));
    stage.hooks.add_answering_plugin("silent", Hook::BeforePrompt, json!({ "text": " " }));
    let mut session = stage.start(TestStage::setup()).unwrap();
    for prompt in ["one", "two"] {
        stage.provider.add_answer([ScriptedProviderAction::text("done")]);
        session.run_turn(prompt, &Cancel::new()).await;
    }
    let requests = stage.provider.requests();
    for (request, prompt) in requests.iter().zip(["one", "two"]) {
        let parts = &request.messages.last().unwrap().parts;
        let added = json!({ "added_by_plugin": "notes", "text": "buy milk" });
        assert_eq!(parts, &[Part::json(added), Part::text(prompt)]);
    }
    // The earlier messages stay the same.
    assert_eq!(requests[0].system, requests[1].system);
    assert_eq!(requests[0].messages, requests[1].messages[..1]);
    let line = "notes adds 2 before the prompt, cut false\n";
    assert_eq!(recorded_events(&stage), line.repeat(2));
    assert_eq!(session.history().messages().next().unwrap().text(), "one");
}

#[tokio::test(start_paused = true)]
async fn before_prompt_text_is_limited_per_plugin_and_in_total() {
    let stage = TestStage::new([]);
    for name in ["a", "b", "c", "d", "e", "f"] {
        stage.hooks.add_answering_plugin(
            name,
            Hook::BeforePrompt,
            json!({ "text": "word".repeat(2_001) }),
        );
    }
    let mut session = stage.start(TestStage::setup_with_limit(1_000_000)).unwrap();
    let tokens = |additions: Vec<jaato_session::HookPromptAddition>| {
        additions.iter().map(|addition| addition.tokens).collect::<Vec<_>>()
    };
    let all = tokens(session.prompt_additions("x", &Cancel::new()).await.unwrap());
    assert_eq!(all, [ADDITION_TOKENS_MAX, 2_000, 2_000, 2_000, 0, 0]);
    assert_eq!(all.iter().sum::<u64>(), ADDITIONS_TOKENS_MAX);
    // A text may fill at most a quarter of a small window.
    session = stage.start(TestStage::setup_with_limit(4_000)).unwrap();
    assert_eq!(
        tokens(session.prompt_additions("x", &Cancel::new()).await.unwrap()).iter().sum::<u64>(),
        1_000
    );
}

#[tokio::test(start_paused = true)]
async fn slow_before_prompt_hooks_delay_the_prompt_only_to_their_deadline() {
    let stage = TestStage::new([]);
    stage
        .hooks
        .add_hanging_plugin("a", Hook::BeforePrompt)
        .add_hanging_plugin("b", Hook::BeforePrompt);
    stage.hooks.add_answering_plugin("c", Hook::BeforePrompt, json!({ "text": "milk" }));
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let before_ms = stage.clock.monotonic_ms();
    session.run_turn("x", &Cancel::new()).await;
    // In parallel.
    assert_eq!(stage.clock.monotonic_ms() - before_ms, 200);
    let expected = expect![[r#"
        plugin `a` is skipped: `before_prompt`: it did not answer within 200 ms
        plugin `b` is skipped: `before_prompt`: it did not answer within 200 ms
        c adds 1 before the prompt, cut false
    "#]];
    expected.assert_eq(&recorded_events(&stage));
}

#[tokio::test(start_paused = true)]
async fn before_prompt_text_of_an_unsent_prompt_is_dropped() {
    let stage = TestStage::new([]);
    stage.hooks.add_answering_plugin("notes", Hook::BeforePrompt, json!({ "text": "milk" }));
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::Fail(Error::failed("no"))]);
    session.run_turn("one", &Cancel::new()).await;
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("two", &Cancel::new()).await;
    assert_eq!(request_data(&stage.provider.requests()[1]).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn before_request_hook_changes_options_and_appends_text_to_one_request() {
    let stage = TestStage::new([write_tool()]);
    let first = Arc::new(AtomicBool::new(true));
    stage.hooks.set_answer("a", Hook::BeforeRequest, move |_| {
        let is_first = first.swap(false, Ordering::Relaxed);
        let change = json!({ "options": { "temperature": 0.5 }, "text": "be brief" });
        async move { Ok(if is_first { change } else { json!({}) }) }
    });
    stage.hooks.add_answering_plugin(
        "b",
        Hook::BeforeRequest,
        json!({ "options": { "max_output_tokens": 7 } }),
    );
    let mut session = stage.start(allowing_setup()).unwrap();
    call_write(&stage, &mut session, "0").await;
    let requests = stage.provider.requests();
    let options = |at: usize| serde_json::to_value(&requests[at].options).unwrap();
    assert_eq!(options(0), json!({ "temperature": 0.5, "max_output_tokens": 7 }));
    assert_eq!(options(1), json!({ "max_output_tokens": 7 }));
    assert_eq!(request_data(&requests[0]), [json!({ "added_by_plugin": "a", "text": "be brief" })]);
    assert_eq!(requests[1].messages[0], requests[0].messages[0]);
    let expected = expect![[r#"
        a changes ["temperature"] and adds 2
        b changes ["max_output_tokens"] and adds 0
        allowed true by option.allow 
        started {"text":"a"}
        b changes ["max_output_tokens"] and adds 0
    "#]];
    expected.assert_eq(&recorded_events(&stage));
}

#[tokio::test(start_paused = true)]
async fn before_request_hook_that_changes_other_fields_is_skipped() {
    let stage = TestStage::new([]);
    let changes = [
        json!({ "text": "x", "messages": [] }),
        json!({ "options": { "session_key": "x" } }),
        json!({ "options": { "seed": 1 } }),
    ];
    for (name, change) in ["a", "b", "c"].into_iter().zip(changes) {
        stage.hooks.add_answering_plugin(name, Hook::BeforeRequest, change);
    }
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("x", &Cancel::new()).await;
    let expected = expect![[r#"
        plugin `a` is skipped: `before_request`: its answer has `messages`, but may have only `options`, `text` and `refusal`
        plugin `b` is skipped: `before_request`: a hook cannot change the option `session_key`; it can change: max_output_tokens, temperature
        plugin `c` is skipped: `before_request`: a hook cannot change the option `seed`; it can change: max_output_tokens, temperature
    "#]];
    expected.assert_eq(&recorded_events(&stage));
    let request = &stage.provider.requests()[0];
    assert_eq!(
        (request_data(request).len(), request.options == session.next_request().options),
        (0, true)
    );
}

#[tokio::test(start_paused = true)]
async fn before_request_hook_can_end_the_turn() {
    let stage = TestStage::new([write_tool()]);
    let refuse = |asked: Value| async move {
        let is_first = asked["newest"]["parts"][0]["type"] == "text";
        Ok(if is_first { json!({}) } else { json!({ "refusal": "it is Friday" }) })
    };
    stage.hooks.set_answer("a", Hook::BeforeRequest, refuse);
    let mut session = stage.start(allowing_setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call("0", "write", json!({ "text": "a" }))]);
    let report = session.run_turn("x", &Cancel::new()).await;
    assert_eq!((report.outcome, report.steps), (Outcome::Failed, 1));
    assert_eq!(report.error.unwrap().message, "plugin `a` ended the turn: it is Friday");
    assert_eq!(stage.provider.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn before_request_text_is_not_added_to_a_message_already_sent() {
    let stage = TestStage::new([]);
    stage.hooks.add_answering_plugin("a", Hook::BeforeRequest, json!({ "text": "again" }));
    let mut session = stage.start(TestStage::setup()).unwrap();
    // The model gives an empty answer, so the session asks again.
    stage.provider.add_answer([]).add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("x", &Cancel::new()).await;
    let requests = stage.provider.requests();
    assert_eq!((requests.len(), request_data(&requests[0]).len()), (2, 1));
    assert_eq!(requests[0].messages, requests[1].messages);
}

#[tokio::test(start_paused = true)]
async fn permission_prompt_shows_a_preview_of_the_change() {
    let shows = write_tool().with_preview(|asked| async move {
        Ok(Preview::diff(format!("+{}", asked.arguments["text"].as_str().unwrap())))
    });
    let stage = TestStage::new([shows]);
    stage.person.add_answers([PermissionAnswer::once(Is::AllowOnce)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    call_write(&stage, &mut session, "0").await;
    let asked = stage.events.events().into_iter().find_map(|event| match event {
        Event::PermissionAsked(prompt) => prompt.preview,
        _ => None,
    });
    assert_eq!(asked, Some(Preview::diff("+a")));
    assert!(
        stage.person.form_questions()[0].contains(r#"diff: "+a""#),
        "{:?}",
        stage.person.form_questions()
    );
}

#[tokio::test(start_paused = true)]
async fn failing_or_hanging_preview_does_not_block_the_call() {
    for hangs in [true, false] {
        let shows = write_tool().with_preview(move |_| async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Err(Error::failed("no moon"))
        });
        let stage = TestStage::new([shows]);
        stage.person.add_answers([PermissionAnswer::once(Is::AllowOnce)]);
        let mut session = stage.start(TestStage::setup()).unwrap();
        let (result, _) = call_write(&stage, &mut session, "0").await;
        assert_eq!(result, json!({ "echo": { "text": "a" } }));
        let why = if hangs { "its plugin did not answer within 1000 ms" } else { "no moon" };
        let notices = stage.events.notices();
        assert!(notices.contains(why), "{notices}");
    }
}

#[tokio::test(start_paused = true)]
async fn call_refused_by_its_preview_is_denied_without_a_prompt() {
    let shows = write_tool().with_preview(|_| async {
        Ok(Preview::refused(Error::failed("there is no moon").with_hint("look at night")))
    });
    let stage = TestStage::new([shows]);
    stage.person.add_answers([PermissionAnswer::once(Is::AllowOnce)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let (result, _) = call_write(&stage, &mut session, "0").await;
    assert_eq!(result["error"]["message"], json!("there is no moon"), "{result}");
    assert_eq!(result["error"]["hint"], json!("look at night"), "{result}");
    assert_eq!(stage.person.form_questions(), [""; 0]);
    let decided = stage.events.events().into_iter().find_map(|event| match event {
        Event::PermissionDecided { allowed, rule, .. } => Some((allowed, rule)),
        _ => None,
    });
    assert_eq!(decided, Some((false, "preview.refuses".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn call_without_a_permission_prompt_is_not_previewed() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let shows = write_tool().with_preview(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok(Preview::text("x")) }
    });
    let stage = TestStage::new([shows]);
    let mut session = stage.start(allowing_setup()).unwrap();
    call_write(&stage, &mut session, "0").await;
    // No user is present.
    let mut session = stage.start(TestStage::setup()).unwrap();
    call_write(&stage, &mut session, "1").await;
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}
