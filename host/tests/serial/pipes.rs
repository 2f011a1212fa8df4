//! Tests sessions in environments without terminals: they use pipes, and the model learns what does
//! not work on them.

use serde_json::json;

use crate::support::shells::{
    ShellCalls, house_with_environment, is_installed, output_text, return_reason,
};

/// Environments without terminals: one runs programs itself, and the host runs them for the other.
const ENVIRONMENTS: [&str; 2] = ["pipes", "prepares"];

#[test]
fn program_on_pipes_can_be_used_and_its_limits_are_reported() {
    ENVIRONMENTS.into_iter().for_each(check_program_on_pipes);
}

fn check_program_on_pipes(environment: &str) {
    let house = house_with_environment(environment);
    let Some(house) = house.filter(|_| is_installed("python3")) else { return };
    let mut calls = ShellCalls::in_house(&house);
    let (session, spawned) = calls.spawn("python3 -i -q");
    assert_eq!((output_text(&spawned), return_reason(&spawned)), (">>> ", "silence"));
    assert_eq!(spawned["backend"], "pipes");
    let limits = spawned["limits"].to_string();
    for limit in ["isatty", "`rows` and `columns` are ignored", "not hidden", "c-z"] {
        assert!(limits.contains(limit), "{limits}");
    }
    let answer = calls.type_text(&session, "import sys; print(sys.stdin.isatty(), 'x')\n");
    // Prompts and results come through two pipes, whose order is unknown.
    assert!(
        output_text(&answer).contains("False x\n") && output_text(&answer).contains(">>> "),
        "{answer}"
    );
    assert_eq!(return_reason(&answer), "silence");
    assert_eq!(calls.call("shell_list", &json!({}))["backend"], "pipes");
    let end = calls.press_key(&session, "c-d");
    assert_eq!((return_reason(&end), &end["exit_status"]), ("exit", &json!(0)));
    calls.end(&house);
}

#[test]
fn ctrl_c_on_pipes_is_a_signal_and_secrets_cannot_be_requested() {
    ENVIRONMENTS.into_iter().for_each(check_interrupt_signal);
}

fn check_interrupt_signal(environment: &str) {
    let Some(house) = house_with_environment(environment) else { return };
    let mut calls = ShellCalls::in_house(&house);
    let (session, _) = calls.spawn("cat");
    let ask =
        calls.call_refused("shell_input", &json!({ "session_id": session, "ask_user": true }));
    assert!(ask["message"].as_str().unwrap().contains("pipes"), "{ask}");
    assert_eq!(output_text(&calls.type_text(&session, "moon\n")), "moon\n");
    let ended = calls.press_key(&session, "c-c");
    assert_eq!(ended["signal"]["name"], "SIGINT", "{ended}");
    calls.end(&house);
}
