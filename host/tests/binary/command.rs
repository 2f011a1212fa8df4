//! Tests `jaato command`: commands that plugins offer to users.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::support::{House, fixture};

fn house_with_commands() -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("commands"));
    Some(house)
}

#[test]
fn command_list_shows_usage_and_the_reason_for_a_refusal() {
    let Some(house) = house_with_commands() else { return };
    expect![[r#"
        exit 0
        --- stdout
        COMMAND                  PLUGIN            STATUS   DESCRIPTION
        context                  jaato             enabled  Shows what fills the context, and how much of it is free.
        count                    fixture-commands  enabled  Counts the notes of this session.
        gc [plan|undo]           jaato             enabled  Makes room in the conversation: the oldest turns are sent no more.
        note <priority> <text…>  fixture-commands  enabled  Keeps a note.
        objects [hidden]         jaato             enabled  Shows the objects that tools have found in the conversation.
        panic                    fixture-commands  enabled  Panics.
        wait                     fixture-commands  enabled  Waits for ever.
        gc                       fixture-commands  refused  A name that jaato keeps for itself.
        two words                fixture-commands  refused  A name that nobody can type.
        --- stderr
        note: command `gc` of plugin `fixture-commands` is refused: jaato itself uses the name
        note: command `two words` of plugin `fixture-commands` is refused: a name has 1 to 64 letters, digits, `_` and `-`, and does not begin with `-`
    "#]].assert_eq(&house.run(&["command"]).code(0).to_string());
    let list = house.run(&["command", "--json"]).code(0).json();
    let note = list.as_array().unwrap().iter().find(|it| it["name"] == "note").unwrap();
    assert_eq!(note["usage"], "note <priority> <text…>");
    assert_eq!((&note["plugin"], &note["status"]), (&json!("fixture-commands"), &json!("enabled")));
    assert_eq!(note["parameters"]["properties"]["priority"]["type"], "integer");
}

#[test]
fn command_arguments_as_words_or_as_json_are_equivalent() {
    let Some(house) = house_with_commands() else { return };
    let output = house.run(&["command", "note", "3", "buy", "milk"]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        {
          "number": 1,
          "note": {
            "priority": 3,
            "text": "buy milk"
          }
        }
        --- stderr
          fixture-commands │ writing
    "#]]
    .assert_eq(&output.to_string());
    let object = r#"{"priority": 3, "text": "buy milk"}"#;
    assert_eq!(house.run(&["command", "note", object]).code(0).stdout, output.stdout);
    let dashes = house.run(&["command", "note", "--", "1", "--not", "an", "option"]).code(0);
    assert_eq!(dashes.json()["note"]["text"], "--not an option");
}

/// Checks that each of these commands is refused with this code. The snapshot contains all
/// messages.
#[track_caller]
fn assert_refused(code: i32, commands: &[&[&str]], expected: Expect) {
    let Some(house) = house_with_commands() else { return };
    let refusal = |words: &&[&str]| {
        let output = house.run(&[&["command"], *words].concat()).code(code);
        assert_eq!(output.stdout, "", "{output}");
        house.normalize_output(&output.stderr)
    };
    expected.assert_eq(&commands.iter().map(refusal).collect::<String>());
}

#[test]
fn invalid_command_is_refused_and_a_panic_fails_only_that_command() {
    assert_refused(
        2,
        &[
            &["note", "high", "x"],
            &["note", "0", "x"],
            &["note", "1"],
            &["note", "{"],
            &["count", "x"],
            &["notte"],
            &["xyz"],
            &["gc", "now"],
        ],
        expect![[r#"
            error: cannot parse the command `note`: `priority` takes a whole number, not `high`
            hint: write it as `note <priority> <text…>`, or with one JSON object
            error: the arguments of `note` do not match its schema: at `/priority`: 0 is less than the minimum of 1
            hint: write it as `note <priority> <text…>`, or with one JSON object
            error: the arguments of `note` do not match its schema: the required property `text` is missing
            hint: write it as `note <priority> <text…>`, or with one JSON object
            error: cannot parse the command `note`: the arguments are not JSON: EOF while parsing an object at line 1 column 1
            hint: write it as `note <priority> <text…>`, or with one JSON object
            error: cannot parse the command `count`: unexpected word: `x`
            hint: write it as `count`, or with one JSON object
            error: there is no command `notte`
            hint: did you mean `note`?
            error: there is no command `xyz`
            hint: `jaato command` lists them
            error: the arguments of `gc` do not match its schema: at `/action`: `"now"` is not one of the allowed values: `plan`, `undo`
            hint: write it as `gc [plan|undo]`, or with one JSON object
        "#]],
    );
    assert_refused(
        1,
        &[&["gc"]],
        expect![[r#"
            error: `gc` works only in a conversation, and there is none here
            hint: `jaato run` runs the gc automatically when the context is full
        "#]],
    );
    assert_refused(
        4,
        &[&["panic"]],
        expect![[r#"
            error: plugin `fixture-commands`: panicked at commands/src/lib.rs:LINE: boom in a command
        "#]],
    );
}

#[test]
fn a_waiting_command_ends_with_ctrl_c_or_its_deadline() {
    let Some(house) = house_with_commands() else { return };
    let running = house.command(&["command", "wait"]).start();
    running.wait_for_error("waiting");
    running.send_signal("INT");
    assert_eq!(running.finish().code(130).stdout, "");
    house.assert_no_processes();
    house.configure("[session]\ncall_deadline_ms = 100\n");
    let output = house.run(&["command", "wait"]).code(1);
    assert!(output.stderr.contains("took longer than 1 s"), "{output}");
}

#[test]
fn a_command_of_a_plugin_that_is_not_trusted_runs_in_a_worker_with_its_state() {
    let Some(house) = House::new() else { return };
    house.ship_to_user(&fixture("commands"));
    let output = house.run(&["command", "note", "1", "x"]).code(0);
    assert_eq!(output.json(), json!({ "number": 1, "note": { "priority": 1, "text": "x" } }));
    let panicked = house.run(&["command", "panic"]).code(4);
    assert!(panicked.stderr.contains("boom in a command"), "{panicked}");
    house.assert_no_processes();
}

#[test]
fn command_is_recorded_in_the_ledger_without_its_arguments() {
    let Some(house) = house_with_commands() else { return };
    house.run(&["command", "note", "1", "hunter2"]).code(0);
    let ledger = house.home().join(".local/share/jaato/ledger.jsonl");
    let text = std::fs::read_to_string(ledger).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&record["stage"], &record["command"]), (&json!("command"), &json!("note")));
    assert_eq!((&record["source"], &record["ok"]), (&json!("fixture-commands"), &json!(true)));
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn command_list_with_a_closed_output_ends_without_an_error_message() {
    let Some(house) = house_with_commands() else { return };
    let output = house.command(&["command", "--json"]).run_into_closed_output(10);
    assert!(!output.stderr.contains("error:"), "{output}");
}
