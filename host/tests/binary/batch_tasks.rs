//! Tests `jaato batch`: many tasks from a file, in parallel, with caps, and continued after an
//! interruption. A server on loopback answers by the prompt.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::cli::house_with_cli;
use crate::support::command::{DEADLINE, Output};
use crate::support::openai::{SECRET, openai_command, ship_openai};
use crate::support::server::{
    Answer, AnswerGate, BodyStep, ReceivedRequest, Server, choice_events, stream_end,
};
use crate::support::{Command, House};
use crate::terminal::run_on_terminal;

/// The words before those of a test.
const BATCH: [&str; 5] = ["batch", "--model", "openai/test", "--allow", "cli_based_tool"];

/// Returns an installation whose model is behind a server and runs commands, and its tasks.
fn batch_house(tasks: &[Value]) -> Option<House> {
    let house = house_with_cli()?;
    ship_openai(&house);
    house.configure_more("[models.\"openai/test\"]\nprice = { input = 100, output = 100 }\n");
    write_tasks(&house, tasks);
    Some(house)
}

fn write_tasks(house: &House, tasks: &[Value]) {
    let lines: String = tasks.iter().map(|task| format!("{task}\n")).collect();
    house.write("workspace/tasks.jsonl", &lines);
}

fn batch_command(house: &House, server: &Server, words: &[&str]) -> Command {
    openai_command(house, server, &[&BATCH, words].concat())
}

/// Returns the text of the last message of the user.
fn last_user_text(asked: &ReceivedRequest) -> String {
    let messages = asked.json()["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.iter().rfind(|message| message["role"] == "user");
    last.map(|last| content_text(&last["content"])).unwrap_or_default()
}

fn content_text(content: &Value) -> String {
    let part = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
    match content {
        Value::Array(parts) => parts.iter().map(part).collect(),
        text => text.as_str().unwrap_or_default().to_owned(),
    }
}

/// Returns a server that repeats each prompt.
fn start_echo_server() -> Server {
    Server::start_with(|asked| Answer::text(&["about ", &last_user_text(asked)]))
}

/// Returns an answer that never ends.
fn hanging_answer() -> Answer {
    Answer::stream(vec![
        BodyStep::Bytes(choice_events(&[json!({ "delta": { "content": "so " } })])),
        BodyStep::Hang,
    ])
}

#[track_caller]
fn wait_for_requests(server: &Server, count: usize) {
    let begun = Instant::now();
    while server.requests().len() < count {
        assert!(begun.elapsed() < DEADLINE, "only {} requests arrived", server.requests().len());
        std::thread::yield_now();
    }
}

fn results_path(house: &House) -> PathBuf {
    house.workspace().join("out.jsonl")
}

/// Reads results by their ids, in the order of the ids.
fn sort_results(lines: &[Value]) -> Vec<(String, Value)> {
    let mut results: Vec<_> =
        lines.iter().map(|line| (line["id"].as_str().unwrap().to_owned(), line.clone())).collect();
    results.sort_by(|one, other| one.0.cmp(&other.0));
    results
}

fn read_results(house: &House) -> Vec<(String, Value)> {
    let text = fs::read_to_string(results_path(house)).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    sort_results(&lines)
}

fn received_prompts(server: &Server) -> Vec<String> {
    server.requests().iter().map(last_user_text).collect()
}

#[test]
fn each_task_has_a_result_line_with_its_answer() {
    let tasks =
        [json!({ "task": "one" }), json!({ "id": "b", "task": "two", "system": "Be brief." })];
    let Some(house) = batch_house(&tasks) else { return };
    let server = start_echo_server();
    let output = batch_command(&house, &server, &["tasks.jsonl"]).run().code(0);
    let found = sort_results(&output.json_lines());
    assert_eq!(found.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["1", "b"]);
    let mut first = found[0].1.clone();
    let session = first["session"].take();
    assert!(first["duration_ms"].take().is_u64());
    let usage =
        json!({ "steps": 1, "tokens": 25, "cost_micro_usd": 2500, "has_unknown_cost": false });
    let expected = json!({
        "id": "1", "outcome": "done", "exit_code": 0, "text": "about one", "model": "openai/test",
        "session": null, "usage": usage, "duration_ms": null, "task": "one",
    });
    assert_eq!(first, expected);
    let shown = house.run(&["session", "show", session.as_str().unwrap()]).code(0);
    assert!(shown.stdout.contains("about one"), "{shown}");
    let asked = server.requests();
    let briefed = asked.iter().find(|asked| last_user_text(asked) == "two").unwrap();
    assert!(briefed.json()["messages"][0].to_string().contains("Be brief."));
    let lines = output.stderr.lines().filter(|line| line.starts_with("[2/2] ")).count();
    assert_eq!(lines, 1, "{output}");
    assert!(
        output.stderr.ends_with("2 of 2 tasks ended: 2 requests, 50 tokens, $0.005\n"),
        "{output}"
    );
    house.assert_no_processes();
}

#[test]
fn tasks_run_at_the_same_time_and_finish_in_any_order() {
    let tasks: Vec<Value> = ["a", "b"].iter().map(|id| json!({ "id": id, "task": id })).collect();
    let Some(house) = batch_house(&tasks) else { return };
    let gate = AnswerGate::closed();
    let waits = gate.clone();
    let server = Server::start_with(move |asked| match last_user_text(asked).as_str() {
        "a" => {
            let said = choice_events(&[json!({ "delta": { "content": "A" } })]);
            Answer::stream(vec![
                BodyStep::Wait(waits.clone()),
                BodyStep::Bytes(said),
                BodyStep::Bytes(stream_end()),
            ])
        }
        _ => Answer::text(&["B"]),
    });
    let running =
        batch_command(&house, &server, &["tasks.jsonl", "--parallel", "2"]).no_input().start();
    // The second task ends while the first one waits.
    running.wait_for("\"id\":\"b\"");
    gate.open();
    let output = running.wait_with_open_input().code(0);
    let ids: Vec<Value> = output.json_lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, ["b", "a"]);
}

#[test]
fn one_task_at_a_time_keeps_the_order_of_the_file() {
    let tasks: Vec<Value> = (1..=5).map(|number| json!({ "task": format!("t{number}") })).collect();
    let Some(house) = batch_house(&tasks) else { return };
    let server = start_echo_server();
    let output = batch_command(&house, &server, &["tasks.jsonl", "--parallel", "1"]).run().code(0);
    assert_eq!(received_prompts(&server), ["t1", "t2", "t3", "t4", "t5"]);
    let ids: Vec<Value> = output.json_lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5"]);
}

#[test]
fn killed_batch_continues_without_repeating_anything() {
    let tasks: Vec<Value> =
        ["a", "b", "c"].iter().map(|id| json!({ "id": id, "task": id })).collect();
    let Some(house) = batch_house(&tasks) else { return };
    let words = ["tasks.jsonl", "--parallel", "1", "--out", "out.jsonl"];
    let call = ("cli_based_tool", json!({ "command": "echo b >> ran" }));
    let first = Server::start_with(move |asked| {
        let has_result = asked.json()["messages"].to_string().contains("\"tool\"");
        match (last_user_text(asked).as_str(), has_result) {
            ("b", false) => Answer::calls(std::slice::from_ref(&call)),
            ("b", true) => hanging_answer(),
            (prompt, _) => Answer::text(&[prompt]),
        }
    });
    let running = batch_command(&house, &first, &words).no_input().start();
    wait_for_requests(&first, 3);
    running.send_signal("KILL");
    running.wait_with_open_input();
    house.assert_no_processes();
    assert_eq!(read_results(&house).len(), 1);
    // The end of a line that a killed process could not complete.
    let torn = fs::read_to_string(results_path(&house)).unwrap() + "{\"id\":\"b\",\"outcome\":\"do";
    fs::write(results_path(&house), torn).unwrap();
    let second = start_echo_server();
    let output = batch_command(&house, &second, &words).run().code(0);
    assert_eq!(output.stdout, "");
    assert!(output.stderr.contains("1 task has its results already"), "{output}");
    assert_eq!(received_prompts(&second), ["b", "c"]);
    let continued = second.requests()[0].json()["messages"].to_string();
    assert!(continued.contains("echo b >> ran"), "{continued}");
    assert_eq!(fs::read_to_string(house.workspace().join("ran")).unwrap(), "b\n");
    let found = read_results(&house);
    let facts: Vec<Value> =
        found.iter().map(|(id, line)| json!([id, line["text"], line["continued"]])).collect();
    let expected =
        [json!(["a", "a", null]), json!(["b", "about b", true]), json!(["c", "about c", null])];
    assert_eq!(facts, expected);
    assert!(!house.workspace().join("out.jsonl.unfinished").exists());
    // A third run has nothing to do.
    let third = start_echo_server();
    batch_command(&house, &third, &words).run().code(0);
    assert_eq!((third.requests().len(), read_results(&house)), (0, found));
}

#[test]
fn interrupted_batch_says_how_to_continue() {
    let tasks: Vec<Value> =
        ["a", "b", "c"].iter().map(|id| json!({ "id": id, "task": id })).collect();
    let Some(house) = batch_house(&tasks) else { return };
    let words = ["tasks.jsonl", "--parallel", "2", "--out", "out.jsonl"];
    let first = Server::start_with(|_| hanging_answer());
    let running = batch_command(&house, &first, &words).no_input().start();
    wait_for_requests(&first, 2);
    running.send_signal("INT");
    let output = running.wait_with_open_input().code(130);
    let told = "3 of 3 tasks are unfinished; the same command continues them\n";
    assert!(output.stderr.ends_with(told), "{output}");
    house.assert_no_processes();
    let second = start_echo_server();
    batch_command(&house, &second, &words).run().code(0);
    let texts: Vec<Value> =
        read_results(&house).iter().map(|(_, line)| line["text"].clone()).collect();
    assert_eq!(texts, ["about a", "about b", "about c"]);
}

#[test]
fn tasks_of_a_batch_never_make_more_requests_than_its_cap() {
    let tasks: Vec<Value> = (1..=5).map(|number| json!({ "task": format!("t{number}") })).collect();
    let Some(house) = batch_house(&tasks) else { return };
    let out = ["tasks.jsonl", "--out", "out.jsonl"];
    let first = start_echo_server();
    let output = batch_command(&house, &first, &[&out[..], &["--batch-max-steps", "3"]].concat())
        .run()
        .code(6);
    assert_eq!((first.requests().len(), read_results(&house).len()), (3, 3));
    assert!(
        output.stderr.contains("cap `--batch-max-steps`: it has made 3 of 3 requests"),
        "{output}"
    );
    assert!(
        output.stderr.ends_with("2 of 5 tasks are unfinished; the same command continues them\n"),
        "{output}"
    );
    // The earlier requests count.
    let second = start_echo_server();
    batch_command(&house, &second, &[&out[..], &["--batch-max-steps", "4"]].concat()).run().code(6);
    assert_eq!(second.requests().len(), 1);
    let third = start_echo_server();
    batch_command(&house, &third, &out).run().code(0);
    assert_eq!((third.requests().len(), read_results(&house).len()), (1, 5));
}

#[test]
fn request_that_may_exceed_the_batchs_cost_is_not_sent() {
    let Some(house) = batch_house(&[json!({ "task": "one" })]) else { return };
    let server = start_echo_server();
    let limited = |cost: &str| {
        let words = ["--tools", "none", "--max-output-tokens", "1000", "--batch-max-cost", cost];
        openai_command(&house, &server, &[&BATCH[..3], &["tasks.jsonl"], &words].concat()).run()
    };
    // The answer alone may cost 0.1 dollars.
    let output = limited("0.1").code(6);
    assert_eq!(server.requests().len(), 0);
    assert!(output.stderr.contains("`--batch-max-cost`: 0 of 0.1 US dollars are used"), "{output}");
    assert!(output.stderr.contains("lower `--max-output-tokens`"), "{output}");
    assert!(output.stderr.contains("`--out FILE` makes a batch"), "{output}");
    limited("5").code(0);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn exit_code_is_that_of_the_worst_task() {
    let call = ("get_environment", json!({ "aspect": "os" }));
    let denied = ("cli_based_tool", json!({ "command": "touch x" }));
    let server = Server::start_with(move |asked| {
        let has_result = asked.json()["messages"].to_string().contains("\"tool\"");
        match (last_user_text(asked).as_str(), has_result) {
            ("call", _) => Answer::calls(std::slice::from_ref(&call)),
            ("denied", false) => Answer::calls(std::slice::from_ref(&denied)),
            ("fails", _) => Answer::error(400, "no such thing"),
            ("hangs", _) => hanging_answer(),
            (prompt, _) => Answer::text(&[prompt]),
        }
    });
    let run = |house: &House, tasks: &[Value], code: i32| -> Vec<Value> {
        write_tasks(house, tasks);
        let output =
            openai_command(house, &server, &["batch", "tasks.jsonl", "--model", "openai/test"])
                .run();
        let lines = output.code(code).json_lines();
        let facts = |(_, line): (String, Value)| json!([line["outcome"], line["exit_code"]]);
        sort_results(&lines).into_iter().map(facts).collect()
    };
    let Some(house) = batch_house(&[]) else { return };
    let done = json!({ "id": "a", "task": "done" });
    let steps = json!({ "id": "b", "task": "call", "max_steps": 1 });
    assert_eq!(run(&house, &[done.clone(), steps], 6), [json!(["done", 0]), json!(["limit", 6])]);
    let deadline = json!({ "id": "b", "task": "hangs", "deadline": "100ms" });
    assert_eq!(
        run(&house, &[done.clone(), deadline], 6),
        [json!(["done", 0]), json!(["limit", 6])]
    );
    let denied = json!({ "id": "b", "task": "denied" });
    assert_eq!(run(&house, &[done.clone(), denied], 6), [json!(["done", 0]), json!(["denied", 6])]);
    let fails = json!({ "id": "b", "task": "fails" });
    assert_eq!(run(&house, &[done, fails], 5), [json!(["done", 0]), json!(["failed", 5])]);
    assert!(!house.workspace().join("x").exists());
}

#[test]
fn bad_tasks_end_the_command_before_any_request() {
    let Some(house) = batch_house(&[]) else { return };
    let server = start_echo_server();
    let refusal = |bytes: &[u8]| -> String {
        fs::write(house.workspace().join("tasks.jsonl"), bytes).unwrap();
        let output = batch_command(&house, &server, &["tasks.jsonl"]).run();
        assert!([2, 3].contains(&output.code) && output.stdout.is_empty(), "{output}");
        output.stderr.lines().find(|line| line.starts_with("error: ")).unwrap().to_owned()
    };
    assert_eq!(refusal(b""), "error: `tasks.jsonl` has no task");
    let good = "{\"task\": \"good\"}\n";
    for (bad, error) in [
        ("{\"task\": \"a\", \"modle\": \"x\"}", "line 2: unknown field `modle`"),
        ("{\"task\": \"a\", \"id\": \"1\"}", "line 2: line 1 has the id `1` too"),
        ("{\"task\": 7}", "line 2: invalid type: integer `7`, expected a string"),
        ("what?", "line 2: it is not a JSON object"),
        (
            "{\"task\": \"a\", \"model\": \"moon/full\"}",
            "line 2 of the tasks: no plugin offers the provider `moon`",
        ),
        (
            "{\"task\": \"a\", \"tools\": [\"get_moon\"]}",
            "line 2 of the tasks: there is no tool `get_moon`",
        ),
    ] {
        let told = refusal(format!("{good}{bad}\n").as_bytes());
        assert!(told.contains(error), "{told}");
    }
    let told = refusal(b"{\"task\": \"caf\xe9\"}\n");
    assert!(told.contains("line 1: it is not UTF-8: byte 14 is wrong"), "{told}");
    let huge = format!("{{\"task\": \"{}\"}}", "x".repeat(8 * 1024 * 1024));
    assert!(refusal(huge.as_bytes()).contains("line 1: the line has more than 8388608 bytes"));
    let missing = batch_command(&house, &server, &["missing.jsonl"]).run().code(2);
    assert!(missing.stderr.contains("cannot read `missing.jsonl`: No such file"), "{missing}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn results_file_with_another_purpose_is_not_changed() {
    let Some(house) = batch_house(&[json!({ "task": "new" })]) else { return };
    let server = start_echo_server();
    let words = ["tasks.jsonl", "--out", "out.jsonl"];
    fs::write(results_path(&house), "my notes").unwrap();
    let output = batch_command(&house, &server, &words).run().code(2);
    assert!(output.stderr.contains("`out.jsonl`, line 1: not a result of a batch"), "{output}");
    assert_eq!(fs::read_to_string(results_path(&house)).unwrap(), "my notes");
    fs::remove_file(results_path(&house)).unwrap();
    batch_command(&house, &server, &words).run().code(0);
    // Other tasks with the same ids.
    write_tasks(&house, &[json!({ "task": "newer" })]);
    let output = batch_command(&house, &server, &words).run().code(2);
    assert!(
        output.stderr.contains("another task with the id `1` (line 1 of the tasks)"),
        "{output}"
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn closed_output_ends_all_tasks() {
    let tasks: Vec<Value> =
        (1..=200).map(|number| json!({ "task": format!("t{number}") })).collect();
    let Some(house) = batch_house(&tasks) else { return };
    let server = start_echo_server();
    let command = batch_command(&house, &server, &["tasks.jsonl", "--parallel", "1"]);
    let output = command.run_into_closed_output(10);
    assert_eq!(output.code, 1, "{output}");
    assert!(server.requests().len() < 200, "{}", server.requests().len());
    house.assert_no_processes();
}

#[test]
fn task_has_its_own_tools_and_attached_files_and_names_no_files() {
    let tasks = [
        json!({ "id": "a", "task": "look at @notes.txt", "tools": ["get_environment"] }),
        json!({ "id": "b", "task": "read", "tools": ["none"], "attach": ["notes.txt"] }),
    ];
    let Some(house) = batch_house(&tasks) else { return };
    house.write("workspace/notes.txt", "The moon is full.");
    let server = start_echo_server();
    openai_command(
        &house,
        &server,
        &["batch", "tasks.jsonl", "--parallel", "1", "--model", "openai/test"],
    )
    .run()
    .code(0);
    let asked = server.requests();
    let tools = |asked: &ReceivedRequest| -> Vec<String> {
        let tools = asked.json()["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(tools(&asked[0]).contains(&"get_environment".to_owned()));
    assert!(!tools(&asked[0]).contains(&"cli_based_tool".to_owned()));
    assert_eq!(tools(&asked[1]), [""; 0]);
    let has_file = |asked: &ReceivedRequest| {
        asked.json()["messages"].to_string().contains("The moon is full.")
    };
    assert_eq!([has_file(&asked[0]), has_file(&asked[1])], [false, true]);
}

#[test]
fn tasks_are_read_from_standard_input() {
    let Some(house) = batch_house(&[]) else { return };
    let server = start_echo_server();
    let output: Output =
        batch_command(&house, &server, &["-"]).input("{\"task\": \"hi\"}\n").run().code(0);
    assert_eq!(output.json_lines()[0]["text"], "about hi");
}

#[test]
fn batch_killed_at_any_request_repeats_no_call() {
    let tasks: Vec<Value> =
        ["a", "b", "c"].iter().map(|id| json!({ "id": id, "task": id })).collect();
    let words = ["tasks.jsonl", "--parallel", "2", "--out", "out.jsonl"];
    let answer = |asked: &ReceivedRequest| {
        let prompt = last_user_text(asked);
        match asked.json()["messages"].to_string().contains("\"tool\"") {
            false => {
                let command = format!("echo {prompt} >> ran");
                Answer::calls(&[("cli_based_tool", json!({ "command": command }))])
            }
            true => Answer::text(&["about ", &prompt]),
        }
    };
    for killed_at in 1..=6 {
        let Some(house) = batch_house(&tasks) else { return };
        let count = AtomicUsize::new(0);
        let first = Server::start_with(move |asked| {
            match count.fetch_add(1, Ordering::Relaxed) + 1 < killed_at {
                true => answer(asked),
                false => hanging_answer(),
            }
        });
        let running = batch_command(&house, &first, &words).no_input().start();
        wait_for_requests(&first, killed_at);
        running.send_signal("KILL");
        running.wait_with_open_input();
        let second = Server::start_with(answer);
        batch_command(&house, &second, &words).run().code(0);
        let texts: Vec<Value> =
            read_results(&house).iter().map(|(_, line)| line["text"].clone()).collect();
        assert_eq!(texts, ["about a", "about b", "about c"], "{killed_at}");
        let ran = fs::read_to_string(house.workspace().join("ran")).unwrap();
        let mut ran: Vec<&str> = ran.lines().collect();
        ran.sort_unstable();
        let count = ran.len();
        ran.dedup();
        assert_eq!(ran.len(), count, "a call ran twice, killed at request {killed_at}");
        house.assert_no_processes();
    }
}

#[test]
fn bar_shows_the_progress_at_a_terminal() {
    let tasks = [json!({ "id": "a", "task": "a" }), json!({ "id": "b", "task": "b" })];
    let Some(house) = batch_house(&tasks) else { return };
    let gate = AnswerGate::closed();
    let waits = gate.clone();
    let server = Server::start_with(move |asked| match last_user_text(asked).as_str() {
        "a" => Answer::error(400, "no such thing"),
        _ => {
            let said = choice_events(&[json!({ "delta": { "content": "B" } })]);
            Answer::stream(vec![
                BodyStep::Wait(waits.clone()),
                BodyStep::Bytes(said),
                BodyStep::Bytes(stream_end()),
            ])
        }
    });
    let words = "batch tasks.jsonl --model openai/test --out out.jsonl";
    let running = run_on_terminal(&house, words, |command| {
        command
            .variable("TERM", "xterm-256color")
            .variable("OPENAI_BASE_URL", server.base_url())
            .variable("OPENAI_API_KEY", SECRET)
    });
    let Some(running) = running else { return };
    running.wait_for_text("a: failed (1 request");
    running.wait_for_text("tasks, 1 failed");
    running.wait_for_text("1 of 2");
    gate.open();
    let output = running.wait_with_open_input().code(5);
    assert!(output.stdout.contains("2 of 2 tasks ended"), "{output}");
}
