//! `jaato command`: commands that plugins offer to people.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::support::{House, fixture};

fn with_commands() -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("commands"));
    Some(house)
}

#[test]
fn commands_are_listed_with_how_they_are_typed_and_why_one_is_refused() {
    let Some(house) = with_commands() else { return };
    expect![[""]].assert_eq(&house.run(&["command"]).silent().stdout);
    let list = house.run(&["command", "--json"]).silent().json();
    let note = list.as_array().unwrap().iter().find(|it| it["name"] == "note").unwrap();
    assert_eq!(note["usage"], "note <priority> <text…>");
    assert_eq!((&note["plugin"], &note["status"]), (&json!("fixture-commands"), &json!("enabled")));
    assert_eq!(note["parameters"]["properties"]["priority"]["type"], "integer");
}

#[test]
fn words_and_one_json_object_are_the_same_command() {
    let Some(house) = with_commands() else { return };
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

#[track_caller]
fn refused(words: &[&str], code: i32, expected: Expect) {
    let Some(house) = with_commands() else { return };
    let output = house.run(&[&["command"], words].concat()).code(code);
    expected.assert_eq(&output.to_string());
}

#[test]
fn a_wrong_word_never_reaches_the_plugin() {
    refused(&["note", "high", "x"], 2, expect![[""]]);
    refused(&["note", "0", "x"], 2, expect![[""]]);
    refused(&["note", "1"], 2, expect![[""]]);
    refused(&["note", "{"], 2, expect![[""]]);
    refused(&["count", "x"], 2, expect![[""]]);
}

#[test]
fn an_unknown_command_is_told_with_the_nearest() {
    refused(&["notte"], 2, expect![[""]]);
    refused(&["xyz"], 2, expect![[""]]);
}

#[test]
fn gc_says_that_there_is_no_conversation_here() {
    refused(&["gc"], 1, expect![[""]]);
    refused(&["gc", "now"], 2, expect![[""]]);
}

#[test]
fn a_panic_costs_the_command_alone() {
    refused(&["panic"], 4, expect![[""]]);
}

#[test]
fn a_waiting_command_ends_with_ctrl_c_or_its_deadline() {
    let Some(house) = with_commands() else { return };
    let running = house.command(&["command", "wait"]).start();
    running.wait_for_error("waiting");
    running.signal("INT");
    assert_eq!(running.finish().code(130).stdout, "");
    house.nothing_lives();
    house.configure("[session]\ncall_deadline_ms = 100\n");
    let output = house.run(&["command", "wait"]).code(1);
    assert!(output.stderr.contains("took longer than 1 s"), "{output}");
}

#[test]
fn a_command_of_a_plugin_that_is_not_trusted_is_listed_and_refused_with_what_to_do() {
    let Some(house) = House::new() else { return };
    house.drop_in(&fixture("commands"));
    let list = house.run(&["command"]).silent().stdout;
    assert!(list.contains("not trusted"), "{list}");
    let output = house.run(&["command", "count"]).code(4);
    expect![[""]].assert_eq(&output.to_string());
}

#[test]
fn a_command_is_in_the_ledger_without_what_was_said() {
    let Some(house) = with_commands() else { return };
    house.run(&["command", "note", "1", "hunter2"]).code(0);
    let ledger = house.home().join(".local/share/jaato/ledger.jsonl");
    let text = std::fs::read_to_string(ledger).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&record["stage"], &record["command"]), (&json!("command"), &json!("note")));
    assert_eq!((&record["source"], &record["ok"]), (&json!("fixture-commands"), &json!(true)));
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_list_of_commands_that_nobody_reads_ends_quietly() {
    let Some(house) = with_commands() else { return };
    let output = house.command(&["command", "--json"]).run_into_closed_output(10);
    assert_eq!(output.stderr, "", "{output}");
}
