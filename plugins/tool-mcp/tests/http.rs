//! HTTP servers of both eras, valid and invalid.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::{Error, Result};
use parking_lot::Mutex;
use tool_mcp::call::{McpRequest, request_on_connection};
use tool_mcp::config::HttpServerAddress;
use tool_mcp::connection::{McpConnection, ProtocolEra};
use tool_mcp::library::McpClientManager;
use tool_mcp::transport::http::client::REQUESTS_MAX;

use crate::support::fixture_server::{format_event, result_message};
use crate::support::{FixtureResponse, FixtureServer, HyperClient, ReceivedRequest};

/// The time limit of a call to a server that will not answer.
const SHORT: Duration = Duration::from_millis(200);
/// The time limit of a call to a server that will answer.
const LONG: Duration = Duration::from_secs(30);

fn tool_list() -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "text": { "type": "string", "x-mcp-header": "Text" } },
    });
    json!({
        "tools": [{ "name": "echo", "inputSchema": schema }], "resultType": "complete",
        "ttlMs": 0, "cacheScope": "private",
    })
}

fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "resultType": "complete" })
}

/// Answers like a server of the legacy era. `rest` handles calls and streams.
fn answer_as_legacy(
    seen: &ReceivedRequest,
    rest: impl Fn(&ReceivedRequest) -> FixtureResponse,
) -> FixtureResponse {
    match seen.requested_method().as_str() {
        "server/discover" => FixtureResponse::Whole(400, Vec::new(), "no session".to_owned()),
        "initialize" => FixtureResponse::protocol_response(
            seen,
            json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "moon", "version": "1" },
            }),
        )
        .with_response_header("mcp-session-id", "s1"),
        "notifications/initialized" | "notifications/cancelled" => {
            FixtureResponse::status_response(202)
        }
        "tools/list" => FixtureResponse::protocol_response(seen, tool_list()),
        "DELETE" => FixtureResponse::status_response(200),
        _ => rest(seen),
    }
}

/// A legacy server without a stream of its own.
fn answer_without_stream(
    seen: &ReceivedRequest,
    rest: impl Fn(&ReceivedRequest) -> FixtureResponse,
) -> FixtureResponse {
    answer_as_legacy(seen, |seen| {
        if seen.method == "GET" { FixtureResponse::status_response(405) } else { rest(seen) }
    })
}

/// Answers like a server of the modern era.
fn answer_as_modern(
    seen: &ReceivedRequest,
    rest: impl Fn(&ReceivedRequest) -> FixtureResponse,
) -> FixtureResponse {
    match seen.requested_method().as_str() {
        "server/discover" => FixtureResponse::protocol_response(
            seen,
            json!({
                "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            }),
        ),
        "tools/list" => FixtureResponse::protocol_response(seen, tool_list()),
        _ => rest(seen),
    }
}

fn server_address(server: &FixtureServer) -> HttpServerAddress {
    let headers = [("X-Api-Key".to_owned(), "moonlight".to_owned())].into();
    HttpServerAddress {
        url: format!("{}/mcp", server.url),
        headers,
        ..HttpServerAddress::default()
    }
}

async fn connect_client(server: &FixtureServer) -> (McpClientManager, Arc<McpConnection>) {
    let mut manager = McpClientManager::new().unwrap();
    manager
        .connect_http("moon", &server_address(server), Arc::new(HyperClient), None)
        .await
        .unwrap();
    let connection = manager.get_connection("moon").unwrap();
    (manager, connection)
}

async fn call_echo(connection: &Arc<McpConnection>, text: &str, time: Duration) -> Result<String> {
    let arguments: Map<String, Value> = [("text".to_owned(), text.into())].into_iter().collect();
    let asked = McpRequest::Tool { name: "echo".to_owned(), arguments };
    let answer = request_on_connection(connection, &asked, time, None).await?;
    Ok(answer["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

fn requested_text(seen: &ReceivedRequest) -> String {
    seen.body_message()["params"]["arguments"]["text"].as_str().unwrap_or_default().to_owned()
}

fn echo_response(seen: &ReceivedRequest) -> Value {
    result_message(&seen.body_message()["id"], text_result(&requested_text(seen)))
}

#[tokio::test]
async fn legacy_server_gets_session_headers_and_its_session_is_ended() {
    let server = FixtureServer::start(|seen| {
        answer_as_legacy(seen, |seen| match seen.method.as_str() {
            "GET" => FixtureResponse::Held(vec![": hello\n\n".to_owned()]),
            _ => FixtureResponse::Events(vec![format_event(&echo_response(seen))]),
        })
    })
    .await;
    let (mut manager, connection) = connect_client(&server).await;
    assert_eq!(connection.era, ProtocolEra::Legacy);
    assert_eq!(call_echo(&connection, "hello", LONG).await.unwrap(), "hello");
    drop(connection);
    manager.disconnect("moon").await.unwrap();
    for what in ["tools/list", "tools/call", "DELETE"] {
        let asked = server.requests_with_method(what);
        assert_eq!(asked.len(), 1, "{what}");
        assert_eq!(asked[0].header("mcp-session-id"), Some("s1"));
        assert_eq!(asked[0].header("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!(asked[0].header("x-api-key"), Some("moonlight"));
    }
    let accept = server.requests_with_method("tools/call")[0].header("accept").unwrap().to_owned();
    assert_eq!(accept, "application/json, text/event-stream");
}

#[tokio::test]
async fn modern_server_gets_no_session_and_self_describing_requests() {
    let server = FixtureServer::start(|seen| {
        answer_as_modern(seen, |seen| FixtureResponse::json_response(200, &echo_response(seen)))
    })
    .await;
    let (mut manager, connection) = connect_client(&server).await;
    assert_eq!(connection.era, ProtocolEra::Modern);
    assert_eq!(call_echo(&connection, "grüß", LONG).await.unwrap(), "grüß");
    drop(connection);
    manager.disconnect("moon").await.unwrap();
    let seen = &server.requests_with_method("tools/call")[0];
    assert_eq!(seen.header("mcp-method"), Some("tools/call"));
    assert_eq!(seen.header("mcp-name"), Some("echo"));
    assert_eq!(seen.header("mcp-param-text"), Some("=?base64?Z3LDvMOf?="));
    assert_eq!(seen.header("mcp-session-id"), None);
    let meta = &seen.body_message()["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert!(
        server.requests_with_method("DELETE").is_empty()
            && server.requests_with_method("initialize").is_empty()
    );
}

#[tokio::test]
async fn tool_with_changed_headers_is_listed_and_called_again() {
    let listed = AtomicUsize::new(0);
    let server = FixtureServer::start(move |seen| {
        let is_list = seen.requested_method() == "tools/list";
        // From the second list on, the parameter has another header.
        if is_list && listed.fetch_add(1, Ordering::SeqCst) > 0 {
            let mut changed = tool_list();
            changed["tools"][0]["inputSchema"]["properties"]["text"]["x-mcp-header"] =
                "Words".into();
            return FixtureResponse::protocol_response(seen, changed);
        }
        answer_as_modern(seen, |seen| match seen.header("mcp-param-words") {
            Some(_) => FixtureResponse::json_response(200, &echo_response(seen)),
            None => {
                let error = json!({ "code": -32020, "message": "header mismatch" });
                let id = &seen.body_message()["id"];
                FixtureResponse::json_response(
                    400,
                    &json!({ "jsonrpc": "2.0", "id": id, "error": error }),
                )
            }
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    assert_eq!(call_echo(&connection, "moon", LONG).await.unwrap(), "moon");
    let calls = server.requests_with_method("tools/call");
    let sent = |at: usize, name: &str| calls[at].header(name).map(str::to_owned);
    assert_eq!(calls.len(), 2);
    assert_eq!(
        (sent(0, "mcp-param-text"), sent(0, "mcp-param-words")),
        (Some("moon".into()), None)
    );
    assert_eq!(
        (sent(1, "mcp-param-text"), sent(1, "mcp-param-words")),
        (None, Some("moon".into()))
    );
    // A server that never agrees is asked twice, not forever.
    let server = FixtureServer::start(|seen| {
        answer_as_modern(seen, |seen| {
            let error = json!({ "code": -32020, "message": "header mismatch" });
            let id = &seen.body_message()["id"];
            FixtureResponse::json_response(
                400,
                &json!({ "jsonrpc": "2.0", "id": id, "error": error }),
            )
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    assert!(
        call_echo(&connection, "moon", LONG).await.unwrap_err().message.contains("header mismatch")
    );
    assert_eq!(server.requests_with_method("tools/call").len(), 2);
}

#[tokio::test]
async fn ended_stream_is_resumed_from_its_last_event() {
    let id = Mutex::new(Value::Null);
    let server = FixtureServer::start(move |seen| {
        answer_as_legacy(seen, |seen| match (seen.method.as_str(), seen.header("last-event-id")) {
            ("GET", Some("e7")) => {
                let answer = result_message(&id.lock(), text_result("resumed"));
                FixtureResponse::Events(vec![format!("id: e8\n{}", format_event(&answer))])
            }
            ("GET", _) => FixtureResponse::status_response(405),
            _ => {
                *id.lock() = seen.body_message()["id"].clone();
                FixtureResponse::Events(vec!["id: e7\nretry: 1\ndata:\n\n".to_owned()])
            }
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    assert_eq!(call_echo(&connection, "x", LONG).await.unwrap(), "resumed");
}

#[tokio::test]
async fn forgotten_session_is_restarted_and_the_call_is_resent() {
    let calls = AtomicUsize::new(0);
    let server = FixtureServer::start(move |seen| {
        answer_without_stream(seen, |seen| match calls.fetch_add(1, Ordering::SeqCst) {
            0 => FixtureResponse::status_response(404),
            _ => FixtureResponse::json_response(200, &echo_response(seen)),
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    assert_eq!(call_echo(&connection, "again", LONG).await.unwrap(), "again");
    assert_eq!(server.requests_with_method("initialize").len(), 2);
    assert_eq!(server.requests_with_method("tools/call").len(), 2);
}

/// Ways in which a server reports an unknown session.
fn lost_session_responses() -> Vec<FixtureResponse> {
    let error = |id: Value, text: &str| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": text } });
    let words = "Bad Request: No valid session ID provided";
    let plain =
        |status: u16, text: &str| FixtureResponse::Whole(status, Vec::new(), text.to_owned());
    vec![
        FixtureResponse::status_response(404),
        plain(404, "<html>Not Found</html>"),
        FixtureResponse::status_response(410),
        FixtureResponse::json_response(400, &error(Value::Null, words)),
        plain(400, "Bad Request: Mcp-Session-Id header is invalid"),
        FixtureResponse::status_response(400),
        plain(503, "session gone"),
        FixtureResponse::json_response(200, &error(Value::Null, "Session not found")),
        FixtureResponse::json_response(200, &json!({ "error": "Session expired" })),
        FixtureResponse::Events(vec![format_event(&json!({ "error": "Session not found" }))]),
        FixtureResponse::Events(vec![format_event(&error(Value::Null, "unknown session"))]),
    ]
}

#[tokio::test]
async fn lost_session_is_restarted_only_once_in_every_error_format() {
    for at in 0..lost_session_responses().len() {
        // The server forgets only the first session, or each one.
        for is_forgetful in [false, true] {
            let sessions = AtomicUsize::new(0);
            let server = FixtureServer::start(move |seen| {
                let is_first = || seen.header("mcp-session-id") == Some("s1");
                match seen.requested_method().as_str() {
                    "initialize" => {
                        let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
                        match answer_without_stream(seen, |_| FixtureResponse::status_response(500))
                        {
                            FixtureResponse::Whole(status, mut headers, body) => {
                                headers.retain(|(name, _)| *name != "mcp-session-id");
                                headers.push(("mcp-session-id", format!("s{number}")));
                                FixtureResponse::Whole(status, headers, body)
                            }
                            other => other,
                        }
                    }
                    "tools/call" if is_forgetful || is_first() => {
                        lost_session_responses().remove(at)
                    }
                    _ => answer_without_stream(seen, |seen| {
                        FixtureResponse::json_response(200, &echo_response(seen))
                    }),
                }
            })
            .await;
            let (_manager, connection) = connect_client(&server).await;
            let begin = std::time::Instant::now();
            let called = call_echo(&connection, "again", LONG).await;
            assert!(begin.elapsed() < LONG / 2, "{at}");
            match is_forgetful {
                false => assert_eq!(called.unwrap(), "again", "{at}"),
                true => assert!(!called.unwrap_err().message.is_empty()),
            }
            assert_eq!(server.requests_with_method("initialize").len(), 2, "{at}");
            assert_eq!(server.requests_with_method("tools/call").len(), 2, "{at}");
        }
    }
}

#[tokio::test]
async fn refusal_is_reported_at_once_with_the_text_of_the_server() {
    let refusal = |id: Value, data: Value| {
        let error = json!({ "code": -32602, "message": "own words", "data": data });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    };
    let null = move || refusal(Value::Null, Value::Null);
    let cases: Vec<(FixtureResponse, &str)> = vec![
        (FixtureResponse::json_response(400, &null()), "own words"),
        (FixtureResponse::json_response(500, &null()), "own words"),
        (FixtureResponse::json_response(200, &null()), "own words"),
        (
            FixtureResponse::json_response(200, &refusal("x".into(), json!({ "field": "a" }))),
            "own words ({\"field\":\"a\"})",
        ),
        (FixtureResponse::Events(vec![format_event(&null())]), "own words"),
        (
            FixtureResponse::json_response(422, &json!({ "detail": "own words" })),
            "status 422: {\"detail\":\"own words\"}",
        ),
        (
            FixtureResponse::json_response(429, &json!({ "error": "own words" }))
                .with_response_header("retry-after", "7"),
            "status 429: {\"error\":\"own words\"}; try again after 7 s",
        ),
        (
            FixtureResponse::json_response(503, &null())
                .with_response_header("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),
            "own words; try again after Wed, 21 Oct 2026 07:28:00 GMT",
        ),
        (
            FixtureResponse::Whole(413, Vec::new(), "<html><p>own</p> <b>words</b>".to_owned()),
            "status 413: own words",
        ),
    ];
    let count = cases.len();
    let cases =
        Mutex::new(cases.into_iter().map(|(given, why)| (Some(given), why)).collect::<Vec<_>>());
    let cases = Arc::new(cases);
    let given = Arc::clone(&cases);
    let server = FixtureServer::start(move |seen| {
        answer_without_stream(seen, |seen| {
            let at: usize = requested_text(seen).parse().unwrap();
            given.lock()[at].0.take().unwrap_or(FixtureResponse::status_response(500))
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    for at in 0..count {
        let why = cases.lock()[at].1;
        let error = call_echo(&connection, &at.to_string(), LONG).await.unwrap_err();
        assert!(error.message.ends_with(why), "{at}: {}", error.message);
    }
}

#[tokio::test]
async fn events_that_are_not_messages_are_ignored() {
    let before = [
        "event: ping\ndata: {}\n\n",
        "event: ping\ndata: 2026-01-01 00:00:00\n\n",
        "event: heartbeat\ndata: {\"t\":1}\n\n",
        "event: endpoint\ndata: /messages?id=1\n\n",
        "data: {}\n\n",
        "data: ok\n\n",
        ": hello\n\n",
        "event: message\nid: 7\ndata:\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"a\":\"\\ud83d\"}}\n\n",
    ];
    let server = FixtureServer::start(move |seen| {
        let with_noise = |given: FixtureResponse| match given {
            FixtureResponse::Whole(_, headers, body) if !body.is_empty() => {
                let mut events: Vec<String> = before.iter().map(|it| (*it).to_owned()).collect();
                events.push(format!("data: {body}\n\n"));
                let _ = headers;
                FixtureResponse::Events(events)
            }
            other => other,
        };
        match seen.requested_method().as_str() {
            "server/discover" => FixtureResponse::status_response(400),
            _ => with_noise(answer_without_stream(seen, |seen| {
                FixtureResponse::json_response(200, &echo_response(seen))
            })),
        }
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    assert_eq!(call_echo(&connection, "a", LONG).await.unwrap(), "a");
}

#[tokio::test]
async fn old_http_sse_transport_is_named_in_the_error() {
    let server = FixtureServer::start(|seen| match seen.method.as_str() {
        "GET" => {
            FixtureResponse::Held(vec!["event: endpoint\ndata: /messages?id=1\n\n".to_owned()])
        }
        _ => {
            FixtureResponse::Whole(404, Vec::new(), "<html><pre>Cannot POST /mcp</pre>".to_owned())
        }
    })
    .await;
    let mut manager = McpClientManager::new().unwrap();
    let reach = server_address(&server);
    let connected = manager.connect_http("moon", &reach, Arc::new(HyperClient), None);
    let error = connected.await.unwrap_err();
    assert!(error.message.contains("the old HTTP+SSE transport (2024-11-05)"), "{error}");
}

#[tokio::test]
async fn server_with_an_odd_probe_answer_is_initialized_as_legacy() {
    let odd: [fn(&ReceivedRequest) -> FixtureResponse; 5] = [
        |_| FixtureResponse::status_response(404),
        |_| FixtureResponse::status_response(405),
        |_| {
            FixtureResponse::Whole(
                400,
                vec![("content-type", "text/html".to_owned())],
                "<p>".to_owned(),
            )
        },
        |seen| FixtureResponse::protocol_response(seen, json!({})),
        |_| {
            let error = json!({ "code": -32000, "message": "no session" });
            FixtureResponse::json_response(
                400,
                &json!({ "jsonrpc": "2.0", "id": null, "error": error }),
            )
        },
    ];
    for odd in odd {
        let server = FixtureServer::start(move |seen| match seen.requested_method().as_str() {
            "server/discover" => odd(seen),
            _ => answer_without_stream(seen, |seen| {
                FixtureResponse::json_response(200, &echo_response(seen))
            }),
        })
        .await;
        let (_manager, connection) = connect_client(&server).await;
        assert_eq!(call_echo(&connection, "a", LONG).await.unwrap(), "a");
    }
}

/// Starts a server that answers the call `bad` with `bad` and all other calls correctly.
async fn server_with_bad_call(
    bad: fn(&ReceivedRequest) -> FixtureResponse,
) -> (FixtureServer, McpClientManager, Arc<McpConnection>) {
    let server = FixtureServer::start(move |seen| {
        answer_as_modern(seen, |seen| match requested_text(seen).as_str() {
            "bad" => bad(seen),
            _ => FixtureResponse::json_response(200, &echo_response(seen)),
        })
    })
    .await;
    let (manager, connection) = connect_client(&server).await;
    (server, manager, connection)
}

/// Checks that the bad call fails with `why`, and that calls during and after it succeed.
async fn check_bad_call(bad: fn(&ReceivedRequest) -> FixtureResponse, time: Duration, why: &str) {
    let (_server, _manager, connection) = server_with_bad_call(bad).await;
    let (failed, beside) =
        tokio::join!(call_echo(&connection, "bad", time), call_echo(&connection, "beside", LONG));
    let error: Error = failed.unwrap_err();
    assert!(error.message.contains(why), "{}", error.message);
    assert!(!error.message.contains("moonlight"));
    assert_eq!(beside.unwrap(), "beside");
    assert_eq!(call_echo(&connection, "after", LONG).await.unwrap(), "after");
}

#[tokio::test]
async fn endless_stream_fails_only_its_call() {
    let endless = |_: &ReceivedRequest| FixtureResponse::Endless(": still here\n\n".to_owned());
    check_bad_call(endless, SHORT, "did not answer within 0.2 s").await;
}

#[tokio::test]
async fn notification_flood_during_a_call_fails_only_that_call() {
    let flood = |_: &ReceivedRequest| {
        let params = json!({ "progressToken": 99, "progress": 1 });
        let note =
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        FixtureResponse::Endless(format_event(&note))
    };
    check_bad_call(flood, SHORT, "did not answer within 0.2 s").await;
}

#[tokio::test]
async fn call_without_an_answer_fails_alone() {
    check_bad_call(|_| FixtureResponse::Silence, SHORT, "did not answer within 0.2 s").await;
}

#[tokio::test]
async fn endless_streams_do_not_block_later_calls() {
    for era in [ProtocolEra::Modern, ProtocolEra::Legacy] {
        let called = |seen: &ReceivedRequest| match requested_text(seen).as_str() {
            "bad" => FixtureResponse::Held(Vec::new()),
            _ => FixtureResponse::json_response(200, &echo_response(seen)),
        };
        let server = FixtureServer::start(move |seen| match era {
            ProtocolEra::Modern => answer_as_modern(seen, called),
            ProtocolEra::Legacy | ProtocolEra::Unknown => answer_without_stream(seen, called),
        })
        .await;
        let (_manager, connection) = connect_client(&server).await;
        let calls = (0..2 * REQUESTS_MAX).map(|_| call_echo(&connection, "bad", SHORT));
        assert!(join_all(calls).await.iter().all(Result::is_err));
        assert_eq!(call_echo(&connection, "after", LONG).await.unwrap(), "after");
    }
}

#[tokio::test]
async fn notification_flood_outside_of_calls_fails_no_call() {
    let server = FixtureServer::start(|seen| {
        answer_as_legacy(seen, |seen| match seen.method.as_str() {
            "GET" => {
                let note =
                    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                FixtureResponse::Endless(format_event(&note))
            }
            _ => FixtureResponse::json_response(200, &echo_response(seen)),
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    for _ in 0..10 {
        assert_eq!(call_echo(&connection, "a", LONG).await.unwrap(), "a");
    }
}

#[tokio::test]
async fn overlong_event_fails_only_its_call() {
    let large = |_: &ReceivedRequest| {
        FixtureResponse::Endless("data: ".to_owned() + &"x".repeat(1024 * 1024))
    };
    let (_server, _manager, connection) = server_with_bad_call(large).await;
    let error = call_echo(&connection, "bad", LONG).await.unwrap_err();
    assert!(error.message.contains("an event that exceeds the message limit"), "{error}");
    assert_eq!(call_echo(&connection, "after", LONG).await.unwrap(), "after");
}

#[tokio::test]
async fn overlong_body_fails_only_its_call() {
    let large = |seen: &ReceivedRequest| {
        let text = "x".repeat(17 * 1024 * 1024);
        FixtureResponse::json_response(
            200,
            &result_message(&seen.body_message()["id"], text_result(&text)),
        )
    };
    check_bad_call(large, LONG, "more than 16777216 bytes").await;
}

#[tokio::test]
async fn html_pages_and_broken_answers_fail_only_their_call() {
    let page = |_: &ReceivedRequest| {
        let kind = ("content-type", "text/html".to_owned());
        FixtureResponse::Whole(200, vec![kind], "<p>\u{1b}[31mLog in</p>".to_owned())
    };
    check_bad_call(page, LONG, "with `text/html` instead of JSON: [31mLog in").await;
    check_bad_call(
        |_| FixtureResponse::json_response(200, &json!({ "moon": 1 })),
        LONG,
        "not an MCP message",
    )
    .await;
    check_bad_call(|_| FixtureResponse::status_response(500), LONG, "500").await;
    let refused = |_: &ReceivedRequest| {
        FixtureResponse::Whole(403, Vec::new(), "go\u{1b}[31m away".to_owned())
    };
    check_bad_call(refused, LONG, "status 403: go [31m away").await;
}

#[tokio::test]
async fn response_with_a_foreign_id_is_not_accepted() {
    let foreign = |_: &ReceivedRequest| {
        FixtureResponse::Held(vec![format_event(&result_message(
            &json!(4711),
            text_result("foreign"),
        ))])
    };
    check_bad_call(foreign, LONG, "the server's answer ended before it was complete").await;
}

#[tokio::test]
async fn redirect_does_not_send_the_key_to_another_server() {
    let elsewhere =
        FixtureServer::start(|seen| FixtureResponse::json_response(200, &echo_response(seen)))
            .await;
    let place = format!("{}/mcp", elsewhere.url);
    let server = FixtureServer::start(move |seen| {
        answer_as_modern(seen, |_| {
            FixtureResponse::status_response(307).with_response_header("location", &place)
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    let error = call_echo(&connection, "a", LONG).await.unwrap_err();
    assert!(error.message.contains("status 307"), "{}", error.message);
    assert!(elsewhere.received_requests().is_empty());
}

#[tokio::test]
async fn a_thousand_calls_at_once_get_each_its_own_answer() {
    let server = FixtureServer::start(|seen| {
        answer_as_modern(seen, |seen| FixtureResponse::json_response(200, &echo_response(seen)))
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    let texts: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let answers = join_all(texts.iter().map(|text| call_echo(&connection, text, LONG))).await;
    for (text, answer) in texts.iter().zip(answers) {
        assert_eq!(*text, answer.unwrap());
    }
}
