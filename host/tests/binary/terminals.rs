//! Tests terminals of the environment `local` in the real binary, with real programs, through a
//! fixture's tool.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::command::DEADLINE;
use crate::support::{House, fixture, fixtures, library_name, skip};

/// How long one look at a terminal may take on a busy machine. A wait would take longer.
const LOOK_US_MAX: u64 = 1_000_000;

fn set_up_house() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    house.ship(&plugins.join(library_name("environment_local")));
    house.ship(&fixture("terminals"));
    Some(house)
}

fn bash_terminal(steps: Value) -> Value {
    let variables = json!({ "PS1": "$ ", "HISTFILE": "" });
    let args = ["--norc", "--noprofile", "-i"];
    json!({ "program": "bash", "args": args, "variables": variables, "steps": steps })
}

fn sh_terminal(line: &str, steps: Value) -> Value {
    json!({ "program": "sh", "args": ["-c", line], "steps": steps })
}

/// Plays at terminals in one call, and returns the answers and screens of each.
#[track_caller]
fn play_terminals(house: &House, terminals: &[Value]) -> Vec<Value> {
    let arguments = json!({ "terminals": terminals }).to_string();
    let answer = house.run(&["call", "play_terminals", &arguments]).code(0).json();
    answer["terminals"].as_array().unwrap().clone()
}

/// Plays at one terminal, and checks the answers.
#[track_caller]
fn check_terminal(terminal: &Value, look: impl Fn(&[Value], &str)) {
    let Some(house) = set_up_house() else { return };
    let played = play_terminals(&house, std::slice::from_ref(terminal));
    let answers = played[0]["answers"].as_array().unwrap();
    look(answers, played[0]["shown"].as_str().unwrap());
    house.assert_no_processes();
}

fn exit_json(code: i32) -> Value {
    json!({ "code": code, "timed_out": false })
}

/// Returns how a terminal handles input: shown or not, by lines or not.
fn input_modes(state: &Value) -> (bool, bool) {
    (state["echoes"].as_bool().unwrap(), state["reads_lines"].as_bool().unwrap())
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        skip(&format!("there is no `{program}`"));
    }
    found
}

#[test]
fn a_shell_is_seen_waiting_at_its_prompt_and_busy_with_a_command() {
    let steps = json!([
        { "waits": "reading" },
        { "measure": 50 },
        { "type": "echo $((6 * 7)); stty size; echo $TERM\n" },
        { "shown": "42\r\n24 80\r\nxterm-256color\r\n" },
        { "waits": "reading" },
        { "type": "sleep 300\n" },
        { "waits": "busy" },
        { "type": "\u{3}" },
        { "waits": "reading" },
        { "type": "exit 7\n" },
        "exit",
    ]);
    check_terminal(&bash_terminal(steps), |answers, _| {
        let [prompt, took, again, busy, after, exit] = answers else { panic!("{answers:?}") };
        for state in [prompt, again, after] {
            assert_eq!(state["foreground_name"], "bash");
            assert_eq!(
                (&state["waiter_pid"], input_modes(state)),
                (&state["foreground_pid"], (false, false))
            );
        }
        assert_eq!((&busy["foreground_name"], input_modes(busy)), (&json!("sleep"), (true, true)));
        assert_eq!(busy.get("waiter_pid"), None);
        assert!(took.as_u64().unwrap() < LOOK_US_MAX, "{took} µs");
        assert_eq!(exit, &exit_json(7));
    });
}

#[test]
fn secret_prompt_is_detected_by_disabled_echo() {
    let steps = json!([
        { "shown": "Password: " }, { "waits": "reading" },
        { "type": "moon\n" }, { "shown": "got 4" }, "exit",
    ]);
    let line = "printf 'Password: '; stty -echo; read x; stty echo; echo got ${#x}";
    check_terminal(&sh_terminal(line, steps), |answers, shown| {
        assert_eq!(input_modes(&answers[0]), (false, true));
        assert!(!shown.contains("moon"), "{shown}");
        assert_eq!(answers[1], exit_json(0));
    });
}

#[test]
fn prompt_without_newline_counts_as_waiting_and_computing_as_busy() {
    let program = "x = input('name? ')\nwhile True: pass\n";
    let steps = json!([
        { "shown": "name? " }, { "waits": "reading" }, { "type": "moon\n" }, { "waits": "busy" },
        { "signal": "interrupt" }, { "shown": "KeyboardInterrupt" }, "exit",
    ]);
    let python = json!({ "program": "python3", "args": ["-c", program], "steps": steps });
    if !is_installed("python3") {
        return;
    }
    check_terminal(&python, |answers, _| {
        assert_eq!(input_modes(&answers[0]), (true, true));
        assert!(answers[0]["foreground_name"].as_str().unwrap().starts_with("python"));
        assert_eq!(answers[2]["signal"], 2);
    });
}

#[test]
fn ctrl_d_ends_a_file_read_from_the_terminal() {
    let steps = json!([
        { "waits": "reading" }, { "type": "moon" }, { "waits": "reading" },
        { "type": "\n" }, { "shown": "\r\nmoon\r\n" }, { "waits": "reading" },
        { "type": "\u{4}" }, "exit",
    ]);
    let cat = json!({ "program": "cat", "steps": steps });
    check_terminal(&cat, |answers, _| assert_eq!(answers[3], exit_json(0)));
}

#[test]
fn waiting_process_is_found_below_the_foreground_process() {
    // The shell waits for its child, which waits for another process that reads.
    let steps = json!([{ "waits": "reading" }, { "type": "\u{4}" }, "exit"]);
    let line = "sh -c 'sleep 300 & cat >/dev/null; kill $!; wait'; exit 4";
    check_terminal(&sh_terminal(line, steps), |answers, _| {
        assert_ne!(answers[0]["waiter_pid"], answers[0]["foreground_pid"]);
        assert_eq!(answers[1], exit_json(4));
    });
}

#[test]
fn program_is_notified_when_the_terminal_is_resized() {
    let steps = json!([
        { "shown": "11 22\r\n" }, { "waits": "busy" }, { "resize": [33, 44] }, { "shown": "33 44\r\n" },
        "exit",
    ]);
    let line = "trap 'stty size; exit 0' WINCH; stty size; while :; do sleep 0.01; done";
    let mut terminal = sh_terminal(line, steps);
    (terminal["rows"], terminal["columns"]) = (json!(11), json!(22));
    check_terminal(&terminal, |answers, _| assert_eq!(answers[1], exit_json(0)));
}

#[test]
fn full_screen_programs_are_seen_waiting_for_a_key() {
    for (program, args, quit) in
        [("less", json!(["/etc/passwd"]), "q"), ("vim", json!(["-u", "NONE"]), "\u{1b}:q!\r")]
    {
        if !is_installed(program) {
            continue;
        }
        let waits = if program == "vim" { "reading_for_a_while" } else { "reading" };
        let steps = json!([{ "waits": waits }, { "type": quit }, "exit"]);
        let terminal = json!({ "program": program, "args": args, "steps": steps });
        check_terminal(&terminal, |answers, _| {
            assert_eq!(input_modes(&answers[0]), (false, false), "{program}");
            assert_eq!(answers[1], exit_json(0), "{program}");
        });
    }
}

#[test]
fn signal_ends_the_foreground_process_and_is_reported_as_a_signal() {
    let steps = json!([{ "waits": "busy" }, { "signal": "quit" }, "exit"]);
    let sleep = json!({ "program": "sleep", "args": ["300"], "steps": steps });
    check_terminal(&sleep, |answers, _| assert_eq!(answers[1]["signal"], 3));
    let steps = json!([{ "shown": "on" }, "end", "exit"]);
    let deaf = sh_terminal(
        "trap '' TERM HUP; setsid sleep 300 & echo on; while :; do sleep 1; done",
        steps,
    );
    check_terminal(&deaf, |answers, _| assert_eq!(answers[0]["signal"], 9));
}

#[test]
fn program_with_endless_output_is_blocked_while_no_one_reads() {
    let steps = json!([{ "stall": 100 }, { "shown": "y\r\ny" }, "end", "exit"]);
    let yes = json!({ "program": "yes", "steps": steps });
    check_terminal(&yes, |answers, _| {
        let [early, late] = answers[0].as_array().unwrap().as_slice() else {
            panic!("{answers:?}")
        };
        assert_eq!(early, late, "reading continued");
        assert!(early.as_u64().unwrap() <= 256 * 1024, "{early} bytes were read without a reader");
    });
}

#[test]
fn all_output_precedes_the_exit_even_if_a_child_holds_the_terminal() {
    let steps = json!([{ "shown": "last words" }, "exit"]);
    let line = "trap '' HUP; sleep 300 & i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; printf 'last words'; exit 5";
    check_terminal(&sh_terminal(line, steps), |answers, shown| {
        assert_eq!(answers[0]["code"], 5);
        assert_eq!(answers[0]["left_running"][0]["name"], "sleep");
        assert!(shown.ends_with("line 2999\r\nlast words"), "{shown}");
    });
}

#[test]
fn program_that_cannot_be_started_is_reported() {
    let Some(house) = set_up_house() else { return };
    let refused = |terminal: Value| {
        let arguments = json!({ "terminals": [terminal] }).to_string();
        house.run(&["call", "play_terminals", &arguments]).code(1).stderr
    };
    let told = refused(json!({ "program": "no-such-program", "steps": [] }));
    assert!(told.contains("`no-such-program`") && told.contains("no such program"), "{told}");
    house.assert_no_processes();
}

#[test]
fn eight_terminals_run_independently() {
    let terminals: Vec<Value> = (0..8)
        .map(|number| match number {
            3 => json!({ "program": "yes", "steps": [{ "shown": "y" }, "end", "exit"] }),
            _ => bash_terminal(json!([
                { "waits": "reading" }, { "type": format!("echo {number}-$((number={number}+1))\n") },
                { "shown": format!("{number}-{}\r\n", number + 1) }, { "waits": "reading" },
                { "type": format!("exit {number}\n") }, "exit",
            ])),
        })
        .collect();
    let Some(house) = set_up_house() else { return };
    let played = play_terminals(&house, &terminals);
    for (number, terminal) in played.iter().enumerate().filter(|(number, _)| *number != 3) {
        assert_eq!(terminal["answers"][2], exit_json(number.try_into().unwrap()));
    }
    house.assert_no_processes();
}

/// The promise is 100 ms. The rest is for a busy machine.
const END_WITHIN: Duration = DEADLINE;

#[track_caller]
fn read_pid(file: &Path) -> u32 {
    let bound = Instant::now() + END_WITHIN;
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let (Ok(pid), true) = (text.trim().parse(), text.ends_with('\n')) {
            return pid;
        }
        assert!(Instant::now() < bound, "no process id in `{}`", file.display());
        std::thread::sleep(crate::support::command::LOOK_AGAIN);
    }
}

#[test]
fn killed_host_leaves_no_processes_of_a_terminal() {
    let Some(house) = set_up_house() else { return };
    let line = "trap '' HUP TERM; setsid sh -c 'echo $$ > away; exec sleep 300' & \
                echo $$ > pid; while :; do sleep 1; done";
    let terminals = [sh_terminal(line, json!(["exit"]))];
    let arguments = json!({ "terminals": terminals }).to_string();
    let running = house.command(&["call", "play_terminals", &arguments]).no_input().start();
    let files: [PathBuf; 2] = ["pid", "away"].map(|file| house.workspace().join(file));
    let pids = files.each_ref().map(|file| read_pid(file));
    running.send_signal("KILL");
    running.finish().code(128 + 9);
    house.assert_no_processes();
    for pid in pids {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let lives = state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'));
        assert!(!lives, "{pid} is still running: {state}");
    }
    files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
}
