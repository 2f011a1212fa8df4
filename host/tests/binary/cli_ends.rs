//! How commands end in the real binary: with their call, with jaato, at their deadline; and that nothing of them
//! is left.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{batch, cli_house, one_call, shell, words};
use crate::support::House;
use crate::support::command::LOOK_AGAIN;

/// The promise is 100 ms; a busy machine gets the rest.
const END_WITHIN: Duration = Duration::from_secs(10);

/// Reads a process id that a command has written.
#[track_caller]
fn pid_in(file: &Path) -> u32 {
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

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[track_caller]
fn ends(pid: u32) {
    let bound = Instant::now() + END_WITHIN;
    while lives(pid) {
        assert!(Instant::now() < bound, "process {pid} lives on");
        std::thread::sleep(LOOK_AGAIN);
    }
}

#[test]
fn what_is_left_running_hangs_nothing_and_is_ended_and_told_at_the_end() {
    let house = cli_house!();
    for command in [
        "(sleep 300 & echo $! > pid)",
        "setsid sleep 300 & echo $! > pid",
        "nohup sleep 300 >/dev/null 2>&1 & echo $! > pid",
        "env -i setsid sh -c '(sleep 300 & echo $! > pid)'",
    ] {
        // Until then it has the name of who became it.
        let settled = "until grep -q sleep /proc/$(cat pid)/comm; do :; done";
        let arguments = shell(&format!("{command}\n{settled}\necho started"));
        let output = house.run(&words(&arguments)).code(0);
        let pid = pid_in(&house.workspace().join("pid"));
        let answer = output.json();
        assert_eq!(answer["stdout"], "started\n");
        assert_eq!(answer["left_running"], json!([{ "pid": pid, "name": "sleep" }]), "{command}");
        let told = format!("note: ended process {pid} (sleep), left running by `");
        assert_eq!(output.stderr.matches(&told).count(), 1, "{output}");
        assert!(!lives(pid), "{command}");
        std::fs::remove_file(house.workspace().join("pid")).unwrap();
    }
    house.nothing_lives();
}

#[test]
fn what_was_left_running_lives_on_for_the_next_call() {
    let house = cli_house!();
    let lines = [
        // It prints after the command's end, when nobody reads that any more.
        json!({ "command": "(while :; do echo tick; sleep 0.01; done) & echo $! > pid" }),
        json!({ "command": "sleep 0.2; kill -0 $(cat pid) && kill $(cat pid) && echo alive" }),
    ];
    let (answers, output) = batch(house.command(&["call", "--batch"]), &lines);
    assert_eq!(answers[1]["result"]["stdout"], "alive\n", "{output}");
    house.nothing_lives();
}

#[test]
fn ctrl_c_ends_a_command_that_prints_without_end() {
    let house = cli_house!();
    let command = "(echo $$ > pid); while :; do echo tick; done";
    house.script(&one_call(command));
    let arguments = shell(command);
    for words in [&["run", "--yes", "hello"][..], &words(&arguments)] {
        for signal in ["INT", "TERM"] {
            let running = house.command(words).no_input().start();
            running.wait_for_error("tick");
            let pid = pid_in(&house.workspace().join("pid"));
            running.signal(signal);
            let signalled = Instant::now();
            let output = running.finish();
            assert_eq!(output.code, 130, "{}", output.stderr.len());
            assert!(signalled.elapsed() < END_WITHIN, "{:?}", signalled.elapsed());
            ends(pid);
            house.nothing_lives();
            std::fs::remove_file(house.workspace().join("pid")).unwrap();
        }
    }
}

/// Commands that try to get away, and write the process id of who shall be looked for.
const RUNAWAYS: [&str; 3] = [
    "(echo $BASHPID > pid; exec sleep 300) & echo on; sleep 300",
    "setsid sh -c 'echo $$ > pid; exec sleep 300' & echo on; sleep 300",
    "env -i setsid sh -c '(sleep 300 & echo $! > pid)'; echo on; sleep 300",
];

#[test]
fn ctrl_c_ends_what_tries_to_get_away() {
    let house = cli_house!();
    runaways_end(&house, "INT", 130);
}

#[test]
fn a_killed_host_leaves_no_command_behind() {
    let house = cli_house!();
    runaways_end(&house, "KILL", 128 + 9);
}

#[track_caller]
fn runaways_end(house: &House, signal: &str, code: i32) {
    for command in RUNAWAYS {
        house.script(&one_call(command));
        let running = house.command(&["run", "--yes", "hello"]).no_input().start();
        running.wait_for_error("│ on");
        let pid = pid_in(&house.workspace().join("pid"));
        assert!(lives(pid), "{command}");
        running.signal(signal);
        running.finish().code(code);
        ends(pid);
        house.nothing_lives();
        std::fs::remove_file(house.workspace().join("pid")).unwrap();
    }
}

/// A command that waits for a file, and one that makes it.
fn waiting_and_freeing() -> Value {
    let waits = "echo on; echo $$ > pid; until [ -e go ]; do sleep 0.01; done; echo freed";
    let step = |command: &str| {
        let call = json!({ "name": "cli_based_tool", "arguments": { "command": command } });
        json!({ "steps": [{ "call": call }] })
    };
    json!({ "answers": [step(waits), step("touch go"), { "steps": [{ "text": "done" }] }, { "steps": [{ "text": "told" }] }] })
}

#[test]
fn a_command_that_takes_long_goes_on_as_a_task_and_its_outcome_is_told() {
    let house = cli_house!();
    house.script(&waiting_and_freeing());
    house.configure_more("[session]\nauto_background_threshold_ms = 100\n");
    let output = house.run(&["run", "--yes", "--output", "json", "hello"]).code(0);
    let events = output.json_lines();
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    assert_eq!(of("task_started").len(), 1, "{output}");
    let finished = of("task_finished");
    assert_eq!(finished[0]["result"]["stdout"], "on\nfreed\n", "{output}");
    house.nothing_lives();
}

#[test]
fn ctrl_c_ends_a_command_that_goes_on_as_a_task() {
    let house = cli_house!();
    let mut script = waiting_and_freeing();
    script["answers"][1] = json!({ "steps": ["hang"] });
    house.script(&script);
    house.configure_more("[session]\nauto_background_threshold_ms = 100\n");
    let running = house.command(&["run", "--yes", "--output", "json", "hello"]).no_input().start();
    running.wait_for("task_started");
    let pid = pid_in(&house.workspace().join("pid"));
    assert!(lives(pid));
    running.signal("INT");
    running.finish().code(130);
    ends(pid);
    house.nothing_lives();
}

#[test]
fn a_deadline_ends_a_command_with_all_that_it_started() {
    let house = cli_house!();
    let command = "(echo $BASHPID > pid; exec sleep 300) & echo so far; sleep 300";
    let arguments = json!({ "command": command, "timeout_seconds": 1 }).to_string();
    let answer = house.run(&words(&arguments)).code(0).json();
    assert_eq!((&answer["stdout"], &answer["timed_out"]), (&json!("so far\n"), &json!(true)));
    ends(pid_in(&house.workspace().join("pid")));
}
