//! The host's own two tools find, show and activate tools that are not in requests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::expect;
use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, Session, ToolState};
use jaato_types::Outcome;
use serde_json::{Value, json};

fn discovery_stage() -> TestStage {
    let mut tide = ScriptedTool::echo("tide").with_state(ToolState::Inactive);
    tide.known.spec.description = "Tells the tide. Long text follows.".to_owned();
    let off =
        ScriptedTool::echo("storm").with_state(ToolState::Disabled { by: "by a test".to_owned() });
    TestStage::new([ScriptedTool::echo("clock"), tide, off])
}

/// Lets the model make one call and answer. Returns the call's result.
async fn call_tool(
    stage: &TestStage,
    session: &mut Session,
    name: &str,
    arguments: Value,
) -> String {
    stage.provider.add_answer([ScriptedProviderAction::call("1", name, arguments)]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let report = session.run_turn("x", &Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Done);
    let message = session.history().messages().rev().nth(1).unwrap();
    let result = message.tool_results().next().unwrap();
    Value::Object(result.content.clone()).to_string()
}

fn active_tool_names(session: &Session) -> Vec<String> {
    session.next_request().tools.iter().map(|spec| spec.name.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn discovery_tools_are_not_offered_without_discoverable_tools() {
    let stage = TestStage::new([ScriptedTool::echo("clock")]);
    let session = stage.start(TestStage::setup()).unwrap();
    assert_eq!(active_tool_names(&session), ["clock"]);
}

#[tokio::test(start_paused = true)]
async fn list_tools_finds_discoverable_tools_but_not_disabled_tools() {
    let stage = discovery_stage();
    let mut session = stage.start(TestStage::setup()).unwrap();
    assert_eq!(active_tool_names(&session), ["clock", "list_tools", "get_tool_schemas"]);
    let all = call_tool(&stage, &mut session, "list_tools", json!({})).await;
    expect![[r#"{"categories":[{"name":"system","tool_count":2,"description":"this machine and its commands"}],"total_tools":2,"hint":"call `list_tools` with a category or a query to see tools"}"#]]
        .assert_eq(&all);
    let system =
        call_tool(&stage, &mut session, "list_tools", json!({ "category": "System" })).await;
    expect![[r#"{"category":"System","tool_count":2,"tools":[{"name":"clock","plugin_source":"clock","enabled":true,"description":"clock of a test"},{"name":"tide","plugin_source":"tide","enabled":true,"description":"Tells the tide"}],"hint":"call `get_tool_schemas` with names to use them"}"#]]
        .assert_eq(&system);
    let unknown =
        call_tool(&stage, &mut session, "list_tools", json!({ "category": "moon" })).await;
    expect![[r#"{"categories":[{"name":"system","tool_count":2,"description":"this machine and its commands"}],"total_tools":2,"hint":"no tool is in `moon`; `categories` lists all categories","category":"moon","tool_count":0,"tools":[]}"#]].assert_eq(&unknown);
}

#[tokio::test(start_paused = true)]
async fn every_tool_is_listed_under_a_category_of_the_schema() {
    let of = |name: &str, category: &str| {
        let mut tool = ScriptedTool::echo(name).with_state(ToolState::Inactive);
        tool.known.spec.category = category.to_owned();
        tool
    };
    let stage =
        TestStage::new([of("a", "MCP: moon"), of("b", "astronomy"), of("c", "web"), of("d", "")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let list_tools = &session.next_request().tools[0];
    let words = list_tools.parameters["properties"]["category"]["enum"].as_array().unwrap().clone();
    assert_eq!((words.len(), &words[0], &words[11]), (12, &json!("MCP"), &json!("other")));
    let mut found = std::collections::BTreeMap::new();
    for word in words.iter().chain(&[json!("mcp: MOON"), json!("astronomy")]) {
        let told = call_tool(&stage, &mut session, "list_tools", json!({ "category": word })).await;
        let told: Value = serde_json::from_str(&told).unwrap();
        let names = told["tools"].as_array().unwrap().iter().map(|it| it["name"].clone());
        let names: Vec<Value> = names.collect();
        if !names.is_empty() {
            found.insert(word.as_str().unwrap().to_owned(), json!(names));
        }
    }
    let expected = json!({
        "MCP": ["a"], "mcp: MOON": ["a"], "other": ["b", "d"], "astronomy": ["b"], "web": ["c"],
    });
    assert_eq!(json!(found), expected);
}

#[tokio::test(start_paused = true)]
async fn list_tools_returns_full_descriptions_if_verbose() {
    let stage = discovery_stage();
    let mut session = stage.start(TestStage::setup()).unwrap();
    let asked = json!({ "category": "system", "verbose": true });
    let told = call_tool(&stage, &mut session, "list_tools", asked).await;
    assert!(told.contains("\"Tells the tide. Long text follows.\""), "{told}");
}

#[tokio::test(start_paused = true)]
async fn get_tool_schemas_accepts_one_name_and_suggests_similar_names() {
    let stage = TestStage::new(
        ["shell_spawn", "shell_read", "readFile"]
            .map(|it| ScriptedTool::echo(it).with_state(ToolState::Inactive)),
    );
    let mut session = stage.start(TestStage::setup()).unwrap();
    let told =
        call_tool(&stage, &mut session, "get_tool_schemas", json!({ "names": "shell_read" })).await;
    assert!(told.contains("\"activated\":[\"shell_read\"]"), "{told}");
    let asked = json!({ "names": ["READ", "Spawn"] });
    let told = call_tool(&stage, &mut session, "get_tool_schemas", asked).await;
    let told: Value = serde_json::from_str(&told).unwrap();
    let expected = json!({ "READ": ["readFile", "shell_read"], "Spawn": ["shell_spawn"] });
    assert_eq!(
        (&told["suggestions"], &told["hint"]),
        (&expected, &json!("`list_tools` lists the tools"))
    );
    for wrong in [json!({}), json!({ "names": [] }), json!({ "names": "" }), json!({ "names": 7 })]
    {
        let told = call_tool(&stage, &mut session, "get_tool_schemas", wrong.clone()).await;
        assert!(told.contains("invalid_arguments"), "{wrong}: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_no_category_is_found_under_other() {
    let mut bare = ScriptedTool::echo("bare").with_state(ToolState::Inactive);
    bare.known.spec.category = String::new();
    let stage = TestStage::new([bare]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let all = call_tool(&stage, &mut session, "list_tools", json!({})).await;
    expect![[r#"{"categories":[{"name":"other","tool_count":1,"description":"tools without a category"}],"total_tools":1,"hint":"call `list_tools` with a category or a query to see tools"}"#]].assert_eq(&all);
    let other = call_tool(&stage, &mut session, "list_tools", json!({ "category": "other" })).await;
    expect![[r#"{"category":"other","tool_count":1,"tools":[{"name":"bare","plugin_source":"bare","enabled":true,"description":"bare of a test"}],"hint":"call `get_tool_schemas` with names to use them"}"#]].assert_eq(&other);
}

#[tokio::test(start_paused = true)]
async fn looking_a_tool_up_activates_it_at_the_end_of_the_list() {
    let stage = discovery_stage();
    let mut session = stage.start(TestStage::setup()).unwrap();
    let before = active_tool_names(&session);
    let shown = call_tool(
        &stage,
        &mut session,
        "get_tool_schemas",
        json!({ "names": ["tide", "tied", "storm"] }),
    )
    .await;
    expect![[r#"{"schemas":[{"name":"tide","description":"Tells the tide. Long text follows.","plugin_source":"tide","enabled":true,"category":"system","parameters":{"type":"object"}}],"count":1,"not_found":["tied","storm"],"hint":"`list_tools` lists the tools","suggestions":{"tied":["tide"]},"activated":["tide"],"activation_note":"you can call these tools now"}"#]]
        .assert_eq(&shown);
    assert_eq!(active_tool_names(&session), [before, vec!["tide".to_owned()]].concat());
    assert!(stage.tools.recorded_calls().is_empty(), "no plugin is asked for the host's own tools");
}
