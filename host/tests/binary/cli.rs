//! `cli_based_tool` in the real binary: what commands get, how they end, and that nothing of them is left.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::command::LOOK_AGAIN;
use crate::support::{Command, House, Output, fixtures, library_name};

/// The promise is 100 ms; a busy machine gets the rest.
const END_WITHIN: Duration = Duration::from_secs(10);

/// What the memory may grow by, however much is printed.
const GROWTH_KIB_MAX: u64 = 8 * 1024;

/// A house with the tool in it.
fn cli_house() -> Option<House> {
    let house = House::new()?;
    house.ship(&fixtures::house()?.join("plugins").join(library_name("tool_cli")));
    Some(house)
}

macro_rules! cli_house {
    () => {
        match cli_house() {
            Some(house) => house,
            None => return,
        }
    };
}

fn shell(command: &str) -> String {
    json!({ "command": command }).to_string()
}

/// Calls the tool as a person does.
#[track_caller]
fn call(house: &House, command: &str) -> Value {
    house.run(&["call", "cli_based_tool", &shell(command)]).code(0).json()
}

fn words<'a>(arguments: &'a str) -> [&'a str; 3] {
    ["call", "cli_based_tool", arguments]
}

/// Calls the tool once a line, in one session.
#[track_caller]
fn batch(command: Command, lines: &[Value]) -> (Vec<Value>, Output) {
    let lines: Vec<String> = lines
        .iter()
        .map(|args| json!({ "tool": "cli_based_tool", "args": args }).to_string())
        .collect();
    let output = command.input(lines.join("\n")).run();
    (output.json_lines(), output)
}

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

fn one_call(command: &str) -> Value {
    let call = json!({ "name": "cli_based_tool", "arguments": { "command": command } });
    json!({ "answers": [{ "steps": [{ "call": call }] }, { "steps": [{ "text": "done" }] }] })
}

#[test]
fn a_person_calls_and_sees_what_is_printed() {
    let house = cli_house!();
    let arguments = shell("echo hi; echo no >&2; cd /usr && pwd; exit 3");
    let output = house.run(&words(&arguments)).code(0);
    let expected = json!({ "stdout": "hi\n/usr\n", "stderr": "no\n", "returncode": 3 });
    assert_eq!(output.json(), expected);
    assert!(output.stderr.contains("  cli │ hi\n"), "{output}");
    house.nothing_lives();
}

#[test]
fn a_signal_is_told_by_name_and_number() {
    let house = cli_house!();
    let answer = call(&house, "kill -KILL $$");
    assert_eq!(answer["returncode"], Value::Null);
    assert_eq!(answer["signal"], json!({ "name": "SIGKILL", "number": 9 }));
}

#[test]
fn a_command_reads_nothing_of_what_is_meant_for_jaato() {
    let house = cli_house!();
    let lines = [json!({ "command": "cat; echo end" }), json!({ "command": "echo second" })];
    let (answers, _) = batch(house.command(&["call", "--batch"]), &lines);
    let told: Vec<_> = answers.iter().map(|answer| &answer["result"]["stdout"]).collect();
    assert_eq!(told, [&json!("end\n"), &json!("second\n")]);
}

#[test]
fn secrets_are_kept_from_commands_unless_a_person_passes_them() {
    let house = cli_house!();
    let arguments = shell("echo \"${MY_TOKEN-none} ${other_key-none} ${PLAIN-none}\"");
    let run = || {
        let command = house.command(&words(&arguments));
        let command = command.variable("MY_TOKEN", "t").variable("other_key", "k");
        command.variable("PLAIN", "p").run().code(0).json()["stdout"].clone()
    };
    assert_eq!(run(), "none none p\n");
    house.configure("[tools.cli]\npass = [\"MY_TOKEN\"]\n");
    assert_eq!(run(), "t none p\n");
}

#[test]
fn a_command_cannot_give_trust() {
    let house = cli_house!();
    house.write("workspace/AGENTS.md", "Obey.");
    let binary = house.binary();
    let binary = binary.display();
    for command in [
        format!("'{binary}' trust"),
        format!("env -u JAATO_SESSION_ID '{binary}' trust"),
        format!("env -i setsid -w '{binary}' trust"),
    ] {
        let answer = call(&house, &command);
        assert_eq!(answer["returncode"], 3, "{answer}");
        let text = answer["stderr"].as_str().unwrap();
        assert!(text.contains("started by a session"), "{answer}");
    }
    assert_ne!(call(&house, "echo $JAATO_SESSION_ID")["stdout"], "\n");
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
fn much_and_binary_output_is_kept_whole_and_told_in_part() {
    let house = cli_house!();
    let mut running = house.command(&["call", "--batch"]).start();
    let mut ask = |command: &str| {
        let line = json!({ "tool": "cli_based_tool", "args": { "command": command } });
        running.write(format!("{line}\n").as_bytes());
        let line = running.line();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer["result"].to_string().len() <= 16 * 1024, "{}", answer["result"]);
        (answer["result"].clone(), memory_kib(running.id()))
    };
    ask("seq 1 100000");
    let (_, before) = ask("true");
    for (command, bytes) in [
        ("yes 0123456789012345678901234567890123456789 | head -c 22000000", 22_000_000),
        ("head -c 40000000 /dev/urandom", 40_000_000),
    ] {
        let (told, after) = ask(command);
        assert_eq!((&told["truncated"], &told["returncode"]), (&json!(true), &json!(0)));
        let message = told["truncation_message"].as_str().unwrap();
        assert!(message.starts_with(&format!("stdout has {bytes} bytes")), "{message}");
        let file = told["output_file"].as_str().unwrap();
        let (counted, _) = ask(&format!("wc -c < '{file}'"));
        assert_eq!(counted["stdout"].as_str().unwrap().trim(), bytes.to_string());
        assert!(after <= before + GROWTH_KIB_MAX, "{before} KiB, then {after} KiB: {command}");
    }
    running.finish().code(0);
}

/// The largest memory that the process has had.
fn memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
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

#[test]
fn eight_calls_of_one_answer_run_side_by_side() {
    let house = cli_house!();
    // Each waits for all: one after the other they would wait for ever.
    let command = |number: usize| {
        format!("touch here.{number}; until [ $(ls here.* | wc -l) -eq 8 ]; do sleep 0.01; done")
    };
    let calls: Vec<_> = (0..8)
        .map(|number| {
            let arguments = json!({ "command": command(number), "timeout_seconds": 30 });
            json!({ "call": { "name": "cli_based_tool", "arguments": arguments } })
        })
        .collect();
    house.script(&json!({ "answers": [{ "steps": calls }, { "steps": [{ "text": "done" }] }] }));
    let output = house.run(&["run", "--yes", "--output", "json", "hello"]).code(0);
    let events = output.json_lines();
    let finished = events.iter().filter(|event| event["event"] == "tool_call_finished");
    let codes: Vec<_> = finished.map(|event| event["result"]["returncode"].clone()).collect();
    assert_eq!(codes, vec![json!(0); 8]);
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
fn a_model_runs_no_command_unasked() {
    let house = cli_house!();
    house.script(&one_call("touch made"));
    house.command(&["run", "hello"]).no_input().run().code(6);
    assert!(!house.workspace().join("made").exists());
    let output = house.command(&["run", "--allow", "cli_based_tool", "hello"]).no_input().run();
    assert_eq!(output.code(0).stdout, "done\n");
    assert!(house.workspace().join("made").exists());
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

#[test]
fn what_is_not_there_is_told() {
    let house = cli_house!();
    let missing = call(&house, "no_such_program");
    assert_eq!(missing["returncode"], 127);
    assert!(missing["stderr"].as_str().unwrap().contains("no_such_program"), "{missing}");
    let folder: PathBuf = house.workspace().join("sub");
    std::fs::create_dir(&folder).unwrap();
    let lines = [json!({ "command": "rmdir \"$PWD\"" }), json!({ "command": "ls" })];
    let (answers, _) = batch(house.command(&["call", "--batch"]).directory(&folder), &lines);
    assert_eq!(answers[0]["result"]["returncode"], 0, "{answers:?}");
    let error = &answers[1]["error"];
    assert_eq!(error["kind"], "not_found", "{answers:?}");
    assert!(error["message"].as_str().unwrap().contains("sub"), "{answers:?}");
}

#[test]
fn odd_commands_are_run_as_they_are_or_refused() {
    let house = cli_house!();
    let text = "a 'b' \"c\"\n\t$x \\ möndchen 🌒";
    let lines = [
        json!({ "command": "printf", "args": ["%s", text] }),
        json!({ "command": "cat <<'END'\n$HOME `x` \"'\nEND\n" }),
        json!({ "command": "echo a\0b" }),
        json!({ "command": " " }),
        json!({ "command": "echo on" }),
    ];
    let (answers, _) = batch(house.command(&["call", "--batch"]), &lines);
    assert_eq!(answers[0]["result"]["stdout"], text);
    assert_eq!(answers[1]["result"]["stdout"], "$HOME `x` \"'\n");
    assert_eq!(answers[2]["error"]["kind"], "invalid_arguments", "{answers:?}");
    assert_eq!(answers[3]["error"]["kind"], "invalid_arguments", "{answers:?}");
    assert_eq!(answers[4]["result"]["stdout"], "on\n");
}
