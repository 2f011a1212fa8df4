//! Tests the output of `--help`, and the errors for a wrong command line.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use expect_test::{Expect, expect, expect_file};

use crate::house;
use crate::support::House;

/// Returns the words of every command in `--help`, including groups, in the order of the help. The
/// first is jaato itself, without words.
fn list_commands(house: &House) -> Vec<Vec<String>> {
    let mut commands = vec![vec![]];
    let mut next = 0;
    while let Some(words) = commands.get(next).cloned() {
        let help = help_text(house, &words);
        let listed = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
        let rows = listed.unwrap_or_default().lines().filter(|line| !line.starts_with("   "));
        let names = rows.filter_map(|row| row.split_whitespace().next());
        for name in names.filter(|name| *name != "help") {
            commands.push([words.as_slice(), &[name.to_owned()]].concat());
        }
        next += 1;
    }
    commands
}

fn help_text(house: &House, words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    house.run(&words).expect_silent().stdout
}

#[test]
fn every_command_has_a_help() {
    let house = house!();
    let mut kept = BTreeSet::new();
    for words in list_commands(&house) {
        let file = if words.is_empty() { "jaato".to_owned() } else { words.join("-") } + ".txt";
        expect_file![format!("help/{file}")].assert_eq(&help_text(&house, &words));
        kept.insert(file);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/binary/help");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let files: BTreeSet<_> = files.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(files, kept, "each file is the help of a command");
}

#[track_caller]
fn check_usage_error(words: &str, expected: Expect) {
    let house = house!();
    let words: Vec<&str> = words.split_whitespace().collect();
    let output = house.run(&words);
    assert_eq!(output.code, 2, "{output}");
    expected.assert_eq(&output.to_string());
}

#[test]
fn jaato_without_a_command_prints_the_help() {
    let house = house!();
    let output = house.run(&[]).code(2);
    assert!(output.stderr.contains("Usage: jaato"), "{output}");
}

#[test]
fn unknown_command_error_suggests_the_nearest_command() {
    check_usage_error(
        "tols list",
        expect![[r#"
        exit 2
        --- stderr
        error: unrecognized subcommand 'tols'

          tip: a similar subcommand exists: 'tool'

        Usage: jaato [OPTIONS] <COMMAND>

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn unknown_option_error_suggests_the_nearest_option() {
    check_usage_error(
        "tool list --jsn",
        expect![[r#"
        exit 2
        --- stderr
        error: unexpected argument '--jsn' found

          tip: a similar argument exists: '--json'

        Usage: jaato tool list --json

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn missing_argument_is_an_error() {
    check_usage_error(
        "plugin trust moon.so",
        expect![[r#"
        exit 2
        --- stderr
        error: the following required arguments were not provided:
          --sha256 <HEX>

        Usage: jaato plugin trust --sha256 <HEX> <FILE>

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn a_call_needs_a_tool_or_a_batch() {
    check_usage_error(
        "call",
        expect![[r#"
        exit 2
        --- stderr
        error: the following required arguments were not provided:
          <TOOL|--batch>

        Usage: jaato call <TOOL|--batch> [ARGUMENTS]

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn call_command_refuses_a_tool_together_with_a_batch() {
    check_usage_error(
        "call get_environment --batch",
        expect![[r#"
        exit 2
        --- stderr
        error: the argument '[TOOL]' cannot be used with '--batch'

        Usage: jaato call <TOOL|--batch> [ARGUMENTS]

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn output_option_accepts_only_text_and_json() {
    check_usage_error(
        "run --output yaml hello",
        expect![[r#"
        exit 2
        --- stderr
        error: invalid value 'yaml' for '--output <OUTPUT>'
          [possible values: text, json]

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn version_option_prints_the_version() {
    let house = house!();
    let version = house.run(&["--version"]).expect_silent().stdout;
    assert_eq!(version, format!("jaato {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn global_options_stand_before_or_after_the_command() {
    let house = house!();
    let folder = house.given_folder().display().to_string();
    let before = house.run(&["--plugin-dir", &folder, "--offline", "tool", "list"]).expect_silent();
    let after = house.run(&["tool", "list", "--plugin-dir", &folder, "--offline"]).expect_silent();
    assert_eq!(before.stdout, after.stdout);
}

#[test]
fn a_worker_is_started_by_jaato_alone() {
    let house = house!();
    let output = house.run(&["plugin-worker", "--describe", "moon.so"]).code(2);
    expect![[r#"
        exit 2
        --- stderr
        `plugin-worker` is started by jaato itself: there is no descriptor 3
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn the_document_of_commands_names_every_command() {
    let house = house!();
    let document = include_str!("../../../docs/commands.md");
    for words in list_commands(&house) {
        let Some((name, group)) = words.split_last() else { continue };
        // A row names a group once, and its further commands follow without it.
        let row = format!("`jaato {}", words.first().unwrap());
        let rows = document.lines().filter(|line| line.starts_with("| ") && line.contains(&row));
        let named = [
            format!("`{name}"),
            format!("{} {name}", [&["jaato".to_owned()], group].concat().join(" ")),
        ];
        let is_named = rows.into_iter().any(|line| named.iter().any(|named| line.contains(named)));
        assert!(is_named, "docs/commands.md does not name `jaato {}`", words.join(" "));
    }
}
