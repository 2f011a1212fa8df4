//! Tests sessions in environments without terminals: they use pipes, and the model learns what does
//! not work on them.

use serde_json::json;

use crate::support::shells::{Calls, is_there, output, reason, with_environment};

/// Environments without terminals: one runs programs itself, and the host runs them for the other.
const ENVIRONMENTS: [&str; 2] = ["pipes", "prepares"];

#[test]
fn program_on_pipes_can_be_used_and_its_limits_are_reported() {
    ENVIRONMENTS.into_iter().for_each(a_program_on_pipes_is_driven_in);
}

fn a_program_on_pipes_is_driven_in(environment: &str) {
    let house = with_environment(environment);
    let Some(house) = house.filter(|_| is_there("python3")) else { return };
    let mut calls = Calls::of(&house);
    let (session, spawned) = calls.spawn("python3 -i -q");
    assert_eq!((output(&spawned), reason(&spawned)), (">>> ", "silence"));
    assert_eq!(spawned["backend"], "pipes");
    let limits = spawned["limits"].to_string();
    for limit in ["isatty", "`rows` and `columns` are ignored", "not hidden", "c-z"] {
        assert!(limits.contains(limit), "{limits}");
    }
    let answer = calls.input(&session, "import sys; print(sys.stdin.isatty(), 'x')\n");
    // Prompts and results come through two pipes, whose order is unknown.
    assert!(output(&answer).contains("False x\n") && output(&answer).contains(">>> "), "{answer}");
    assert_eq!(reason(&answer), "silence");
    assert_eq!(calls.call("shell_list", &json!({}))["backend"], "pipes");
    let end = calls.key(&session, "c-d");
    assert_eq!((reason(&end), &end["exit_status"]), ("exit", &json!(0)));
    calls.end(&house);
}

#[test]
fn ctrl_c_on_pipes_is_a_signal_and_secrets_cannot_be_requested() {
    ENVIRONMENTS.into_iter().for_each(c_c_is_a_signal_in);
}

fn c_c_is_a_signal_in(environment: &str) {
    let Some(house) = with_environment(environment) else { return };
    let mut calls = Calls::of(&house);
    let (session, _) = calls.spawn("cat");
    let ask = calls.refused("shell_input", &json!({ "session_id": session, "ask_user": true }));
    assert!(ask["message"].as_str().unwrap().contains("pipes"), "{ask}");
    assert_eq!(output(&calls.input(&session, "moon\n")), "moon\n");
    let ended = calls.key(&session, "c-c");
    assert_eq!(ended["signal"]["name"], "SIGINT", "{ended}");
    calls.end(&house);
}
