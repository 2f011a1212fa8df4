//! Tests job control: keys, signals, programs that ignore them, and the effect on a terminal.

use serde_json::json;

use super::{BASH, output_text, play_program, return_reason};

#[test]
fn keys_interrupt_suspend_and_end_the_input() {
    play_program(BASH, |calls, session, _| {
        let line = json!({ "session_id": session, "input": "sleep 300\n", "timeout": 0.05 });
        calls.call("shell_input", &line);
        assert_eq!(output_text(&calls.press_key(session, "c-c")), "^C\n$ ");
        calls.call("shell_input", &line);
        let stopped = calls.press_key(session, "c-z");
        assert!(output_text(&stopped).contains("Stopped"), "{stopped}");
        assert!(output_text(&calls.type_text(session, "jobs\n")).contains("sleep 300"));
        let again = json!({ "session_id": session, "input": "fg\n", "timeout": 0.05 });
        assert_eq!(return_reason(&calls.call("shell_input", &again)), "limit");
        calls.press_key(session, "c-\\");
        assert_eq!(output_text(&calls.type_text(session, "echo $?\n")), "131\n$ ");
        let end = calls.press_key(session, "c-d");
        assert_eq!((return_reason(&end), &end["is_alive"]), ("exit", &json!(false)));
        assert_eq!(end["exit_status"], 0);
    });
}

#[test]
fn ctrl_l_clears_the_screen_and_keys_have_names() {
    play_program(BASH, |calls, session, _| {
        calls.type_text(session, "echo one\n");
        assert_eq!(output_text(&calls.press_key(session, "c-l")).trim_end(), "$");
        calls.type_text(session, "echo tw");
        calls.press_key(session, "backspace");
        calls.press_key(session, "home");
        calls.press_key(session, "end");
        let line = calls.type_text(session, "hree\n");
        assert!(output_text(&line).contains("three"), "{line}");
        // The previous input comes back.
        let back = calls.press_key(session, "up");
        assert!(output_text(&back).contains("echo three"), "{back}");
        let done = calls.press_key(session, "enter");
        assert!(output_text(&done).contains("three\n$ "), "{done}");
    });
}

#[test]
fn signals_go_to_the_foreground() {
    play_program(BASH, |calls, session, _| {
        let trap = "(trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.01; done)\n";
        let line = json!({ "session_id": session, "input": trap, "timeout": 0 });
        calls.call("shell_input", &line);
        let ready = json!({ "session_id": session, "wait_for": "^ready$", "timeout": 20 });
        calls.call("shell_read", &ready);
        let signal = json!({ "session_id": session, "signal": "USR1" });
        let caught = calls.call("shell_control", &signal);
        assert!(output_text(&caught).contains("caught"), "{caught}");
        assert_eq!(output_text(&calls.type_text(session, "echo $?\n")), "5\n$ ");
    });
}

#[test]
fn program_that_ignores_signals_is_killed_on_close() {
    play_program(
        "sh -c 'trap \"\" HUP INT TERM QUIT; echo on; while :; do sleep 1; done'",
        |calls, session, spawned| {
            assert_eq!(output_text(spawned).lines().next(), Some("on"));
            let key = json!({ "session_id": session, "key": "c-c", "timeout": 0.1 });
            let ignored = calls.call("shell_control", &key);
            assert_eq!(
                (output_text(&ignored).trim_end(), return_reason(&ignored)),
                ("^C", "limit")
            );
            let closed = calls.close(session);
            assert_eq!(closed["signal"]["name"], "SIGKILL", "{closed}");
        },
    );
}

#[test]
fn a_child_may_keep_the_terminal_after_its_parents_end() {
    let command =
        "bash -c '(trap \"\" HUP; sleep 0.1; echo late; exec sleep 300) & echo parent; exit 3'";
    play_program(command, |calls, session, spawned| {
        assert!(output_text(spawned).starts_with("parent"), "{spawned}");
        assert_eq!((return_reason(spawned), &spawned["exit_status"]), ("exit", &json!(3)));
        calls.close(session);
    });
}

#[test]
fn a_shell_may_become_another_program() {
    play_program(BASH, |calls, session, _| {
        let cat = calls.type_text(session, "exec cat\n");
        assert_eq!((return_reason(&cat), &cat["expects"]), ("waiting", &json!("line")));
        assert_eq!(output_text(&calls.type_text(session, "moon\n")), "moon\n");
        assert_eq!(calls.press_key(session, "c-d")["exit_status"], 0);
    });
}

#[test]
fn a_program_may_close_its_terminal() {
    let command = "sh -c 'echo before; exec </dev/null >/dev/null 2>&1; sleep 0.2; exit 6'";
    play_program(command, |_, _, spawned| {
        assert_eq!((output_text(spawned), return_reason(spawned)), ("before\n", "exit"));
        assert_eq!(spawned["exit_status"], 6);
    });
}

#[test]
fn terminal_in_a_broken_state_can_be_reset() {
    play_program(BASH, |calls, session, _| {
        calls.type_text(session, "stty -echo -icanon -icrnl; printf '\\033(0\\033[7m\\033[?7l'\n");
        calls.type_text(session, "stty sane\r");
        calls.type_text(session, "printf '\\033c'\n");
        let well = calls.type_text(session, "echo well\n");
        assert!(output_text(&well).contains("well\n$ "), "{well}");
    });
}

#[test]
fn invalid_utf8_in_program_output_is_replaced() {
    play_program(BASH, |calls, session, _| {
        let shown = calls.type_text(session, "printf 'a\\377\\376b\\303\\n'\n");
        let line = output_text(&shown).lines().next().unwrap();
        assert!(line.starts_with('a') && line.contains('b') && line.contains('\u{fffd}'), "{line}");
    });
}

#[test]
fn several_lines_are_sent_as_a_bracketed_paste() {
    play_program(BASH, |calls, session, _| {
        calls.type_text(session, "bind 'set enable-bracketed-paste on'\n");
        let loop_of_two = calls.type_text(session, "for i in 1 2; do\n  echo \"n$i\"\ndone\n");
        assert!(output_text(&loop_of_two).ends_with("n1\nn2\n$ "), "{loop_of_two}");
    });
}

/// Leaves two processes running: one of the shell's own, and one that has left its session.
const LEAVE_TWO: &str = "sleep 781 & (setsid sleep 777 &) ; echo le''ft\n";

#[test]
fn closing_a_session_ends_and_names_its_processes() {
    let Some(house) = super::house_with_shells() else { return };
    let mut calls = super::ShellCalls::in_house(&house);
    let (session, _) = calls.spawn(BASH);
    assert!(output_text(&calls.type_text(&session, LEAVE_TWO)).contains("left"));
    house.wait_for_process("sleep 777");
    let closed = calls.close(&session);
    let ended = closed["ended"].as_array().unwrap();
    assert_eq!(ended.len(), 2, "{closed}");
    assert!(ended.iter().all(|process| process["name"] == "sleep"), "{closed}");
    assert_eq!(closed["exit_status"], 0);
    assert!(closed.get("left_running").is_none(), "{closed}");
    house.wait_for_no_process("sleep 777");
    house.wait_for_no_process("sleep 781");
    calls.end(&house);
}

#[test]
fn shell_exit_reports_remaining_processes_and_close_ends_them() {
    let Some(house) = super::house_with_shells() else { return };
    let mut calls = super::ShellCalls::in_house(&house);
    let (session, _) = calls.spawn(BASH);
    calls.type_text(&session, LEAVE_TWO);
    house.wait_for_process("sleep 777");
    let exit = calls.type_text(&session, "exit\n");
    assert_eq!((return_reason(&exit), &exit["exit_status"]), ("exit", &json!(0)));
    assert_eq!(exit["left_running"].as_array().unwrap().len(), 2, "{exit}");
    // The processes continue while another shell runs.
    let (second, _) = calls.spawn(BASH);
    house.wait_for_process("sleep 781");
    let closed = calls.close(&session);
    assert_eq!(closed["ended"].as_array().unwrap().len(), 2, "{closed}");
    house.wait_for_no_process("sleep 777");
    house.wait_for_no_process("sleep 781");
    assert_eq!(output_text(&calls.type_text(&second, "echo on\n")), "on\n$ ");
    calls.end(&house);
}

#[test]
fn processes_left_by_an_exit_end_with_jaato() {
    let Some(house) = super::house_with_shells() else { return };
    let mut calls = super::ShellCalls::in_house(&house);
    let (session, _) = calls.spawn(BASH);
    calls.type_text(&session, LEAVE_TWO);
    house.wait_for_process("sleep 777");
    calls.type_text(&session, "exit\n");
    house.wait_for_process("sleep 777");
    calls.end(&house);
}
