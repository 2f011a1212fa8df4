//! Tests `jaato run` with a scripted provider: its outputs, and how it ends.

use expect_test::expect;
use jaato_types::{Event, EventEnvelope, Outcome};
use serde_json::{Value, json};

use crate::cli::cli_house;
use crate::house;
use crate::support::openai::{openai_command, ship_openai};
use crate::support::server::{Answer, Server};
use crate::support::{Command, Output};
use crate::terminal::run_shell_on_terminal;

#[track_caller]
fn parse_events(output: &Output) -> Vec<Event> {
    let read = |line| {
        serde_json::from_str::<EventEnvelope>(line).unwrap_or_else(|e| panic!("{e}: {line}"))
    };
    let envelopes: Vec<EventEnvelope> = output.stdout.lines().map(read).collect();
    assert!(!envelopes.is_empty(), "{output}");
    for (at, envelope) in envelopes.iter().enumerate() {
        assert_eq!((envelope.v, envelope.seq), (1, at as u64 + 1), "without gaps");
        assert_eq!(envelope.session, envelopes[0].session);
        assert!(!envelope.session.as_str().is_empty());
    }
    envelopes.into_iter().map(|envelope| envelope.event).collect()
}

fn environment_script() -> Value {
    json!({ "answers": [
        { "steps": [
            { "thought": "I should look." },
            { "call": { "name": "get_environment", "arguments": { "aspect": "os" } } },
        ], "usage": { "prompt_tokens": 20, "output_tokens": 5 } },
        { "expect": { "tool_result": "linux", "tools": ["get_environment"], "messages": 3 },
          "steps": [{ "text": "It is " }, { "text": "Linux." }],
          "usage": { "prompt_tokens": 40, "output_tokens": 6 } },
    ] })
}

#[test]
fn only_the_answer_is_on_standard_output() {
    let house = house!();
    house.set_script(&environment_script());
    let output = house.run(&["run", "What system is this?"]).code(0);
    assert_eq!(output.stdout, "It is Linux.\n");
    let mut lines = output.stderr.lines();
    expect!["[environment] get_environment os"].assert_eq(lines.next().unwrap());
    let result = lines.next().unwrap();
    assert!(result.starts_with("  environment │ ✓ type linux"), "{output}");
    assert_eq!(lines.next(), None, "{output}");
    house.assert_no_processes();
}

#[test]
fn the_event_stream_is_json_lines() {
    let house = house!();
    house.set_script(&environment_script());
    let output = house.run(&["run", "--output", "json", "What system is this?"]).expect_silent();
    let events = parse_events(&output);
    let names: Vec<String> =
        output.json_lines().iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect();
    expect![[r#"
        session_started
        turn_started
        message_added
        step_started
        thought_delta
        usage
        step_finished
        message_added
        permission_decided
        tool_call_started
        tool_call_finished
        message_added
        step_started
        text_delta
        text_delta
        usage
        step_finished
        message_added
        turn_finished"#]]
    .assert_eq(&names.join("\n"));
    assert!(events.contains(&Event::TurnFinished {
        outcome: Outcome::Done,
        text: "It is Linux.".to_owned(),
        error: None,
    }));
    let prompt =
        Event::TurnStarted { prompt: "What system is this?".to_owned(), woken_by: Vec::new() };
    assert!(events.contains(&prompt));
}

#[test]
fn invalid_tool_arguments_are_reported_to_the_model() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "get_environment", "arguments": { "aspect": "moon" } } }] },
        { "expect": { "tool_result": "not one of the allowed values" },
          "steps": [{ "call": { "name": "get_environment", "arguments": "os" } }] },
        { "expect": { "tool_result": "must be a JSON object" },
          "steps": [{ "call": { "name": "get_enviroment", "arguments": {} } }] },
        { "expect": { "tool_result": "get_environment" },
          "steps": [{ "call": { "name": "get_environment", "arguments": { "aspect": "os" } } }] },
        { "expect": { "tool_result": "linux" }, "steps": [{ "text": "Linux." }] },
    ] }));
    let output = house.run(&["run", "--output", "json", "system?"]).expect_silent();
    let failed: Vec<bool> = parse_events(&output)
        .iter()
        .filter_map(|event| match event {
            Event::ToolCallFinished { is_error, .. } => Some(*is_error),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [true, true, true, false]);
}

#[test]
fn tools_can_query_session_and_context_usage() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "get_environment", "arguments": { "aspect": "context" } } }],
          "usage": { "prompt_tokens": 100, "output_tokens": 28 } },
        { "expect": { "tool_result": "\"context_limit\":32768" },
          "steps": [{ "call": { "name": "get_environment", "arguments": { "aspect": "session" } } }] },
        { "expect": { "tool_result": "\"agent_id\":\"main\"" }, "steps": [{ "text": "ok" }] },
    ] }));
    let output = house.run(&["run", "--output", "json", "how full is it?"]).expect_silent();
    let results: Vec<Value> = parse_events(&output)
        .into_iter()
        .filter_map(|event| match event {
            Event::ToolCallFinished { result, .. } => Some(Value::Object(result)),
            _ => None,
        })
        .collect();
    let context = json!({
        "model": "test",
        "provider": "scripted",
        "context_limit": 32768,
        "total_tokens": 128,
        "prompt_tokens": 100,
        "output_tokens": 28,
        "tokens_remaining": 32640,
        "percent_used": 0.39,
        "turns": 1,
        "gc": null,
    });
    assert_eq!(results[0], context);
    let session = output.json_lines()[0]["session"].clone();
    assert_eq!(results[1]["session_id"], session);
}

#[test]
fn tool_output_is_labelled_with_its_plugin() {
    let house = house!(ships "probe");
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "emit", "arguments": { "pieces": 2, "bytes": 4 } } }] },
        { "steps": [{ "text": "shown" }] },
    ] }));
    let output = house.run(&["run", "--yes", "--tools", "emit", "show"]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        shown
        --- stderr
        [fixture-probe] emit pieces: 2, bytes: 4
          fixture-probe │ xxxxxxxx
          fixture-probe │ ✓ taken 2
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn cancelled_answer_is_still_written_to_a_file() {
    let house = house!();
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": "so far" }, "hang"] }] }));
    let line = format!("exec '{}' run hello > answer", house.binary().display());
    let drawing = |command: Command| command.variable("TERM", "xterm");
    let Some(mut running) = run_shell_on_terminal(&house, &line, drawing) else { return };
    running.wait_for_text("the model is answering");
    running.write(b"\x03");
    running.wait_with_open_input().code(130);
    let answer = std::fs::read_to_string(house.workspace().join("answer")).unwrap();
    assert_eq!(answer, "so far\n");
}

#[test]
fn task_can_be_read_from_standard_input() {
    let house = house!();
    let expects = |prompt: &str| json!({ "answers": [{ "expect": { "prompt": prompt }, "steps": [{ "text": "ok" }] }] });
    house.set_script(&expects("What is this?"));
    house.command(&["run"]).input("What is this?\n").run().expect_silent();
    house.set_script(&expects("Sum up:\n\none\ntwo\n"));
    house.command(&["run", "Sum", "up:"]).input("one\ntwo\n").run().expect_silent();
}

#[test]
fn run_does_not_wait_for_a_silent_standard_input() {
    let house = house!();
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": "ok" }] }] }));
    // A terminal, a socket or /dev/null is not text to add.
    let output = house.command(&["run", "hello"]).no_input().run().code(0);
    assert_eq!(output.stdout, "ok\n");
}

#[test]
fn missing_or_invalid_task_is_refused() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    expect![[r#"
        exit 2
        --- stderr
        error: there is no task
        hint: jaato run "What operating system am I running on?"
    "#]]
    .assert_eq(&house.run(&["run"]).code(2).to_string());
    expect![[r#"
        exit 2
        --- stderr
        error: there is no task
        hint: jaato run "What operating system am I running on?"
    "#]]
    .assert_eq(&house.run(&["run", "  "]).code(2).to_string());
    let output = house.command(&["run"]).input(b"caf\xe9\n".to_vec()).run().code(2);
    expect![[r#"
        exit 2
        --- stderr
        error: standard input is not UTF-8: byte 3 is wrong
        hint: iconv -t UTF-8 converts it
    "#]]
    .assert_eq(&output.to_string());
    let output = house.command(&["run"]).input(vec![b'x'; 4 * 1024 * 1024 + 1]).run().code(2);
    expect![[r#"
        exit 2
        --- stderr
        error: standard input has more than 4194304 bytes
        hint: write it to a file and name the file in the task
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn system_option_reaches_the_model() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "expect": { "system": "Name the moons." }, "steps": [{ "text": "moon" }] },
    ] }));
    house.run(&["run", "--system", "Name the moons.", "hello"]).expect_silent();
}

#[test]
fn only_named_tools_are_offered() {
    let house = house!(ships "echo");
    house.set_script(&json!({ "answers": [
        { "expect": { "tools": ["count_bytes_echo"] },
          "steps": [{ "call": { "name": "get_environment", "arguments": {} } }] },
        { "expect": { "tool_result": "--tools" }, "steps": [{ "text": "ok" }] },
    ] }));
    house.run(&["run", "--tools", "count_bytes_echo", "hello"]).code(0);
    let output = house.run(&["run", "--tools", "get_enviroment", "hello"]).code(2);
    expect![[r#"
        exit 2
        --- stderr
        error: there is no tool `get_enviroment`
        hint: did you mean `get_environment`?
    "#]]
    .assert_eq(&output.to_string());
    let output = house.run(&["run", "--allow", "get_enviroment", "hello"]).code(2);
    assert!(output.stderr.contains("did you mean `get_environment`?"), "{output}");
}

#[test]
fn piped_output_contains_the_models_text_unchanged() {
    let house = house!();
    let text = "a\u{1b}[31m\r\nb\u{0}c é 漢\n";
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": text }] }] }));
    // Not a terminal, so the output is the model's own bytes.
    assert_eq!(house.run(&["run", "hello"]).code(0).stdout, text);
}

/// Returns the results in the last request to the model, in order.
#[track_caller]
fn last_results(server: &Server) -> Vec<(Value, Value)> {
    let asked = server.requests().pop().unwrap().json();
    let messages = asked["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    let result = |message: &Value| {
        let content = serde_json::from_str(message["content"].as_str().unwrap()).unwrap();
        (message["tool_call_id"].clone(), content)
    };
    results.map(result).collect()
}

#[test]
fn parallel_tool_results_are_sent_in_call_order() {
    let house = house!(ships "probe");
    ship_openai(&house);
    let call = |line: u64| ("echo", json!({ "text": "t", "line": line }));
    let calls: Vec<_> = (0..12).map(call).collect();
    let server = Server::start([Answer::calls(&calls), Answer::text(&["ok"])]);
    let words = ["run", "--model", "openai/test", "--tools", "echo", "--output", "json", "go"];
    let output = openai_command(&house, &server, &words).run().expect_silent();
    let mut lines: Vec<u64> = Vec::new();
    for event in parse_events(&output) {
        if let Event::ToolCallFinished { result, is_error, .. } = event {
            assert!(!is_error);
            lines.push(result["line"].as_u64().unwrap());
        }
    }
    // Parallel calls end in any order.
    lines.sort_unstable();
    assert_eq!(lines, (0..12).collect::<Vec<_>>());
    let results = last_results(&server);
    let told: Vec<_> = results.iter().map(|(_, result)| result["line"].as_u64().unwrap()).collect();
    assert_eq!(told, (0..12).collect::<Vec<_>>());
    for (at, (id, _)) in results.iter().enumerate() {
        assert_eq!(id, &format!("call_echo_{at}"));
    }
}

#[test]
fn tool_results_are_in_call_order_even_if_calls_finish_in_reverse() {
    let house = cli_house!();
    ship_openai(&house);
    // Each waits for the next one's end, so the last ends first.
    let call = |number: usize| {
        let waits = if number == 7 {
            String::new()
        } else {
            format!("until [ -e {} ]; do sleep 0.01; done; ", number + 1)
        };
        let command = format!("{waits}touch {number}; echo {number}");
        ("cli_based_tool", json!({ "command": command, "timeout_seconds": 30 }))
    };
    let calls: Vec<_> = (0..8).map(call).collect();
    let server = Server::start([Answer::calls(&calls), Answer::text(&["ok"])]);
    let words = ["run", "--yes", "--model", "openai/test", "go"];
    let output = openai_command(&house, &server, &words).run().code(0);
    assert_eq!(output.stdout, "ok\n", "{output}");
    let results = last_results(&server);
    let told: Vec<_> =
        results.iter().map(|(_, result)| result["stdout"].as_str().unwrap()).collect();
    assert_eq!(told, ["0\n", "1\n", "2\n", "3\n", "4\n", "5\n", "6\n", "7\n"]);
    for (at, (id, _)) in results.iter().enumerate() {
        assert_eq!(id, &format!("call_cli_based_tool_{at}"));
    }
    house.assert_no_processes();
}
