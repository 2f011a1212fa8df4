//! Tests that a name is assigned once: a plugin from a less trusted place, or later in the same
//! place, is refused completely.

use std::fs;

use expect_test::expect;

use crate::house;
use crate::support::{elf, fixture, library_name};

/// Returns the fixture `echo` under another plugin name, so that only the name of its tool
/// conflicts.
fn renamed_echo_bytes(name: &str) -> Vec<u8> {
    let echo = fs::read(fixture("echo")).unwrap();
    elf::patch_bytes(&echo, r#""name":"fixture-echo""#, &format!(r#""name":"{name}""#))
}

#[test]
fn plugin_name_belongs_to_the_more_trusted_source() {
    let house = house!();
    let shipped = house.shipped_folder().join(library_name("tool_environment"));
    house.write_given_file("another.so", &fs::read(shipped).unwrap());
    let folder = house.given_folder().display().to_string();
    let output = house.run(&["plugin", "list", "--plugin-dir", &folder]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        PLUGIN            VERSION  FROM          STATUS   RUNS          OFFERS
        tool-environment  0.1.0    shipped       active   inside jaato  get_environment
        tool-environment  0.1.0    --plugin-dir  refused  -             get_environment

        tool-environment ($HOUSE/given/another.so): the plugin name `tool-environment` is taken by `$HOUSE/plugins/libtool_environment.so`
    "#]].assert_eq(&output.to_string());
    // The plugin that owns the name works.
    house.run(&["call", "get_environment", "--plugin-dir", &folder]).code(0);
}

#[test]
fn first_file_in_a_folder_owns_the_plugin_name() {
    let house = house!();
    for name in ["b.so", "a.so", "c.so"] {
        fs::copy(fixture("probe"), house.shipped_folder().join(name)).unwrap();
    }
    let list = house.run(&["plugin", "list", "--json"]).code(0).json();
    let told: Vec<_> = list["plugins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| {
            let path = plugin["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            (path, plugin["status"].as_str().unwrap().to_owned())
        })
        .filter(|(path, _)| path.len() == "a.so".len())
        .collect();
    let expected = [("a.so", "active"), ("b.so", "refused"), ("c.so", "refused")];
    assert_eq!(told, expected.map(|(path, status)| (path.to_owned(), status.to_owned())));
}

#[test]
fn plugin_with_taken_names_keeps_the_rest_and_lists_their_owner() {
    let house = house!(ships "probe");
    let probe = fs::read(fixture("probe")).unwrap();
    let other = elf::patch_bytes(&probe, r#""name":"fixture-probe""#, r#""name":"second-probes""#);
    fs::write(house.shipped_folder().join("zz.so"), other).unwrap();
    let list = house.run(&["plugin", "list"]).code(0);
    let row = list.stdout.lines().find(|line| line.starts_with("second-probes")).unwrap();
    assert!(row.contains("active") && row.ends_with("gc second-probes"), "{list}");
    let taken = "note: plugin `second-probes`: tool `ask` is left out: the name is taken by `";
    assert!(list.stderr.contains(taken), "{list}");
    let shown = house.run(&["plugin", "show", "second-probes"]).code(0);
    for name in ["tool `ask`", "provider `probe`"] {
        let owner = house.shipped_folder().join(library_name("fixture_probe"));
        let line = format!("  left out    {name}: the name is taken by `{}`", owner.display());
        assert!(shown.stdout.contains(&line), "{shown}");
    }
}

#[test]
fn plugin_whose_only_name_is_taken_is_refused() {
    let house = house!(ships "echo");
    let other = house.shipped_folder().join("zz.so");
    fs::write(&other, renamed_echo_bytes("zzzzzzz-echo")).unwrap();
    let output = house.run(&["plugin", "list"]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        PLUGIN            VERSION  FROM     STATUS   RUNS          OFFERS
        fixture-echo      0.1.0    shipped  active   inside jaato  count_bytes_echo
        tool-environment  0.1.0    shipped  active   inside jaato  get_environment
        zzzzzzz-echo      0.1.0    shipped  refused  -             count_bytes_echo

        zzzzzzz-echo ($HOUSE/plugins/zz.so): its tool name `count_bytes_echo` is taken by `$HOUSE/plugins/libfixture_echo.so`
    "#]].assert_eq(&output.to_string());
    let output = house.run(&["tool", "list"]).code(0);
    assert!(!output.stdout.contains("zzzzzzz-echo"), "{output}");
    let note = output.stderr.lines().find(|line| line.starts_with("note: ")).unwrap_or_default();
    assert!(note.contains("zz.so") && note.contains("libfixture_echo.so"), "both paths: {output}");
}

#[test]
fn a_reserved_tool_name_is_refused() {
    let house = house!();
    let echo = fs::read(fixture("echo")).unwrap();
    let reserved = elf::patch_bytes(&echo, "count_bytes_echo", "get_tool_schemas");
    fs::write(house.shipped_folder().join("reserved.so"), reserved).unwrap();
    let output = house.run(&["plugin", "list"]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        PLUGIN            VERSION  FROM     STATUS   RUNS          OFFERS
        tool-environment  0.1.0    shipped  active   inside jaato  get_environment
        fixture-echo      0.1.0    shipped  refused  -             get_tool_schemas

        fixture-echo ($HOUSE/plugins/reserved.so): jaato itself uses its tool name `get_tool_schemas`
    "#]].assert_eq(&output.to_string());
}
