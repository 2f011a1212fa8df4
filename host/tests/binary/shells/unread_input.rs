//! Tests input that a program does not read: calls end in time, report how much was typed, and can
//! interrupt at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    BASH, ShellCalls, house_with_shells, house_without_terminals, output_text, play_program,
    return_reason,
};
use crate::support::Command;
use crate::terminal::run_on_terminal;

/// More than any terminal or pipe holds.
const INPUT_BYTES: usize = 200_000;

/// How long a call with a timeout of a tenth of a second may take on a busy machine.
const CALL_MAX: Duration = Duration::from_secs(60);

/// Starts a program in a shell that reads nothing, and waits until it runs.
fn start_in_shell(calls: &mut ShellCalls, session: &str, modes: &str) {
    let line = format!("stty {modes}; echo ready; sleep 300\n");
    let begin = json!({ "session_id": session, "input": line, "timeout": 0 });
    calls.call("shell_input", &begin);
    let ready = json!({ "session_id": session, "wait_for": "^ready$", "timeout": 20 });
    calls.call("shell_read", &ready);
}

/// Types too much, and checks that the call ends in time and reports it.
#[track_caller]
fn type_too_much(calls: &mut ShellCalls, session: &str, piece: &str) -> Value {
    let input = piece.repeat(INPUT_BYTES / piece.len());
    let begun = Instant::now();
    let arguments = json!({ "session_id": session, "input": input, "timeout": 0.1 });
    let mut told = calls.call("shell_input", &arguments);
    assert!(begun.elapsed() < CALL_MAX, "{:?}", begun.elapsed());
    // The echo of the input.
    told["output"].take();
    assert_eq!((return_reason(&told), &told["is_alive"]), ("limit", &json!(true)), "{told}");
    assert_eq!(told["input_bytes"], INPUT_BYTES, "{told}");
    assert!(told["note"].as_str().unwrap().contains("does not read"), "{told}");
    assert_eq!(told.get("expects"), None, "{told}");
    told
}

#[test]
fn unread_input_is_reported_and_ctrl_c_still_interrupts() {
    play_program(BASH, |calls, session, _| {
        for (modes, piece) in [("-icanon", "x"), ("icanon", "yes\n")] {
            start_in_shell(calls, session, modes);
            let told = type_too_much(calls, session, piece);
            let typed = told["typed_bytes"].as_u64().unwrap();
            assert!((4_000..100_000).contains(&typed), "{told}");
            let begun = Instant::now();
            let interrupted = calls.press_key(session, "c-c");
            assert!(begun.elapsed() < CALL_MAX, "{:?}", begun.elapsed());
            assert_eq!(return_reason(&interrupted), "waiting", "{interrupted}");
            assert!(output_text(&interrupted).ends_with("^C\n$ "), "{interrupted}");
            // None of it reaches the shell.
            assert_eq!(output_text(&calls.type_text(session, "echo on\n")), "on\n$ ");
        }
    });
}

#[test]
fn signal_reaches_a_program_that_gets_ctrl_c_as_a_byte() {
    play_program(BASH, |calls, session, _| {
        start_in_shell(calls, session, "raw -echo");
        type_too_much(calls, session, "x");
        let key = json!({ "session_id": session, "key": "c-c", "timeout": 0.1 });
        let told = calls.call("shell_control", &key);
        assert_eq!(return_reason(&told), "limit", "{told}");
        let signal = json!({ "session_id": session, "signal": "KILL" });
        let killed = calls.call("shell_control", &signal);
        assert!(output_text(&killed).contains("Killed"), "{killed}");
    });
}

#[test]
fn typing_to_a_stopped_program_returns_in_time_and_ctrl_c_ends_it_later() {
    let line = "sh -c 'echo ready; kill -STOP $$; while read -r line; do :; done'";
    let Some(house) = house_with_shells() else { return };
    let mut calls = ShellCalls::in_house(&house);
    let spawn = json!({ "command": line, "timeout": 0 });
    calls.call("shell_spawn", &spawn);
    let ready = json!({ "session_id": "session_0", "wait_for": "^ready$", "timeout": 20 });
    calls.call("shell_read", &ready);
    type_too_much(&mut calls, "session_0", "yes\n");
    let key = json!({ "session_id": "session_0", "key": "c-c", "timeout": 0.1 });
    let stopped = calls.call("shell_control", &key);
    assert_eq!((return_reason(&stopped), stopped.get("typed_bytes")), ("limit", None), "{stopped}");
    let signal = json!({ "session_id": "session_0", "signal": "CONT" });
    let ended = calls.call("shell_control", &signal);
    assert_eq!(ended["signal"]["name"], "SIGINT", "{ended}");
    calls.end(&house);
}

#[test]
fn unread_input_through_pipes_returns_in_time() {
    let Some(house) = house_without_terminals() else { return };
    let mut calls = ShellCalls::in_house(&house);
    let (session, _) = calls.spawn("sleep 300");
    let told = type_too_much(&mut calls, &session, "yes\n");
    assert_eq!(told["typed_bytes"], Value::Null, "{told}");
    let ended = calls.press_key(&session, "c-c");
    assert_eq!(ended["signal"]["name"], "SIGINT", "{ended}");
    calls.end(&house);
}

#[test]
fn line_longer_than_the_terminal_limit_is_rejected_completely() {
    play_program("cat", |calls, session, _| {
        let longest = "x".repeat(4095);
        let input = json!({ "session_id": session, "input": format!("x{longest}\n") });
        let error = calls.call_refused("shell_input", &input);
        assert_eq!(error["kind"], "limit_reached", "{error}");
        assert!(error["message"].as_str().unwrap().contains("4096 bytes"), "{error}");
        let shown = calls.type_text(session, &format!("{longest}\n"));
        assert_eq!(output_text(&shown).matches('x').count(), longest.len(), "{shown}");
    });
}

#[test]
fn attached_user_is_warned_about_unread_input_and_can_interrupt() {
    let Some(house) = house_with_shells() else { return };
    let mut calls = ShellCalls::in_house(&house);
    let (session, _) = calls.spawn(BASH);
    start_in_shell(&mut calls, &session, "-icanon -echo");
    let words = format!("shell attach {session} --type");
    let as_it_is = |command: Command| command;
    let Some(mut types) = run_on_terminal(&house, &words, as_it_is) else { return };
    types.wait_for_text("typing:");
    types.write(&[b'x'; 40_000]);
    types.wait_for_text("does not read");
    types.write(b"\x03");
    types.write(b"echo from-$((40+2))\r");
    types.wait_for_text("from-42");
    types.write(b"\x1d");
    types.wait_with_open_input().code(0);
    calls.end(&house);
}
