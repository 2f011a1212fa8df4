//! Tools that change between turns: what the model gets, what may be called, what the user sees.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, GET_TOOL_SCHEMAS, LIST_TOOLS, Session, ToolState, WantedTools};
use jaato_types::tools_set::ToolSource;
use jaato_types::{CompletionRequest, Outcome};
use serde_json::{Value, json};

async fn run_turn(
    stage: &TestStage,
    session: &mut Session,
    beats: &[ScriptedProviderAction],
) -> CompletionRequest {
    let from = stage.provider.requests().len();
    stage.provider.add_answer(beats.to_vec());
    let report = session.run_turn("continue", &Cancel::new()).await;
    assert_eq!((report.outcome, report.error), (Outcome::Done, None));
    stage.provider.requests()[from].clone()
}

fn offered_tool_names(request: &CompletionRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn size_schema() -> Value {
    json!({ "type": "object", "required": ["size"] })
}

#[tokio::test(start_paused = true)]
async fn remaining_tools_keep_their_order_and_new_tools_are_appended() {
    let stage = TestStage::new([
        ScriptedTool::echo("look"),
        ScriptedTool::echo("move"),
        ScriptedTool::echo("smell"),
    ]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let done = [ScriptedProviderAction::text("done")];
    let before = run_turn(&stage, &mut session, &done).await;
    let tools = [
        ScriptedTool::echo("bite"),
        ScriptedTool::echo("look"),
        ScriptedTool::echo("smell").with_schema(size_schema()),
    ];
    stage.tools.replace_tools(tools, "plugin `nose` was replaced");
    let after = run_turn(&stage, &mut session, &done).await;
    assert_eq!(offered_tool_names(&after), ["look", "smell", "bite"]);
    assert_eq!((&after.tools[0], &after.system), (&before.tools[0], &before.system));
    assert_eq!(after.tools[1].parameters, size_schema());
    assert_eq!(after.messages[..2], session.history().messages().cloned().collect::<Vec<_>>()[..2]);
    assert_eq!(
        stage.events.notices(),
        "host: plugin `nose` was replaced\n\
         host: the tools of this conversation changed: new `bite`; changed `smell`; gone `move`\n"
    );
    // No notice is repeated, and nothing changes on its own.
    assert_eq!(run_turn(&stage, &mut session, &done).await.tools, after.tools);
    assert_eq!(stage.events.notices().lines().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn arguments_are_checked_against_the_newest_schema() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let call = |id: &str, arguments| [ScriptedProviderAction::call(id, "look", arguments)];
    stage.provider.add_answer(call("1", json!({})));
    turn_after_call(&stage, &mut session).await;
    stage.tools.replace_tools([ScriptedTool::echo("look").with_schema(size_schema())], "another");
    stage.provider.add_answer(call("2", json!({})));
    turn_after_call(&stage, &mut session).await;
    stage.provider.add_answer(call("3", json!({ "size": 3 })));
    turn_after_call(&stage, &mut session).await;
    let ran: Vec<String> =
        stage.tools.recorded_calls().iter().map(|seat| seat.call.id.to_string()).collect();
    assert_eq!(ran, ["1", "3"]);
}

async fn turn_after_call(stage: &TestStage, session: &mut Session) {
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let report = session.run_turn("continue", &Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn activated_tools_stay_and_first_discoverable_tool_adds_discovery_tools() {
    let hidden = |name: &str| ScriptedTool::echo(name).with_state(ToolState::Inactive);
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let done = [ScriptedProviderAction::text("done")];
    stage.tools.replace_tools([hidden("dig"), ScriptedTool::echo("look"), hidden("fly")], "more");
    let request = run_turn(&stage, &mut session, &done).await;
    assert_eq!(offered_tool_names(&request), ["look", LIST_TOOLS, GET_TOOL_SCHEMAS]);
    session.activate_tools(&["fly".into()]);
    stage.tools.replace_tools([hidden("fly"), ScriptedTool::echo("look")], "less");
    let request = run_turn(&stage, &mut session, &done).await;
    assert_eq!(offered_tool_names(&request), ["look", LIST_TOOLS, GET_TOOL_SCHEMAS, "fly"]);
    let disabled = ToolState::Disabled { by: "by a test".to_owned() };
    stage.tools.replace_tools(
        [ScriptedTool::echo("fly").with_state(disabled), ScriptedTool::echo("look")],
        "off",
    );
    let request = run_turn(&stage, &mut session, &done).await;
    let listed = ["look", LIST_TOOLS, GET_TOOL_SCHEMAS, "fly"];
    assert_eq!(offered_tool_names(&request), listed, "what was sent stays until the next cut");
    assert_eq!(session.toolbox().active_tools().count(), 3);
}

#[tokio::test(start_paused = true)]
async fn new_tools_join_with_the_next_step() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call("1", "look", json!({}))]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let tools = stage.tools.clone();
    tools.replace_tools([ScriptedTool::echo("look"), ScriptedTool::echo("smell")], "a nose");
    tools.add_tool(ScriptedTool::echo("bite"));
    session.run_turn("continue", &Cancel::new()).await;
    let requests = stage.provider.requests();
    let names: Vec<_> = requests.iter().map(offered_tool_names).collect();
    assert_eq!(names, [vec!["look", "smell"], vec!["look", "smell", "bite"]]);
    // Tools that are there with the first request are not a change.
    let told = "host: a nose\nhost: the tools of this conversation changed: new `bite`\n";
    assert_eq!(stage.events.notices(), told);
}

#[tokio::test(start_paused = true)]
async fn calls_and_lists_wait_for_a_missing_tool_source_and_explain_it() {
    let stage = TestStage::new([
        ScriptedTool::echo("look"),
        ScriptedTool::echo("dig").with_state(ToolState::Inactive),
    ]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let source = ToolSource {
        label: "the sea".to_owned(),
        prefix: "sea__".to_owned(),
        note: "is dry".to_owned(),
        hint: Some("wait for rain".to_owned()),
    };
    stage.tools.add_failed_source(source);
    stage.provider.add_answer([ScriptedProviderAction::call("1", "sea__swim", json!({}))]);
    stage.provider.add_answer([ScriptedProviderAction::call(
        "2",
        LIST_TOOLS,
        json!({ "query": "dig" }),
    )]);
    stage.provider.add_answer([ScriptedProviderAction::call("3", "look", json!({}))]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("continue", &Cancel::new()).await;
    let awaited: Vec<_> = stage.tools.awaited_tools();
    assert_eq!(
        awaited,
        [WantedTools::only_named(vec!["sea__swim".to_owned()]), WantedTools::all()]
    );
    let results = serde_json::to_string(&stage.provider.requests()[3].messages).unwrap();
    assert!(results.contains("there is no tool `sea__swim`: the sea is dry"), "{results}");
    assert!(results.contains("wait for rain"), "{results}");
    assert!(results.contains("\"tool_count\":1,\"tools\":[{\"name\":\"dig\""), "{results}");
    assert!(results.contains("\"missing\":[\"the sea is dry\"]"), "{results}");
    assert_eq!(stage.events.notices().lines().next(), Some("host: waiting for the sea…"));
}

#[tokio::test(start_paused = true)]
async fn cancelled_turn_leaves_tool_changes_to_the_next_turn() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.tools.replace_tools([ScriptedTool::echo("smell")], "other");
    let cancel = Cancel::new();
    cancel.cancel();
    session.run_turn("x", &cancel).await;
    assert_eq!(stage.events.notices(), "");
    let request = run_turn(&stage, &mut session, &[ScriptedProviderAction::text("done")]).await;
    assert_eq!(offered_tool_names(&request), ["smell"]);
}
