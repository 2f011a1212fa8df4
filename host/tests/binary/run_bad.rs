//! Tests runs that cannot start, or fail: the exit code and the line with the reason.

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::Command;

#[test]
fn a_provider_that_fails_ends_the_run() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "fail": { "kind": "provider", "message": "no credit", "hint": "pay" } }] },
    ] }));
    let output = house.run(&["run", "hello"]).code(5);
    expect![[r#"
        exit 5
        --- stderr
        error: no credit
        hint: pay
    "#]]
    .assert_eq(&output.to_string());
    let output = house.run(&["run", "--output", "json", "hello"]).code(5);
    let last = output.json_lines().pop().unwrap();
    assert_eq!((&last["event"], &last["outcome"]), (&json!("turn_finished"), &json!("failed")));
    expect![[r#"
        error: no credit
        hint: pay
    "#]]
    .assert_eq(&output.stderr);
}

#[test]
fn temporary_provider_failure_is_retried() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "fail": { "kind": "provider", "message": "busy", "retry": "temporary" } }] },
        { "steps": [{ "text": "ok" }] },
    ] }));
    house.configure_more("[session]\nretry_base_ms = 1\n");
    let output = house.run(&["run", "hello"]).code(0);
    assert_eq!(output.stdout, "ok\n");
    expect![[r#"
        busy; trying again in 0.0 s, try 2 of 5
    "#]]
    .assert_eq(&output.stderr);
}

#[test]
fn a_provider_that_panics_ends_the_run_and_nothing_else() {
    let house = house!();
    house
        .set_script(&json!({ "answers": [{ "steps": [{ "text": "so " }, { "panic": "boom" }] }] }));
    let output = house.run(&["run", "hello"]).code(4);
    expect![[r#"
        exit 4
        --- stdout
        so 
        --- stderr
        error: plugin `provider-scripted`: panicked at provider-scripted/src/lib.rs:LINE: boom
    "#]]
    .assert_eq(&output.to_string());
    house.assert_no_processes();
}

#[test]
fn silent_provider_times_out_and_ends_the_run() {
    let house = house!();
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": "so " }, "hang"] }] }));
    house.configure_more("[session]\nprovider_idle_ms = 1000\nattempts_max = 1\n");
    let output = house.run(&["run", "hello"]).code(5);
    expect![[r#"
        exit 5
        --- stdout
        so 
        --- stderr
        error: the provider sent nothing for 1 s
    "#]]
    .assert_eq(&output.to_string());
    house.assert_no_processes();
}

#[test]
fn answer_longer_than_the_limit_ends_the_run() {
    let house = house!();
    let text = json!({ "text": "x".repeat(2000) });
    // Whether the provider continues or ends after the excess piece.
    for steps in [json!([text, "hang"]), json!([text])] {
        house.set_script(&json!({ "answers": [{ "steps": steps }] }));
        house.configure_more("[session]\nanswer_bytes_max = 1024\n");
        let output = house.run(&["run", "hello"]).code(6);
        assert!(output.stderr.contains("longer than 1024 bytes"), "{output}");
        house.assert_no_processes();
    }
}

#[test]
fn unknown_provider_error_lists_known_providers() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    let output = house.run(&["run", "--model", "moon/full", "hello"]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        error: no plugin offers the provider `moon` of the model `moon/full`
        hint: known providers are: scripted
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn error_without_any_provider_plugin_suggests_doctor() {
    let house = house!();
    let output = house.run(&["run", "hello"]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        error: no plugin offers the provider `local` of the model `local/qwen2.5-coder-1.5b`
        hint: no provider plugin was found: `jaato doctor` shows the plugin folders
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn error_of_an_executable_without_shipped_plugins_names_their_folders() {
    let house = house!();
    // As the executable of a program that embeds jaato.
    let top = house.workspace().join("elsewhere");
    std::fs::create_dir_all(top.join("bin")).unwrap();
    let jaato = top.join("bin/jaato");
    std::fs::copy(house.binary(), &jaato).unwrap();
    house.configure("model = \"openai/moon\"\n[plugins.provider-openai]\nmoon = 1\n");
    let run = Command::program(&house, jaato.to_str().unwrap(), &["run", "hello"]).run().code(3);
    expect![[r#"
        exit 3
        --- stderr
        note: unknown plugin `provider-openai` (user $HOUSE/home/.config/jaato/config.toml:3)
        note: there are no shipped plugins in `$HOUSE/workspace/elsewhere/plugins` and `$HOUSE/workspace/elsewhere/lib/jaato/plugins`, the folders for the executable `$HOUSE/workspace/elsewhere/bin/jaato`; install all of jaato, or set `Setup::executable` in a program that embeds it
        error: no plugin offers the provider `openai` of the model `openai/moon`
        hint: there are no shipped plugins in `$HOUSE/workspace/elsewhere/plugins` and `$HOUSE/workspace/elsewhere/lib/jaato/plugins`, the folders for the executable `$HOUSE/workspace/elsewhere/bin/jaato`; install all of jaato, or set `Setup::executable` in a program that embeds it
    "#]]
    .assert_eq(&run.to_string());
}

#[test]
fn invalid_model_id_is_a_usage_error() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    let output = house.run(&["run", "--model", "", "hello"]).code(2);
    expect![[r#"
        exit 2
        --- stderr
        error: `` is not a model: write `provider/model`, for example `local/qwen2.5-coder-1.5b`
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn invalid_provider_configuration_is_reported() {
    let house = house!();
    house.set_script(&json!({ "answers": "none" }));
    let output = house.run(&["run", "hello"]).code(3);
    assert!(output.stderr.contains("script.json"), "{output}");
}

#[test]
fn the_limit_of_steps_ends_a_run() {
    let house = house!();
    house.set_script(&json!({ "repeat_last": true, "answers": [
        { "steps": [{ "call": { "name": "get_environment", "arguments": { "aspect": "cwd" } } }] },
    ] }));
    house.configure_more("[session]\nsteps_max = 3\n");
    let output = house.run(&["run", "hello"]).code(6);
    let called = output.stderr.lines().filter(|line| line.contains("] get_environment")).count();
    assert_eq!(called, 2, "the last step's call does not run: {output}");
    expect!["hint: say `continue`, or raise the limit in the configuration"]
        .assert_eq(output.stderr.lines().last().unwrap());
}

#[test]
fn empty_model_answer_is_retried_once() {
    let house = house!();
    house.set_script(&json!({ "answers": [{ "steps": [] }, { "steps": [] }] }));
    let output = house.run(&["run", "hello"]).code(5);
    expect![[r#"
        exit 5
        --- stderr
        host: the model sent an empty answer: asking again
        error: the model sent 2 empty answers
        hint: rephrase the task, or use another model
    "#]]
    .assert_eq(&output.to_string());
}
