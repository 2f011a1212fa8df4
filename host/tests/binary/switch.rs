//! Tests disabling and enabling plugins: only that part of the user's file changes.

use std::fs;

use expect_test::expect;

use crate::house;
use crate::support::{House, fixture};

fn read_config(house: &House) -> String {
    fs::read_to_string(house.home().join(".config/jaato/config.toml")).unwrap()
}

#[track_caller]
fn plugin_status(house: &House) -> String {
    let shown = house.run(&["plugin", "show", "tool-environment", "--json"]).code(0).json();
    shown["status"].as_str().unwrap().to_owned()
}

#[test]
fn plugin_is_disabled_and_enabled_and_config_comments_are_kept() {
    let house = house!();
    house.configure("# mine\nversion = 1\nmodel = \"a/b\" # best\n\n[tools]\ndisabled = []\n");
    house.run(&["tool", "list"]).expect_silent();
    let output = house.run(&["plugin", "disable", "tool-environment"]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        plugin `tool-environment` is disabled: $HOUSE/home/.config/jaato/config.toml
    "#]]
    .assert_eq(&output.to_string());
    expect![[r#"
        # mine
        version = 1
        model = "a/b" # best

        [tools]
        disabled = []

        [plugins]
        disabled = ["tool-environment"]
    "#]]
    .assert_eq(&read_config(&house));
    assert_eq!(plugin_status(&house), "disabled");
    let before = read_config(&house);
    let output = house.run(&["call", "get_environment"]).code(4);
    expect![[r#"
        error: tool `get_environment` of plugin `tool-environment` cannot be used: it is disabled by `[plugins] disabled`
        hint: jaato plugin enable tool-environment
    "#]].assert_eq(&output.stderr);
    let again = house.run(&["plugin", "disable", "tool-environment"]).expect_silent();
    assert_eq!(again.stdout, "plugin `tool-environment` is already disabled\n");
    assert_eq!(read_config(&house), before);
    house.run(&["plugin", "enable", "tool-environment"]).expect_silent();
    assert_eq!(read_config(&house), before.replace("\"tool-environment\"", ""));
    assert_eq!(plugin_status(&house), "active");
    let again = house.run(&["plugin", "enable", "tool-environment"]).expect_silent();
    assert_eq!(again.stdout, "plugin `tool-environment` is already enabled\n");
}

#[test]
fn unknown_plugin_gets_a_suggestion_and_a_missing_one_can_be_enabled() {
    let house = house!();
    for word in ["disable", "enable"] {
        let output = house.run(&["plugin", word, "tool-environmant"]).code(2);
        assert!(output.stderr.contains("did you mean `tool-environment`?"), "{output}");
    }
    assert!(!house.home().join(".config/jaato/config.toml").exists());
    house.configure("[plugins]\ndisabled = [\"gone\"]\n");
    house.run(&["plugin", "enable", "gone"]).expect_silent();
    assert_eq!(read_config(&house), "[plugins]\ndisabled = []\n");
}

#[test]
fn switching_edits_the_named_file_and_reports_other_layers() {
    let house = house!();
    let file = house.write("other.toml", "").display().to_string();
    house.run(&["plugin", "disable", "tool-environment", "--config", &file]).expect_silent();
    assert!(!house.home().join(".config/jaato/config.toml").exists());
    assert!(fs::read_to_string(&file).unwrap().contains("[\"tool-environment\"]"));

    house.write("workspace/.jaato/config.toml", "[plugins]\ndisabled = [\"tool-environment\"]\n");
    house.run(&["trust"]).expect_silent();
    let output = house.run(&["plugin", "enable", "tool-environment", "--config", &file]).code(3);
    expect![[r#"
        error: plugin `tool-environment` is also disabled elsewhere, so it stays disabled
        hint: `jaato config show` shows the source of `plugins.disabled`
    "#]]
    .assert_eq(&output.stderr);
    assert!(!fs::read_to_string(&file).unwrap().contains("tool-environment"));
}

#[test]
fn install_of_a_disabled_plugin_reports_that_it_is_disabled() {
    let house = house!();
    let given = fixture("echo").display().to_string();
    house.run(&["plugin", "install", &given]).expect_silent();
    house.run(&["plugin", "disable", "fixture-echo"]).expect_silent();
    let output = house.run(&["plugin", "install", &given]).expect_silent();
    assert!(output.stdout.contains("`jaato plugin enable fixture-echo` enables it"), "{output}");
}
