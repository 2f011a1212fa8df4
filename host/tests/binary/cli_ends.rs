//! Tests how commands end in the real binary: with their call, with jaato, or at their deadline,
//! leaving nothing behind.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{call_batch, call_words, cli_house, script_of_one_call, shell_arguments};
use crate::support::House;
use crate::support::cli::house_with_cli;
use crate::support::command::{DEADLINE, LOOK_AGAIN};
use crate::support::openai::{openai_command, ship_openai};
use crate::support::server::{Answer, ReceivedRequest, Server};

/// The promise is 100 ms. The rest is for a busy machine.
const END_WITHIN: Duration = DEADLINE;

/// Reads a process id that a command has written.
#[track_caller]
fn read_pid(file: &Path) -> u32 {
    let bound = Instant::now() + END_WITHIN;
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let (Ok(pid), true) = (text.trim().parse(), text.ends_with('\n')) {
            return pid;
        }
        assert!(Instant::now() < bound, "no process id in `{}`", file.display());
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[track_caller]
fn wait_for_end(pid: u32) {
    let bound = Instant::now() + END_WITHIN;
    while is_running(pid) {
        assert!(Instant::now() < bound, "process {pid} is still running");
        std::thread::sleep(LOOK_AGAIN);
    }
}

#[test]
fn processes_left_running_are_reported_and_ended_with_the_session() {
    let house = cli_house!();
    for command in [
        "(sleep 300 & echo $! > pid)",
        "setsid sleep 300 & echo $! > pid",
        "nohup sleep 300 >/dev/null 2>&1 & echo $! > pid",
        "env -i setsid sh -c '(sleep 300 & echo $! > pid)'",
    ] {
        // Before that it has the name of its parent program.
        let settled = "until grep -q sleep /proc/$(cat pid)/comm; do :; done";
        let arguments = shell_arguments(&format!("{command}\n{settled}\necho started"));
        let output = house.run(&call_words(&arguments)).code(0);
        let pid = read_pid(&house.workspace().join("pid"));
        let answer = output.json();
        assert_eq!(answer["stdout"], "started\n");
        assert_eq!(answer["left_running"], json!([{ "pid": pid, "name": "sleep" }]), "{command}");
        let told = format!("note: ended process {pid} (sleep), left running by `");
        assert_eq!(output.stderr.matches(&told).count(), 1, "{output}");
        assert!(!is_running(pid), "{command}");
        std::fs::remove_file(house.workspace().join("pid")).unwrap();
    }
    house.assert_no_processes();
}

#[test]
fn process_left_running_is_still_alive_in_the_next_call() {
    let house = cli_house!();
    let lines = [
        // It prints after the command's end, when no one reads its output.
        json!({ "command": "(while :; do echo tick; sleep 0.01; done) & echo $! > pid" }),
        json!({ "command": "sleep 0.2; kill -0 $(cat pid) && kill $(cat pid) && echo alive" }),
    ];
    let (answers, output) = call_batch(house.command(&["call", "--batch"]), &lines);
    assert_eq!(answers[1]["result"]["stdout"], "alive\n", "{output}");
    house.assert_no_processes();
}

#[test]
fn ctrl_c_ends_a_command_that_prints_without_end() {
    let house = cli_house!();
    let command = "(echo $$ > pid); while :; do echo tick; done";
    house.set_script(&script_of_one_call(command));
    let arguments = shell_arguments(command);
    for words in [&["run", "--yes", "hello"][..], &call_words(&arguments)] {
        for signal in ["INT", "TERM"] {
            let running = house.command(words).no_input().start();
            running.wait_for_error("tick");
            let pid = read_pid(&house.workspace().join("pid"));
            running.send_signal(signal);
            let signalled = Instant::now();
            let output = running.finish();
            assert_eq!(output.code, 130, "{}", output.stderr.len());
            assert!(signalled.elapsed() < END_WITHIN, "{:?}", signalled.elapsed());
            wait_for_end(pid);
            house.assert_no_processes();
            std::fs::remove_file(house.workspace().join("pid")).unwrap();
        }
    }
}

/// Commands that try to escape, and write the process id to look for.
const RUNAWAYS: [&str; 3] = [
    "(echo $BASHPID > pid; exec sleep 300) & echo on; sleep 300",
    "setsid sh -c 'echo $$ > pid; exec sleep 300' & echo on; sleep 300",
    "env -i setsid sh -c '(sleep 300 & echo $! > pid)'; echo on; sleep 300",
];

#[test]
fn ctrl_c_ends_processes_that_try_to_escape() {
    let house = cli_house!();
    assert_runaways_end(&house, "INT", 130);
}

#[test]
fn a_killed_host_leaves_no_command_behind() {
    let house = cli_house!();
    assert_runaways_end(&house, "KILL", 128 + 9);
}

#[track_caller]
fn assert_runaways_end(house: &House, signal: &str, code: i32) {
    for command in RUNAWAYS {
        house.set_script(&script_of_one_call(command));
        let running = house.command(&["run", "--yes", "hello"]).no_input().start();
        running.wait_for_error("│ on");
        let pid = read_pid(&house.workspace().join("pid"));
        assert!(is_running(pid), "{command}");
        running.send_signal(signal);
        running.finish().code(code);
        wait_for_end(pid);
        house.assert_no_processes();
        std::fs::remove_file(house.workspace().join("pid")).unwrap();
    }
}

/// Returns a command that waits for a file, and one that creates it.
fn script_that_waits_and_releases() -> Value {
    let waits = "echo on; echo $$ > pid; until [ -e go ]; do sleep 0.01; done; echo freed";
    let step = |command: &str| {
        let call = json!({ "name": "cli_based_tool", "arguments": { "command": command } });
        json!({ "steps": [{ "call": call }] })
    };
    json!({ "answers": [step(waits), step("touch go"), { "steps": [{ "text": "done" }] }, { "steps": [{ "text": "told" }] }] })
}

/// Returns the content of a request's last message as JSON.
#[track_caller]
fn last_message_json(asked: &ReceivedRequest) -> Value {
    let asked = asked.json();
    let last = asked["messages"].as_array().unwrap().last().unwrap();
    let content = last["content"].as_str().unwrap_or_else(|| panic!("{last}"));
    serde_json::from_str(content).unwrap_or_else(|error| panic!("{error}: {last}"))
}

fn object_keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[track_caller]
fn assert_is_handle(result: &Value) {
    let mut found = object_keys(result);
    found.sort_unstable();
    let wanted = [
        "auto_backgrounded",
        "message",
        "plugin_name",
        "task_id",
        "threshold_seconds",
        "tool_name",
    ];
    assert_eq!(found, wanted, "{result}");
    assert_eq!(
        (&result["auto_backgrounded"], &result["task_id"]),
        (&json!(true), &json!("task_1"))
    );
    let tool = (&result["plugin_name"], &result["tool_name"]);
    assert_eq!(tool, (&json!("cli"), &json!("cli_based_tool")));
    assert_eq!(result["threshold_seconds"], 0.5);
    let message = result["message"].as_str().unwrap();
    assert!(message.starts_with("The call exceeded 0.5s and"), "{message}");
    assert!(message.contains("do not repeat the call"), "{message}");
}

/// The arguments of a run with event output.
const RUN: [&str; 7] = ["run", "--yes", "--model", "openai/test", "--output", "json", "hello"];

#[test]
fn long_command_becomes_a_task_and_its_outcome_reaches_the_model() {
    let house = cli_house!();
    ship_openai(&house);
    house.configure_more("auto_background_threshold_ms = 500\n");
    let call = |command: &str| Answer::calls(&[("cli_based_tool", json!({ "command": command }))]);
    let server = Server::start([
        call("echo on; until [ -e go ]; do sleep 0.01; done; echo freed"),
        call("echo beside"),
        Answer::text(&["I wait."]),
        Answer::text(&["It is freed."]),
    ]);
    let running = openai_command(&house, &server, &RUN).no_input().start();
    running.wait_for("I wait.");
    // Nothing is reported before it exists.
    assert_eq!(server.requests().len(), 3);
    house.write("workspace/go", "");
    let output = running.finish().code(0);

    let [_, second, third, last] = <[ReceivedRequest; 4]>::try_from(server.requests()).unwrap();
    assert_is_handle(&last_message_json(&second));
    assert_eq!(last_message_json(&third)["stdout"], "beside\n");
    let told = last_message_json(&last);
    let outcome = &told["task_outcome"];
    let which = (&outcome["task_id"], &outcome["tool_name"], &outcome["status"]);
    assert_eq!(which, (&json!("task_1"), &json!("cli_based_tool"), &json!("completed")), "{told}");
    assert!(outcome["duration_seconds"].as_f64().unwrap() >= 0.5, "{told}");
    assert_eq!(
        outcome["result"],
        json!({ "stdout": "on\nfreed\n", "stderr": "", "returncode": 0 })
    );
    let messages = last.json()["messages"].clone();
    let calls = &messages.as_array().unwrap().iter().find(|it| it["role"] == "assistant").unwrap();
    assert_eq!(calls["tool_calls"][0]["id"], outcome["call_id"], "{messages}");
    // One result per call. The outcome is not a result.
    let results = messages.as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    assert_eq!(results.count(), 2, "{messages}");

    let events = output.json_lines();
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    assert_eq!(of("task_started").len(), 1, "{output}");
    let [finished] = of("task_finished")[..] else { panic!("{output}") };
    assert_eq!(finished["result"]["stdout"], "on\nfreed\n", "{output}");
    assert_eq!((&finished["is_error"], &finished["task_id"]), (&json!(false), &json!("task_1")));
    let results = of("tool_call_finished");
    assert_eq!(results.len(), 2, "{output}");
    assert_is_handle(&results[0]["result"]);
    let [end] = of("turn_finished")[..] else { panic!("{output}") };
    assert_eq!((&end["outcome"], &end["text"]), (&json!("done"), &json!("It is freed.")));
    house.assert_no_processes();
}

#[test]
fn task_past_its_deadline_is_ended_and_reported() {
    let house = cli_house!();
    ship_openai(&house);
    house.configure_more("auto_background_threshold_ms = 500\n");
    let command = "(echo $BASHPID > pid; exec sleep 300) & sleep 300";
    let server = Server::start([
        Answer::calls(&[("cli_based_tool", json!({ "command": command }))]),
        Answer::text(&["I wait."]),
        Answer::text(&["It took too long."]),
    ]);
    let run =
        openai_command(&house, &server, &RUN).variable("JAATO_SESSION_CALL_DEADLINE_MS", "2000");
    let output = run.no_input().run().code(0);
    wait_for_end(read_pid(&house.workspace().join("pid")));
    let [_, second, last] = <[ReceivedRequest; 3]>::try_from(server.requests()).unwrap();
    assert_is_handle(&last_message_json(&second));
    let told = last_message_json(&last);
    let outcome = &told["task_outcome"];
    let which = (&outcome["task_id"], &outcome["status"]);
    assert_eq!(which, (&json!("task_1"), &json!("timeout")), "{told}");
    let error = &outcome["result"]["error"];
    assert_eq!(error["kind"], "timeout", "{told}");
    assert!(error["message"].as_str().unwrap().contains("took longer than 2 s"), "{told}");
    let events = output.json_lines();
    let finished = events.iter().find(|event| event["event"] == "task_finished").unwrap();
    assert_eq!(finished["is_error"], true, "{output}");
    let end = events.last().unwrap();
    assert_eq!((&end["outcome"], &end["text"]), (&json!("done"), &json!("It took too long.")));
    house.assert_no_processes();
}

#[test]
fn ctrl_c_ends_a_command_that_became_a_background_task() {
    let house = cli_house!();
    let mut script = script_that_waits_and_releases();
    script["answers"][1] = json!({ "steps": ["hang"] });
    house.set_script(&script);
    house.configure_more("[session]\nauto_background_threshold_ms = 100\n");
    let running = house.command(&["run", "--yes", "--output", "json", "hello"]).no_input().start();
    running.wait_for("task_started");
    let pid = read_pid(&house.workspace().join("pid"));
    assert!(is_running(pid));
    running.send_signal("INT");
    running.finish().code(130);
    wait_for_end(pid);
    house.assert_no_processes();
}

#[test]
fn outcome_of_a_cancelled_task_is_sent_with_the_next_message() {
    let house = cli_house!();
    ship_openai(&house);
    house.configure_more("auto_background_threshold_ms = 500\n");
    let command = "(echo $BASHPID > pid; exec sleep 300) & echo on; sleep 300";
    let server = Server::start([
        Answer::calls(&[("cli_based_tool", json!({ "command": command }))]),
        Answer::text(&["I wait."]),
        Answer::text(&["It was stopped."]),
    ]);
    let words = ["chat", "--yes", "--model", "openai/test", "hello"];
    let mut running = openai_command(&house, &server, &words).start();
    running.wait_for_text("I wait.");
    // The whole answer has arrived, and the turn waits for the command.
    let ledger = house.home().join(".local/share/jaato/ledger.jsonl");
    let responses = || {
        let ledger = std::fs::read_to_string(&ledger).unwrap_or_default();
        ledger.matches("\"stage\":\"response\"").count()
    };
    let bound = Instant::now() + END_WITHIN;
    while responses() < 2 {
        assert!(Instant::now() < bound, "the ledger has {} responses", responses());
        std::thread::sleep(LOOK_AGAIN);
    }
    running.send_signal("INT");
    running.wait_for_error("cancelled");
    wait_for_end(read_pid(&house.workspace().join("pid")));
    running.write(b"what now?\n");
    running.wait_for_text("It was stopped.");
    let output = running.finish().code(0);
    let [_, second, last] = <[ReceivedRequest; 3]>::try_from(server.requests()).unwrap();
    assert_is_handle(&last_message_json(&second));
    let asked = last.json();
    let messages = asked["messages"].as_array().unwrap();
    let said: Vec<_> = messages.iter().map(|it| (&it["role"], &it["content"])).collect();
    let [.., waits, told, (_, stopped), (_, now)] = &said[..] else { panic!("{asked:#}") };
    assert_eq!(*waits, (&json!("assistant"), &json!("I wait.")));
    let outcome: Value = serde_json::from_str(told.1.as_str().unwrap()).unwrap();
    let outcome = &outcome["task_outcome"];
    let which = (&outcome["task_id"], &outcome["status"], &outcome["call_id"]);
    let expected = (&json!("task_1"), &json!("cancelled"), &json!("call_cli_based_tool_0"));
    assert_eq!((told.0, which), (&json!("user"), expected), "{asked:#}");
    assert_eq!((*stopped, *now), (&json!("[Generation cancelled]"), &json!("what now?")));
    assert_eq!(said.iter().filter(|(role, _)| *role == "tool").count(), 1, "one result per call");
    assert_eq!(output.stdout, "I wait.\nIt was stopped.\n", "{output}");
    house.assert_no_processes();
}

#[test]
fn a_deadline_ends_a_command_with_all_that_it_started() {
    let house = cli_house!();
    let command = "(echo $BASHPID > pid; exec sleep 300) & echo so far; sleep 300";
    let arguments = json!({ "command": command, "timeout_seconds": 1 }).to_string();
    let answer = house.run(&call_words(&arguments)).code(0).json();
    assert_eq!((&answer["stdout"], &answer["timed_out"]), (&json!("so far\n"), &json!(true)));
    wait_for_end(read_pid(&house.workspace().join("pid")));
}

#[test]
fn call_ends_even_if_the_command_stops_its_keeper_process() {
    let Some(house) = house_with_cli() else { return };
    let command = "sleep 300 & kill -STOP $PPID; echo done";
    let arguments = json!({ "command": command }).to_string();
    let output = house.run(&["call", "cli_based_tool", &arguments]).code(0);
    assert!(output.stdout.contains("done"), "{output}");
    house.assert_no_processes();
}
