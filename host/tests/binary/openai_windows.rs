//! Tests context windows of real servers: queried, filled by long turns, and refused in unknown
//! words.

use serde_json::{Value, json};

use crate::house;
use crate::support::openai::{openai_command, ship_openai};
use crate::support::server::{Answer, BodyStep, Server, choice_events};
use crate::support::{House, fixtures, library_name};

const CHAT: [&str; 5] = ["chat", "--model", "openai/test", "--tools", "get_environment"];

/// The same, with the shipped gc.
fn ship_openai_with_gc(house: &House) {
    ship_openai(house);
    let plugins = fixtures::test_house().expect("the test house exists").join("plugins");
    house.ship(&plugins.join(library_name("gc_truncate")));
}

fn request_messages(server: &Server, number: usize) -> Vec<Value> {
    server.requests()[number].json()["messages"].as_array().unwrap().clone()
}

#[test]
fn context_window_reported_by_the_server_is_respected_and_fetched_once() {
    let house = house!(ship_openai_with_gc);
    let server = Server::start((0..14).map(|_| Answer::text_of_prompt("so", 3_900)));
    let models = r#"{"data":[{"id":"test","max_model_len":4096}]}"#;
    server.set_models(Answer::status(200).body(models));
    let lines: String = (0..12).map(|number| format!("message {number}\n")).collect();
    let output = openai_command(&house, &server, &CHAT).input(lines.as_str()).run().code(0);
    assert!(output.stderr.contains("old messages left out"), "{output}");
    assert!(!output.stderr.contains("unknown context window"), "{output}");
    // Without the gc, all 24 messages but the last would be sent.
    let last = request_messages(&server, 11);
    assert!(last.len() < 16, "{} messages", last.len());
    assert_eq!(server.other_requests().len(), 1);

    // The next conversation knows the window when it matters, and the server is not asked again.
    let output = openai_command(&house, &server, &CHAT).input("a\nb\n").run().code(0);
    assert!(output.stderr.contains("old messages left out: 2"), "{output}");
    assert_eq!((server.requests().len(), server.other_requests().len()), (14, 1));
}

#[test]
fn server_that_reports_no_context_window_works_without_errors() {
    let house = house!(ship_openai_with_gc);
    let server = Server::start((0..4).map(|_| Answer::text_of_prompt("so", 3_000)));
    let output = openai_command(&house, &server, &CHAT).input("a\nb\nc\nd\n").run().code(0);
    assert_eq!(output.stdout, "so\nso\nso\nso\n");
    assert!(!output.stderr.contains("error"), "{output}");
    let paths: Vec<String> = server.other_requests().into_iter().map(|asked| asked.path).collect();
    assert!(paths.iter().filter(|path| *path == "/v1/models").count() <= 1, "{paths:?}");
}

#[test]
fn long_turn_in_a_small_context_window_finishes() {
    let house = house!(ship_openai);
    house.configure_more("steps_max = 200\n[models.\"openai/test\"]\ncontext_limit = 6144\n");
    // Many servers do not report a request's tokens, so bytes are counted.
    let call = |number: usize| {
        let function = json!({ "name": "get_environment", "arguments": "{\"aspect\":\"os\"}" });
        let call = json!([{ "index": 0, "id": format!("call_{number}"), "function": function }]);
        let events = choice_events(&[
            json!({ "delta": { "tool_calls": call } }),
            json!({ "delta": {}, "finish_reason": "tool_calls" }),
        ]);
        Answer::stream(vec![BodyStep::Bytes(events)])
    };
    let server = Server::start((0..80).map(call).chain([Answer::text(&["done"])]));
    let words =
        ["run", "--model", "openai/test", "--tools", "get_environment", "look around for long"];
    let output = openai_command(&house, &server, &words).run().code(0);
    assert_eq!(output.stdout, "done\n");
    assert!(output.stderr.contains("oldest call"), "{output}");
    let asked = server.requests();
    assert_eq!(asked.len(), 81);
    assert!(asked.iter().all(|asked| asked.body.len() < 6_144 * 4));
    let last = request_messages(&server, 80);
    let prompt = last[1]["content"].as_str().unwrap();
    assert!(prompt.starts_with("[Left out here to save room: "), "{prompt}");
    assert!(prompt.ends_with("look around for long"), "{prompt}");
    for pair in last[2..].chunks(2) {
        assert_eq!(pair[0]["tool_calls"][0]["id"], pair[1]["tool_call_id"]);
    }
}

#[test]
fn gc_command_frees_a_full_window_when_the_refusal_is_not_recognized() {
    let house = house!(ship_openai_with_gc);
    let refusal = || Answer::error(400, "zu lang");
    let server = Server::start([
        Answer::text(&["one"]),
        Answer::text(&["two"]),
        refusal(),
        Answer::text(&["three"]),
    ]);
    let output =
        openai_command(&house, &server, &CHAT).input("a\nb\nc\n/gc\n/again\n").run().code(0);
    assert!(output.stderr.contains("old messages left out: 2"), "{output}");
    assert_eq!(request_messages(&server, 2).len() - request_messages(&server, 3).len(), 2);
}
