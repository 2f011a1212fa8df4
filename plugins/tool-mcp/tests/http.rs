//! HTTP servers of both eras, valid and invalid.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::{Error, Result};
use parking_lot::Mutex;
use tool_mcp::call::{McpRequest, ask_connection};
use tool_mcp::config::HttpServerAddress;
use tool_mcp::connection::{McpConnection, ProtocolEra};
use tool_mcp::library::McpClientManager;
use tool_mcp::transport::http::client::REQUESTS_MAX;

use crate::support::fixture_server::{answer, event};
use crate::support::{FixtureServer, Given, HyperClient, ReceivedRequest};

/// The time limit of a call to a server that will not answer.
const SHORT: Duration = Duration::from_millis(200);
/// The time limit of a call to a server that will answer.
const LONG: Duration = Duration::from_secs(30);

fn tools() -> Value {
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
fn legacy(seen: &ReceivedRequest, rest: impl Fn(&ReceivedRequest) -> Given) -> Given {
    match seen.asks().as_str() {
        "server/discover" => Given::Whole(400, Vec::new(), "no session".to_owned()),
        "initialize" => Given::result(
            seen,
            json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "moon", "version": "1" },
            }),
        )
        .header("mcp-session-id", "s1"),
        "notifications/initialized" | "notifications/cancelled" => Given::status(202),
        "tools/list" => Given::result(seen, tools()),
        "DELETE" => Given::status(200),
        _ => rest(seen),
    }
}

/// A legacy server without a stream of its own.
fn no_stream(seen: &ReceivedRequest, rest: impl Fn(&ReceivedRequest) -> Given) -> Given {
    legacy(seen, |seen| if seen.method == "GET" { Given::status(405) } else { rest(seen) })
}

/// Answers like a server of the modern era.
fn modern(seen: &ReceivedRequest, rest: impl Fn(&ReceivedRequest) -> Given) -> Given {
    match seen.asks().as_str() {
        "server/discover" => Given::result(
            seen,
            json!({
                "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            }),
        ),
        "tools/list" => Given::result(seen, tools()),
        _ => rest(seen),
    }
}

fn reach(server: &FixtureServer) -> HttpServerAddress {
    let headers = [("X-Api-Key".to_owned(), "moonlight".to_owned())].into();
    HttpServerAddress {
        url: format!("{}/mcp", server.url),
        headers,
        ..HttpServerAddress::default()
    }
}

async fn connect_client(server: &FixtureServer) -> (McpClientManager, Arc<McpConnection>) {
    let mut manager = McpClientManager::new().unwrap();
    manager.connect_http("moon", &reach(server), Arc::new(HyperClient), None).await.unwrap();
    let connection = manager.get_connection("moon").unwrap();
    (manager, connection)
}

async fn call(connection: &Arc<McpConnection>, text: &str, time: Duration) -> Result<String> {
    let arguments: Map<String, Value> = [("text".to_owned(), text.into())].into_iter().collect();
    let asked = McpRequest::Tool { name: "echo".to_owned(), arguments };
    let answer = ask_connection(connection, &asked, time, None).await?;
    Ok(answer["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

fn asked_for(seen: &ReceivedRequest) -> String {
    seen.message()["params"]["arguments"]["text"].as_str().unwrap_or_default().to_owned()
}

fn echoed_request(seen: &ReceivedRequest) -> Value {
    answer(&seen.message()["id"], text_result(&asked_for(seen)))
}

#[tokio::test]
async fn legacy_server_gets_session_headers_and_its_session_is_ended() {
    let server = FixtureServer::start(|seen| {
        legacy(seen, |seen| match seen.method.as_str() {
            "GET" => Given::Held(vec![": hello\n\n".to_owned()]),
            _ => Given::Events(vec![event(&echoed_request(seen))]),
        })
    })
    .await;
    let (mut manager, connection) = connect_client(&server).await;
    assert_eq!(connection.era, ProtocolEra::Legacy);
    assert_eq!(call(&connection, "hello", LONG).await.unwrap(), "hello");
    drop(connection);
    manager.disconnect("moon").await.unwrap();
    for what in ["tools/list", "tools/call", "DELETE"] {
        let asked = server.asked(what);
        assert_eq!(asked.len(), 1, "{what}");
        assert_eq!(asked[0].header("mcp-session-id"), Some("s1"));
        assert_eq!(asked[0].header("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!(asked[0].header("x-api-key"), Some("moonlight"));
    }
    let accept = server.asked("tools/call")[0].header("accept").unwrap().to_owned();
    assert_eq!(accept, "application/json, text/event-stream");
}

#[tokio::test]
async fn modern_server_gets_no_session_and_self_describing_requests() {
    let server =
        FixtureServer::start(|seen| modern(seen, |seen| Given::json(200, &echoed_request(seen))))
            .await;
    let (mut manager, connection) = connect_client(&server).await;
    assert_eq!(connection.era, ProtocolEra::Modern);
    assert_eq!(call(&connection, "grüß", LONG).await.unwrap(), "grüß");
    drop(connection);
    manager.disconnect("moon").await.unwrap();
    let seen = &server.asked("tools/call")[0];
    assert_eq!(seen.header("mcp-method"), Some("tools/call"));
    assert_eq!(seen.header("mcp-name"), Some("echo"));
    assert_eq!(seen.header("mcp-param-text"), Some("=?base64?Z3LDvMOf?="));
    assert_eq!(seen.header("mcp-session-id"), None);
    let meta = &seen.message()["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert!(server.asked("DELETE").is_empty() && server.asked("initialize").is_empty());
}

#[tokio::test]
async fn tool_with_changed_headers_is_listed_and_called_again() {
    let listed = AtomicUsize::new(0);
    let server = FixtureServer::start(move |seen| {
        let is_list = seen.asks() == "tools/list";
        // From the second list on, the parameter has another header.
        if is_list && listed.fetch_add(1, Ordering::SeqCst) > 0 {
            let mut changed = tools();
            changed["tools"][0]["inputSchema"]["properties"]["text"]["x-mcp-header"] =
                "Words".into();
            return Given::result(seen, changed);
        }
        modern(seen, |seen| match seen.header("mcp-param-words") {
            Some(_) => Given::json(200, &echoed_request(seen)),
            None => {
                let error = json!({ "code": -32020, "message": "header mismatch" });
                let id = &seen.message()["id"];
                Given::json(400, &json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            }
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    assert_eq!(call(&connection, "moon", LONG).await.unwrap(), "moon");
    let calls = server.asked("tools/call");
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
        modern(seen, |seen| {
            let error = json!({ "code": -32020, "message": "header mismatch" });
            let id = &seen.message()["id"];
            Given::json(400, &json!({ "jsonrpc": "2.0", "id": id, "error": error }))
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    assert!(call(&connection, "moon", LONG).await.unwrap_err().message.contains("header mismatch"));
    assert_eq!(server.asked("tools/call").len(), 2);
}

#[tokio::test]
async fn ended_stream_is_resumed_from_its_last_event() {
    let id = Mutex::new(Value::Null);
    let server = FixtureServer::start(move |seen| {
        legacy(seen, |seen| match (seen.method.as_str(), seen.header("last-event-id")) {
            ("GET", Some("e7")) => {
                let answer = answer(&id.lock(), text_result("resumed"));
                Given::Events(vec![format!("id: e8\n{}", event(&answer))])
            }
            ("GET", _) => Given::status(405),
            _ => {
                *id.lock() = seen.message()["id"].clone();
                Given::Events(vec!["id: e7\nretry: 1\ndata:\n\n".to_owned()])
            }
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    assert_eq!(call(&connection, "x", LONG).await.unwrap(), "resumed");
}

#[tokio::test]
async fn forgotten_session_is_restarted_and_the_call_is_resent() {
    let calls = AtomicUsize::new(0);
    let server = FixtureServer::start(move |seen| {
        no_stream(seen, |seen| match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Given::status(404),
            _ => Given::json(200, &echoed_request(seen)),
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    assert_eq!(call(&connection, "again", LONG).await.unwrap(), "again");
    assert_eq!(server.asked("initialize").len(), 2);
    assert_eq!(server.asked("tools/call").len(), 2);
}

/// Ways in which a server reports an unknown session.
fn lost_sessions() -> Vec<Given> {
    let error = |id: Value, text: &str| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": text } });
    let words = "Bad Request: No valid session ID provided";
    let plain = |status: u16, text: &str| Given::Whole(status, Vec::new(), text.to_owned());
    vec![
        Given::status(404),
        plain(404, "<html>Not Found</html>"),
        Given::status(410),
        Given::json(400, &error(Value::Null, words)),
        plain(400, "Bad Request: Mcp-Session-Id header is invalid"),
        Given::status(400),
        plain(503, "session gone"),
        Given::json(200, &error(Value::Null, "Session not found")),
        Given::json(200, &json!({ "error": "Session expired" })),
        Given::Events(vec![event(&json!({ "error": "Session not found" }))]),
        Given::Events(vec![event(&error(Value::Null, "unknown session"))]),
    ]
}

#[tokio::test]
async fn lost_session_is_restarted_only_once_in_every_error_format() {
    for at in 0..lost_sessions().len() {
        // The server forgets only the first session, or each one.
        for is_forgetful in [false, true] {
            let sessions = AtomicUsize::new(0);
            let server = FixtureServer::start(move |seen| {
                let is_first = || seen.header("mcp-session-id") == Some("s1");
                match seen.asks().as_str() {
                    "initialize" => {
                        let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
                        match no_stream(seen, |_| Given::status(500)) {
                            Given::Whole(status, mut headers, body) => {
                                headers.retain(|(name, _)| *name != "mcp-session-id");
                                headers.push(("mcp-session-id", format!("s{number}")));
                                Given::Whole(status, headers, body)
                            }
                            other => other,
                        }
                    }
                    "tools/call" if is_forgetful || is_first() => lost_sessions().remove(at),
                    _ => no_stream(seen, |seen| Given::json(200, &echoed_request(seen))),
                }
            })
            .await;
            let (_manager, connection) = connect_client(&server).await;
            let begin = std::time::Instant::now();
            let called = call(&connection, "again", LONG).await;
            assert!(begin.elapsed() < LONG / 2, "{at}");
            match is_forgetful {
                false => assert_eq!(called.unwrap(), "again", "{at}"),
                true => assert!(!called.unwrap_err().message.is_empty()),
            }
            assert_eq!(server.asked("initialize").len(), 2, "{at}");
            assert_eq!(server.asked("tools/call").len(), 2, "{at}");
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
    let cases: Vec<(Given, &str)> = vec![
        (Given::json(400, &null()), "own words"),
        (Given::json(500, &null()), "own words"),
        (Given::json(200, &null()), "own words"),
        (
            Given::json(200, &refusal("x".into(), json!({ "field": "a" }))),
            "own words ({\"field\":\"a\"})",
        ),
        (Given::Events(vec![event(&null())]), "own words"),
        (
            Given::json(422, &json!({ "detail": "own words" })),
            "status 422: {\"detail\":\"own words\"}",
        ),
        (
            Given::json(429, &json!({ "error": "own words" })).header("retry-after", "7"),
            "status 429: {\"error\":\"own words\"}; try again after 7 s",
        ),
        (
            Given::json(503, &null()).header("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),
            "own words; try again after Wed, 21 Oct 2026 07:28:00 GMT",
        ),
        (
            Given::Whole(413, Vec::new(), "<html><p>own</p> <b>words</b>".to_owned()),
            "status 413: own words",
        ),
    ];
    let count = cases.len();
    let cases =
        Mutex::new(cases.into_iter().map(|(given, why)| (Some(given), why)).collect::<Vec<_>>());
    let cases = Arc::new(cases);
    let given = Arc::clone(&cases);
    let server = FixtureServer::start(move |seen| {
        no_stream(seen, |seen| {
            let at: usize = asked_for(seen).parse().unwrap();
            given.lock()[at].0.take().unwrap_or(Given::status(500))
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    for at in 0..count {
        let why = cases.lock()[at].1;
        let error = call(&connection, &at.to_string(), LONG).await.unwrap_err();
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
        let with_noise = |given: Given| match given {
            Given::Whole(_, headers, body) if !body.is_empty() => {
                let mut events: Vec<String> = before.iter().map(|it| (*it).to_owned()).collect();
                events.push(format!("data: {body}\n\n"));
                let _ = headers;
                Given::Events(events)
            }
            other => other,
        };
        match seen.asks().as_str() {
            "server/discover" => Given::status(400),
            _ => with_noise(no_stream(seen, |seen| Given::json(200, &echoed_request(seen)))),
        }
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    assert_eq!(call(&connection, "a", LONG).await.unwrap(), "a");
}

#[tokio::test]
async fn old_http_sse_transport_is_named_in_the_error() {
    let server = FixtureServer::start(|seen| match seen.method.as_str() {
        "GET" => Given::Held(vec!["event: endpoint\ndata: /messages?id=1\n\n".to_owned()]),
        _ => Given::Whole(404, Vec::new(), "<html><pre>Cannot POST /mcp</pre>".to_owned()),
    })
    .await;
    let mut manager = McpClientManager::new().unwrap();
    let reach = reach(&server);
    let connected = manager.connect_http("moon", &reach, Arc::new(HyperClient), None);
    let error = connected.await.unwrap_err();
    assert!(error.message.contains("the old HTTP+SSE transport (2024-11-05)"), "{error}");
}

#[tokio::test]
async fn server_with_an_odd_probe_answer_is_initialized_as_legacy() {
    let odd: [fn(&ReceivedRequest) -> Given; 5] = [
        |_| Given::status(404),
        |_| Given::status(405),
        |_| Given::Whole(400, vec![("content-type", "text/html".to_owned())], "<p>".to_owned()),
        |seen| Given::result(seen, json!({})),
        |_| {
            let error = json!({ "code": -32000, "message": "no session" });
            Given::json(400, &json!({ "jsonrpc": "2.0", "id": null, "error": error }))
        },
    ];
    for odd in odd {
        let server = FixtureServer::start(move |seen| match seen.asks().as_str() {
            "server/discover" => odd(seen),
            _ => no_stream(seen, |seen| Given::json(200, &echoed_request(seen))),
        })
        .await;
        let (_manager, connection) = connect_client(&server).await;
        assert_eq!(call(&connection, "a", LONG).await.unwrap(), "a");
    }
}

/// Starts a server that answers the call `bad` with `bad` and all other calls correctly.
async fn with_bad_call(
    bad: fn(&ReceivedRequest) -> Given,
) -> (FixtureServer, McpClientManager, Arc<McpConnection>) {
    let server = FixtureServer::start(move |seen| {
        modern(seen, |seen| match asked_for(seen).as_str() {
            "bad" => bad(seen),
            _ => Given::json(200, &echoed_request(seen)),
        })
    })
    .await;
    let (manager, connection) = connect_client(&server).await;
    (server, manager, connection)
}

/// Checks that the bad call fails with `why`, and that calls during and after it succeed.
async fn check_bad(bad: fn(&ReceivedRequest) -> Given, time: Duration, why: &str) {
    let (_server, _manager, connection) = with_bad_call(bad).await;
    let (failed, beside) =
        tokio::join!(call(&connection, "bad", time), call(&connection, "beside", LONG));
    let error: Error = failed.unwrap_err();
    assert!(error.message.contains(why), "{}", error.message);
    assert!(!error.message.contains("moonlight"));
    assert_eq!(beside.unwrap(), "beside");
    assert_eq!(call(&connection, "after", LONG).await.unwrap(), "after");
}

#[tokio::test]
async fn endless_stream_fails_only_its_call() {
    let endless = |_: &ReceivedRequest| Given::Endless(": still here\n\n".to_owned());
    check_bad(endless, SHORT, "did not answer within 0.2 s").await;
}

#[tokio::test]
async fn notification_flood_during_a_call_fails_only_that_call() {
    let flood = |_: &ReceivedRequest| {
        let params = json!({ "progressToken": 99, "progress": 1 });
        let note =
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        Given::Endless(event(&note))
    };
    check_bad(flood, SHORT, "did not answer within 0.2 s").await;
}

#[tokio::test]
async fn call_without_an_answer_fails_alone() {
    check_bad(|_| Given::Silence, SHORT, "did not answer within 0.2 s").await;
}

#[tokio::test]
async fn endless_streams_do_not_block_later_calls() {
    for era in [ProtocolEra::Modern, ProtocolEra::Legacy] {
        let called = |seen: &ReceivedRequest| match asked_for(seen).as_str() {
            "bad" => Given::Held(Vec::new()),
            _ => Given::json(200, &echoed_request(seen)),
        };
        let server = FixtureServer::start(move |seen| match era {
            ProtocolEra::Modern => modern(seen, called),
            ProtocolEra::Legacy | ProtocolEra::Unknown => no_stream(seen, called),
        })
        .await;
        let (_manager, connection) = connect_client(&server).await;
        let calls = (0..2 * REQUESTS_MAX).map(|_| call(&connection, "bad", SHORT));
        assert!(join_all(calls).await.iter().all(Result::is_err));
        assert_eq!(call(&connection, "after", LONG).await.unwrap(), "after");
    }
}

#[tokio::test]
async fn notification_flood_outside_of_calls_fails_no_call() {
    let server = FixtureServer::start(|seen| {
        legacy(seen, |seen| match seen.method.as_str() {
            "GET" => {
                let note =
                    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                Given::Endless(event(&note))
            }
            _ => Given::json(200, &echoed_request(seen)),
        })
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    for _ in 0..10 {
        assert_eq!(call(&connection, "a", LONG).await.unwrap(), "a");
    }
}

#[tokio::test]
async fn overlong_event_fails_only_its_call() {
    let large =
        |_: &ReceivedRequest| Given::Endless("data: ".to_owned() + &"x".repeat(1024 * 1024));
    let (_server, _manager, connection) = with_bad_call(large).await;
    let error = call(&connection, "bad", LONG).await.unwrap_err();
    assert!(error.message.contains("an event that exceeds the message limit"), "{error}");
    assert_eq!(call(&connection, "after", LONG).await.unwrap(), "after");
}

#[tokio::test]
async fn overlong_body_fails_only_its_call() {
    let large = |seen: &ReceivedRequest| {
        let text = "x".repeat(17 * 1024 * 1024);
        Given::json(200, &answer(&seen.message()["id"], text_result(&text)))
    };
    check_bad(large, LONG, "more than 16777216 bytes").await;
}

#[tokio::test]
async fn html_pages_and_broken_answers_fail_only_their_call() {
    let page = |_: &ReceivedRequest| {
        let kind = ("content-type", "text/html".to_owned());
        Given::Whole(200, vec![kind], "<p>\u{1b}[31mLog in</p>".to_owned())
    };
    check_bad(page, LONG, "with `text/html` instead of JSON: [31mLog in").await;
    check_bad(|_| Given::json(200, &json!({ "moon": 1 })), LONG, "not an MCP message").await;
    check_bad(|_| Given::status(500), LONG, "500").await;
    let refused =
        |_: &ReceivedRequest| Given::Whole(403, Vec::new(), "go\u{1b}[31m away".to_owned());
    check_bad(refused, LONG, "status 403: go [31m away").await;
}

#[tokio::test]
async fn response_with_a_foreign_id_is_not_accepted() {
    let foreign = |_: &ReceivedRequest| {
        Given::Held(vec![event(&answer(&json!(4711), text_result("foreign")))])
    };
    check_bad(foreign, LONG, "the server's answer ended before it was complete").await;
}

#[tokio::test]
async fn redirect_does_not_send_the_key_to_another_server() {
    let elsewhere = FixtureServer::start(|seen| Given::json(200, &echoed_request(seen))).await;
    let place = format!("{}/mcp", elsewhere.url);
    let server = FixtureServer::start(move |seen| {
        modern(seen, |_| Given::status(307).header("location", &place))
    })
    .await;
    let (_manager, connection) = connect_client(&server).await;
    let error = call(&connection, "a", LONG).await.unwrap_err();
    assert!(error.message.contains("status 307"), "{}", error.message);
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_thousand_calls_at_once_get_each_its_own_answer() {
    let server =
        FixtureServer::start(|seen| modern(seen, |seen| Given::json(200, &echoed_request(seen))))
            .await;
    let (_manager, connection) = connect_client(&server).await;
    let texts: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let answers = join_all(texts.iter().map(|text| call(&connection, text, LONG))).await;
    for (text, answer) in texts.iter().zip(answers) {
        assert_eq!(*text, answer.unwrap());
    }
}
