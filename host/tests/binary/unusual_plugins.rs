//! Tests plugins with unusual demands on the host, in whole sessions: a hundred tools and much
//! output, a gc with a state, a provider of thoughts and images.

use serde_json::{Value, json};

use crate::support::{House, fixture};

fn tool_call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

/// Returns the check of a file without its first lines, which are the same for each.
#[track_caller]
fn run_check(name: &str) -> String {
    let Some(house) = House::new() else { return String::new() };
    let output = house.run(&["plugin", "check", &fixture(name).display().to_string()]).code(0);
    let lines: Vec<&str> = output.stdout.lines().skip(2).collect();
    assert!(lines.last().is_some_and(|line| line.starts_with("conformance  ok: ")), "{output}");
    house.assert_no_processes();
    lines.join("\n")
}

#[test]
fn unusual_plugins_pass_the_plugin_check() {
    if House::new().is_none() {
        return;
    }
    let many = run_check("many");
    assert!(many.contains("tools say00, say01, say02, say03, say04, 95 more tools\n"), "{many}");
    let recalls = run_check("recalls");
    assert!(recalls.contains("of 12 messages that fill the context it would drop"), "{recalls}");
    let paints = run_check("paints");
    assert!(paints.contains("provider paints"), "{paints}");
}

#[test]
fn hundred_tools_are_found_on_demand_and_long_output_is_kept_completely() {
    let Some(house) = House::new() else { return };
    house.ship(&fixture("many"));
    let said = json!({ "tool_result": "\"name\":\"Say42\",\"text\":\"moon\",\"calls\":1" });
    let streamed = json!({ "tool_result": "\"shown\":20000" });
    // Of a hundred tools, the request has one. A call finds each of the others.
    let first =
        json!({ "tools": ["get_environment", "stream_lines", "list_tools", "get_tool_schemas"] });
    house.set_script(&json!({ "answers": [
        { "expect": first, "steps": [tool_call("say42", json!({ "text": "moon" }))] },
        { "expect": said, "steps": [tool_call("stream_lines", json!({ "lines": 20_000 }))] },
        { "expect": streamed, "steps": [{ "text": "done" }] },
    ] }));
    let output = house.run(&["run", "--yes", "--output", "json", "go"]).code(0);
    let lines = output.json_lines();
    let shown = lines.iter().filter(|line| line["event"] == "tool_output");
    let shown: String = shown.map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(shown.lines().count(), 20_000);
    assert!(shown.ends_with("line 19999 of a hundred tools' output\n"));
    house.assert_no_processes();
}

/// Returns an answer to a request with this many messages and this text in its first message, and
/// the tokens so far.
fn text_answer(text: &str, messages: usize, tokens: u64) -> Value {
    json!({
        "expect": { "messages": messages },
        "steps": [{ "text": text }],
        "usage": { "prompt_tokens": tokens, "output_tokens": 1 },
    })
}

#[test]
fn gc_state_is_kept_between_collections() {
    let Some(house) = House::new() else { return };
    house.ship(&fixture("recalls"));
    let mut last = text_answer("four", 1, 100);
    last["expect"]["prompt"] = "[3 earlier prompts, dropped in 2 steps: a; b; c]".into();
    house.set_script(&json!({ "answers": [
        text_answer("one", 1, 100), text_answer("two", 3, 900), text_answer("three", 1, 900), last,
    ] }));
    house.configure_more("[models.\"scripted/test\"]\ncontext_limit = 1000\n");
    house.configure_more("[gc]\nplugin = \"fixture-recalls\"\npreserve_recent_turns = 1\n");
    let output = house.command(&["chat"]).input("a\nb\nc\nd\n").run().code(0);
    assert_eq!(output.stdout, "one\ntwo\nthree\nfour\n", "{output}");
    let told = output.stderr.lines().filter(|line| line.starts_with("gc fixture-recalls"));
    let told: Vec<&str> = told.collect();
    assert_eq!(told.len(), 2, "{output}");
    assert!(told[1].ends_with("3 prompts are remembered"), "{output}");
    house.assert_no_processes();
}

#[test]
fn thoughts_and_images_are_returned_to_the_provider_unchanged() {
    let Some(house) = House::new() else { return };
    house.ship(&fixture("paints"));
    house.configure("model = \"paints/canvas\"\n");
    let output = house.command(&["chat"]).input("paint\nagain\n").run().code(0);
    let said: Vec<&str> = output.stdout.lines().filter(|line| !line.is_empty()).collect();
    let answers = [
        "I saw 0 bytes of images and paint 2 more.",
        "I saw 240030 bytes of images and paint 2 more.",
    ];
    assert_eq!(said, answers, "{output}");
    assert!(output.stderr.contains("image 2: 120015 bytes"), "{output}");
    let output = house.run(&["run", "--output", "json", "paint"]).code(0);
    let lines = output.json_lines();
    let thoughts = lines.iter().filter(|line| line["event"] == "thought_delta");
    let thoughts: Vec<&str> = thoughts.map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(thoughts, ["I ", "see ", "a ", "moon."]);
    house.assert_no_processes();
}
