//! Servers that send invalid data, and their effect on calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{Map, Value, json};
use rmcp::model::{ErrorData, ProgressNotificationParam};
use tokio::sync::mpsc;
use tool_mcp::call::{McpRequest, request_on_connection};
use tool_mcp::call_context::McpCallContext;
use tool_mcp::connection::McpConnection;
use tool_mcp::library::McpClientManager;
use tool_mcp::transport::wire::StdioWire;

fn initialize_result() -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
        "serverInfo": { "name": "moon", "version": "1" },
    })
}

fn result_message(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// A server that starts correctly. `called` handles its calls.
fn hostile_server(
    mut called: impl FnMut(&Value, &mut dyn FnMut(&Value)) + Send + 'static,
) -> StdioWire {
    StdioWire::with_message_handler(move |message, say| {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => say(&result_message(id, initialize_result())),
            Some("tools/list") => {
                let tool = json!({ "name": "echo", "inputSchema": { "type": "object" } });
                say(&result_message(id, json!({ "tools": [tool] })));
            }
            Some("server/discover") => {
                let error = json!({ "code": -32601, "message": "no" });
                say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            _ => called(message, say),
        }
    })
}

async fn connect_client(wire: StdioWire) -> (McpClientManager, Arc<McpConnection>) {
    let mut manager = McpClientManager::new().unwrap();
    manager.connect_over("moon", wire).await.unwrap();
    let connection = manager.get_connection("moon").unwrap();
    (manager, connection)
}

fn echo_request(text: &str) -> McpRequest {
    let arguments: Map<String, Value> = [("text".to_owned(), text.into())].into_iter().collect();
    McpRequest::Tool { name: "echo".to_owned(), arguments }
}

const TIME: Duration = Duration::from_secs(60);

#[tokio::test]
async fn ten_thousand_calls_never_receive_each_others_responses() {
    const CALLS: usize = 10_000;
    // Responses arrive out of order: each is delayed behind this many later ones.
    const LATE: usize = 50;
    let mut waiting: VecDeque<(Value, String)> = VecDeque::new();
    let mut seen = 0;
    let wire = hostile_server(move |message, say| {
        if message["method"] != "tools/call" {
            return;
        }
        seen += 1;
        let said = message["params"]["arguments"]["text"].as_str().unwrap().to_owned();
        waiting.push_back((message["id"].clone(), said));
        if waiting.len() < LATE && seen < CALLS {
            return;
        }
        while waiting.len() > LATE / 2 || (seen == CALLS && !waiting.is_empty()) {
            let at = (seen * 7) % waiting.len();
            let (id, said) = waiting.remove(at).unwrap();
            // Responses with unknown IDs: an unused number and a text.
            say(&result_message(&json!(1_000_000_000 + seen), text_result("foreign")));
            say(&result_message(&json!("foreign"), text_result("foreign")));
            say(&result_message(&id, text_result(&said)));
            // A second response to the same request, with other content.
            say(&result_message(&id, text_result("doubled")));
        }
    });
    let (_manager, connection) = connect_client(wire).await;
    let call = |number: usize| {
        let connection = Arc::clone(&connection);
        async move {
            let said = format!("call {number}");
            let answer =
                request_on_connection(&connection, &echo_request(&said), TIME, None).await.unwrap();
            assert_eq!(answer["content"][0]["text"], said.as_str());
        }
    };
    let calls: FuturesUnordered<_> = (0..CALLS).map(call).collect();
    assert_eq!(calls.count().await, CALLS);
}

#[tokio::test]
async fn abandoned_call_is_cancelled_and_its_late_response_is_ignored() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut first = None;
    let wire = hostile_server(move |message, say| match message["method"].as_str() {
        Some("tools/call") if first.is_none() => {
            first = Some(message["id"].clone());
            let _ = tell.send(message.clone());
        }
        Some("tools/call") => {
            say(&result_message(first.as_ref().unwrap(), text_result("late")));
            say(&result_message(&message["id"], text_result("mine")));
        }
        Some("notifications/cancelled") => {
            let _ = tell.send(message.clone());
        }
        _ => {}
    });
    let (_manager, connection) = connect_client(wire).await;
    let asked = echo_request("x");
    let mut waiting = Box::pin(request_on_connection(&connection, &asked, TIME, None));
    let call = tokio::select! {
        _ = &mut waiting => panic!("the server does not answer"),
        call = told.recv() => call.unwrap(),
    };
    drop(waiting);
    let cancelled = told.recv().await.unwrap();
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    let answer = request_on_connection(&connection, &asked, TIME, None).await.unwrap();
    assert_eq!(answer["content"][0]["text"], "mine");
}

#[tokio::test]
async fn timed_out_call_does_not_affect_other_calls() {
    let wire = hostile_server(|message, say| {
        if message["params"]["arguments"]["text"] == "fast" {
            say(&result_message(&message["id"], text_result("fast")));
        }
    });
    let (_manager, connection) = connect_client(wire).await;
    let soon = Duration::from_millis(50);
    let (slow, fast) = (echo_request("slow"), echo_request("fast"));
    let (slow, fast) = tokio::join!(
        request_on_connection(&connection, &slow, soon, None),
        request_on_connection(&connection, &fast, TIME, None),
    );
    assert_eq!(slow.unwrap_err().kind, ErrorKind::Timeout);
    assert_eq!(fast.unwrap()["content"][0]["text"], "fast");
}

#[tokio::test]
async fn server_exit_fails_all_running_calls() {
    let mut calls = 0;
    let (said, mut say) = mpsc::channel::<Vec<u8>>(64);
    let (hear, heard) = mpsc::channel(16);
    std::thread::spawn(move || {
        while let Some(line) = say.blocking_recv() {
            let message: Value = jaato_plugin_sdk::serde_json::from_slice(&line).unwrap();
            let result = match message["method"].as_str() {
                Some("initialize") => initialize_result(),
                Some("tools/list") => json!({ "tools": [] }),
                Some("tools/call") => {
                    calls += 1;
                    if calls == 3 {
                        return;
                    }
                    continue;
                }
                Some("server/discover") => {
                    let error = json!({ "code": -32601, "message": "no" });
                    let line = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                    hear.blocking_send(format!("{line}\n").into_bytes()).unwrap();
                    continue;
                }
                _ => continue,
            };
            hear.blocking_send(
                format!("{}\n", result_message(&message["id"], result)).into_bytes(),
            )
            .unwrap();
        }
    });
    let (_manager, connection) = connect_client(StdioWire { heard, said }).await;
    let asked = echo_request("x");
    let calls = (0..3).map(|_| request_on_connection(&connection, &asked, TIME, None));
    for outcome in join_all(calls).await {
        assert_eq!(outcome.unwrap_err().kind, ErrorKind::Unavailable);
    }
    assert!(connection.is_closed());
}

/// A session whose user sees every question and answers none.
struct PendingCallContext;

impl McpCallContext for PendingCallContext {
    fn show_progress(&self, _: &ProgressNotificationParam) {}

    fn elicit_from_user(&self, _: Value) -> BoxFuture<'static, Value> {
        Box::pin(std::future::pending())
    }

    fn sample_from_model(&self, _: Value) -> BoxFuture<'static, Result<Value, ErrorData>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn questions_of_a_server_beyond_eight_are_refused() {
    const QUESTIONS: usize = 100;
    const SHOWN: usize = 8;
    let (mut call, mut refused) = (Value::Null, 0);
    let wire = hostile_server(move |message, say| match message["method"].as_str() {
        Some("tools/call") => {
            call = message["id"].clone();
            let schema = json!({ "type": "object", "properties": {} });
            let params = json!({ "message": "?", "requestedSchema": schema });
            for number in 0..QUESTIONS {
                say(&json!({
                    "jsonrpc": "2.0", "id": format!("q{number}"),
                    "method": "elicitation/create", "params": params,
                }));
            }
        }
        None if message["error"]["message"] == "too many questions at a time" => {
            refused += 1;
            if refused == QUESTIONS - SHOWN {
                say(&result_message(&call, text_result("refused")));
            }
        }
        _ => {}
    });
    let (_manager, connection) = connect_client(wire).await;
    let site = Some(Arc::new(PendingCallContext) as Arc<dyn McpCallContext>);
    let answer = request_on_connection(&connection, &echo_request("x"), TIME, site).await.unwrap();
    assert_eq!(answer["content"][0]["text"], "refused");
}

#[tokio::test]
async fn rounds_of_server_questions_are_limited() {
    let wire = StdioWire::with_request_handler(|method, _| {
        Some(match method {
            "server/discover" => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            }),
            "tools/list" => {
                json!({ "tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" })
            }
            _ => json!({ "resultType": "input_required", "requestState": "again" }),
        })
    });
    let (_manager, connection) = connect_client(wire).await;
    let error =
        request_on_connection(&connection, &echo_request("x"), TIME, None).await.unwrap_err();
    assert_eq!(error.message, "the server asked questions more than 10 times");
}

#[tokio::test]
async fn error_contains_everything_the_server_reported() {
    let wire = hostile_server(|message, say| {
        let page = json!({ "mode": "url", "elicitationId": "1", "url": "https://a.example/x?state=1", "message": "Log in." });
        let error = match message["params"]["arguments"]["text"].as_str() {
            Some("page") => {
                json!({ "code": -32042, "message": "log in first", "data": { "elicitations": [page] } })
            }
            Some("data") => {
                json!({ "code": -32602, "message": "Invalid params", "data": { "field": "a" } })
            }
            Some("text") => json!("no"),
            _ => return,
        };
        // The error belongs to the only open call.
        say(&json!({ "jsonrpc": "2.0", "id": null, "error": error }));
    });
    let (_manager, connection) = connect_client(wire).await;
    let ask = async |text: &str| {
        request_on_connection(&connection, &echo_request(text), TIME, None).await.unwrap_err()
    };
    assert_eq!(ask("data").await.message, "Invalid params ({\"field\":\"a\"})");
    assert_eq!(ask("text").await.message, "no");
    let page = ask("page").await;
    let hint = "open this page, then call again: https://a.example/x?state=1";
    assert_eq!(page.hint.as_deref(), Some(hint));
    assert!(page.message.starts_with("log in first"), "{}", page.message);
}

#[tokio::test]
async fn tools_with_one_name_on_two_servers_are_kept_apart() {
    let of = |name: &'static str| {
        hostile_server(move |message, say| {
            if message["method"] == "tools/call" {
                say(&result_message(&message["id"], text_result(name)));
            }
        })
    };
    let mut manager = McpClientManager::new().unwrap();
    manager.connect_over("b", of("b")).await.unwrap();
    manager.connect_over("a", of("a")).await.unwrap();
    let taken = manager.connect_over("a", of("a")).await.unwrap_err();
    assert_eq!(taken.message, "Server 'a' is already connected");
    for name in ["a", "b"] {
        let answer = manager.call_tool(name, "echo", Map::new()).await.unwrap();
        assert_eq!(answer["content"][0]["text"], name);
    }
    assert_eq!(manager.find_tool("echo"), Some("a"));
    manager.disconnect("a").await.unwrap();
    assert_eq!(manager.find_tool("echo"), Some("b"));
    let gone = manager.call_tool_auto("none", Map::new()).await.unwrap_err();
    assert_eq!(gone.message, "Tool 'none' not found on any server");
    assert_eq!(manager.disconnect("a").await.unwrap_err().message, "Server 'a' not connected");
    assert_eq!(manager.all_tools().count(), 1);
}
