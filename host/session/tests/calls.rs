//! Tool calls: validation, unknown and disabled tools, the permission check, batches, deadlines,
//! output.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_policy::{AllowedTool, PathPattern, Rule, RuleConditions, RuleFile, RuleLayer};
use jaato_session::testing::{
    ConcurrentCallRecord, ScriptedProviderAction, ScriptedTool, TestStage,
};
use jaato_session::{Cancel, Limits, NamedPaths, Session, SessionSetup, ToolState, TurnReport};
use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision as Is};
use jaato_types::{
    DataPart, Error, ErrorKind, Event, Outcome, Output, Part, PluginName, ToolName, ToolResult,
};
use serde_json::{Value, json};

type NamedCalls = Vec<(&'static str, Value)>;

/// Runs a turn with one answer with these calls (ids `0`, `1` …) and a final one. Returns the
/// results.
async fn play_calls(
    stage: &TestStage,
    setup: SessionSetup,
    calls: NamedCalls,
) -> (Vec<ToolResult>, TurnReport) {
    let mut session = stage.start(setup).unwrap();
    play_calls_on(stage, &mut session, calls).await
}

async fn play_calls_on(
    stage: &TestStage,
    session: &mut Session,
    calls: NamedCalls,
) -> (Vec<ToolResult>, TurnReport) {
    let beats = calls.into_iter().enumerate();
    let beats = beats.map(|(id, (name, arguments))| {
        ScriptedProviderAction::call(&id.to_string(), name, arguments)
    });
    stage.provider.add_answer(beats);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let report = session.run_turn("x", &Cancel::new()).await;
    let message = session.history().messages().rev().nth(1).unwrap();
    (message.tool_results().cloned().collect(), report)
}

fn format_results(results: &[ToolResult]) -> String {
    let lines = results.iter().map(|result| {
        let mark = if result.is_error { "error " } else { "" };
        format!("{mark}{}\n", Value::Object(result.content.clone()))
    });
    lines.collect()
}

fn weather_tool() -> ScriptedTool {
    ScriptedTool::echo("weather").with_schema(json!({
        "type": "object",
        "properties": {
            "city": { "type": "string", "minLength": 1 },
            "unit": { "enum": ["celsius", "kelvin"] },
            "when": { "anyOf": [{ "enum": ["today", "tomorrow"] }, { "type": "null" }] },
            "days": { "type": "array", "items": { "type": "integer", "maximum": 7 } },
        },
        "required": ["city"],
        "additionalProperties": false,
    }))
}

async fn check_arguments(arguments: Value, expected: Expect) {
    let stage = TestStage::new([weather_tool()]);
    let (results, report) =
        play_calls(&stage, TestStage::setup(), vec![("weather", arguments)]).await;
    assert_eq!(report.outcome, Outcome::Done);
    assert_eq!(stage.tools.recorded_calls().is_empty(), results[0].is_error);
    expected.assert_eq(&format_results(&results));
}

#[tokio::test(start_paused = true)]
async fn arguments_that_match_reach_the_tool_as_they_are() {
    let expected = expect![[r#"
        {"echo":{"city":"Bern","unit":"kelvin"}}
    "#]];
    check_arguments(json!({ "city": "Bern", "unit": "kelvin" }), expected).await;
}

#[tokio::test(start_paused = true)]
async fn wrongly_typed_arguments_are_converted_before_prompts_and_events() {
    let expected = expect![[r#"
        {"echo":{"city":"1","days":[1,2]}}
    "#]];
    let given = json!({ "city": 1, "days": "[1.0, \"2\"]", "unit": null, "description": "Look" });
    check_arguments(given, expected).await;

    let stage = TestStage::new([weather_tool().writing()]);
    stage.person.add_answers([PermissionAnswer::once(Is::AllowOnce)]);
    let given = json!({ "City": "Bern", "unit": "Kelvin" });
    play_calls(&stage, TestStage::setup(), vec![("weather", given.clone())]).await;
    let fitted = json!({ "unit": "kelvin", "city": "Bern" });
    assert_eq!(stage.person.prompts()[0].arguments, fitted);
    let started = stage.events.events().into_iter().find_map(|event| match event {
        Event::ToolCallStarted { arguments, .. } => Some(arguments),
        _ => None,
    });
    assert_eq!(started, Some(fitted));
    let sent = stage.provider.requests().pop().unwrap();
    let asked = sent.messages.iter().flat_map(|message| message.tool_calls()).next();
    assert_eq!(asked.unwrap().arguments, given, "the history keeps what the model wrote");
}

#[tokio::test(start_paused = true)]
async fn history_shows_arguments_in_a_string_as_the_object_that_ran() {
    let object = r#"{"city":"Bern"}"#;
    for (given, kept, runs) in [
        (json!(object), json!({ "city": "Bern" }), true),
        (json!(format!(" {object}\n")), json!({ "city": "Bern" }), true),
        (Value::Null, json!({}), true),
        (json!(" "), json!({}), true),
        (json!(r#"{"city":"Be"#), json!(r#"{"city":"Be"#), false),
        (json!("[1]"), json!("[1]"), false),
    ] {
        let stage = TestStage::new([ScriptedTool::echo("look")]);
        let (results, _) = play_calls(&stage, TestStage::setup(), vec![("look", given)]).await;
        assert_eq!(results[0].is_error, !runs, "{results:?}");
        let sent = stage.provider.requests().pop().unwrap();
        let call = sent.messages.iter().flat_map(|message| message.tool_calls()).next();
        assert_eq!(call.unwrap().arguments, kept);
    }
}

#[tokio::test(start_paused = true)]
async fn error_for_an_invalid_value_lists_the_allowed_values() {
    let expected = expect![[r#"
        error {"error":{"kind":"invalid_arguments","message":"the arguments of `weather` do not match its schema: at `/unit`: `\"fahrenheit\"` is not one of the allowed values: `celsius`, `kelvin`","hint":"its properties are `city` (required), `unit`, `when`, `days`"}}
    "#]];
    check_arguments(json!({ "city": "Bern", "unit": "fahrenheit" }), expected).await;
    let expected = expect![[r#"
        error {"error":{"kind":"invalid_arguments","message":"the arguments of `weather` do not match its schema: at `/when`: `\"never\"` fits none of the allowed forms (at `/when`: `\"never\"` is not one of the allowed values: `today`, `tomorrow`; at `/when`: \"never\" is not of type \"null\")","hint":"its properties are `city` (required), `unit`, `when`, `days`"}}
    "#]];
    check_arguments(json!({ "city": "Bern", "when": "never" }), expected).await;
}

#[tokio::test(start_paused = true)]
async fn error_names_all_missing_unknown_and_invalid_arguments() {
    let expected = expect![[r#"
        error {"error":{"kind":"invalid_arguments","message":"the arguments of `weather` do not match its schema: at `/days/1`: 8 is greater than the maximum of 7; unknown properties: `town`; the required property `city` is missing","hint":"its properties are `city` (required), `unit`, `when`, `days`"}}
    "#]];
    check_arguments(json!({ "town": "Bern", "days": [1, 8] }), expected).await;
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_not_an_object_are_refused() {
    let expected = expect![[r#"
        error {"error":{"kind":"invalid_arguments","message":"the arguments of `weather` must be a JSON object, not the string `\"{city: Bern\"`","hint":"its properties are `city` (required), `unit`, `when`, `days`"}}
    "#]];
    check_arguments(json!("{city: Bern"), expected).await;
}

#[tokio::test(start_paused = true)]
async fn invalid_tool_schema_is_reported_as_the_plugins_fault() {
    let stage = TestStage::new([
        ScriptedTool::echo("odd").with_schema(json!({ "type": 5 })),
        ScriptedTool::echo("fine"),
    ]);
    let calls = vec![("odd", json!({})), ("fine", json!({}))];
    let (results, _) = play_calls(&stage, TestStage::setup(), calls).await;
    assert_eq!(results[0].content["error"]["kind"], "plugin_misbehaved");
    assert!(!results[1].is_error);
}

#[tokio::test(start_paused = true)]
async fn errors_for_unknown_and_disabled_tools_suggest_what_to_do() {
    let by = "by `[tools] disabled` in the configuration".to_owned();
    let stage = TestStage::new([
        ScriptedTool::echo("read_file"),
        ScriptedTool::echo("read_files").with_state(ToolState::Disabled { by }),
    ]);
    let calls = vec![("readFile", json!({})), ("read_files", json!({})), ("zzz", json!({}))];
    let (results, report) = play_calls(&stage, TestStage::setup(), calls).await;
    expect![[r#"
        error {"error":{"kind":"unknown_tool","message":"there is no tool `readFile`","hint":"did you mean `read_file`?"}}
        error {"error":{"kind":"tool_disabled","message":"the tool `read_files` is disabled by `[tools] disabled` in the configuration","hint":"continue without it, or tell the user that it is needed"}}
        error {"error":{"kind":"unknown_tool","message":"there is no tool `zzz`","hint":"the tools are `read_file`"}}
    "#]]
    .assert_eq(&format_results(&results));
    assert_eq!(report.outcome, Outcome::Done);
    assert!(stage.tools.recorded_calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn call_that_needs_permission_without_a_user_is_denied() {
    let stage = TestStage::new([ScriptedTool::echo("write").writing(), ScriptedTool::echo("look")]);
    let calls = vec![("write", json!({})), ("look", json!({}))];
    let (results, report) = play_calls(&stage, TestStage::setup(), calls).await;
    expect![[r#"
        error {"error":{"kind":"permission_denied","message":"the call to `write` is denied: tool `write` needs permission, and no user can be asked (standard input is not a terminal) (rule `ask.silence`)","hint":"allow it with `--allow write`, or everything with `--yes`"}}
        {"echo":{}}
    "#]]
    .assert_eq(&format_results(&results));
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Denied, "done"));
    assert_eq!(report.error.unwrap().kind, ErrorKind::PermissionDenied);
    let asked = |event: &Event| matches!(event, Event::PermissionAsked(_));
    assert!(!stage.events.events().iter().any(asked), "no user was asked");
}

#[tokio::test(start_paused = true)]
async fn read_only_tools_of_unshipped_plugins_need_permission() {
    let mut foreign = ScriptedTool::echo("foreign");
    foreign.known.shipped = false;
    let stage = TestStage::new([foreign]);
    stage.person.add_answers([PermissionAnswer::once(Is::AllowOnce)]);
    let (results, report) =
        play_calls(&stage, TestStage::setup(), vec![("foreign", json!({}))]).await;
    assert_eq!((results[0].is_error, report.outcome), (false, Outcome::Done));
    assert_eq!(stage.person.form_questions().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn allow_options_permit_a_call_without_a_prompt() {
    for all in [false, true] {
        let stage = TestStage::new([ScriptedTool::echo("write").writing()]);
        let setup = TestStage::setup();
        setup.rules.lock().allow_all = all;
        setup.rules.lock().allowed.insert(AllowedTool::parse("write"));
        let (results, report) = play_calls(&stage, setup, vec![("write", json!({}))]).await;
        assert_eq!((results[0].is_error, report.outcome), (false, Outcome::Done));
    }
}

#[tokio::test(start_paused = true)]
async fn permission_answers_allow_or_deny_once_or_for_the_session() {
    let stage = TestStage::new([ScriptedTool::echo("write").writing()]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let comment = || Some("use the other folder".to_owned());
    stage.person.add_answers([
        PermissionAnswer::once(Is::AllowOnce),
        PermissionAnswer { pattern: Some(0), ..PermissionAnswer::once(Is::AllowInSession) },
        PermissionAnswer { comment: comment(), ..PermissionAnswer::once(Is::Deny) },
        PermissionAnswer::once(Is::DenyInSession),
    ]);
    let (a, b) = (|| json!({ "path": "a" }), || json!({ "path": "b" }));
    // asked: once; asked: always; granted; asked: denied; asked: never; never, even though granted
    let calls = [a(), a(), a(), b(), b(), a()];
    let (mut results, mut outcome) = (Vec::new(), Outcome::Done);
    for arguments in calls {
        // Each in its own answer, because equal calls of one answer are asked about once.
        let (result, report) =
            play_calls_on(&stage, &mut session, vec![("write", arguments)]).await;
        results.extend(result);
        outcome = report.outcome;
    }
    let errors: Vec<bool> = results.iter().map(|result| result.is_error).collect();
    assert_eq!(errors, [false, false, false, true, true, true]);
    assert_eq!(stage.person.form_questions().len(), 4);
    let message = results[3].content["error"]["message"].as_str().unwrap();
    assert!(message.contains("use the other folder"), "{message}");
    assert_eq!(outcome, Outcome::Done, "a user's no does not mean that no user was there");
    let rules: Vec<(bool, String)> = stage
        .events
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::PermissionDecided { allowed, rule, .. } => Some((allowed, rule)),
            _ => None,
        })
        .collect();
    let expected = [
        (true, "person.once"),
        (true, "session.always"),
        (true, "session.always"),
        (false, "person.denied"),
        (false, "session.never"),
        (false, "session.never"),
    ];
    assert_eq!(rules, expected.map(|(allowed, rule)| (allowed, rule.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn call_typed_by_the_user_is_not_prompted_and_not_in_history() {
    let stage = TestStage::new([ScriptedTool::echo("write").writing(), weather_tool()]);
    let session = stage.start(TestStage::setup()).unwrap();
    let call = async |name: &str, arguments| {
        session.run_user_call(&ToolName::from(name), arguments, &Cancel::new()).await
    };
    let big = "x".repeat(100_000);
    let output = call("write", json!({ "text": big })).await.unwrap();
    assert_eq!(output.content["echo"]["text"], big, "a person gets the whole");
    assert_eq!(call("weather", json!({})).await.unwrap_err().kind, ErrorKind::InvalidArguments);
    assert_eq!(call("nothing", json!({})).await.unwrap_err().kind, ErrorKind::UnknownTool);
    assert!(session.history().entries().is_empty());
}

#[tokio::test(start_paused = true)]
async fn safe_calls_run_in_parallel_and_results_keep_call_order() {
    let stage =
        TestStage::new([ScriptedTool::sleeping("read"), ScriptedTool::sleeping("write").writing()]);
    let setup = TestStage::setup();
    setup.rules.lock().allow_all = true;
    let ms = |ms: u64| json!({ "ms": ms });
    let calls = vec![
        ("read", ms(300)),
        ("read", ms(100)),
        ("write", ms(50)),
        ("write", ms(50)),
        ("read", ms(200)),
        ("read", ms(10)),
    ];
    let (results, report) = play_calls(&stage, setup, calls).await;
    assert_eq!(report.duration_ms, 300 + 50 + 50 + 200);
    let slept: Vec<u64> =
        results.iter().map(|result| result.content["slept_ms"].as_u64().unwrap()).collect();
    assert_eq!(slept, [300, 100, 50, 50, 200, 10]);
    let beside: Vec<usize> = stage.tools.recorded_calls().iter().map(|seat| seat.beside).collect();
    assert_eq!(beside, [1, 1, 0, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn eight_calls_run_side_by_side_and_the_ninth_waits() {
    for (count, duration_ms) in [(8, 100), (9, 200)] {
        let stage = TestStage::new([ScriptedTool::sleeping("read")]);
        let calls = (0..count).map(|_| ("read", json!({ "ms": 100 }))).collect();
        let (_, report) = play_calls(&stage, TestStage::setup(), calls).await;
        assert_eq!(report.duration_ms, duration_ms, "{count} calls");
        let most = stage.tools.recorded_calls().iter().map(|seat| seat.beside + 1).max();
        assert_eq!(most, Some(8));
    }
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_step_limit_each_get_an_error() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    let limits = Limits { calls_per_step_max: 2, ..Limits::default() };
    let setup = SessionSetup { limits, ..TestStage::setup() };
    let calls = vec![("look", json!({})), ("look", json!({})), ("look", json!({}))];
    let (results, report) = play_calls(&stage, setup, calls).await;
    assert_eq!(results.iter().filter(|result| result.is_error).count(), 1);
    assert_eq!(results[2].content["error"]["kind"], "limit_reached");
    assert_eq!((stage.tools.recorded_calls().len(), report.outcome), (2, Outcome::Done));
}

#[tokio::test(start_paused = true)]
async fn a_call_past_its_deadline_is_dropped_with_its_cancel_set() {
    let told = std::sync::Arc::new(parking_lot::Mutex::new(None));
    let tell = told.clone();
    let stage = TestStage::new([ScriptedTool::new("stuck", move |_, scope| {
        *tell.lock() = Some(scope.clone());
        std::future::pending()
    })]);
    let limits = Limits { call_deadline_ms: 1_000, ..Limits::default() };
    let setup = SessionSetup { limits, ..TestStage::setup() };
    let (results, report) = play_calls(&stage, setup, vec![("stuck", json!({}))]).await;
    assert_eq!(results[0].content["error"]["kind"], "timeout");
    assert_eq!(report.duration_ms, 1_000);
    assert!(matches!(
        stage.tools.recorded_calls()[..],
        [ConcurrentCallRecord { ended: false, .. }]
    ));
    let scope = told.lock().clone().unwrap();
    assert!(scope.cancel.is_cancelled());
    let events = stage.events.events().len();
    assert!(!scope.output.write("late"), "a call that is over shows nothing more");
    assert_eq!(stage.events.events().len(), events);
}

#[tokio::test(start_paused = true)]
async fn failed_tool_reports_its_message_hint_and_live_output() {
    let stage = TestStage::new([ScriptedTool::new("fails", |_, scope| async move {
        assert!(scope.output.write("working"));
        Err::<Output, _>(Error::failed("no such file").with_hint("list the folder first"))
    })]);
    let (results, _) = play_calls(&stage, TestStage::setup(), vec![("fails", json!({}))]).await;
    expect![[r#"
        error {"error":{"kind":"failed","message":"no such file","hint":"list the folder first"}}
    "#]]
    .assert_eq(&format_results(&results));
    let output = Event::ToolOutput {
        call_id: "0".into(),
        source: PluginName::from("tool-fails").source().to_owned(),
        text: "working".into(),
    };
    assert!(stage.events.events().contains(&output));
}

/// Returns the model's result of a tool that returns this content, and the files.
async fn shown_result(content: Value) -> (ToolResult, Vec<(String, Vec<u8>)>) {
    let output = Output::json(content);
    let stage = TestStage::new([ScriptedTool::new("big", move |_, _| {
        let output = output.clone();
        async move { Ok(output) }
    })]);
    let (mut results, _) = play_calls(&stage, TestStage::setup(), vec![("big", json!({}))]).await;
    let result = results.remove(0);
    let bytes = Value::Object(result.content.clone()).to_string().len();
    assert!(bytes <= 16 * 1024, "{bytes} bytes");
    (result, stage.outputs.files())
}

/// Returns the head of a truncated text, how many bytes are left out, and the tail.
#[track_caller]
fn shown_parts<'a>(shown: &'a Value, file: &str) -> (&'a str, usize, &'a str) {
    let note = format!(" bytes left out; the whole output: {file} …]\n");
    let (before, tail) = shown.as_str().unwrap().split_once(&note).unwrap();
    let (head, left_out) = before.split_once("\n[… ").unwrap();
    (head, left_out.parse().unwrap(), tail)
}

#[tokio::test(start_paused = true)]
async fn output_one_byte_over_the_limit_is_truncated() {
    let frame = json!({ "text": "" }).to_string().len();
    let text = |len: usize| "x".repeat(len - frame);
    let (result, files) = shown_result(json!({ "text": text(16 * 1024) })).await;
    assert_eq!(
        (result.content["text"].as_str().unwrap().len(), files.len()),
        (16 * 1024 - frame, 0)
    );

    let whole = text(16 * 1024 + 1);
    let (result, files) = shown_result(json!({ "text": whole, "exit_code": 0 })).await;
    assert_eq!(result.content["exit_code"], 0, "what is short keeps its place");
    assert_eq!(files, [("/outputs/0-result-text".to_owned(), whole.clone().into_bytes())]);
    assert_eq!(result.content["output_file"], "/outputs/0-result-text");
    let (head, left_out, tail) = shown_parts(&result.content["text"], "/outputs/0-result-text");
    assert_eq!(head.len() + left_out + tail.len(), whole.len());
    assert!(head.len() > 7_000 && tail.len() > 7_000, "{head} {tail}");
}

#[tokio::test(start_paused = true)]
async fn truncated_text_keeps_head_and_tail_at_character_boundaries() {
    for line_end in ["\n", "\u{1}"] {
        let text: String = (0..20_000).map(|n| format!("{n}€{line_end}")).collect();
        let (result, files) = shown_result(json!({ "out": text })).await;
        let (head, left_out, tail) = shown_parts(&result.content["out"], &files[0].0);
        assert!(text.starts_with(head) && text.ends_with(tail));
        assert_eq!(head.len() + left_out + tail.len(), text.len());
        assert_eq!(files[0].1, text.into_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn long_text_is_saved_even_if_the_tool_names_its_own_file() {
    let claim = "\n[… 5 bytes left out; the whole output: /etc/passwd …]\n";
    let text = format!("{}{claim}{}", "a".repeat(20_000), "b".repeat(20_000));
    let (result, files) = shown_result(json!({ "text": text, "output_file": "/etc/passwd" })).await;
    assert_eq!(files, [("/outputs/0-result-text".to_owned(), text.clone().into_bytes())]);
    let (head, left_out, tail) = shown_parts(&result.content["text"], &files[0].0);
    assert_eq!(head.len() + left_out + tail.len(), text.len());
}

#[tokio::test(start_paused = true)]
async fn short_texts_stay_whole_beside_long_ones() {
    let (out, err) = ("o".repeat(60_000), "e".repeat(3_000));
    let (result, files) = shown_result(json!({ "stdout": out, "stderr": err, "exit": 1 })).await;
    assert_eq!(result.content["stderr"], err);
    assert!(result.content["stdout"].as_str().unwrap().len() > 12_000);
    assert_eq!(files.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn output_without_long_texts_is_truncated_as_json() {
    let list: Vec<u32> = (0..10_000).collect();
    let content = json!({ "list": list, "count": 10_000 });
    let whole = content.to_string();
    let (result, files) = shown_result(content).await;
    assert_eq!(files, [("/outputs/0-result-json".to_owned(), whole.clone().into_bytes())]);
    let keys: Vec<_> = result.content.keys().collect();
    assert_eq!(keys, ["json", "output_file"]);
    let (head, left_out, tail) = shown_parts(&result.content["json"], "/outputs/0-result-json");
    assert!(whole.starts_with(head) && whole.ends_with(tail));
    assert_eq!(head.len() + left_out + tail.len(), whole.len());
    let fields: serde_json::Map<_, _> =
        (0..3_000).map(|n| (format!("key{n}"), json!("v".repeat(600)))).collect();
    shown_result(Value::Object(fields)).await;
    let deep = (0..40).fold(json!("x".repeat(3_000)), |inner, _| json!({ "in": [inner] }));
    shown_result(json!({ "deep": vec![deep; 9], "\n\n": "\u{1}".repeat(900) })).await;
}

#[tokio::test(start_paused = true)]
async fn long_error_is_truncated_and_raw_bytes_are_saved() {
    let stage = TestStage::new([
        ScriptedTool::new("loud", |_, _| async {
            Err::<Output, _>(Error::failed("e".repeat(1_000_000)))
        }),
        ScriptedTool::new("image", |_, _| async {
            Ok(Output { bytes: vec![1, 2, 3], ..Output::json(json!({ "width": 1 })) })
        }),
    ]);
    let calls = vec![("loud", json!({})), ("image", json!({}))];
    let (results, _) = play_calls(&stage, TestStage::setup(), calls).await;
    assert!(results[0].is_error);
    assert!(Value::Object(results[0].content.clone()).to_string().len() <= 16 * 1024);
    let expected = json!({ "width": 1, "bytes": { "length": 3, "file": "/outputs/1-bytes" } });
    assert_eq!(Value::Object(results[1].content.clone()), expected);
}

#[tokio::test(start_paused = true)]
async fn tool_attachments_are_kept_outside_the_result_json() {
    let image =
        || DataPart { name: Some("moon.png".to_owned()), ..DataPart::blob("image/png", "b1") };
    let stage = TestStage::new([ScriptedTool::new("draw", move |_, _| {
        let attachments = vec![image(), DataPart::blob("text/plain", "b2")];
        async { Ok(Output { attachments, ..Output::json(json!({ "width": 1 })) }) }
    })]);
    let calls = vec![("draw", json!({}))];
    let (results, _) = play_calls(&stage, TestStage::setup(), calls).await;
    assert_eq!(results[0].attachments, [image(), DataPart::blob("text/plain", "b2")]);
    assert_eq!(Value::Object(results[0].content.clone()), json!({ "width": 1 }));
}

#[tokio::test(start_paused = true)]
async fn text_between_calls_stays_where_the_model_put_it() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.provider.add_answer([
        ScriptedProviderAction::call("1", "look", json!({})),
        ScriptedProviderAction::text("and"),
        ScriptedProviderAction::call("2", "look", json!({})),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    session.run_turn("x", &Cancel::new()).await;
    let parts = &session.history().entries()[1].message.parts;
    assert!(matches!(parts[..], [Part::ToolCall(_), Part::Text { .. }, Part::ToolCall(_)]));
    assert_eq!(stage.tools.recorded_calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn call_runs_while_the_next_call_waits_for_permission() {
    let mut touch = ScriptedTool::sleeping("touch").writing();
    touch.known.spec.annotations.parallel_safe = true;
    let stage = TestStage::new([touch]);
    // The second prompt is never answered.
    stage.person.add_answers([PermissionAnswer::once(Is::AllowOnce)]);
    stage.provider.add_answer((0..2).map(|id| {
        ScriptedProviderAction::call(&id.to_string(), "touch", json!({ "ms": 10 + id }))
    }));
    let mut session = stage.start(TestStage::setup()).unwrap();
    let cancel = Cancel::new();
    let stop = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(session.run_turn("x", &cancel), stop);
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert_eq!(stage.person.form_questions().len(), 2);
    let ended: Vec<bool> = stage.tools.recorded_calls().iter().map(|seat| seat.ended).collect();
    assert_eq!(ended, [true], "the first ran to its end, the second never began");
}

/// Creates a file that denies a path.
fn deny_rule_file(path: &str) -> RuleFile {
    let path = PathPattern { written: path.to_owned(), path: path.into() };
    let when = RuleConditions { path: Some(path), ..RuleConditions::default() };
    RuleFile {
        layer: RuleLayer::User,
        path: "rules.toml".into(),
        default: None,
        rules: vec![Rule { outcome: jaato_policy::RuleOutcome::Deny, when, line: 1, why: None }],
        broken: None,
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_user_plan_starts_and_permitted_work_ends_the_turn_as_done() {
    // Returns the limits of its file operations.
    let mut plan = ScriptedTool::new("startPlan", |_, scope| async move {
        let limits = scope.files.unwrap().limits_for(&NamedPaths::default());
        Ok(Output::json(json!({ "denied": limits.denied })))
    })
    .writing();
    plan.known.plugin = PluginName::from("tool-todo");
    plan.known.spec.annotations.destructive = false;
    plan.known.spec.annotations.open_world = false;
    let work = ScriptedTool::echo("work").writing();
    let other = ScriptedTool::echo("other").writing();
    let stage = TestStage::new([plan, work, other, ScriptedTool::echo("look")]);
    let setup = TestStage::setup();
    setup.rules.lock().allowed.insert(AllowedTool::parse("work"));
    setup.rules.lock().files.push(deny_rule_file("/secret"));
    let mut session = stage.start(setup).unwrap();
    let (results, report) =
        play_calls_on(&stage, &mut session, vec![("startPlan", json!({}))]).await;
    assert_eq!((results[0].is_error, report.outcome), (false, Outcome::Done));
    assert_eq!(results[0].content["denied"], json!(["/secret"]));
    let note = results[0].content["note"].as_str().unwrap();
    assert!(note.starts_with("no user was available to approve the plan"), "{note}");
    for (later, outcome) in [("look", Outcome::Denied), ("work", Outcome::Done)] {
        stage.provider.add_answer([ScriptedProviderAction::call("refused", "other", json!({}))]);
        let (_, report) = play_calls_on(&stage, &mut session, vec![(later, json!({}))]).await;
        assert_eq!(report.outcome, outcome, "{later}");
    }
}
