//! Tests that one process owns a session at a time.

use std::fs;

use serde_json::json;

use super::{
    CONTINUE, RUN, assert_extends, only_id, request_messages, request_results, run_all,
    session_file, set_up_house, text_answer, wait_for_record,
};
use crate::support::House;
use crate::support::command::Running;
use crate::support::openai::openai_command;
use crate::support::server::{Answer, AnswerGate, BodyStep, Server, choice_events, stream_end};
/// Returns an answer that begins, and ends when the test opens the gate.
fn held_answer(gate: &AnswerGate) -> Answer {
    let said =
        |text: &str| BodyStep::Bytes(choice_events(&[json!({ "delta": { "content": text } })]));
    let stop = choice_events(&[json!({ "delta": {}, "finish_reason": "stop" })]);
    let steps =
        [said("begun, "), BodyStep::Wait(gate.clone()), said("ended"), BodyStep::Bytes(stop)];
    Answer::stream(steps.into()).then(BodyStep::Bytes(stream_end()))
}

/// Returns an answer that begins, and makes two calls when the test opens the gate: one that only
/// reads, and one that makes a file.
fn held_calls(gate: &AnswerGate) -> Answer {
    let call = |index: u32, name: &str, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "index": index, "id": format!("call_{index}"), "function": function })
    };
    let calls = [
        call(0, "get_environment", r#"{"aspect":"os"}"#),
        call(1, "cli_based_tool", r#"{"command":"touch made"}"#),
    ];
    let called = choice_events(&[
        json!({ "delta": { "tool_calls": calls } }),
        json!({ "delta": {}, "finish_reason": "tool_calls" }),
    ]);
    let begun = choice_events(&[json!({ "delta": { "content": "begun, " } })]);
    let steps = [BodyStep::Bytes(begun), BodyStep::Wait(gate.clone()), BodyStep::Bytes(called)];
    Answer::stream(steps.into()).then(BodyStep::Bytes(stream_end()))
}

/// Starts a run and waits for the start of its answer.
fn start_run(house: &House, server: &Server, words: &[&[&str]]) -> Running {
    let words = [&words.concat(), ["--output", "json"].as_slice()].concat();
    let running = openai_command(house, server, &words).no_input().start();
    running.wait_for("begun, ");
    wait_for_record(house, |record| record["type"] == "message");
    running
}

#[test]
fn session_that_is_open_in_another_process_is_refused() {
    let Some(house) = set_up_house() else { return };
    let gate = AnswerGate::closed();
    let server = Server::start([held_answer(&gate), text_answer("later")]);
    let running = start_run(&house, &server, &[&RUN, &["first"]]);
    let id = only_id(&house);
    let in_use = format!("session `{id}` is open in another process ({})", running.id());
    for words in [&CONTINUE[..], &["run", "--resume", &id]] {
        let refused = run_all(&house, &server, &[words, &["second"]]);
        assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{refused}");
        assert!(refused.stderr.contains(&in_use), "{refused}");
        assert!(refused.stderr.contains("--take-over"), "{refused}");
        assert_eq!(refused.stderr.lines().count(), 2, "{refused}");
    }
    gate.open();
    running.wait_with_open_input().code(0);
    run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
    let asked = server.requests();
    assert_eq!(asked.len(), 2);
    assert_extends(&asked[0], &asked[1]);
    assert_eq!(request_messages(&asked[1])[2]["content"], "begun, ended");
    house.assert_no_processes();
}

#[test]
fn chat_keeps_its_session_if_the_other_one_is_open_elsewhere() {
    let Some(house) = set_up_house() else { return };
    let gate = AnswerGate::closed();
    let server = Server::start([held_answer(&gate), text_answer("one"), text_answer("two")]);
    let running = start_run(&house, &server, &[&RUN, &["first"]]);
    let id = only_id(&house);
    let input = format!("mine\n/resume {id}\nmore\n");
    let words = ["chat", "--model", "openai/test"];
    let output = openai_command(&house, &server, &words).input(input).run();
    assert_ne!(output.code, 0, "a line of the pipe failed");
    assert!(output.stderr.contains("is open in another process"), "{output}");
    assert_eq!(output.stdout, "one\ntwo\n");
    gate.open();
    running.wait_with_open_input().code(0);
    assert_extends(&server.requests()[1], &server.requests()[2]);
}

#[test]
fn first_owner_of_a_session_that_is_taken_over_says_so_once_and_changes_nothing_more() {
    let Some(house) = set_up_house() else { return };
    let gate = AnswerGate::closed();
    let server = Server::start([held_calls(&gate), text_answer("taken"), text_answer("ended")]);
    let running = start_run(&house, &server, &[&RUN, &["first"]]);
    let id = only_id(&house);
    let taking = [&CONTINUE, ["--take-over", "second"].as_slice()];
    let taken = run_all(&house, &server, &taking).code(0);
    assert_eq!(taken.stdout, "taken\n");
    let after = fs::read_to_string(session_file(&house, &id)).unwrap();
    gate.open();
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("ended"), "{output}");
    let notice = format!("another process has taken over session `{id}`");
    assert_eq!(output.stdout.matches(&notice).count(), 1, "{output}");
    let results = request_results(&server.requests()[2]);
    assert!(results[0].contains("linux"), "{results:?}");
    assert!(results[1].contains("another process continues this session"), "{results:?}");
    assert!(!house.workspace().join("made").exists());
    assert!(after == fs::read_to_string(session_file(&house, &id)).unwrap());
    assert!(after.contains("second") && !after.contains(r#""text":"ended""#), "{after}");
    house.assert_no_processes();
}

#[test]
fn owner_that_was_killed_does_not_keep_its_session() {
    let Some(house) = set_up_house() else { return };
    let gate = AnswerGate::closed();
    let server = Server::start([held_answer(&gate), text_answer("later")]);
    let running = start_run(&house, &server, &[&RUN, &["first"]]);
    running.send_signal("KILL");
    running.wait_with_open_input().code(137);
    gate.open();
    run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
    assert_extends(&server.requests()[0], &server.requests()[1]);
}

#[test]
fn save_that_fails_at_the_end_is_reported() {
    let Some(house) = set_up_house() else { return };
    let gate = AnswerGate::closed();
    let server = Server::start([held_answer(&gate), text_answer("taken")]);
    let running = start_run(&house, &server, &[&RUN, &["first"]]);
    let id = only_id(&house);
    run_all(&house, &server, &[&CONTINUE, &["--take-over", "second"]]).code(0);
    gate.open();
    let output = running.wait_with_open_input().code(0);
    let notice = format!("another process has taken over session `{id}`");
    assert_eq!(output.stdout.matches(&notice).count(), 1, "{output}");
}
