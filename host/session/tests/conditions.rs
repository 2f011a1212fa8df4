//! Tools that are offered, or run automatically, when conditions hold.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{CONDITION_MS_MAX, Cancel, RUNS_BY_THEMSELVES_MAX, Session, ToolState};
use jaato_types::execution::EnvironmentPart;
use jaato_types::objects::ObjectsAdd;
use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision as Is};
use jaato_types::{
    CompletionRequest, Condition, ConditionAnswer, ConditionDecision, DataContent, Error, Event,
    Outcome, Output, Part, ToolName,
};
use serde_json::{Map, Value, json};

/// Creates a tool that adds objects under its name, or removes all of them.
fn object_changing_tool(name: &'static str) -> ScriptedTool {
    ScriptedTool::new(name, move |call, scope| async move {
        let count = call.arguments["count"].as_u64().unwrap_or(1);
        if count == 0 {
            scope.objects.with_objects(|objects| objects.remove(name, None))?;
        }
        let object = |number| Map::from_iter([("number".to_owned(), json!(number))]);
        let objects = (0..count).map(object).collect();
        let all = ObjectsAdd { objects, include_duplicates: true, ..ObjectsAdd::default() };
        if count > 0 {
            scope.objects.with_objects(|objects| objects.add(name, all.into()))?;
        }
        Ok(Output::json(json!({ "count": count })))
    })
}

fn condition_on_tool(tool: &str) -> Condition {
    Condition::objects_of(ToolName::from(tool))
}

fn offered_tool_names(request: &CompletionRequest) -> Vec<&str> {
    let own = ["view_environment", "list_tools", "get_tool_schemas"];
    let names = request.tools.iter().map(|spec| spec.name.as_str());
    names.filter(|name| !own.contains(name)).collect()
}

/// Returns the data in a request's last message about tools that ran by themselves.
fn automatic_results(request: &CompletionRequest) -> Vec<Value> {
    let parts = request.messages.last().unwrap().parts.iter();
    let values = parts.filter_map(|part| match part {
        Part::Data(data) => match &data.content {
            DataContent::Json { json, .. } => Some(json.clone()),
            _ => None,
        },
        _ => None,
    });
    values.filter(|value| value.get("tool_ran_by_itself").is_some()).collect()
}

fn last_result(request: &CompletionRequest) -> Value {
    let message = request.messages.last().unwrap();
    Value::Object(message.tool_results().next().unwrap().content.clone())
}

fn notice_texts(stage: &TestStage) -> Vec<String> {
    let events = stage.events.events().into_iter();
    let notice = |event| match event {
        Event::Notice { text, .. } => Some(text),
        _ => None,
    };
    events.filter_map(notice).collect()
}

async fn run_turn(session: &mut Session, prompt: &str) -> Outcome {
    session.run_turn(prompt, &Cancel::new()).await.outcome
}

fn change_object(id: &str, name: &str, count: u64) -> [ScriptedProviderAction; 1] {
    [ScriptedProviderAction::call(id, name, json!({ "count": count }))]
}

#[tokio::test(start_paused = true)]
async fn tool_is_offered_while_its_condition_holds_and_otherwise_says_why() {
    let fry = ScriptedTool::echo("fry")
        .available_if(condition_on_tool("catch"), "once `catch` has caught some");
    let stage = TestStage::new([fry, object_changing_tool("catch")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call("1", "fry", json!({}))]);
    stage.provider.add_answer(change_object("2", "catch", 1));
    stage.provider.add_answer([ScriptedProviderAction::call("3", "fry", json!({}))]);
    stage.provider.add_answer(change_object("4", "catch", 0));
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "fry some fish").await;
    let requests = stage.provider.requests();
    assert_eq!(offered_tool_names(&requests[0]), ["catch"]);
    let refused = last_result(&requests[1]);
    let why = "the tool `fry` is not available: once `catch` has caught some";
    assert_eq!(refused["error"]["message"], why, "{refused}");
    assert_eq!(offered_tool_names(&requests[1]), ["catch"]);
    assert_eq!(
        offered_tool_names(&requests[2]),
        ["catch", "fry"],
        "at the end, where requests change least"
    );
    assert_eq!(last_result(&requests[3]), json!({ "echo": {} }));
    assert_eq!(
        offered_tool_names(&requests[4]),
        ["catch", "fry"],
        "what was sent stays until the next cut"
    );
    let expected = ["the tool `fry` is now available", "the tool `fry` is now unavailable"];
    assert_eq!(notice_texts(&stage), expected);
    // A user may call it at any time.
    let done = session.run_user_call(&"fry".into(), json!({}), &Cancel::new()).await.unwrap();
    assert_eq!(Value::Object(done.content), json!({ "echo": {} }));
}

#[tokio::test(start_paused = true)]
async fn conditions_depend_on_objects_and_unknown_conditions_never_hold() {
    let offered = |name: &str, condition| ScriptedTool::echo(name).available_if(condition, "later");
    let stage = TestStage::new([
        offered("any", Condition::ObjectsPresent),
        offered("none", Condition::NoObjects),
        offered("none_of", Condition::no_objects_of("catch")),
        offered("other", condition_on_tool("other")),
        offered("moonlight", Condition::Unknown),
        object_changing_tool("catch"),
    ]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage
        .provider
        .add_answer(change_object("1", "catch", 1))
        .add_answer(change_object("2", "catch", 0));
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "go").await;
    let requests = stage.provider.requests();
    assert_eq!(offered_tool_names(&requests[0]), ["catch", "none", "none_of"]);
    assert_eq!(offered_tool_names(&requests[1]), ["catch", "any"]);
    assert_eq!(offered_tool_names(&requests[2]), ["catch", "none", "none_of"]);
    assert_eq!(requests[0].messages, requests[1].messages[..1], "what was said stays");
}

#[tokio::test(start_paused = true)]
async fn discoverable_tools_also_wait_for_their_condition() {
    let fry =
        ScriptedTool::echo("fry").available_if(condition_on_tool("catch"), "once there is fish");
    let stage =
        TestStage::new([fry.with_state(ToolState::Inactive), object_changing_tool("catch")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call(
        "1",
        "list_tools",
        json!({ "category": "system" }),
    )]);
    stage.provider.add_answer([ScriptedProviderAction::call(
        "2",
        "get_tool_schemas",
        json!({ "names": ["fry"] }),
    )]);
    stage.provider.add_answer(change_object("3", "catch", 1));
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "fry some fish").await;
    let requests = stage.provider.requests();
    let listed = last_result(&requests[1]);
    let fry = &listed["tools"][1];
    assert_eq!(fry["name"], "fry", "{listed}");
    assert_eq!(
        (&fry["available"], &fry["available_when"]),
        (&json!(false), &json!("once there is fish"))
    );
    assert_eq!(listed["tools"][0].get("available"), None);
    let shown = last_result(&requests[2]);
    assert_eq!(shown["schemas"][0]["available_when"], "once there is fish");
    assert_eq!(shown.get("activated"), None, "{shown}");
    assert_eq!(offered_tool_names(&requests[2]), ["catch"]);
    assert_eq!(offered_tool_names(&requests[3]), ["catch", "fry"], "it was asked for");
}

#[tokio::test(start_paused = true)]
async fn self_running_tool_runs_once_per_change_and_its_result_is_sent() {
    let weigh = ScriptedTool::echo("weigh")
        .with_state(ToolState::Inactive)
        .run_if(condition_on_tool("catch"));
    let stage = TestStage::new([object_changing_tool("catch"), weigh]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer(change_object("1", "catch", 1));
    stage.provider.add_answer([
        ScriptedProviderAction::call("2", "catch", json!({ "count": 1 })),
        ScriptedProviderAction::text("more"),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "catch fish").await;
    stage.provider.add_answer([ScriptedProviderAction::text("still there")]);
    run_turn(&mut session, "and now?").await;
    let requests = stage.provider.requests();
    let told = json!({
        "tool_ran_by_itself": "weigh",
        "because": "there are objects of `catch`",
        "arguments": {},
        "result": { "echo": {} },
    });
    assert_eq!(automatic_results(&requests[0]), [] as [Value; 0]);
    assert_eq!(automatic_results(&requests[1]), std::slice::from_ref(&told));
    assert_eq!(automatic_results(&requests[2]), [told]);
    assert_eq!(automatic_results(&requests[3]), [] as [Value; 0], "nothing has changed");
    for pair in requests.windows(2) {
        let [before, after] = pair else { unreachable!() };
        assert!(after.messages.starts_with(&before.messages));
    }
    assert_eq!(offered_tool_names(&requests[3]), ["catch"], "running does not activate it");
    assert_eq!(
        stage.tools.recorded_calls().iter().filter(|it| it.call.name.as_str() == "weigh").count(),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn self_running_tool_passes_the_same_checks_as_a_model_call() {
    let schema = json!({
        "type": "object",
        "properties": { "how": { "type": "string" } },
        "required": ["how"],
        "additionalProperties": false,
    });
    let strict = ScriptedTool::echo("strict").with_schema(schema).run_if(Condition::NoObjects);
    let write = ScriptedTool::echo("write").writing().run_if(Condition::NoObjects);
    let stage = TestStage::new([strict, write]);
    stage.person.add_answers([PermissionAnswer {
        comment: Some("not now".to_owned()),
        ..PermissionAnswer::once(Is::Deny)
    }]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    assert_eq!(run_turn(&mut session, "go").await, Outcome::Done);
    let told = automatic_results(&stage.provider.requests()[0]);
    let error = |at: usize| told[at]["result"]["error"]["message"].as_str().unwrap().to_owned();
    assert!(error(0).contains("`how`"), "{told:?}");
    assert_eq!(error(1), "the user denied the call to `write`: not now (rule `person.denied`)");
    let events = stage.events.events();
    let called = events.iter().filter_map(|event| match event {
        Event::PermissionDecided { name, allowed: false, .. } => Some(format!("denied {name}")),
        Event::ToolCallStarted { name, .. } => Some(format!("started {name}")),
        Event::ToolCallFinished { name, is_error: true, .. } => Some(format!("failed {name}")),
        _ => None,
    });
    let expected =
        ["started strict", "failed strict", "denied write", "started write", "failed write"];
    assert_eq!(called.collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn self_running_tool_is_denied_if_no_user_can_be_asked() {
    let stage =
        TestStage::new([ScriptedTool::echo("write").writing().run_if(Condition::NoObjects)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    assert_eq!(run_turn(&mut session, "go").await, Outcome::Denied);
}

#[tokio::test(start_paused = true)]
async fn self_running_tools_that_trigger_each_other_stop_at_a_limit() {
    // Each is a reason for the other to run again, but not for itself.
    let stage = TestStage::new([
        object_changing_tool("ping").run_if(Condition::no_objects_of("x")),
        object_changing_tool("pong").run_if(Condition::no_objects_of("x")),
        object_changing_tool("other"),
    ]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    for step in 0..9 {
        stage.provider.add_answer(change_object(&step.to_string(), "other", 1));
    }
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "go").await;
    let runs = |stage: &TestStage| {
        let seats = stage.tools.recorded_calls();
        seats.iter().filter(|seat| seat.call.name.as_str() != "other").count()
    };
    assert_eq!(runs(&stage), RUNS_BY_THEMSELVES_MAX as usize);
    assert!(notice_texts(&stage).iter().any(|text| text.contains("8 times in this turn")));
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "again").await;
    assert_eq!(runs(&stage), RUNS_BY_THEMSELVES_MAX as usize + 2, "another turn counts from zero");
}

#[tokio::test(start_paused = true)]
async fn plugin_decides_a_condition_only_if_the_spec_says_so() {
    let asked = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&asked);
    let answer = move |request: jaato_types::ConditionRequest, _| {
        let times = counts.fetch_add(1, Ordering::Relaxed);
        async move {
            Ok(match request.deciding {
                ConditionDecision::Run => {
                    ConditionAnswer::yes().with_arguments(json!({ "at": times }))
                }
                _ if times > 2 => ConditionAnswer::yes(),
                _ => ConditionAnswer::no().because("when I say so"),
            })
        }
    };
    let moody = ScriptedTool::echo("moody").with_condition_answer(answer);
    let moody = moody.available_if(Condition::Asked, "some day").run_if(Condition::Asked);
    let stage = TestStage::new([
        moody,
        object_changing_tool("catch").available_if(Condition::NoObjects, "x"),
    ]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 0, "not before the first request");
    stage.provider.add_answer([ScriptedProviderAction::call("1", "moody", json!({}))]);
    stage.provider.add_answer(change_object("2", "catch", 1));
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "go").await;
    let requests = stage.provider.requests();
    assert_eq!(automatic_results(&requests[0])[0]["arguments"], json!({ "at": 0 }));
    assert_eq!(
        last_result(&requests[1])["error"]["message"],
        "the tool `moody` is not available: when I say so"
    );
    assert_eq!(
        automatic_results(&requests[2])[0]["arguments"],
        json!({ "at": 3 }),
        "the objects changed"
    );
    assert_eq!(offered_tool_names(&requests[2]), ["moody"]);
    assert_eq!(asked.load(Ordering::Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn failing_or_silent_condition_is_false_and_reported_once() {
    let broken = ScriptedTool::echo("broken")
        .with_condition_answer(|_, _| async { Err(Error::failed("no idea")) });
    let silent = ScriptedTool::echo("silent").with_condition_answer(|_, _| std::future::pending());
    let wrong = ScriptedTool::echo("wrong").with_condition_answer(|_, _| async {
        Ok(ConditionAnswer::yes().with_arguments(json!("all")))
    });
    let stage = TestStage::new([
        broken.available_if(Condition::Asked, "some day"),
        silent.run_if(Condition::Asked),
        wrong.run_if(Condition::Asked),
        object_changing_tool("catch"),
    ]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer(change_object("1", "catch", 1));
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    assert_eq!(run_turn(&mut session, "go").await, Outcome::Done);
    let counts_as = "counts as false, because it cannot be checked: ";
    let silence = format!("its plugin did not answer within {CONDITION_MS_MAX} ms");
    let expected = [
        format!("a condition of the tool `silent` {counts_as}{silence}"),
        format!(
            "a condition of the tool `wrong` {counts_as}its plugin answered with arguments that \
             are not a JSON object"
        ),
        format!("a condition of the tool `broken` {counts_as}no idea"),
    ];
    assert_eq!(notice_texts(&stage), expected);
    assert!(stage.provider.requests().iter().all(|request| automatic_results(request).is_empty()));
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_a_pending_condition_and_a_self_running_tool() {
    for tool in [
        ScriptedTool::echo("asks")
            .with_condition_answer(|_, _| std::future::pending())
            .run_if(Condition::Asked),
        ScriptedTool::echo("asks")
            .with_condition_answer(|_, _| std::future::pending())
            .available_if(Condition::Asked, "x"),
        ScriptedTool::new("hangs", |_, _| std::future::pending()).run_if(Condition::NoObjects),
    ] {
        let stage = TestStage::new([tool]);
        let mut session = stage.start(TestStage::setup()).unwrap();
        let cancel = Cancel::new();
        let soon = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            soon.cancel();
        });
        let report = session.run_turn("go", &cancel).await;
        assert_eq!(report.outcome, Outcome::Cancelled);
        assert!(report.duration_ms < 100, "{report:?}");
        assert_eq!(stage.provider.requests().len(), 0);
        stage.provider.add_answer([ScriptedProviderAction::text("done")]);
        stage.tools.replace_tools([], "gone");
        assert_eq!(run_turn(&mut session, "and now?").await, Outcome::Done, "the history is whole");
    }
}

#[tokio::test(start_paused = true)]
async fn self_running_results_of_an_unsent_prompt_are_dropped() {
    let stage = TestStage::new([ScriptedTool::echo("weigh").run_if(Condition::NoObjects)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::Fail(Error::failed("no network"))]);
    assert_eq!(run_turn(&mut session, "go").await, Outcome::Failed);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    assert_eq!(run_turn(&mut session, "go again").await, Outcome::Done);
    let told = automatic_results(&stage.provider.requests()[1]);
    assert_eq!(told.len(), 1, "once: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn replaced_tools_are_offered_by_their_new_conditions() {
    let fry =
        || ScriptedTool::echo("fry").available_if(condition_on_tool("catch"), "once there is fish");
    let stage =
        TestStage::new([fry().with_state(ToolState::Inactive), object_changing_tool("catch")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call(
        "1",
        "get_tool_schemas",
        json!({ "names": ["fry"] }),
    )]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "fry").await;
    stage.tools.replace_tools(
        [ScriptedTool::echo("fry").with_state(ToolState::Inactive), object_changing_tool("catch")],
        "bare",
    );
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "and without a condition?").await;
    stage.tools.replace_tools([object_changing_tool("catch")], "gone");
    stage.provider.add_answer([ScriptedProviderAction::call("2", "fry", json!({}))]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "and gone?").await;
    stage.tools.replace_tools([fry(), object_changing_tool("catch")], "back");
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "and with one again?").await;
    let requests = stage.provider.requests();
    assert_eq!(offered_tool_names(&requests[1]), ["catch"]);
    assert_eq!(offered_tool_names(&requests[2]), ["catch", "fry"]);
    assert_eq!(offered_tool_names(&requests[3]), ["catch", "fry"], "what was sent stays");
    let why = "the tool `fry` no longer exists: its plugin was changed or removed";
    assert_eq!(last_result(&requests[4])["error"]["message"], why);
    let back = session.toolbox();
    assert!(
        back.active_tools().all(|spec| spec.name.as_str() != "fry"),
        "it is withheld from the start"
    );
}

#[tokio::test(start_paused = true)]
async fn tool_is_offered_only_if_the_environment_supports_it() {
    let has = |part| Condition::environment_has(part);
    // The stage's environment runs commands, and nothing else.
    let tools = [
        ScriptedTool::echo("a"),
        ScriptedTool::echo("b").available_if(has(EnvironmentPart::Shell), "where commands run"),
        ScriptedTool::echo("c")
            .available_if(has(EnvironmentPart::Terminals), "where terminals are"),
        ScriptedTool::echo("d").available_if(has(EnvironmentPart::Unknown), "some day"),
        ScriptedTool::echo("e"),
    ];
    let stage = TestStage::new(tools);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call("1", "c", json!({}))]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "go").await;
    let requests = stage.provider.requests();
    assert_eq!(offered_tool_names(&requests[0]), ["a", "b", "e"], "in its own place");
    let refused = last_result(&requests[1]).to_string();
    assert!(refused.contains("not available: where terminals are"), "{refused}");
    assert_eq!(offered_tool_names(&requests[1]), ["a", "b", "e"]);
    assert_eq!(notice_texts(&stage), [""; 0]);
}
