//! Tests MCP servers over HTTP with the host's own client: their tools, and a login whose token the
//! next process finds.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::command::Command;
use crate::support::server::{Answer, ReceivedRequest, Server};
use crate::support::{House, fixtures, library_name};
use crate::terminal::run_shell_on_terminal;

/// Returns an installation with the plugin and one server, `moon`.
fn house_with_server(entry: &Value) -> Option<House> {
    let house = House::new()?;
    house.ship(&fixtures::test_house()?.join("plugins").join(library_name("tool_mcp")));
    house.write("home/.mcp.json", &json!({ "mcpServers": { "moon": entry } }).to_string());
    Some(house)
}

fn json_answer(status: u16, body: &Value) -> Answer {
    Answer::status(status).body(&body.to_string()).header("content-type", "application/json")
}

/// Answers like a server of the older protocol version, with a session and one tool.
fn mcp_answer(asked: &ReceivedRequest) -> Answer {
    let message = match asked.method.as_str() {
        "POST" => asked.json(),
        "DELETE" => return Answer::status(200),
        _ => return Answer::status(405),
    };
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "moon", "version": "1" },
        }),
        Some("tools/list") => {
            let tool = json!({ "name": "echo", "inputSchema": { "type": "object" } });
            json!({ "tools": [tool] })
        }
        Some("tools/call") => {
            let text = message["params"]["arguments"]["text"].clone();
            json!({ "content": [{ "type": "text", "text": text }] })
        }
        Some("server/discover") => return Answer::status(400),
        _ => return Answer::status(202),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    json_answer(200, &answer).header("mcp-session-id", "s1")
}

fn call_echo(house: &House, text: &str) -> Value {
    let arguments = json!({ "text": text }).to_string();
    let answer = house.run(&["call", "mcp__moon__echo", &arguments]).code(0).stdout;
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn http_server_gets_its_headers_offers_its_tools_and_its_session_is_deleted() {
    let server = Server::start_with(mcp_answer);
    let url = format!("{}/mcp", server.root_url());
    let headers = json!({ "X-Key": "${MOON_KEY}" });
    let entry = json!({ "type": "http", "url": url, "headers": headers });
    let Some(house) = house_with_server(&entry) else { return };
    let connect = Command::new(&house, &["mcp", "connect", "moon"]);
    let connected = connect.variable("MOON_KEY", "moonlight").run().code(0);
    assert!(connected.stdout.contains("(1 tools available)"), "{connected}");
    let asked = server.other_requests();
    assert!(asked.iter().all(|asked| asked.header("x-key") == Some("moonlight")));
    assert!(asked.iter().any(|asked| asked.method == "DELETE"), "{asked:?}");
    let answer = call_echo(&house, "hello");
    assert_eq!(answer["result"]["content"], json!(["hello"]));
    let shown = house.run(&["mcp", "show", "moon"]).code(0);
    assert!(shown.stdout.contains("Headers: X-Key"), "{shown}");
}

#[test]
fn unusual_http_errors_are_reported_at_once_and_results_appear_once() {
    let server = Server::start_with(|asked| {
        let call = asked.method == "POST" && asked.json()["method"] == "tools/call";
        let text =
            if call { asked.json()["params"]["arguments"]["text"].clone() } else { json!(0) };
        let error = |code: i64, message: &str, data: Value| {
            let error = json!({ "code": code, "message": message, "data": data });
            json!({ "jsonrpc": "2.0", "id": null, "error": error })
        };
        match text.as_str() {
            Some("page") => {
                let page = json!({ "url": "https://a.example/x?state=1", "message": "Log in." });
                json_answer(200, &error(-32042, "log in first", json!({ "elicitations": [page] })))
            }
            Some("data") => json_answer(400, &error(-32602, "bad", json!({ "field": "a" }))),
            Some("busy") => Answer::status(429).body("later").header("retry-after", "7"),
            Some("once") => {
                let result = json!({
                    "content": [{ "type": "text", "text": "far" }],
                    "structuredContent": { "result": "far" },
                });
                json_answer(200, &json!({ "jsonrpc": "2.0", "id": null, "result": result }))
            }
            _ => mcp_answer(asked),
        }
    });
    let entry = json!({ "url": format!("{}/mcp", server.root_url()) });
    let Some(house) = house_with_server(&entry) else { return };
    house.run(&["mcp", "connect", "moon"]).code(0);
    let failed = |text: &str| {
        let arguments = json!({ "text": text }).to_string();
        house.run(&["call", "mcp__moon__echo", &arguments]).stderr
    };
    let page = failed("page");
    assert!(page.contains("call again: https://a.example/x?state=1"), "{page}");
    assert!(failed("data").contains("bad ({\"field\":\"a\"})"));
    assert!(failed("busy").contains("status 429: later; try again after 7 s"));
    let result = json!({ "tool": "echo", "isError": false, "content": ["far"] });
    assert_eq!(call_echo(&house, "once"), json!({ "result": result }));
}

#[test]
fn error_for_a_server_with_the_old_sse_transport_names_the_transport() {
    let server = Server::start_with(|asked| match asked.method.as_str() {
        "GET" => Answer::status(200)
            .header("content-type", "text/event-stream")
            .body("event: endpoint\ndata: /messages?id=1\n\n"),
        _ => Answer::status(404).body("<html><pre>Cannot POST /sse</pre></html>"),
    });
    let Some(house) = house_with_server(&json!({ "url": format!("{}/sse", server.root_url()) }))
    else {
        return;
    };
    let refused = house.run(&["mcp", "connect", "moon"]);
    assert!(refused.stderr.contains("old HTTP+SSE transport (2024-11-05)"), "{refused}");
}

/// Like [`mcp_answer`], for clients with the token. Also acts as the authorization server that
/// issues it.
fn guarded_answer(asked: &ReceivedRequest) -> Answer {
    let base = format!("http://{}", asked.header("host").unwrap());
    let at = |path: &str| format!("{base}/{path}");
    match asked.path.split('?').next().unwrap() {
        "/mcp" if asked.header("authorization") == Some("Bearer moonlight-1") => mcp_answer(asked),
        "/mcp" => {
            let place = at(".well-known/oauth-protected-resource/mcp");
            let header = format!("Bearer resource_metadata=\"{place}\"");
            Answer::status(401).header("www-authenticate", &header)
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            json_answer(200, &json!({ "resource": at("mcp"), "authorization_servers": [base] }))
        }
        "/.well-known/oauth-authorization-server" => json_answer(
            200,
            &json!({
                "issuer": base, "authorization_endpoint": at("authorize"),
                "token_endpoint": at("token"), "registration_endpoint": at("register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            }),
        ),
        "/register" => {
            let mut client = asked.json();
            client["client_id"] = "made".into();
            json_answer(201, &client)
        }
        "/token" => json_answer(
            200,
            &json!({ "access_token": "moonlight-1", "token_type": "Bearer", "expires_in": 3600 }),
        ),
        _ => Answer::status(404),
    }
}

/// Parses the parameters of a URL.
fn url_parameters(url: &str) -> BTreeMap<String, String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(key, value)| (key.to_owned(), value.replace("%3A", ":").replace("%2F", "/")))
        .collect()
}

/// Opens a URL like a browser.
pub fn open_url(url: &str) -> String {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn login_link_is_printed_as_one_copyable_line() {
    let server = Server::start_with(guarded_answer);
    let entry = json!({ "type": "http", "url": format!("{}/mcp", server.root_url()) });
    let Some(house) = house_with_server(&entry) else { return };
    let binary = house.binary();
    let line = format!("stty -echo cols 40; exec '{}' mcp login moon", binary.display());
    let links = |command: Command| {
        command.variable("TERM", "xterm-256color").variable("VTE_VERSION", "7600")
    };
    let Some(mut running) = run_shell_on_terminal(&house, &line, links) else { return };
    running.wait_for_question();
    running.write(b"/decline\n");
    let shown = running.wait_with_open_input().stdout;
    let begin = "\r\n\u{1b}]8;;http://127.0.0.1:";
    let (_, rest) = shown.split_once(begin).unwrap_or_else(|| panic!("{shown}"));
    let (address, rest) = rest.split_once("\u{1b}\\").unwrap();
    assert!(address.contains("/authorize?") && address.len() > 200, "{address}");
    let same = format!("http://127.0.0.1:{address}\u{1b}]8;;\u{1b}\\\r\n");
    assert!(rest.starts_with(&same), "{rest}");
}

#[test]
fn login_token_is_reused_by_the_next_process_until_logout() {
    let server = Server::start_with(guarded_answer);
    let entry = json!({ "type": "http", "url": format!("{}/mcp", server.root_url()) });
    let Some(house) = house_with_server(&entry) else { return };
    let refused = house.run(&["mcp", "connect", "moon"]).code(6);
    assert!(refused.stderr.contains("jaato mcp login moon"), "{refused}");

    let words = ["mcp", "login", "moon", "--no-browser"];
    let login = Command::new(&house, &words).no_input().start();
    let mut said = login.wait_for_error("/authorize?");
    while !said.trim_end_matches(' ').ends_with('\n') {
        said += &login.wait_for_error("\n");
    }
    let page = said.split_whitespace().find(|word| word.contains("/authorize?")).unwrap();
    let asked = url_parameters(page);
    assert_eq!(asked["code_challenge_method"], "S256");
    let back = &asked["redirect_uri"];
    assert!(open_url(&format!("{back}?code=x&state=other")).starts_with("HTTP/1.1 404"));
    assert!(
        open_url(&format!("{back}?code=x&state={}", asked["state"])).starts_with("HTTP/1.1 200")
    );
    let done = login.finish().code(0);
    assert!(done.stdout.contains("Logged in to 'moon'. Connected to 'moon'"), "{done}");
    assert!(!format!("{done}{said}").contains("moonlight"));

    assert_eq!(call_echo(&house, "hello")["result"]["content"], json!(["hello"]));
    let out = house.run(&["mcp", "logout", "moon"]).code(0);
    assert!(out.stdout.contains("Logged out of 'moon'"), "{out}");
    house.run(&["mcp", "connect", "moon"]).code(6);
    let log = std::fs::read_to_string(house.cache_folder().join("jaato.log")).unwrap_or_default();
    assert!(!log.contains("moonlight"), "{log}");
}
