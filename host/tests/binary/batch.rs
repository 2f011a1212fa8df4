//! Tests `jaato call --batch`: one session, with one output line per input line, at once.

use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{House, fixture};

/// The size limit of a frame, and so the longest line.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

fn house_with_probe() -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("probe"));
    Some(house)
}

fn error_kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["error"]["kind"].as_str().unwrap_or("-")).collect()
}

#[test]
fn good_and_bad_lines_are_answered_in_order_with_their_ids() {
    let Some(house) = house_with_probe() else { return };
    let input = concat!(
        r#"{"id": 1, "tool": "count", "args": {}}"#,
        "\n\n  \t \r\n",
        r#"{"id": "two", "tool": "count"}"#,
        "\r\n",
        "{not json}\n",
        r#"{"id": {"a": [3]}, "tool": "coutn", "args": {}}"#,
        "\n",
        r#"{"id": 4, "args": {}}"#,
        "\n",
        r#"[1, 2]"#,
        "\n",
        r#"{"id": 5, "tool": 7}"#,
        "\n",
        r#"{"id": null, "tool": "echo", "args": {"line": 1}}"#,
        "\n",
        r#"{"tool": "echo", "args": "text"}"#,
        "\n",
        r#"{"tool": "panic", "args": {"place": "now"}}"#,
        "\n",
        r#"{"id": 9, "tool": "count"}"#,
    );
    let output = house.command(&["call", "--batch"]).input(input).run().code(1);
    assert_eq!(output.stderr, "", "{output}");
    expect![[r#"
        {"id":1,"tool":"count","result":{"count":1}}
        {"id":"two","tool":"count","result":{"count":2}}
        {"tool":null,"error":{"kind":"invalid_arguments","message":"the line is not JSON: key must be a string at line 1 column 2","hint":"a line is a JSON object: {\"tool\": \"NAME\", \"args\": {…}}, and perhaps an \"id\""}}
        {"id":{"a":[3]},"tool":"coutn","error":{"kind":"unknown_tool","message":"there is no tool `coutn`","hint":"did you mean `count`?"}}
        {"id":4,"tool":null,"error":{"kind":"invalid_arguments","message":"the line needs a text `tool`","hint":"a line is a JSON object: {\"tool\": \"NAME\", \"args\": {…}}, and perhaps an \"id\""}}
        {"tool":null,"error":{"kind":"invalid_arguments","message":"the line is not a JSON object","hint":"a line is a JSON object: {\"tool\": \"NAME\", \"args\": {…}}, and perhaps an \"id\""}}
        {"id":5,"tool":null,"error":{"kind":"invalid_arguments","message":"the line needs a text `tool`","hint":"a line is a JSON object: {\"tool\": \"NAME\", \"args\": {…}}, and perhaps an \"id\""}}
        {"id":null,"tool":"echo","error":{"kind":"invalid_arguments","message":"the arguments of `echo` do not match its schema: the required property `text` is missing","hint":"its properties are `text` (required), `line`"}}
        {"tool":"echo","error":{"kind":"invalid_arguments","message":"the arguments of `echo` must be a JSON object, not the string `\"text\"`","hint":"its properties are `text` (required), `line`"}}
        {"tool":"panic","error":{"kind":"plugin_panicked","message":"plugin `fixture-probe`: panicked at probe/src/panics.rs:LINE: boom now","hint":null}}
        {"id":9,"tool":"count","result":{"count":3}}
    "#]].assert_eq(&house.normalize_output(&output.stdout));
}

#[test]
fn batch_without_a_failure_succeeds() {
    let Some(house) = house_with_probe() else { return };
    let lines = "{\"tool\": \"count\"}\n".repeat(3);
    let output = house.command(&["call", "--batch"]).input(lines).run().expect_silent();
    let counts: Vec<Value> =
        output.json_lines().iter().map(|line| line["result"].clone()).collect();
    assert_eq!(counts, [json!({"count": 1}), json!({"count": 2}), json!({"count": 3})]);
    assert_eq!(house.command(&["call", "--batch"]).run().expect_silent().stdout, "");
}

#[test]
fn batch_line_with_an_unknown_key_is_an_error_and_calls_nothing() {
    let Some(house) = house_with_probe() else { return };
    let lines =
        "{\"id\": 1, \"tool\": \"count\", \"arguments\": {}}\n{\"id\": 2, \"tool\": \"count\"}\n";
    let output = house.command(&["call", "--batch"]).input(lines).run().code(1);
    let told = output.json_lines();
    assert_eq!(error_kinds(&told), ["invalid_arguments", "-"]);
    assert_eq!(told[0]["error"]["message"], "the line has an unknown key `arguments`");
    assert_eq!((&told[0]["id"], &told[1]["result"]), (&json!(1), &json!({ "count": 1 })));
}

#[test]
fn an_answer_is_there_before_the_next_line_is_written() {
    let Some(house) = house_with_probe() else { return };
    let mut running = house.command(&["call", "--batch"]).start();
    for count in 1..=3 {
        running.write(b"{\"tool\": \"count\"}\n");
        let answer: Value = serde_json::from_str(&running.next_line()).unwrap();
        assert_eq!(answer["result"]["count"], count);
    }
    running.finish().expect_silent();
}

#[test]
fn a_line_that_is_no_utf8_gets_an_error_and_the_rest_runs() {
    let Some(house) = house_with_probe() else { return };
    let mut input = b"{\"tool\": \"echo\", \"args\": {\"text\": \"\xff\xfe\"}}\n\x80\n".to_vec();
    input.extend(b"{\"tool\": \"count\"}\n");
    let output = house.command(&["call", "--batch"]).input(input).run().code(1);
    let lines = output.json_lines();
    assert_eq!(error_kinds(&lines), ["invalid_arguments", "invalid_arguments", "-"]);
    assert_eq!(lines[2]["result"]["count"], 1);
}

#[test]
fn a_line_may_be_as_long_as_a_frame_and_no_longer() {
    let Some(house) = house_with_probe() else { return };
    let (start, end) = (r#"{"tool":"count","args":{}"#, "}\n");
    let padded = |bytes: usize| {
        let padding = " ".repeat(bytes - start.len() - end.len());
        format!("{start}{padding}{end}")
    };
    let mut input = padded(LINE_BYTES_MAX).into_bytes();
    input.extend(padded(LINE_BYTES_MAX + 1).bytes());
    input.extend(padded(3 * LINE_BYTES_MAX).bytes());
    input.extend(b"{\"tool\":\"count\"}\n");
    let output = house.command(&["call", "--batch"]).input(input).run().code(1);
    let lines = output.json_lines();
    assert_eq!(error_kinds(&lines), ["-", "limit_reached", "limit_reached", "-"]);
    assert_eq!(lines[3]["result"]["count"], 2);
    expect![[r#"
        {
          "tool": null,
          "error": {
            "kind": "limit_reached",
            "message": "the line has more than 8388608 bytes",
            "hint": null
          }
        }"#]]
    .assert_eq(&format!("{:#}", lines[1]));
}

#[test]
fn arguments_too_big_for_a_frame_are_refused() {
    let Some(house) = house_with_probe() else { return };
    // It fits as a line. Serialized again for the plugin, escapes make it longer.
    let text = "\u{1}".repeat(LINE_BYTES_MAX / 6 - 20);
    let raw = json!({ "tool": "echo", "args": { "text": text } }).to_string();
    assert!(raw.len() < LINE_BYTES_MAX);
    let output = house.command(&["call", "--batch"]).input(raw).run();
    assert_eq!(output.json_lines().len(), 1, "one line in, one line out");
}

#[test]
fn ctrl_c_ends_a_waiting_batch() {
    let Some(house) = house_with_probe() else { return };
    let mut running = house.command(&["call", "--batch"]).start();
    running.write(b"{\"tool\": \"count\"}\n");
    running.next_line();
    running.send_signal("INT");
    // Standard input is still open, so only the signal can have ended it.
    let output = running.wait_with_open_input().code(130);
    assert_eq!(output.json_lines().len(), 1);
    house.assert_no_processes();
}

#[test]
fn batch_with_a_closed_output_ends_without_an_error_message() {
    let Some(house) = house_with_probe() else { return };
    let input = house.path().join("lines");
    std::fs::write(&input, "{\"tool\": \"count\"}\n".repeat(5000)).unwrap();
    let output = house.command(&["call", "--batch"]).input_file(&input).run_into_closed_output(10);
    assert_eq!(output.stderr, "", "{output}");
}
