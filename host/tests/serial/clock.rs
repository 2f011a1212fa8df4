//! Tests timeouts that need a real clock.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::house;
use crate::support::answers::{call_answer, text_answer, with_expectation};
use crate::support::cli::house_with_cli;
use crate::support::command::LOOK_AGAIN;
use crate::support::screen::run_recorded;
use crate::support::server::{Answer, AnswerGate, BodyStep, Server, choice_events, stream_end};
use crate::support::shells::{ShellCalls, house_with_shell_settings, output_text, return_reason};
use crate::support::{Command, fixture, openai};

/// Needs a clock that advances on its own, so this one test waits for the real one.
#[test]
fn answer_that_arrived_while_jaato_was_suspended_is_read() {
    const IDLE: Duration = Duration::from_millis(1_500);
    let house = house!();
    openai::ship_openai(&house);
    house.configure_more("provider_idle_ms = 1500\nattempts_max = 1\n");
    let gate = AnswerGate::closed();
    let said = [json!({ "delta": { "content": "here" }, "finish_reason": "stop" })];
    let steps = vec![
        BodyStep::Wait(gate.clone()),
        BodyStep::Bytes(choice_events(&said)),
        BodyStep::Bytes(stream_end()),
    ];
    let server = Server::start([Answer::stream(steps)]);
    let running = openai::openai_command(&house, &server, &openai::RUN).no_input().start();
    let begun = Instant::now();
    while server.requests().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no request is sent");
        std::thread::sleep(LOOK_AGAIN);
    }
    running.send_signal("STOP");
    let stopped = Instant::now();
    while stopped.elapsed() < IDLE * 2 {
        std::thread::sleep(LOOK_AGAIN);
    }
    gate.open();
    running.send_signal("CONT");
    let output = running.finish().code(0);
    assert_eq!(output.stdout, "here\n", "{output}");
}

#[test]
fn configured_idle_timeout_ends_the_wait_for_a_busy_program() {
    let set = "[plugins.tool-interactive-shell]\nidle_timeout = 0.2\n";
    let Some(house) = house_with_shell_settings(set) else { return };
    let mut calls = ShellCalls::in_house(&house);
    let asked = json!({ "command": "sh -c 'echo listening; exec sleep 600'" });
    let told = calls.call("shell_spawn", &asked);
    assert_eq!((output_text(&told), return_reason(&told)), ("listening\n", "silence"));
    assert!(told["note"].as_str().unwrap().contains("serves"), "{told}");
    assert!(told["waited_ms"].as_u64().unwrap() < 8_000, "the call would wait for 10 s: {told}");
    calls.end(&house);
}

#[test]
fn unused_shell_session_is_closed_and_the_model_learns_why() {
    let idle = "[plugins.tool-interactive-shell]\nmax_idle = 0.3\n";
    let Some(house) = house_with_shell_settings(idle) else { return };
    let mut calls = ShellCalls::in_house(&house);
    let spawn = json!({ "command": "sleep 300 | cat", "session_name": "old", "timeout": 0.05 });
    let session = calls.call("shell_spawn", &spawn)["session_id"].as_str().unwrap().to_owned();
    house.wait_for_no_process("sleep 300");
    let read = calls.call_refused("shell_read", &json!({ "session_id": session }));
    assert_eq!(
        read["message"],
        format!("no session with id `{session}`: it was closed after 0.3 s without use")
    );
    calls.end(&house);
}

#[test]
fn session_is_closed_at_its_maximum_lifetime_even_if_used() {
    let lifetime = "[plugins.tool-interactive-shell]\nmax_lifetime = 0.5\n";
    let Some(house) = house_with_shell_settings(lifetime) else { return };
    let mut calls = ShellCalls::in_house(&house);
    let (session, _) = calls.spawn("cat");
    let read = json!({ "session_id": session, "wait_for": "never", "timeout": 20 });
    let ended = calls.call("shell_read", &read);
    assert_eq!((return_reason(&ended), &ended["is_alive"]), ("exit", &json!(false)));
    let gone = calls.call_refused("shell_read", &json!({ "session_id": session }));
    assert!(gone["message"].as_str().unwrap().contains("the maximum lifetime of a session"));
    calls.end(&house);
}

/// A question accepts answers 300 ms after it is drawn, and the keys must arrive before that.
#[test]
fn keys_typed_before_a_question_accepts_answers_return_to_the_draft() {
    let Some(house) = house_with_cli() else { return };
    house.ship(&fixture("probe"));
    let wait = json!({ "command": "while [ ! -e go ]; do sleep 0.01; done" });
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", wait),
        call_answer("count", json!({})),
        with_expectation("tool_result", "\"count\":1", text_answer("counted")),
        with_expectation("prompt", "yes, half a draft", text_answer("the end")),
    ] }));
    let line = format!("exec '{}' chat --allow cli_based_tool go", house.binary().display());
    let editing = |command: Command| command.variable("TERM", "xterm");
    let Some(mut running) = run_recorded(&house, &line, Path::new("/dev/null"), editing) else {
        return;
    };
    running.wait_for_text("> ");
    house.write("workspace/go", "");
    running.wait_for_text("No (or say what to do instead)");
    for key in "yes, half a draft".bytes() {
        running.write(&[key]);
    }
    running.wait_for_question();
    running.write(b"y");
    running.wait_for_text("✓ allowed: ");
    running.wait_for_text("counted");
    // The draft is restored and becomes the next prompt.
    running.wait_for_text("yes, half a draft");
    running.write(b"\r");
    running.wait_for_text("the end");
    running.wait_for_text("> ");
    running.write(b"\x04");
    running.wait_with_open_input().code(0);
    house.assert_no_processes();
}
