//! Tests plugins that fail when they are opened or described: each causes a line, and the good
//! plugins still work.

use expect_test::{Expect, expect};

use crate::house;
use crate::support::fixture;

/// Lists an installation with one fixture that fails when it is opened or described.
#[track_caller]
fn check_failing(name: &str, expected: Expect) {
    let house = house!();
    let plain = house.run(&["tool", "list"]).expect_silent();
    house.ship(&fixture(name));
    let output = house.run(&["plugin", "list"]).code(0);
    expected.assert_eq(&output.to_string());
    let tools = house.run(&["tool", "list"]).code(0);
    assert_eq!(tools.stdout, plain.stdout, "{tools}");
    let notes = tools.stderr.lines().filter(|line| line.starts_with("note: "));
    assert_eq!(notes.count(), 1, "one line reports it: {tools}");
    let called = house.run(&["call", "get_environment"]);
    assert_eq!(called.code, 0, "{called}");
    house.assert_no_processes();
    let checked = house.run(&["plugin", "check", &fixture(name).display().to_string()]).code(4);
    assert!(checked.stderr.contains("error: cannot use `"), "{checked}");
}

#[test]
fn plugin_with_a_panicking_constructor_is_listed_as_failed() {
    check_failing(
        "constructor",
        expect![[r#"
            exit 0
            --- stdout
            PLUGIN               VERSION  FROM     STATUS  RUNS          OFFERS
            fixture-constructor  0.1.0    shipped  failed  -
            tool-environment     0.1.0    shipped  active  inside jaato  get_environment

            fixture-constructor ($HOUSE/plugins/libfixture_constructor.so): it failed to start: its constructor panicked
              report this to the plugin's author
        "#]],
    );
}

#[test]
fn plugin_that_aborts_in_describe_is_listed_as_failed() {
    check_failing(
        "aborts",
        expect![[r#"
            exit 0
            --- stdout
            PLUGIN            VERSION  FROM     STATUS  RUNS          OFFERS
            fixture-aborts    0.1.0    shipped  failed  -
            tool-environment  0.1.0    shipped  active  inside jaato  get_environment

            fixture-aborts ($HOUSE/plugins/libfixture_aborts.so): describing it failed: its process was killed by signal 6 (abort)
        "#]],
    );
}

#[test]
fn plugin_without_tools_is_listed_as_failed() {
    check_failing(
        "vanished",
        expect![[r#"
            exit 0
            --- stdout
            PLUGIN            VERSION  FROM     STATUS  RUNS          OFFERS
            fixture-vanished  0.1.0    shipped  failed  -
            tool-environment  0.1.0    shipped  active  inside jaato  get_environment

            fixture-vanished ($HOUSE/plugins/libfixture_vanished.so): the plugin exports tools but has none
              add `tool!(…)` next to each tool's `impl`
        "#]],
    );
}

#[test]
fn library_without_the_plugin_symbol_is_listed_as_failed() {
    check_failing(
        "bare",
        expect![[r#"
            exit 0
            --- stdout
            PLUGIN            VERSION  FROM     STATUS  RUNS          OFFERS
            fixture-bare      0.1.0    shipped  failed  -
            tool-environment  0.1.0    shipped  active  inside jaato  get_environment

            fixture-bare ($HOUSE/plugins/libfixture_bare.so): it does not export `JAATO_PLUGIN_V1`
              build the plugin with jaato-plugin-sdk 1.0.0
        "#]],
    );
}

#[test]
fn plugin_with_an_invalid_description_frame_is_listed_as_failed() {
    check_failing(
        "raw",
        expect![[r#"
            exit 0
            --- stdout
            PLUGIN            VERSION  FROM     STATUS  RUNS          OFFERS
            fixture-raw       0.1.0    shipped  failed  -
            tool-environment  0.1.0    shipped  active  inside jaato  get_environment

            fixture-raw ($HOUSE/plugins/libfixture_raw.so): the plugin `fixture-raw` cannot be described: a frame of 0 bytes is too short: it needs 4
        "#]],
    );
}

#[test]
fn plugin_that_hangs_in_describe_fails_after_its_deadline() {
    check_failing(
        "hangs",
        expect![[r#"
            exit 0
            --- stdout
            PLUGIN            VERSION  FROM     STATUS  RUNS          OFFERS
            fixture-hangs     0.1.0    shipped  failed  -
            tool-environment  0.1.0    shipped  active  inside jaato  get_environment

            fixture-hangs ($HOUSE/plugins/libfixture_hangs.so): describing it took longer than 5 s
        "#]],
    );
}

#[test]
fn plugin_that_exceeds_its_memory_in_describe_fails() {
    check_failing(
        "grows",
        expect![[r#"
            exit 0
            --- stdout
            PLUGIN            VERSION  FROM     STATUS  RUNS          OFFERS
            fixture-grows     0.1.0    shipped  failed  -
            tool-environment  0.1.0    shipped  active  inside jaato  get_environment

            fixture-grows ($HOUSE/plugins/libfixture_grows.so): describing it failed: its process was killed by signal 6 (abort); it printed: memory allocation of 16777216 bytes failed ⏎ note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
        "#]],
    );
}
