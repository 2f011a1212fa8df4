//! Tests plugins that break the rules while they are used. Each affects only its call: the model
//! learns why, the conversation stays valid, other plugins continue, and the run ends as the model
//! ends it.

use std::time::Instant;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::house;
use crate::support::command::{DEADLINE, LOOK_AGAIN};
use crate::support::{House, fixture};

/// Messages in the request after the bad call: the prompt, the call, its one result.
const MESSAGES: usize = 3;

/// Sets up a model that makes one call, must get that error, then makes a good call and finishes.
#[track_caller]
fn ship_and_script(house: &House, plugin: &str, tool: &str, arguments: &Value, told: &str) {
    house.ship(&fixture(plugin));
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": tool, "arguments": arguments } }] },
        { "expect": { "tool_result": told, "messages": MESSAGES },
          "steps": [{ "call": { "name": "get_environment", "arguments": { "aspect": "os" } } }] },
        { "expect": { "tool_result": "linux", "messages": MESSAGES + 2 },
          "steps": [{ "text": "done" }] },
    ] }));
}

/// Runs that script, and returns the user's view of the bad call.
#[track_caller]
fn shown_output(house: &House) -> String {
    let output = house.run(&["run", "--yes", "try it"]).code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
    house.assert_no_processes();
    let text = without_block_notice(&output.to_string());
    let (_, after) = text.split_once("--- stderr\n").unwrap_or_else(|| panic!("{output}"));
    let (bad, _) =
        after.split_once("[environment] get_environment").unwrap_or_else(|| panic!("{output}"));
    bad.to_owned()
}

/// Removes the notice about a blocked thread, which comes only if this machine is slow.
fn without_block_notice(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.contains("has blocked a thread for more than")).collect()
}

/// Checks the user's view of each of these tool calls, and the model's error.
#[track_caller]
fn check_hostile_calls(plugin: &str, calls: &[(&str, Value, &str)], expected: Expect) {
    let all = calls.iter().map(|(tool, arguments, told)| {
        let house = House::new()?;
        ship_and_script(&house, plugin, tool, arguments, told);
        Some(shown_output(&house))
    });
    let Some(all) = all.collect::<Option<String>>() else { return };
    expected.assert_eq(&all);
}

#[test]
fn panic_anywhere_fails_only_the_call() {
    check_hostile_calls(
        "probe",
        &[
            ("panic", json!({ "place": "now" }), "boom now"),
            ("panic", json!({ "place": "after_await" }), "boom after an await"),
            ("panic", json!({ "place": "job" }), "boom in a job"),
            ("panic", json!({ "place": "payload" }), "panicked"),
        ],
        expect![[r#"
            [fixture-probe] panic now
              fixture-probe │ ✗ plugin `fixture-probe`: panicked at probe/src/panics.rs:LINE: boom now
            [fixture-probe] panic after_await
              fixture-probe │ ✗ plugin `fixture-probe`: panicked at probe/src/panics.rs:LINE: boom after an await
            [fixture-probe] panic job
              fixture-probe │ ✗ plugin `fixture-probe`: panicked at probe/src/panics.rs:LINE: boom in a job
            [fixture-probe] panic payload
              fixture-probe │ ✗ plugin `fixture-probe`: panicked at probe/src/panics.rs:LINE: a panic without a text
        "#]],
    );
}

#[test]
fn panic_while_a_timed_out_call_is_dropped_fails_only_the_call() {
    let house = house!();
    ship_and_script(&house, "probe", "panic", &json!({ "place": "drop" }), "took longer than");
    house.configure_more("[session]\ncall_deadline_ms = 100\n");
    expect![[r#"
        [fixture-probe] panic drop
          fixture-probe │ ✗ the call to `panic` took longer than 1 s
          fixture-probe │   hint: it may have had some effects
    "#]]
    .assert_eq(&shown_output(&house));
}

#[test]
fn blocking_poll_ends_at_the_deadline_of_its_call() {
    let house = house!();
    let never = house.path().join("never");
    let arguments = json!({ "how": "sleep", "until": never });
    ship_and_script(&house, "probe", "block", &arguments, "took longer than");
    house.configure_more("[session]\ncall_deadline_ms = 100\n");
    expect![[r#"
        [fixture-probe] block how: sleep, until: $HOUSE/never
          fixture-probe │ blocking
          fixture-probe │ ✗ the call to `block` took longer than 1 s
          fixture-probe │   hint: it may have had some effects
    "#]]
    .assert_eq(&shown_output(&house));
}

#[test]
fn user_is_told_during_a_call_that_its_plugin_blocks_a_thread() {
    for is_isolated in [false, true] {
        let house = house!(ships "probe");
        if is_isolated {
            house.isolate_plugin("fixture-probe");
        }
        let until = house.path().join("until");
        let arguments = json!({ "how": "sleep", "until": until }).to_string();
        let running = house.command(&["call", "block", &arguments]).no_input().start();
        running.wait_for_error("plugin `fixture-probe` has blocked a thread for more than 1 s");
        house.write("until", "");
        running.finish().code(0);
        house.assert_no_processes();
    }
}

#[test]
fn a_plugin_that_blocks_polls_again_and_again_is_disabled() {
    let house = house!(ships "probe");
    let block = |number: u32| {
        let until = house.path().join(format!("end-{number}"));
        json!({ "call": { "name": "block", "arguments": { "how": "sleep", "until": until } } })
    };
    let disabled = "the plugin `fixture-probe` is disabled: it blocked or flooded the plugin \
                    executor 3 times";
    let cwd = json!({ "call": { "name": "get_environment", "arguments": { "aspect": "cwd" } } });
    let echo = json!({ "call": { "name": "echo", "arguments": { "text": "t" } } });
    house.set_script(&json!({ "answers": [
        { "steps": [block(1)] },
        { "expect": { "messages": 3 }, "steps": [block(2)] },
        { "expect": { "messages": 5 }, "steps": [block(3)] },
        { "expect": { "tool_result": disabled, "messages": 7 }, "steps": [echo] },
        { "expect": { "tool_result": disabled, "messages": 9 }, "steps": [cwd] },
        { "expect": { "tool_result": "workspace", "messages": 11 }, "steps": [{ "text": "done" }] },
    ] }));
    let running = house.command(&["run", "--yes", "try it"]).no_input().start();
    // A blocked thread is reported once. Its call may then end.
    for number in 1..3 {
        wait_for_blocked_threads(&house, number);
        house.write(&format!("end-{number}"), "");
    }
    let output = running.finish().code(0);
    expect![[r#"
        exit 0
        --- stdout
        done
        --- stderr
        [fixture-probe] block how: sleep, until: $HOUSE/end-1
          fixture-probe │ blocking
          fixture-probe │ ✓
        [fixture-probe] block how: sleep, until: $HOUSE/end-2
          fixture-probe │ blocking
          fixture-probe │ ✓
        [fixture-probe] block how: sleep, until: $HOUSE/end-3
          fixture-probe │ blocking
          fixture-probe │ ✗ the plugin `fixture-probe` is disabled: it blocked or flooded the plugin executor 3 times
          fixture-probe │   hint: restart jaato and report this to the plugin's author; `[plugins] disabled` disables the plugin
        [fixture-probe] echo t
          fixture-probe │ ✗ the plugin `fixture-probe` is disabled: it blocked or flooded the plugin executor 3 times
          fixture-probe │   hint: restart jaato and report this to the plugin's author; `[plugins] disabled` disables the plugin
        [environment] get_environment cwd
          environment │ ✓ cwd $HOUSE/workspace
    "#]].assert_eq(&without_block_notice(&output.to_string()));
    wait_for_blocked_threads(&house, 3);
    house.wait_for_log("its blocking work belongs on the pool; it is disabled");
    house.assert_no_processes();
}

/// Waits until the log reports this many blocked threads.
#[track_caller]
fn wait_for_blocked_threads(house: &House, count: usize) {
    let bound = Instant::now() + DEADLINE;
    let log = house.cache_folder().join("jaato.log");
    let told = "the plugin `fixture-probe` blocked a thread for ";
    while std::fs::read_to_string(&log).unwrap_or_default().matches(told).count() < count {
        assert!(Instant::now() < bound, "the log does not report {count} blocked threads");
        std::thread::sleep(LOOK_AGAIN);
    }
}

#[test]
fn malformed_answer_error_or_event_fails_only_the_call() {
    check_hostile_calls(
        "liar",
        &[
            ("not_json", json!({}), "the answer is invalid"),
            ("empty", json!({}), "too short"),
            ("short", json!({}), "too short"),
            ("bad_error", json!({}), "error cannot be read"),
            ("long", json!({}), "8388609"),
            ("bad_emit", json!({}), "emitted a malformed frame"),
        ],
        expect![[r#"
            [fixture-liar] not_json
              fixture-liar │ ✗ plugin `fixture-liar`: the answer is invalid: a frame's JSON cannot be read: key must be a string at line 1 column 2
            [fixture-liar] empty
              fixture-liar │ ✗ the plugin `fixture-liar` misbehaved: its answer is not a valid frame: a frame of 0 bytes is too short: it needs 4
            [fixture-liar] short
              fixture-liar │ ✗ the plugin `fixture-liar` misbehaved: its answer is not a valid frame: a frame of 5 bytes is too short: it needs 204
            [fixture-liar] bad_error
              fixture-liar │ ✗ the plugin `fixture-liar` misbehaved: its error cannot be read: a frame of 5 bytes is too short: it needs 204
            [fixture-liar] long
              fixture-liar │ ✗ the plugin `fixture-liar` misbehaved: its answer is not a valid frame: a frame of 8388609 bytes is too large: at most 8388608 may cross
            [fixture-liar] bad_emit
              fixture-liar │ ✗ the plugin `fixture-liar` misbehaved: it emitted a malformed frame: a frame of 5 bytes is too short: it needs 204
        "#]],
    );
}

#[test]
fn panic_without_the_sdks_protection_fails_only_the_call() {
    let house = house!();
    ship_and_script(&house, "liar", "panic", &json!({}), "panicked");
    // The plugin's own panic hook prints the place and the thread first, which jaato does not
    // control.
    let shown = shown_output(&house);
    let last = "  fixture-liar │ ✗ the plugin `fixture-liar` panicked: FFI future panicked\n";
    assert!(shown.ends_with(last), "{shown}");
}
