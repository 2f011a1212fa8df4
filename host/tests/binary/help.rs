//! What `--help` says, and what a wrong command line is told.

use expect_test::{Expect, expect, expect_file};

use crate::house;

#[test]
fn every_command_has_a_help() {
    let house = house!();
    for words in [
        "",
        "run",
        "chat",
        "call",
        "command",
        "tool",
        "tool list",
        "tool show",
        "plugin",
        "plugin list",
        "plugin show",
        "plugin trust",
        "plugin untrust",
        "plugin reload",
        "plugin check",
        "plugin new",
        "plugin install",
        "plugin remove",
        "plugin enable",
        "plugin disable",
        "shell",
        "shell list",
        "shell attach",
        "model",
        "model list",
        "model pull",
        "model import",
        "ledger",
        "ledger show",
        "trust",
        "config",
        "config show",
        "doctor",
    ] {
        let words: Vec<&str> = words.split_whitespace().chain(["--help"]).collect();
        let help = house.run(&words).silent().stdout;
        let name = words.join("-").replace("---help", "").replace("--help", "jaato");
        expect_file![format!("help/{name}.txt")].assert_eq(&help);
    }
}

#[test]
fn the_list_of_commands_in_the_help_is_the_list_above() {
    let house = house!();
    let listed = |words: &[&str]| -> Vec<String> {
        let help = house.run(words).silent().stdout;
        let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
        let names =
            commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let all = [
        "run",
        "chat",
        "call",
        "command",
        "tool",
        "plugin",
        "environment",
        "shell",
        "model",
        "ledger",
        "trust",
        "config",
        "doctor",
        "help",
    ];
    assert_eq!(listed(&["--help"]), all);
    assert_eq!(
        listed(&["plugin", "--help"]),
        [
            "list", "show", "trust", "untrust", "reload", "check", "new", "install", "remove",
            "enable", "disable", "help"
        ]
    );
    assert_eq!(listed(&["model", "--help"]), ["list", "pull", "import", "help"]);
    assert_eq!(listed(&["shell", "--help"]), ["list", "attach", "help"]);
    assert_eq!(listed(&["tool", "--help"]), ["list", "show", "help"]);
    assert_eq!(listed(&["config", "--help"]), ["show", "help"]);
    assert_eq!(listed(&["ledger", "--help"]), ["show", "help"]);
}

#[track_caller]
fn check(words: &str, expected: Expect) {
    let house = house!();
    let words: Vec<&str> = words.split_whitespace().collect();
    let output = house.run(&words);
    assert_eq!(output.code, 2, "{output}");
    expected.assert_eq(&output.to_string());
}

#[test]
fn nothing_is_answered_with_the_help() {
    let house = house!();
    let output = house.run(&[]).code(2);
    assert!(output.stderr.contains("Usage: jaato"), "{output}");
}

#[test]
fn an_unknown_command_is_told_with_the_nearest() {
    check(
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
fn an_unknown_option_is_told_with_the_nearest() {
    check(
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
fn a_missing_argument_is_told() {
    check(
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
    check(
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
fn a_call_is_one_or_a_batch() {
    check(
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
fn the_form_of_the_output_is_one_of_two() {
    check(
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
fn the_version_is_told() {
    let house = house!();
    let version = house.run(&["--version"]).silent().stdout;
    assert_eq!(version, format!("jaato {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn global_options_stand_before_or_after_the_command() {
    let house = house!();
    let folder = house.given_folder().display().to_string();
    let before = house.run(&["--plugin-dir", &folder, "--offline", "tool", "list"]).silent();
    let after = house.run(&["tool", "list", "--plugin-dir", &folder, "--offline"]).silent();
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
    let document = include_str!("../../../docs/commands.md");
    for help in ["jaato", "tool", "plugin", "shell", "model", "ledger", "config"] {
        let text = std::fs::read_to_string(
            std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(format!("tests/binary/help/{help}.txt")),
        )
        .unwrap();
        let commands = text.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
        for line in commands.lines().filter(|line| !line.starts_with("   ")) {
            let name = line.split_whitespace().next().unwrap();
            let is_there = name == "help" || document.contains(&format!("jaato {name}"));
            let follows = [format!("`{name}"), format!("{help} {name}")];
            let is_named = is_there || follows.iter().any(|named| document.contains(named));
            assert!(is_named, "docs/commands.md does not name `{help} {name}`");
        }
    }
}
