//! Tests failed writes: a full disk, a closed output, a file at its size limit, a stopped terminal.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::house;
use crate::support::command::{DEADLINE, LOOK_AGAIN};
use crate::support::{Command, House, Output};

fn text_answer(text: &str) -> serde_json::Value {
    json!({ "answers": [{ "steps": [{ "text": text }] }], "repeat_last": true })
}

/// Runs a shell line in which `$JAATO` is the binary.
fn run_shell_line(house: &House, line: &str) -> Output {
    let command = Command::program(house, "sh", &["-c", line]);
    command.variable("JAATO", house.binary()).input("hello\n").run()
}

#[test]
fn failed_write_to_standard_output_is_reported_with_exit_code_1() {
    let house = house!();
    house.set_script(&text_answer("hello"));
    let every = [
        "run go",
        "run --output json go",
        "chat",
        "call get_environment '{\"aspect\": \"os\"}'",
        "tool list",
        "plugin list --json",
        "run --show-prompt",
        "command",
        "config show",
        "doctor",
        "--help",
        "--version",
    ];
    for words in every {
        for output in [">/dev/full", ">&-", ">there; exit $?"] {
            let limit = if output.starts_with(">there") { "ulimit -f 0; " } else { "" };
            let ended = run_shell_line(&house, &format!("{limit}\"$JAATO\" {words} {output}"));
            assert_eq!(ended.code, 1, "{words} {output}: {ended}");
            let told = ended.stderr.matches("error: cannot write to standard output: ").count();
            assert_eq!(told, 1, "{words} {output}: {ended}");
        }
    }
    house.assert_no_processes();
}

#[test]
fn failed_write_is_reported_on_every_run() {
    let house = house!();
    house.set_script(&text_answer("hello"));
    for _ in 0..10 {
        let ended = run_shell_line(&house, "\"$JAATO\" run go >/dev/full").code(1);
        assert!(ended.stderr.contains("cannot write to standard output: No space left"), "{ended}");
    }
}

#[test]
fn failed_writes_to_standard_error_do_not_stop_the_turn() {
    let house = house!(ships "probe");
    let call = json!({ "call": { "name": "count", "arguments": {} } });
    house.set_script(&json!({ "answers": [
        { "steps": [call] },
        { "expect": { "tool_result": "\"count\":1" }, "steps": [{ "text": "done" }] },
    ] }));
    for errors in ["2>/dev/full", "2>&-"] {
        let ended = run_shell_line(&house, &format!("\"$JAATO\" run --yes go {errors}")).code(0);
        assert_eq!(ended.stdout, "done\n", "{errors}: {ended}");
    }
}

#[test]
fn failed_write_of_a_commands_output_is_reported() {
    let house = house!();
    let built = crate::support::fixtures::test_house().unwrap().join("plugins");
    house.ship(&built.join(crate::support::library_name("environment_local")));
    let ended = run_shell_line(&house, "\"$JAATO\" environment exec -- echo hi >/dev/full").code(1);
    assert!(ended.stderr.contains("cannot write"), "{ended}");
}

#[test]
fn list_exits_quietly_when_its_pipe_is_closed() {
    let house = house!();
    let output = house.command(&["tool", "list"]).run_into_closed_output(1);
    assert_eq!(output.stderr, "", "{output}");
}

/// Returns a process's peak memory, in KiB.
fn memory_kib(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn unread_errors_use_bounded_memory_and_ctrl_c_ends_the_run() {
    // Far more than the queue holds, and than the run needs without it.
    const FLOOD_BYTES: u64 = 48 * 1024 * 1024;
    let house = house!(ships "probe");
    let marker = house.workspace().join("marker");
    let call = |name: &str, arguments| json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] });
    // One MiB per call, because a plugin that emits for longer than 100 ms in one poll is disabled.
    let (pieces, bytes) = (16, 64 * 1024);
    let emit = &call("emit", json!({ "pieces": pieces, "bytes": bytes }))["steps"][0];
    // Few steps, because each one is saved.
    let calls_of_a_step = 8;
    let mut answers: Vec<_> = (0..FLOOD_BYTES / (pieces * bytes * calls_of_a_step))
        .map(|_| json!({ "steps": vec![emit; calls_of_a_step as usize] }))
        .collect();
    answers.push(call("sleep_and_mark", json!({ "path": marker, "milliseconds": 0 })));
    answers.push(json!({ "steps": ["hang"] }));
    house.set_script(&json!({ "answers": answers }));
    let mut command = std::process::Command::new(house.binary());
    command.args(["run", "--yes", "go"]).current_dir(house.workspace());
    command.env_clear().env("HOME", house.home()).env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begin = Instant::now();
    while !marker.exists() {
        assert!(begin.elapsed() < DEADLINE, "the turn does not continue");
        std::thread::sleep(LOOK_AGAIN);
    }
    let memory = memory_kib(child.id());
    let id = child.id().to_string();
    let kill = |signal: &str| {
        let words = ["-s", signal, &id];
        assert!(std::process::Command::new("kill").args(words).status().unwrap().success());
    };
    kill("INT");
    let begin = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(30) {
            kill("KILL");
            child.wait().unwrap();
            panic!("Ctrl-C does not end it");
        }
        std::thread::sleep(LOOK_AGAIN);
    };
    assert_eq!(ended.code(), Some(130));
    assert!(memory < 112 * 1024, "{memory} KiB");
    house.assert_no_processes();
}

#[test]
fn omitted_output_is_reported_when_reading_resumes() {
    let house = house!(ships "probe");
    let marker = house.workspace().join("marker");
    let call = |name: &str, arguments| json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] });
    house.set_script(&json!({ "answers": [
        call("emit", json!({ "pieces": 500, "bytes": 64 * 1024 })),
        call("emit", json!({ "pieces": 500, "bytes": 64 * 1024 })),
        call("sleep_and_mark", json!({ "path": marker, "milliseconds": 0 })),
        { "steps": [{ "text": "the whole answer" }] },
    ] }));
    let mut command = std::process::Command::new(house.binary());
    command.args(["run", "--yes", "go"]).current_dir(house.workspace());
    command.env_clear().env("HOME", house.home()).env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begin = Instant::now();
    while !marker.exists() {
        if begin.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("the turn does not continue");
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(answer, "the whole answer\n");
    assert!(errors.contains("host: left out: "), "{} bytes arrived", errors.len());
}
