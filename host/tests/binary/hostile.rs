//! Plugins that break the rules while they are used: each costs its call and no more. The model is told
//! why, the conversation stays whole, other plugins stay, and the run ends as the model ends it.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::house;
use crate::support::{House, fixture};

/// In the request after the bad call: the prompt, the call, its one result.
const MESSAGES: usize = 3;

/// A house in which the model calls one tool, must be told that, then calls a good one and ends.
#[track_caller]
fn house_with(house: &House, plugin: &str, tool: &str, arguments: &Value, told: &str) {
    house.ship(&fixture(plugin));
    house.script(&json!({ "answers": [
        { "steps": [{ "call": { "name": tool, "arguments": arguments } }] },
        { "expect": { "tool_result": told, "messages": MESSAGES },
          "steps": [{ "call": { "name": "get_environment", "arguments": { "aspect": "os" } } }] },
        { "expect": { "tool_result": "linux", "messages": MESSAGES + 2 },
          "steps": [{ "text": "went on" }] },
    ] }));
}

/// Runs that; gives what a person is shown of the bad call.
#[track_caller]
fn shown(house: &House) -> String {
    let output = house.run(&["run", "--yes", "try it"]).code(0);
    assert_eq!(output.stdout, "went on\n", "{output}");
    house.nothing_lives();
    let text = output.to_string();
    let (_, after) = text.split_once("--- stderr\n").unwrap_or_else(|| panic!("{output}"));
    let (bad, good) = after.split_once("host: the tool").unwrap_or_else(|| panic!("{output}"));
    assert!(good.contains("[environment] get_environment"), "{output}");
    bad.to_owned()
}

#[track_caller]
fn check(plugin: &str, tool: &str, arguments: &Value, told: &str, expected: Expect) {
    let house = house!();
    house_with(&house, plugin, tool, arguments, told);
    expected.assert_eq(&shown(&house));
}

#[test]
fn a_panic_in_a_call() {
    check(
        "probe",
        "panic",
        &json!({ "place": "now" }),
        "boom now",
        expect![[r#"
        [fixture-probe] panic {"place":"now"}
          fixture-probe │ panicked at probe/src/panics.rs:LINE: boom now
    "#]],
    );
}

#[test]
fn a_panic_after_an_await() {
    let place = json!({ "place": "after_await" });
    check(
        "probe",
        "panic",
        &place,
        "boom after an await",
        expect![[r#"
        [fixture-probe] panic {"place":"after_await"}
          fixture-probe │ panicked at probe/src/panics.rs:LINE: boom after an await
    "#]],
    );
}

#[test]
fn a_panic_in_a_job() {
    check(
        "probe",
        "panic",
        &json!({ "place": "job" }),
        "boom in a job",
        expect![[r#"
        [fixture-probe] panic {"place":"job"}
          fixture-probe │ panicked at probe/src/panics.rs:LINE: boom in a job
    "#]],
    );
}

#[test]
fn a_panic_whose_payload_panics_when_it_is_dropped() {
    check(
        "probe",
        "panic",
        &json!({ "place": "payload" }),
        "panicked",
        expect![[r#"
        [fixture-probe] panic {"place":"payload"}
          fixture-probe │ panicked at probe/src/panics.rs:LINE: a panic without a text
    "#]],
    );
}

#[test]
fn a_panic_in_the_drop_of_a_call_whose_time_is_up() {
    let house = house!();
    house_with(&house, "probe", "panic", &json!({ "place": "drop" }), "took longer than");
    house.configure_more("[session]\ncall_deadline_ms = 100\n");
    expect![[r#"
        [fixture-probe] panic {"place":"drop"}
          fixture-probe │ the call of `panic` took longer than 1 s
    "#]]
    .assert_eq(&shown(&house));
}

#[test]
fn a_poll_that_blocks_until_the_time_of_its_call_is_up() {
    let house = house!();
    let never = house.path().join("never");
    let arguments = json!({ "how": "sleep", "until": never });
    house_with(&house, "probe", "block", &arguments, "took longer than");
    house.configure_more("[session]\ncall_deadline_ms = 100\n");
    expect![[r#"
        [fixture-probe] block {"how":"sleep","until":"$HOUSE/never"}
          fixture-probe │ blocking
          fixture-probe │ the call of `block` took longer than 1 s
    "#]]
    .assert_eq(&shown(&house));
}

#[test]
fn an_answer_whose_json_is_none() {
    check(
        "liar",
        "not_json",
        &json!({}),
        "answer is wrong",
        expect![[r#"
        [fixture-liar] not_json {}
          fixture-liar │ the plugin's answer is wrong: a frame's JSON cannot be read: key must be a string at line 1 column 2
    "#]],
    );
}

#[test]
fn an_answer_that_is_no_frame() {
    check(
        "liar",
        "empty",
        &json!({}),
        "too short",
        expect![[r#"
        [fixture-liar] empty {}
          fixture-liar │ the plugin `fixture-liar` misbehaved: its answer is no frame: a frame of 0 bytes is too short: it needs 4
    "#]],
    );
}

#[test]
fn an_answer_that_is_cut_off() {
    check(
        "liar",
        "short",
        &json!({}),
        "too short",
        expect![[r#"
        [fixture-liar] short {}
          fixture-liar │ the plugin `fixture-liar` misbehaved: its answer is no frame: a frame of 5 bytes is too short: it needs 204
    "#]],
    );
}

#[test]
fn an_error_that_is_no_frame() {
    check(
        "liar",
        "bad_error",
        &json!({}),
        "error cannot be read",
        expect![[r#"
        [fixture-liar] bad_error {}
          fixture-liar │ the plugin `fixture-liar` misbehaved: its error cannot be read: a frame of 5 bytes is too short: it needs 204
    "#]],
    );
}

#[test]
fn an_answer_that_is_longer_than_a_frame_may_be() {
    check(
        "liar",
        "long",
        &json!({}),
        "8388609",
        expect![[r#"
        [fixture-liar] long {}
          fixture-liar │ the plugin `fixture-liar` misbehaved: its answer is no frame: a frame of 8388609 bytes is too large: at most 8388608 may cross
    "#]],
    );
}

#[test]
fn a_panic_without_the_sdks_fence() {
    let house = house!();
    house_with(&house, "liar", "panic", &json!({}), "panicked");
    // The plugin's own panic hook writes before it: where and in which thread is not ours.
    let shown = shown(&house);
    let last = "  fixture-liar │ the plugin `fixture-liar` panicked: FFI future panicked\n";
    assert!(shown.ends_with(last), "{shown}");
}

#[test]
fn an_event_that_is_none() {
    check(
        "liar",
        "bad_emit",
        &json!({}),
        "emitted what is no frame",
        expect![[r#"
        [fixture-liar] bad_emit {}
          fixture-liar │ the plugin `fixture-liar` misbehaved: it emitted what is no frame: a frame of 5 bytes is too short: it needs 204
    "#]],
    );
}
