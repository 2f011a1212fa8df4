//! Runs against a server that speaks OpenAI's chat completions: what is sent, and what is made of
//! answers.

use serde_json::{Value, json};

use crate::house;
use crate::support::server::{Answer, Server, Step, choices, end};
use crate::support::{Command, House, fixture};
use crate::vendors;

/// A key, long enough to be one.
pub const SECRET: &str = "sk-secret-0123456789-abcdef";

/// The words of a run.
pub const RUN: [&str; 4] = ["run", "--model", "openai/test", "hello"];

/// Ships the plugin, and lets nothing wait for long.
pub fn furnish(house: &House) {
    vendors::furnish(house, "provider_openai");
}

/// Begins a command line that is led to a server.
pub fn at(house: &House, server: &Server, words: &[&str]) -> Command {
    house
        .command(words)
        .variable("OPENAI_BASE_URL", server.base_url())
        .variable("OPENAI_API_KEY", SECRET)
}

/// Fails where the key stands in any file that a run may have written.
#[track_caller]
pub fn no_file_holds_the_key(house: &House) {
    fn visit(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                visit(&entry.path(), found);
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
                    found.push(entry.path().display().to_string());
                }
            }
        }
    }
    let mut found = Vec::new();
    // Everything but the program and its plugins.
    for folder in ["home", "workspace", "run"] {
        visit(&house.path().join(folder), &mut found);
    }
    assert!(found.is_empty(), "the key stands in {found:?}");
}

#[test]
fn a_tool_call_and_an_answer() {
    let house = house!();
    furnish(&house);
    let arguments = json!({ "aspect": "os" });
    let server = Server::start([
        Answer::calls(&[("get_environment", arguments.clone())]),
        Answer::text(&["It is ", "Linux."]),
    ]);
    let output = at(&house, &server, &RUN).run().code(0);
    assert_eq!(output.stdout, "It is Linux.\n");
    assert!(output.stderr.contains("get_environment"), "{output}");
    let [first, second] = server.asked().try_into().unwrap();
    for asked in [&first, &second] {
        assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/v1/chat/completions"));
        assert_eq!(asked.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
        assert_eq!(asked.header("content-type"), Some("application/json"));
    }
    assert_eq!(first.json()["tools"][0]["function"]["name"], "get_environment");
    let messages = second.json()["messages"].clone();
    let [.., user, model, tool] = messages.as_array().unwrap().as_slice() else {
        panic!("{messages}");
    };
    assert_eq!(user, &json!({ "role": "user", "content": "hello" }));
    assert_eq!(model["tool_calls"][0]["function"]["arguments"], arguments.to_string());
    assert_eq!(model["tool_calls"][0]["id"], tool["tool_call_id"]);
    let result: Value = serde_json::from_str(tool["content"].as_str().unwrap()).unwrap();
    assert_eq!(result["type"], "linux");
    let shared = first.body.strip_suffix(b"]}").unwrap();
    assert!(second.body.starts_with(shared), "the second request begins as the first ends");
    assert!(!output.to_string().contains(SECRET), "{output}");
    no_file_holds_the_key(&house);
}

/// Where the plugin runs: inside jaato, and in a worker.
const PLACES: [&str; 2] = ["", "[plugins]\nisolated = [\"provider-openai\"]\n"];

#[test]
fn the_answer_is_streamed_however_it_is_torn() {
    PLACES.into_iter().for_each(streams_an_answer);
}

#[track_caller]
fn streams_an_answer(place: &str) {
    let house = house!();
    furnish(&house);
    house.configure_more(place);
    let answer = Answer::text(&["Grü", "ße, ", "漢字"]);
    let server = Server::start([answer.clone(), answer.torn()]);
    for form in ["whole", "torn"] {
        let words = ["run", "--model", "openai/test", "--output", "json", "hello"];
        let lines = at(&house, &server, &words).run().code(0).json_lines();
        let pieces: Vec<_> = lines.iter().filter(|line| line["event"] == "text_delta").collect();
        let texts: Vec<_> = pieces.iter().map(|line| line["text"].as_str().unwrap()).collect();
        assert_eq!(texts, ["Grü", "ße, ", "漢字"], "{form}");
        let usage = lines.iter().find(|line| line["event"] == "usage").unwrap();
        assert_eq!((&usage["prompt_tokens"], &usage["output_tokens"]), (&json!(20), &json!(5)));
    }
}

#[test]
fn a_piece_is_shown_before_the_next_has_come() {
    PLACES.into_iter().for_each(shows_the_first_piece);
}

#[track_caller]
fn shows_the_first_piece(place: &str) {
    let house = house!();
    furnish(&house);
    house.configure_more(place);
    let first = choices(&[json!({ "delta": { "content": "so far" } })]);
    let server = Server::start([Answer::stream(vec![Step::Bytes(first), Step::Hang])]);
    let running = at(&house, &server, &RUN).no_input().start();
    running.wait_for_text("so far");
    running.signal("INT");
    running.finish().code(130);
    server.wait_until_gone();
}

#[test]
fn an_answer_that_does_not_come_as_a_stream_is_one_too() {
    let house = house!();
    furnish(&house);
    let body =
        json!({ "choices": [{ "message": { "content": "whole" }, "finish_reason": "stop" }] });
    let answer = Answer::status(200).header("content-type", "application/json");
    let server = Server::start([answer.body(&body.to_string())]);
    assert_eq!(at(&house, &server, &RUN).run().code(0).stdout, "whole\n");
}

#[test]
fn an_end_without_its_mark_is_one() {
    let house = house!();
    furnish(&house);
    let said = choices(&[json!({ "delta": { "content": "all" }, "finish_reason": "stop" })]);
    // Ended as it should be, and cut where all was said.
    for last in [Vec::new(), vec![Step::Cut]] {
        let steps = [vec![Step::Bytes(said.clone())], last].concat();
        let server = Server::start([Answer::stream(steps)]);
        assert_eq!(at(&house, &server, &RUN).run().code(0).stdout, "all\n");
    }
}

#[test]
fn arguments_that_are_no_json_go_back_to_the_model() {
    let house = house!();
    furnish(&house);
    let function = json!({ "name": "get_environment", "arguments": "{\"aspect\": \"o" });
    let call =
        json!({ "delta": { "tool_calls": [{ "function": function }] }, "finish_reason": "stop" });
    let server = Server::start([
        Answer::stream(vec![Step::Bytes(choices(&[call])), Step::Bytes(end())]),
        Answer::text(&["sorry"]),
    ]);
    assert_eq!(at(&house, &server, &RUN).run().code(0).stdout, "sorry\n");
    let messages = server.asked()[1].json()["messages"].clone();
    let [.., model, tool] = messages.as_array().unwrap().as_slice() else { panic!("{messages}") };
    let arguments = &model["tool_calls"][0]["function"]["arguments"];
    let arguments: Value = serde_json::from_str(arguments.as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({ "invalid_arguments": "{\"aspect\": \"o" }));
    assert_eq!(model["tool_calls"][0]["id"], tool["tool_call_id"]);
    let said = tool["content"].as_str().unwrap();
    assert!(said.contains("must be a JSON object, not the string"), "{said}");
}

#[test]
fn reasoning_is_told_and_goes_back_beside_the_calls() {
    let house = house!();
    furnish(&house);
    let function = json!({ "name": "get_environment", "arguments": "{}" });
    let events = [
        json!({ "delta": { "reasoning_content": "I should " } }),
        json!({ "delta": { "reasoning_content": "look." } }),
        json!({ "delta": { "tool_calls": [{ "index": 0, "id": "a", "function": function }] } }),
        json!({ "delta": {}, "finish_reason": "tool_calls" }),
    ];
    let thinking = vec![Step::Bytes(choices(&events)), Step::Bytes(end())];
    let server = Server::start([Answer::stream(thinking), Answer::text(&["done"])]);
    let words = ["run", "--model", "openai/test", "--output", "json", "hello"];
    let lines = at(&house, &server, &words).run().code(0).json_lines();
    let thoughts = lines.iter().filter(|line| line["event"] == "thought_delta");
    let thoughts: String = thoughts.map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(thoughts, "I should look.");
    let messages = server.asked()[1].json()["messages"].clone();
    let [.., model, _tool] = messages.as_array().unwrap().as_slice() else { panic!("{messages}") };
    assert_eq!(model["reasoning_content"], "I should look.", "{model}");
}

#[test]
fn several_calls_at_once_are_all_answered() {
    let house = house!();
    furnish(&house);
    let call = |aspect: &str| ("get_environment", json!({ "aspect": aspect }));
    let server =
        Server::start([Answer::calls(&[call("os"), call("shell")]), Answer::text(&["done"])]);
    at(&house, &server, &RUN).run().code(0);
    let messages = server.asked()[1].json()["messages"].clone();
    let [.., model, first, second] = messages.as_array().unwrap().as_slice() else {
        panic!("{messages}");
    };
    for (index, tool) in [first, second].into_iter().enumerate() {
        assert_eq!(tool["role"], "tool");
        assert_eq!(model["tool_calls"][index]["id"], tool["tool_call_id"]);
    }
}

#[test]
fn models_are_asked_of_the_server() {
    let house = house!();
    furnish(&house);
    let server = Server::start([]);
    let output = at(&house, &server, &["model", "list"]).run().silent();
    assert!(output.stdout.contains("openai/test"), "{output}");
    let [asked] = server.looked().try_into().unwrap();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("GET", "/v1/models"));
    server.set_models(Answer::error(500, "no memory"));
    let output = at(&house, &server, &["model", "list"]).run().code(0);
    let line = "/v1/models` answered 500 (internal server error): no memory";
    assert!(
        output.stderr.contains("provider `openai`: ") && output.stderr.contains(line),
        "{output}"
    );
}

/// What a server has read once it need not read again: nothing that was sent is ever sent
/// otherwise.
#[test]
fn each_request_of_a_conversation_begins_with_the_one_before() {
    let house = house!();
    furnish(&house);
    // Its tool stands in no request as long as nobody looks it up.
    house.ship(&fixture("echo"));
    let call = |aspect: &str| ("get_environment", json!({ "aspect": aspect }));
    let server = Server::start([
        Answer::calls(&[call("os")]),
        Answer::text(&["Linux, ", "Grüße"]),
        Answer::text(&["nothing to look up"]),
        Answer::calls(&[call("shell"), call("cwd"), ("no_such_tool", json!({ "a": 1.0 }))]),
        Answer::calls(&[("get_environment", json!({ "aspect": "moon" }))]),
        Answer::text(&["\"done\"\n"]),
    ]);
    let words = ["chat", "--model", "openai/test"];
    let input = "which system?\nthanks ]} 漢字\nand the shell?\n";
    at(&house, &server, &words).input(input).run().code(0);
    let asked = server.asked();
    assert_eq!(asked.len(), 6, "one a step");
    for (number, pair) in asked.windows(2).enumerate() {
        let [before, after] = pair else { unreachable!() };
        let shared = before.body.strip_suffix(b"]}").expect("the messages stand last");
        let same = shared.iter().zip(&after.body).take_while(|(a, b)| a == b).count();
        let after = String::from_utf8_lossy(&after.body[same..]);
        assert_eq!(same, shared.len(), "request {number} is left at: {after}");
        assert!(after.starts_with(','), "only messages are added: {after}");
    }
    let last = asked.last().unwrap().json();
    let roles: Vec<_> = last["messages"].as_array().unwrap().iter().map(|it| &it["role"]).collect();
    assert_eq!(
        roles,
        [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
            "assistant",
            "user",
            "assistant",
            "tool",
            "tool",
            "tool",
            "assistant",
            "tool",
        ]
    );
}

#[test]
fn steps_share_one_connection_though_the_body_ends_after_the_mark_of_the_end() {
    PLACES.into_iter().for_each(shares_a_connection);
}

#[track_caller]
fn shares_a_connection(place: &str) {
    let house = house!();
    furnish(&house);
    house.configure_more(place);
    let call = || Answer::calls(&[("get_environment", json!({ "aspect": "os" }))]).kept();
    let server = Server::start([call(), call(), Answer::text(&["done"]).kept()]);
    assert_eq!(at(&house, &server, &RUN).run().code(0).stdout, "done\n");
    assert_eq!((server.asked().len(), server.connections()), (3, 1), "{place}");
}

#[test]
fn reasoning_in_tags_is_told_as_such_and_stays_out_of_the_answer() {
    let house = house!();
    furnish(&house);
    let pieces = ["<think>\nI loo", "k.</th", "ink>\n\nIt is ", "Linux."];
    let server = Server::start([Answer::text(&pieces), Answer::text(&["You are welcome."])]);
    let input = "which system?\nthanks\n";
    let output = at(&house, &server, &["chat", "--model", "openai/test"]).input(input).run();
    let output = output.code(0);
    assert!(output.stdout.contains("It is Linux."), "{output}");
    assert!(!output.stdout.contains("think>") && !output.stdout.contains("I look."), "{output}");
    let second = server.asked()[1].json();
    let messages = second["messages"].as_array().unwrap();
    let answer = messages.iter().find(|message| message["role"] == "assistant").unwrap();
    assert_eq!(answer, &json!({ "role": "assistant", "content": "It is Linux." }));
}

#[test]
fn calls_of_one_list_without_numbers_and_arguments_are_all_run() {
    let house = house!();
    furnish(&house);
    let call = |arguments: Value| json!({ "function": { "name": "get_environment", "arguments": arguments } });
    let calls = json!({ "delta": { "tool_calls": [call(json!("null")), call(json!(""))] } });
    let stop = json!({ "delta": {}, "finish_reason": "tool_calls" });
    let steps = vec![Step::Bytes(choices(&[calls, stop])), Step::Bytes(end())];
    let server = Server::start([Answer::stream(steps), Answer::text(&["done"])]);
    at(&house, &server, &RUN).run().code(0);
    let messages = server.asked()[1].json()["messages"].clone();
    let [.., model, first, second] = messages.as_array().unwrap().as_slice() else {
        panic!("{messages}");
    };
    for (index, tool) in [first, second].into_iter().enumerate() {
        assert_eq!(model["tool_calls"][index]["function"]["arguments"], "{}");
        let result: Value = serde_json::from_str(tool["content"].as_str().unwrap()).unwrap();
        assert_eq!(result["os"]["type"], "linux", "{tool}");
    }
}

#[test]
fn chunks_may_be_numbered_like_choices_and_cut_characters_in_half() {
    let house = house!();
    furnish(&house);
    let events = [
        r#"data: {"choices":[{"index":1,"delta":{"content":"a \ud83e"}}]}"#,
        r#"data: {"choices":[{"index":2,"delta":{"content":"\udd80"},"finish_reason":"stop"}]}"#,
    ];
    // The last event has no blank line.
    let server = Server::start([Answer::stream(vec![Step::Bytes(events.join("\n\n").into())])]);
    assert_eq!(at(&house, &server, &RUN).run().code(0).stdout, "a 🦀\n");
}

#[test]
fn a_list_of_models_may_stand_alone() {
    let house = house!();
    furnish(&house);
    let server = Server::start([]);
    server.set_models(Answer::status(200).body(r#"[{"id":"moon"},{"id":"earth"}]"#));
    let output = at(&house, &server, &["model", "list"]).run().silent();
    assert!(output.stdout.contains("openai/earth") && output.stdout.contains("openai/moon"));
}
