//! The names of the original: what each call returns.

use std::sync::Arc;
use std::time::Duration;

use jaato_library::client::{
    AgentContext, CancelToken, CancelledException, FinishReason, JaatoClient, MCPClientManager,
    Message, ModelProviderPlugin, PermissionPlugin, PluginRegistry, Role, SessionPlugin,
    TokenLedger, ToolExecutor, ToolResult, raise_if_cancelled,
};
use jaato_library::testing::{ScriptedProvider, ScriptedProviderAction as Say};
use jaato_library::{ErrorKind, Jaato, Tool, allow, blocking, deny};
use jaato_plugin_sdk::types::Usage;
use serde_json::json;

use crate::support::{
    add_tool, call_add, child_program, host_builder, scripted_model, text_answer,
};

fn new_registry(model: &Arc<ScriptedProvider>) -> PluginRegistry {
    let model = Arc::clone(model);
    let mut registry =
        PluginRegistry::with(move || host_builder(&model).plugin(crate::__jaato::MODULE));
    assert_eq!(registry.discover().unwrap(), ["jaato-library"]);
    registry
}

#[test]
fn client_sends_messages_and_returns_the_final_text() {
    let usage = Usage { prompt_tokens: 10, output_tokens: 5, ..Usage::default() };
    let model = scripted_model([
        call_add("1"),
        vec![Say::text("It is "), Say::text("42."), Say::Usage(usage)],
    ]);
    let client = JaatoClient::new();
    let error = client.send_message("Hello?", |_, _, _| {}).unwrap_err();
    assert!(error.message.contains("configure_tools"), "{error}");
    assert_eq!(
        (client.get_history(), client.stop(), client.is_processing()),
        (vec![], false, false)
    );
    client.connect("", "", "my/model").unwrap();
    let ledger = Arc::new(TokenLedger::new());
    let allowing = PermissionPlugin::new(|_| allow());
    client
        .configure_tools(&new_registry(&model), Some(allowing), Some(Arc::clone(&ledger)))
        .unwrap();
    let mut shown = Vec::new();
    let tell = |source: &str, text: &str, mode: &str| shown.push(format!("{source} {mode} {text}"));
    assert_eq!(client.send_message("What is 2 + 40?", tell).unwrap(), "It is 42.");
    assert_eq!(shown, ["program write adding\n", "model write It is ", "model append 42."]);
    let history = client.get_history();
    assert_eq!(
        (history.len(), history[0].role, history[3].text().as_str()),
        (4, Role::User, "It is 42.")
    );
    let totals = ledger.summarize();
    assert_eq!((totals.calls, totals.total_prompt_tokens, totals.total_tokens), (2, 10, 15));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    ledger.write_ledger(&path).unwrap();
    let lines = std::fs::read_to_string(&path).unwrap().lines().count();
    assert_eq!((lines as u64, ledger.events().len() as u64), (totals.events, totals.events));
    client.reset_session(Some(vec![])).unwrap();
    assert_eq!(client.get_history(), []);
}

#[test]
fn runtime_creates_sessions_with_their_own_tools_and_instructions() {
    let model = scripted_model([text_answer("A."), text_answer("B.")]);
    let client = JaatoClient::new();
    client.connect("", "", "my/model").unwrap();
    let mut registry = new_registry(&model);
    registry.expose_tool("jaato-library").unwrap();
    assert_eq!(registry.list_exposed(), ["jaato-library"]);
    client.configure_tools(&registry, None, None).unwrap();
    client.send_message("a", |_, _, _| {}).unwrap();
    let runtime = client.get_runtime().unwrap();
    let session = runtime.create_session("my/other", Some(&[]), Some("You review.")).unwrap();
    session.set_agent_context("subagent", "reviewer").unwrap();
    session.send_message("b", |_, _, _| {}).unwrap();
    assert!(!session.is_running() && !session.request_stop());
    let requests = model.requests();
    let tools = |at: usize| -> Vec<String> {
        requests[at].tools.iter().map(|tool| tool.name.to_string()).collect()
    };
    let all = ["add", "delegate", "word_count"].map(str::to_owned).to_vec();
    assert_eq!((tools(0), tools(1)), (all, vec!["add".to_owned()]));
    assert!(requests[1].system.contains("You review.") && requests[1].model == "other");
    let missing = runtime.create_session("my/m", Some(&["web_search"]), None).err().unwrap();
    assert_eq!(missing.message, "there is no plugin `web_search`");
}

#[test]
fn gc_is_set_run_and_removed_by_its_original_names() {
    let client = JaatoClient::new();
    client.connect("", "", "my/model").unwrap();
    assert!(client.manual_gc().is_err(), "there is no session");
    let model = scripted_model([text_answer("One."), text_answer("Two.")]);
    client.configure_tools(&new_registry(&model), None, None).unwrap();
    for prompt in ["first", "second"] {
        client.send_message(prompt, |_, _, _| {}).unwrap();
    }
    assert_eq!(client.set_gc_plugin("nope", None).unwrap_err().kind, ErrorKind::NotFound);
    client.set_gc_plugin("jaato-library", None).unwrap();
    assert_eq!(client.manual_gc().unwrap().turns_removed, 1);
    assert_eq!(client.get_history().len(), 4, "the record keeps everything");
    client.remove_gc_plugin().unwrap();
    assert!(client.manual_gc().is_err());
}

#[test]
fn session_plugin_gets_the_session_and_calls_its_tools() {
    struct SessionCounter(Option<jaato_library::client::JaatoSession>);
    impl SessionPlugin for SessionCounter {
        fn set_session(&mut self, session: &jaato_library::client::JaatoSession) {
            self.0 = Some(session.clone());
        }
    }
    let client = JaatoClient::new();
    client.connect("", "", "my/model").unwrap();
    client.configure_tools(&new_registry(&scripted_model([])), None, None).unwrap();
    let mut counter = SessionCounter(None);
    client.set_session_plugin(&mut counter).unwrap();
    let sum = counter.0.unwrap().call_tool("add", json!({ "a": 1, "b": 2 })).unwrap();
    assert_eq!(sum["sum"], 3.0);
}

#[test]
fn executor_checks_permission_and_continues_in_the_background() {
    let mut executor = ToolExecutor::new();
    executor.register(add_tool());
    let (ok, denied) = executor.execute("add", json!({ "a": 1, "b": 2 }));
    assert!(!ok && denied["error"].as_str().unwrap().contains("permission"), "{denied}");
    executor.set_permission_plugin(PermissionPlugin::new(|_| deny("no")));
    assert!(!executor.execute("add", json!({ "a": 1, "b": 2 })).0);
    executor.set_permission_plugin(PermissionPlugin::new(|_| allow()));
    assert_eq!(executor.execute("add", json!({ "a": 1, "b": 2 })), (true, json!({ "sum": 3.0 })));
    let schema = json!({ "type": "object" });
    let endless = Tool::new("endless", "Never ends.", schema, |_, _| async {
        std::future::pending::<Result<(), String>>().await
    });
    executor.register(endless.allowed());
    executor.set_auto_background_threshold(Some(Duration::from_millis(1)));
    let (ok, handle) = executor.execute("endless", json!({}));
    assert!(ok && handle["auto_backgrounded"] == true && handle["task_id"].is_string(), "{handle}");
    let (ok, unknown) = executor.execute("nothing", json!({}));
    assert!(!ok && unknown["error"].as_str().unwrap().contains("nothing"), "{unknown}");
}

#[test]
fn provider_streams_and_is_cancelled_by_its_token() {
    let model = scripted_model([
        call_add("1"),
        text_answer("It is 42."),
        vec![Say::text("Once "), Say::Hang],
    ]);
    let builder = host_builder(&model).configure(|config| config.session.seed = Some(7));
    let jaato = blocking::BlockingJaato::start(builder).unwrap();
    let mut provider = ModelProviderPlugin::connect(&jaato, "my/model").unwrap();
    assert!(provider.supports_streaming());
    provider.create_session("Be brief.", vec![add_tool().spec().clone()], Vec::new());
    let token = CancelToken::new();
    let response = provider.send_message_streaming("What is 2 + 40?", |_| {}, &token).unwrap();
    assert_eq!(response.finish_reason, FinishReason::ToolUse);
    assert_eq!(model.requests()[0].options.seed, Some(7));
    let content = json!({ "sum": 42 }).as_object().cloned().unwrap();
    let result =
        ToolResult { call_id: "1".into(), name: "add".into(), content, ..ToolResult::default() };
    let response = provider.send_tool_results_streaming(vec![result], |_| {}, &token).unwrap();
    assert_eq!(Message::model(response.parts).text(), "It is 42.");
    assert_eq!(provider.get_history().len(), 4);
    assert_eq!(raise_if_cancelled(&token), Ok(()));
    let stop = token.clone();
    let response = provider.send_message_streaming("A story?", move |_| stop.cancel(), &token);
    let response = response.unwrap();
    assert_eq!(response.finish_reason, FinishReason::CANCELLED);
    assert_eq!(Message::model(response.parts).text(), "Once ");
    assert_eq!(raise_if_cancelled(&token), Err(CancelledException));
    assert_eq!(jaato_library::Error::from(CancelledException).kind, ErrorKind::Cancelled);
}

#[test]
fn manager_finds_the_server_that_has_a_tool() {
    let schema = json!({ "type": "object" });
    let page = Tool::new("mcp__wiki__get_page", "Gets a page.", schema, |_, _| async {
        Ok::<_, String>(json!({ "title": "Home" }))
    });
    let jaato = blocking::BlockingJaato::start(Jaato::builder().tool(page)).unwrap();
    let manager = MCPClientManager::new(jaato);
    assert_eq!(manager.all_tools().unwrap(), [("wiki".to_owned(), "get_page".to_owned())]);
    assert_eq!(manager.call_tool_auto("get_page", json!({})).unwrap()["title"], "Home");
    let error = manager.call_tool_auto("get_book", json!({})).unwrap_err();
    assert_eq!(error.message, "tool `get_book` was not found on any MCP server");
}

#[tokio::test]
async fn contexts_share_one_environment() {
    let folder = tempfile::tempdir().unwrap();
    let jaato = Jaato::builder().plugin(crate::__jaato::MODULE).workspace(folder.path());
    let jaato = jaato.executable(child_program());
    let jaato = jaato.plugin_files(jaato_library::PluginFiles::Ignored).start().await.unwrap();
    let env = jaato.environment("folder", serde_json::Map::new()).await.unwrap();
    let first = AgentContext::new(&env);
    first.file_operator.write_file("test.txt", "hello").await.unwrap();
    let second = AgentContext::new(&env);
    assert_eq!(second.file_operator.read_file("test.txt").await.unwrap(), "hello");
    let ran = second.shell.execute("cat test.txt; exit 3").await.unwrap();
    assert_eq!(ran, (3, "hello".to_owned(), String::new()));
    env.close().await.unwrap();
    let no_plugin =
        jaato_library::client::LocalEnvironment::new().enter(&jaato).await.err().unwrap();
    assert!(no_plugin.message.contains("`local`"), "{no_plugin}");
    jaato.close().await;
}
