//! Tests how much of the requests of a long conversation vendors read from their prefix caches,
//! computed from the requests with the rules of Anthropic and OpenAI.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Value, json};

use crate::support::cli::house_with_cli;
use crate::support::server::{Answer, BodyStep, ReceivedRequest, Server};
use crate::support::{House, fixtures, library_name, openai, skip};

const TURNS: usize = 50;

/// The smallest prefix that both vendors cache, in tokens.
const CACHED_TOKENS_MIN: usize = 1_024;

/// OpenAI caches whole units of this many tokens.
const OPENAI_UNIT_TOKENS: usize = 128;

/// Anthropic looks for a stored prefix at this many blocks before a breakpoint.
const ANTHROPIC_LOOKBACK_BLOCKS: usize = 20;

/// An MCP server with one tool, which ends if it is asked to.
const MCP_SERVER: &str = r#"
import json, sys
TOOL = {"name": "phase", "description": "The phase of the moon.", "inputSchema": {
    "type": "object", "properties": {"ends": {"type": "boolean"}}}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params") or {}
    if method == "initialize":
        answer = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "moon", "version": "1"}}
    elif method == "tools/list":
        answer = {"tools": [TOOL]}
    elif method == "tools/call" and (params.get("arguments") or {}).get("ends"):
        sys.exit(1)
    elif method == "tools/call":
        answer = {"content": [{"type": "text", "text": "gibbous"}]}
    else:
        answer = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"#;

/// A piece of a request in the order in which vendors read it, and whether a breakpoint follows.
struct RequestBlock {
    text: String,
    is_breakpoint: bool,
}

fn request_blocks(asked: &ReceivedRequest) -> Vec<RequestBlock> {
    let request = asked.json();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut values: Vec<Value> = list(&request["tools"]);
    match &request["system"] {
        Value::Array(parts) => values.extend(parts.iter().cloned()),
        Value::Null => {}
        text => values.push(text.clone()),
    }
    for message in list(&request["messages"]) {
        match &message["content"] {
            Value::Array(parts) => {
                for part in parts {
                    let mut block = json!({ "role": message["role"], "part": part });
                    let mark =
                        block["part"].as_object_mut().and_then(|it| it.remove("cache_control"));
                    block
                        .as_object_mut()
                        .unwrap()
                        .extend(mark.map(|it| ("cache_control".into(), it)));
                    values.push(block);
                }
            }
            _ => values.push(message),
        }
    }
    let block = |mut value: Value| {
        let mark = value.as_object_mut().and_then(|it| it.remove("cache_control"));
        RequestBlock { text: value.to_string(), is_breakpoint: mark.is_some() }
    };
    values.into_iter().map(block).collect()
}

fn estimate_tokens(text: usize) -> usize {
    text / 4
}

/// Returns the tokens of each request, and those that OpenAI reads from its cache.
fn openai_cached_tokens(requests: &[ReceivedRequest]) -> Vec<(usize, usize)> {
    let texts: Vec<String> = requests
        .iter()
        .map(|asked| request_blocks(asked).into_iter().map(|block| block.text).collect())
        .collect();
    let shared =
        |one: &str, other: &str| one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let of_request = |at: usize| {
        let longest = texts[..at].iter().map(|earlier| shared(earlier, &texts[at])).max();
        let cached =
            estimate_tokens(longest.unwrap_or_default()) / OPENAI_UNIT_TOKENS * OPENAI_UNIT_TOKENS;
        (estimate_tokens(texts[at].len()), if cached < CACHED_TOKENS_MIN { 0 } else { cached })
    };
    (0..texts.len()).map(of_request).collect()
}

/// Returns the tokens of each request, and those that Anthropic reads from its cache.
fn anthropic_cached_tokens(requests: &[ReceivedRequest]) -> Vec<(usize, usize)> {
    let mut stored = HashSet::new();
    let mut counted = Vec::new();
    for asked in requests {
        let blocks = request_blocks(asked);
        let (mut hasher, mut bytes) = (DefaultHasher::new(), 0);
        let mut prefixes = Vec::new();
        for block in &blocks {
            block.text.hash(&mut hasher);
            bytes += block.text.len();
            prefixes.push((hasher.finish(), estimate_tokens(bytes)));
        }
        let breakpoints: Vec<usize> =
            (0..blocks.len()).filter(|at| blocks[*at].is_breakpoint).collect();
        assert!(breakpoints.len() <= 4, "Anthropic takes four breakpoints");
        let found =
            breakpoints.iter().flat_map(|at| at.saturating_sub(ANTHROPIC_LOOKBACK_BLOCKS)..=*at);
        let found = found.filter(|at| stored.contains(&prefixes[*at].0));
        counted.push((
            estimate_tokens(bytes),
            found.map(|at| prefixes[at].1).max().unwrap_or_default(),
        ));
        let long = |at: &usize| prefixes[*at].1 >= CACHED_TOKENS_MIN;
        stored.extend(breakpoints.into_iter().filter(long).map(|at| prefixes[at].0));
    }
    counted
}

fn set_up_house(library: &str) -> Option<House> {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        skip("python3 is missing, in which the MCP server is written");
        return None;
    }
    let house = house_with_cli()?;
    crate::support::ship_provider(&house, library);
    let plugins = fixtures::test_house()?.join("plugins");
    for library in ["gc_truncate", "tool_recall", "tool_mcp"] {
        house.ship(&plugins.join(library_name(library)));
    }
    let script = house.write("home/moon.py", MCP_SERVER);
    let entry = json!({ "command": "python3", "args": ["-B", script] });
    house.write("home/.mcp.json", &json!({ "mcpServers": { "moon": entry } }).to_string());
    Some(house)
}

/// The lines of the chat: the server joins after 10 turns, ends in turn 20, comes back before turn
/// 30, and before turn 45 a gc runs.
fn chat_lines() -> String {
    let mut lines = "/mcp disconnect moon\n".to_owned();
    for turn in 1..=TURNS {
        lines += match turn {
            11 | 30 => "/mcp connect moon\n",
            45 => "/gc\n",
            _ => "",
        };
        lines += &format!("In turn {turn}, look at {}\n", "the numbers again, ".repeat(20));
    }
    lines
}

/// Returns the call that the model makes in a turn.
fn call_of_turn(turn: usize) -> (&'static str, Value) {
    match turn {
        15 | 35 | 40 => ("mcp__moon__phase", json!({})),
        20 => ("mcp__moon__phase", json!({ "ends": true })),
        _ => ("cli_based_tool", json!({ "command": format!("seq {turn} {}", turn + 80) })),
    }
}

/// Returns the number of the turn that a request belongs to, and whether its call has run.
fn turn_position(asked: &ReceivedRequest) -> (usize, bool) {
    let request = asked.json();
    let messages = request["messages"].as_array().unwrap();
    let text =
        messages.iter().rev().map(Value::to_string).find(|it| it.contains("In turn ")).unwrap();
    let number: String = text[text.find("In turn ").unwrap() + 8..]
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let last = messages.last().unwrap().to_string();
    (number.parse().unwrap(), !last.contains("In turn "))
}

/// Checks that more than nine tenths of all tokens are read from the cache, outside of collections.
#[track_caller]
fn check_cache_rate(requests: &[ReceivedRequest], counted: &[(usize, usize)]) {
    assert_eq!(requests.len(), 2 * TURNS);
    // Each turn has a request with its prompt and one with the result of its call.
    let phases = |turn: usize| {
        let blocks = request_blocks(&requests[2 * turn - 1]);
        blocks.iter().filter(|block| block.text.contains("gibbous")).count()
    };
    let found = [14, 15, 20, 35, 40].map(phases);
    assert_eq!(found, [0, 1, 1, 2, 3], "the server joins, ends in turn 20 and comes back");
    assert!(
        request_blocks(&requests[89]).iter().any(|it| it.text.contains("recall")),
        "a gc has run"
    );
    let is_outside = |at: &usize| turn_position(&requests[*at]) != (45, false);
    let outside: Vec<(usize, usize)> =
        (0..requests.len()).filter(is_outside).map(|at| counted[at]).collect();
    let all: usize = outside.iter().map(|(all, _)| all).sum();
    let cached: usize = outside.iter().map(|(_, cached)| cached).sum();
    assert!(cached * 10 > all * 9, "{cached} of {all} tokens are cached: {outside:?}");
}

/// Returns an answer in Anthropic's form.
fn anthropic_answer(start: Value, delta: Value, reason: &str) -> Answer {
    let usage = json!({ "input_tokens": 10, "output_tokens": 5 });
    let events = [
        json!({ "type": "message_start", "message": { "id": "m", "type": "message", "role": "assistant",
            "model": "claude-opus-5-5", "content": [], "stop_reason": null, "usage": usage } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": start }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage }),
        json!({ "type": "message_stop" }),
    ];
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    Answer::stream(vec![BodyStep::Bytes(events.iter().map(event).collect::<String>().into_bytes())])
}

#[test]
fn openai_reads_nine_tenths_of_a_long_conversation_from_its_cache() {
    let Some(house) = set_up_house("provider_openai") else { return };
    house.configure_more("[models.\"openai/test\"]\ncontext_limit = 200000\n");
    let server = Server::start_with(|asked| match turn_position(asked) {
        (turn, false) => Answer::calls(&[call_of_turn(turn)]),
        (turn, true) => Answer::text(&[&format!("I have seen the numbers of turn {turn}.")]),
    });
    let words = ["chat", "--yes", "--model", "openai/test"];
    openai::openai_command(&house, &server, &words).input(chat_lines()).with_long_deadline().run();
    let requests = server.requests();
    check_cache_rate(&requests, &openai_cached_tokens(&requests));
    house.assert_no_processes();
}

#[test]
fn anthropic_reads_nine_tenths_of_a_long_conversation_from_its_cache() {
    let Some(house) = set_up_house("provider_anthropic") else { return };
    house.configure_more("[models.\"anthropic/claude-opus-5-5\"]\ncontext_limit = 200000\n");
    let server = Server::start_with(|asked| match turn_position(asked) {
        (turn, false) => {
            let (name, arguments) = call_of_turn(turn);
            let id = format!("toolu_{turn}");
            anthropic_answer(
                json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
                json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
                "tool_use",
            )
        }
        (turn, true) => anthropic_answer(
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": format!("I have seen turn {turn}.") }),
            "end_turn",
        ),
    });
    let words = ["chat", "--yes", "--model", "anthropic/claude-opus-5-5"];
    house
        .command(&words)
        .variable("ANTHROPIC_BASE_URL", server.root_url())
        .variable("ANTHROPIC_API_KEY", openai::SECRET)
        .input(chat_lines())
        .with_long_deadline()
        .run();
    let requests = server.requests();
    check_cache_rate(&requests, &anthropic_cached_tokens(&requests));
    house.assert_no_processes();
}
