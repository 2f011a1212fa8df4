//! Tests `jaato call`: a user calls one tool.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::house;

/// Checks that each of these calls is refused with this code. The snapshot contains all messages.
#[track_caller]
fn assert_refused(code: i32, calls: &[&[&str]], expected: Expect) {
    let house = house!();
    let refusal = |words: &&[&str]| {
        let output = house.run(&[&["call"], *words].concat()).code(code);
        assert_eq!(output.stdout, "", "{output}");
        house.normalize_output(&output.stderr)
    };
    expected.assert_eq(&calls.iter().map(refusal).collect::<String>());
}

#[test]
fn call_prints_only_the_json_result() {
    let house = house!();
    let answer =
        house.run(&["call", "get_environment", r#"{"aspect": "os"}"#]).expect_silent().json();
    let expected = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    assert_eq!(answer["type"], expected);
}

#[test]
fn arguments_may_be_left_out() {
    let house = house!();
    let answer = house.run(&["call", "get_environment"]).expect_silent().json();
    assert_eq!(answer["context"], json!(null));
    assert_eq!(answer["session"], json!(null));
    assert_eq!(answer["cwd"], json!(house.workspace()));
    for aspect in ["os", "shell", "arch", "terminal", "datetime", "network"] {
        assert!(answer[aspect].is_object(), "{aspect}: {answer:#}");
    }
}

#[test]
fn called_tool_sees_terminal_and_masked_proxy_settings() {
    let house = house!();
    let house_command = || {
        house
            .command(&["call", "get_environment"])
            .variable("HTTPS_PROXY", "http://user:secret@proxy.example:8080")
            .variable("TERM", "xterm-256color")
    };
    let output = house_command().run().expect_silent();
    assert!(!output.stdout.contains("secret"), "{output}");
    let answer = output.json();
    assert_eq!(answer["network"]["proxy"]["https_proxy"], "http://***:***@proxy.example:8080");
    assert_eq!(answer["terminal"]["term"], "xterm-256color");
    assert_eq!(answer["terminal"]["interactive"], false);
}

#[test]
fn context_and_session_need_a_model() {
    assert_refused(
        1,
        &[
            &["get_environment", r#"{"aspect": "context"}"#],
            &["get_environment", r#"{"aspect": "session"}"#],
        ],
        expect![[r#"
            error: Session not available. Context info requires session injection.
            hint: ask in a session with a model: `jaato run "how many tokens are used?"`
            error: Session not available. Session info requires session injection.
            hint: ask in a session with a model: `jaato run "how many tokens are used?"`
        "#]],
    );
}

#[test]
fn invalid_call_is_refused_with_a_suggestion() {
    assert_refused(
        2,
        &[
            &["get_environment", "{aspect: os}"],
            &["get_environment", "[]"],
            &["get_environment", "\"os\""],
            &["get_environment", ""],
            &["get_environment", r#"{"aspect": "moon"}"#],
            &["get_environment", r#"{"aspekt": "os"}"#],
            &["get_enviroment"],
        ],
        expect![[r#"
            error: the arguments are not JSON: key must be a string at line 1 column 2
            hint: jaato call get_environment '{"aspect": "os"}'
            error: the arguments are not a JSON object but an array
            hint: jaato call get_environment '{"aspect": "os"}'
            error: the arguments are not a JSON object but a string
            hint: jaato call get_environment '{"aspect": "os"}'
            error: the arguments are not JSON: EOF while parsing a value at line 1 column 0
            hint: jaato call get_environment '{"aspect": "os"}'
            error: the arguments of `get_environment` do not match its schema: at `/aspect`: `"moon"` is not one of the allowed values: `os`, `shell`, `arch`, `cwd`, `terminal`, `context`, `session`, `datetime`, `network`, `all`
            hint: its properties are `aspect`
            error: the arguments of `get_environment` do not match its schema: unknown properties: `aspekt`
            hint: its properties are `aspect`
            error: there is no tool `get_enviroment`
            hint: did you mean `get_environment`?
        "#]],
    );
}

#[test]
fn all_argument_errors_are_reported_at_once() {
    let house = house!(ships "probe");
    let output = house.run(&["call", "echo", r#"{"line": "one"}"#]).code(2);
    expect![[r#"
        exit 2
        --- stderr
        error: the arguments of `echo` do not match its schema: at `/line`: "one" is not of type "integer"; the required property `text` is missing
        hint: its properties are `text` (required), `line`
    "#]].assert_eq(&output.to_string());
}

#[test]
fn failing_or_panicking_tool_ends_the_call_with_an_error() {
    let house = house!(ships "probe");
    let output = house.run(&["call", "panic", r#"{"place": "elsewhere"}"#]).code(1);
    expect![[r#"
        exit 1
        --- stderr
        error: no place is called `elsewhere`
    "#]]
    .assert_eq(&output.to_string());
    let output = house.run(&["call", "panic", r#"{"place": "now"}"#]).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: plugin `fixture-probe`: panicked at probe/src/panics.rs:LINE: boom now
    "#]]
    .assert_eq(&output.to_string());
    let output = house.run(&["call", "panic", r#"{"place": "job"}"#]).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: plugin `fixture-probe`: panicked at probe/src/panics.rs:LINE: boom in a job
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn live_tool_output_goes_to_standard_error() {
    let house = house!(ships "probe");
    let output = house.run(&["call", "emit", r#"{"pieces": 2, "bytes": 3}"#]).code(0);
    assert_eq!(output.json(), json!({ "taken": 2 }));
    expect![[r#"
        exit 0
        --- stdout
        {
          "taken": 2
        }
        --- stderr
          fixture-probe │ xxxxxx
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn call_typed_by_the_user_needs_no_permission() {
    let house = house!(ships "probe");
    // The tool promises nothing, so a model's call would need a prompt.
    assert_eq!(house.run(&["call", "count"]).expect_silent().json(), json!({ "count": 1 }));
}

#[test]
fn a_waiting_call_ends_with_ctrl_c_and_leaves_nothing() {
    let house = house!(ships "probe");
    let marker = house.path().join("marker");
    let arguments = json!({ "path": marker, "milliseconds": 3_600_000 }).to_string();
    for signal in ["INT", "TERM", "HUP"] {
        let running = house.command(&["call", "sleep_and_mark", &arguments]).start();
        running.wait_for_error("sleeping");
        running.send_signal(signal);
        let output = running.finish().code(130);
        assert_eq!(output.stdout, "", "{output}");
        assert!(!marker.exists());
        house.assert_no_processes();
    }
}

#[test]
fn a_deadline_ends_a_call_that_waits_for_ever() {
    let house = house!(ships "probe");
    house.configure("[session]\ncall_deadline_ms = 100\n");
    let output = house.run(&["call", "wait", r#"{"key": "k"}"#]).code(1);
    expect![[r#"
        exit 1
        --- stderr
          fixture-probe │ waiting
        error: the call to `wait` took longer than 1 s
        hint: it may have had some effects
    "#]]
    .assert_eq(&output.to_string());
}
