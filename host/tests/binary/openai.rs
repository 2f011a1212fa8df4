//! Tests OpenAI's chat completions: the requests, and the handling of answers.

use serde_json::json;

use crate::house;
use crate::support::fixture;
use crate::support::openai::{RUN, openai_command, ship_openai};
use crate::support::server::{Answer, Server};

/// A server never has to read anything twice, because the host never changes what it has sent.
#[test]
fn each_request_of_a_conversation_starts_with_the_previous_one() {
    let house = house!(ship_openai);
    // Its tool is in no request until the model looks it up.
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
    openai_command(&house, &server, &words).input(input).run().code(0);
    let asked = server.requests();
    assert_eq!(asked.len(), 6, "one request per step");
    for (number, pair) in asked.windows(2).enumerate() {
        let [before, after] = pair else { unreachable!() };
        let shared = before.body.strip_suffix(b"]}").expect("the messages come last");
        let same = shared.iter().zip(&after.body).take_while(|(a, b)| a == b).count();
        let after = String::from_utf8_lossy(&after.body[same..]);
        assert_eq!(same, shared.len(), "request {number} differs from here: {after}");
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
fn steps_share_one_connection_when_the_body_ends_after_the_end_marker() {
    let house = house!(ship_openai);
    let call = || Answer::calls(&[("get_environment", json!({ "aspect": "os" }))]).keep_alive();
    let server = Server::start([call(), call(), Answer::text(&["done"]).keep_alive()]);
    assert_eq!(openai_command(&house, &server, &RUN).run().code(0).stdout, "done\n");
    assert_eq!((server.requests().len(), server.connections()), (3, 1));
}

#[test]
fn model_list_can_be_a_bare_array() {
    let house = house!(ship_openai);
    let server = Server::start([]);
    server.set_models(Answer::status(200).body(r#"[{"id":"moon"},{"id":"earth"}]"#));
    let output = openai_command(&house, &server, &["model", "list"]).run().expect_silent();
    assert!(output.stdout.contains("openai/earth") && output.stdout.contains("openai/moon"));
}

#[test]
fn error_for_a_model_without_tool_support_suggests_running_without_tools() {
    let house = house!(ship_openai);
    let refusal = "registry.ollama.ai/library/gemma:2b does not support tools";
    let server = Server::start([
        Answer::error(400, refusal),
        Answer::error(404, "No endpoints found that support tool use."),
        Answer::text(&["without"]),
        Answer::text(&["without"]),
    ]);
    for _ in 0..2 {
        let output = openai_command(&house, &server, &RUN).run().code(5);
        let hint = "hint: run with `--tools none`, or use a model that supports tools\n";
        assert!(output.stderr.ends_with(hint), "{output}");
    }
    let words = ["run", "--model", "openai/test", "--tools", "none", "hello"];
    assert_eq!(openai_command(&house, &server, &words).run().code(0).stdout, "without\n");
    let by_variable = openai_command(&house, &server, &RUN).variable("JAATO_TOOLS_ENABLED", "none");
    assert_eq!(by_variable.run().code(0).stdout, "without\n");
    let asked = server.requests();
    assert!(asked[0].json()["tools"].is_array());
    assert!(asked[2..].iter().all(|asked| asked.json().get("tools").is_none()));
    let words = ["run", "--model", "openai/test", "--tools", "none,get_environment", "hello"];
    let output = openai_command(&house, &server, &words).run().code(2);
    assert!(
        output.stderr.contains("`--tools none` cannot be combined with other tools"),
        "{output}"
    );
}
