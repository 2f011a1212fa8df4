//! Tests checking a plugin by running it: what it may do, what it may not, and how it ended.

use std::fs;

use expect_test::{Expect, expect};

use crate::house;
use crate::support::{fixture, fixtures, library_name};

#[test]
fn plugin_check_runs_examples_in_a_worker_and_reports_each_result() {
    let house = house!();
    let file = house.write_given_file("examples.so", &fs::read(fixture("examples")).unwrap());
    let output = house.run(&["plugin", "check", &file.display().to_string()]);
    expect![[r#"
        exit 4
        --- stdout
        manifest     ok: fixture-examples 0.1.0, plugin-api 1.0.0
        layout       ok: it fits this host
        description  ok: tools add, ask_server, die_in_example, fail_in_example, remove_all
        instance     ok: it starts in a worker
        tool add     ok: 2 examples ran
        tool ask_server  left out: it may reach beyond this machine
        tool die_in_example  failed: example "die of it": the worker of the plugin `fixture-examples` was killed by signal 6 (abort); it printed: last words 1
                     try again: the next call starts a new worker; report the crash to the plugin's author
        tool fail_in_example  failed: example "fail": no luck with 1
                     try another
        tool remove_all  left out: it may change things
        conformance  failed: saved state is restored (plugin); no objects are left (plugin); examples work (tool); read only examples change nothing (tool); wrong arguments are refused (tool); a cancelled call ends (tool); instances are independent (tool): the check failed: its process was killed by signal 6 (abort); it printed: last words 1
        conformance  14 of 21 checks hold
        --- stderr
        error: 9 checks of `$HOUSE/given/examples.so` failed
    "#]].assert_eq(&output.code(4).to_string());
    house.assert_no_processes();
    assert!(!house.home().join(".local/share/jaato/ledger.jsonl").exists());
}

/// Checks the text after the description in a shipped plugin's check.
#[track_caller]
fn check_shipped(library: &str, expected: Expect) {
    let house = house!();
    let file = fixtures::test_house().unwrap().join("plugins").join(library_name(library));
    let output = house.run(&["plugin", "check", &file.display().to_string()]).expect_silent();
    let lines: Vec<&str> = output.stdout.lines().skip(3).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn plugin_check_skips_examples_with_side_effects_or_cost() {
    check_shipped(
        "gc_truncate",
        expect![[r#"
            instance     ok: it starts in a worker
            gc truncate  ok: of 12 messages that fill the context it would drop 2
            conformance  ok: 14 checks hold"#]],
    );
    check_shipped(
        "provider_openai",
        expect![[r#"
            instance     ok: it starts in a worker
            provider openai  left out: an answer may cost something
            conformance  ok: 19 checks hold"#]],
    );
    check_shipped(
        "tool_cli",
        expect![[r#"
            instance     ok: it starts in a worker
            tool cli_based_tool  left out: it may change things
            conformance  ok: 21 checks hold"#]],
    );
    check_shipped(
        "tool_environment",
        expect![[r#"
            instance     ok: it starts in a worker
            tool get_environment  ok: 3 examples ran; "How many tokens are left?" cannot be run here: Session not available. Context info requires session injection.
            conformance  ok: 21 checks hold"#]],
    );
}

#[test]
fn plugin_check_summarizes_a_hundred_skipped_tools_in_one_line() {
    let house = house!();
    let output =
        house.run(&["plugin", "check", &fixture("many").display().to_string()]).expect_silent();
    let lines: Vec<&str> = output.stdout.lines().skip(3).collect();
    expect![[r#"
        instance     ok: it starts in a worker
        tools say00 to stream_lines (100)  left out: it may change things
        conformance  ok: 21 checks hold"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn failed_conformance_checks_are_reported_in_plain_words() {
    let house = house!();
    let output = house.run(&["plugin", "check", &fixture("probe").display().to_string()]).code(4);
    let told: Vec<&str> =
        output.stdout.lines().filter(|line| line.starts_with("conformance")).collect();
    expect![[r#"
        conformance  failed: unknown operations are refused (plugin): an unknown command did not fail
        conformance  failed: a full history shrinks (gc); a history larger than a frame shrinks (gc): a plan: the count is 1 (failed)
        conformance  31 of 34 checks hold"#]].assert_eq(&told.join("\n"));
    let output = house.run(&["plugin", "check", &fixture("commands").display().to_string()]);
    let told = "command `note`, property `priority` has no description";
    assert!(output.stdout.contains(told), "{output}");
    assert!(output.code(4).stdout.ends_with("conformance  20 of 21 checks hold\n"));
    house.assert_no_processes();
}

#[test]
fn plugin_check_uses_settings_and_leaves_out_what_a_missing_one_hinders() {
    let house = house!();
    let file = fixture("database").display().to_string();
    let told = |words: &[&str]| {
        let words = [&["plugin", "check", &file], words].concat();
        let output = house.run(&words).expect_silent();
        output.stdout.lines().skip(3).collect::<Vec<_>>().join("\n")
    };
    let passed = "instance     ok: it starts in a worker\n\
                  tool name_database  ok: 1 example ran\n\
                  conformance  ok: 21 checks hold";
    expect![[r#"
        instance     left out: it needs a setting: no database is set
                     `--setting KEY=VALUE` sets one
        conformance  ok: 10 checks hold; 11 are left out, because they need the setting"#]]
    .assert_eq(&told(&[]));
    assert_eq!(told(&["--setting", "database=7"]), passed);
    let wrong = house.run(&["plugin", "check", &file, "--setting", "data=moon"]).code(3);
    expect![[r#"
        error: `[plugins.fixture-database]` has no key `data` (command line --setting)
        hint: did you mean `database`?
    "#]]
    .assert_eq(&wrong.stderr);
    house.configure("[plugins.fixture-database]\ndatabase = \"moon\"\n");
    assert_eq!(told(&[]), passed);
    house.assert_no_processes();
}

#[test]
fn plugin_that_is_only_old_passes_the_checks_of_newer_operations() {
    let house = house!();
    let file = fixture("older").display().to_string();
    let output = house.run(&["plugin", "check", &file]).code(4);
    assert!(!output.stdout.contains("larger than a frame"), "{output}");
}

#[test]
fn a_name_that_is_disabled_or_taken_does_not_hinder_the_check() {
    let house = house!(ships "echo");
    house.configure("[plugins]\ndisabled = [\"fixture-echo\"]\n");
    let file = fixture("echo").display().to_string();
    let output = house.run(&["plugin", "check", &file]).expect_silent();
    assert!(output.stdout.contains("ok: it starts in a worker"), "{output}");
}
