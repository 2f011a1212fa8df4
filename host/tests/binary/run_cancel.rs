//! Tests Ctrl-C, and closed outputs: the run ends immediately and leaves nothing behind.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::house;
use crate::support::House;
use crate::support::command::DEADLINE;

/// From the signal to the end of the process. The promise is 100 ms for the work and 2 s for
/// closing plugins. The rest is for a busy machine.
const END_WITHIN: Duration = DEADLINE;

/// Runs until an output appears, sends a signal, and checks how the run ends.
#[track_caller]
fn assert_cancelled(house: &House, signal: &str, words: &[&str], seen: &str, on_error: bool) {
    let running = house.command(words).no_input().start();
    if on_error {
        running.wait_for_error(seen);
    } else {
        running.wait_for_text(seen);
    }
    running.send_signal(signal);
    let signalled = Instant::now();
    let output = running.finish().code(130);
    assert!(signalled.elapsed() < END_WITHIN, "{:?}: {output}", signalled.elapsed());
    assert!(output.stderr.ends_with("cancelled\n"), "{output}");
    house.assert_no_processes();
}

#[test]
fn ctrl_c_during_an_answer_cancels_the_run() {
    let house = house!();
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": "so far" }, "hang"] }] }));
    // An answer that is never requested again is written as it comes.
    house.configure_more("[session]\nattempts_max = 1\n");
    for signal in ["INT", "TERM", "HUP"] {
        assert_cancelled(&house, signal, &["run", "hello"], "so far", false);
    }
}

#[test]
fn ctrl_c_during_a_tool_call_cancels_the_run() {
    let house = house!(ships "probe");
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "wait", "arguments": { "key": "k" } } }] },
        { "steps": [{ "text": "never" }] },
    ] }));
    assert_cancelled(&house, "INT", &["run", "--yes", "hello"], "waiting", true);
}

#[test]
fn ctrl_c_while_a_tool_blocks_its_thread_cancels_the_run() {
    let house = house!(ships "probe");
    let until = house.path().join("never");
    for (tool, arguments, shown) in [
        ("block", json!({ "how": "sleep", "until": until }), "blocking"),
        ("job", json!({ "until": until }), "job runs"),
        ("block_in_drop", json!({ "until": until }), "waiting"),
    ] {
        house.set_script(&json!({ "answers": [
            { "steps": [{ "call": { "name": tool, "arguments": arguments } }] },
        ] }));
        let running = house.command(&["run", "--yes", "hello"]).no_input().start();
        running.wait_for_error(&format!("probe │ {shown}"));
        running.send_signal("INT");
        let signalled = Instant::now();
        let output = running.finish().code(130);
        assert!(signalled.elapsed() < END_WITHIN, "{tool}: {output}");
        house.assert_no_processes();
    }
}

#[test]
fn cancelled_run_reports_its_outcome_as_an_event() {
    let house = house!();
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": "so far" }, "hang"] }] }));
    let running = house.command(&["run", "--output", "json", "hello"]).no_input().start();
    running.wait_for("text_delta");
    running.send_signal("INT");
    let output = running.finish().code(130);
    let last = output.json_lines().pop().unwrap();
    assert_eq!((&last["event"], &last["outcome"]), (&json!("turn_finished"), &json!("cancelled")));
    assert_eq!(output.stderr, "", "{output}");
}

#[test]
fn closed_output_ends_the_run_quietly() {
    let house = house!();
    let many: Vec<_> = (0..2000).map(|_| json!({ "text": "x".repeat(100) })).collect();
    house.set_script(&json!({ "answers": [{ "steps": many }] }));
    for form in ["text", "json"] {
        let words = ["run", "--output", form, "hello"];
        let output = house.command(&words).run_into_closed_output(10);
        assert_eq!(output.stderr.replace("cancelled\n", ""), "", "{output}");
        house.assert_no_processes();
    }
}

#[test]
fn a_killed_host_leaves_no_process_behind() {
    let house = house!(ships "hangs");
    // Describing takes its whole deadline, which is enough time to see the child.
    let running = house.command(&["tool", "list"]).no_input().start();
    let bound = Instant::now() + END_WITHIN;
    while !house.processes().iter().any(|line| line.contains("--describe")) {
        assert!(Instant::now() < bound, "no plugin is described");
        std::thread::sleep(crate::support::command::LOOK_AGAIN);
    }
    running.send_signal("KILL");
    running.finish().code(128 + 9);
    house.assert_no_processes();
}
