//! Tests where plugins are found, and the requirements on these places.

use std::fs;
use std::os::unix::fs::symlink;

use expect_test::expect;

use crate::house;
use crate::support::{
    Command, NOBODY, can_start_as_nobody, fixture, is_root, library_name, set_mode, skip,
};

#[test]
fn a_shipped_folder_that_others_can_write_to_is_not_used() {
    let house = house!();
    set_mode(&house.shipped_folder(), 0o775);
    let output = house.run(&["plugin", "list"]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        no plugins
        --- stderr
        note: `$HOUSE/plugins` is not used: users other than its owner can write to it (mode 775)
        hint: chmod go-w '$HOUSE/plugins'
    "#]]
    .assert_eq(&output.to_string());
    set_mode(&house.shipped_folder(), 0o755);
    assert!(house.run(&["plugin", "list"]).expect_silent().stdout.contains("tool-environment"));
}

#[test]
fn a_shipped_file_that_others_can_write_to_is_not_used() {
    let house = house!();
    let file = house.shipped_folder().join("probe.so");
    fs::copy(fixture("probe"), &file).unwrap();
    set_mode(&file, 0o757);
    let output = house.run(&["plugin", "list"]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        PLUGIN            VERSION  FROM     STATUS  RUNS          OFFERS
        tool-environment  0.1.0    shipped  active  inside jaato  get_environment
        --- stderr
        note: `$HOUSE/plugins/probe.so` is not used: users other than its owner can write to it (mode 757)
        hint: chmod go-w '$HOUSE/plugins/probe.so'
    "#]]
    .assert_eq(&output.to_string());
    let command = house.normalize_output(&output.stderr);
    let command = command.lines().last().unwrap().strip_prefix("hint: ").unwrap();
    let command = command.replace("$HOUSE", &house.path().display().to_string());
    let status = std::process::Command::new("sh").args(["-c", &command]).status().unwrap();
    assert!(status.success());
    assert!(house.run(&["plugin", "list"]).expect_silent().stdout.contains("fixture-probe"));
}

#[test]
fn symlink_to_the_binary_uses_plugins_next_to_the_real_binary() {
    let house = house!();
    let elsewhere = house.path().join("elsewhere/bin");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::create_dir_all(house.path().join("elsewhere/plugins")).unwrap();
    symlink(house.binary(), elsewhere.join("jaato")).unwrap();
    fs::copy(fixture("probe"), house.path().join("elsewhere/plugins/probe.so")).unwrap();
    let program = elsewhere.join("jaato").display().to_string();
    let output = Command::program(&house, &program, &["tool", "list"]).run().expect_silent();
    assert!(output.stdout.contains("get_environment"), "{output}");
    assert!(!output.stdout.contains("fixture-probe"), "{output}");
}

#[test]
fn the_second_shipped_folder_is_searched_too() {
    let house = house!();
    let folder = house.path().join("lib/jaato/plugins");
    fs::create_dir_all(&folder).unwrap();
    set_mode(&folder, 0o755);
    let plugin = folder.join(library_name("fixture_probe"));
    fs::copy(fixture("probe"), &plugin).unwrap();
    set_mode(&plugin, 0o755);
    let output = house.run(&["plugin", "list"]).expect_silent();
    assert!(output.stdout.contains("fixture-probe     0.1.0    shipped  active"), "{output}");
}

#[test]
fn plugins_in_working_directory_or_plugin_path_are_not_shipped() {
    let house = house!();
    fs::create_dir_all(house.workspace().join("plugins")).unwrap();
    fs::copy(fixture("probe"), house.workspace().join("plugins/probe.so")).unwrap();
    let given = house.given_folder();
    fs::copy(fixture("probe"), given.join("probe.so")).unwrap();
    assert!(!house.run(&["plugin", "list"]).expect_silent().stdout.contains("probe"));
    let output =
        house.command(&["plugin", "list"]).variable("JAATO_PLUGIN_PATH", &given).run().code(0);
    assert!(
        output.stdout.contains("fixture-probe     0.1.0    JAATO_PLUGIN_PATH  not trusted"),
        "{output}"
    );
}

#[test]
fn missing_plugin_folder_named_by_the_user_is_reported() {
    let house = house!();
    let missing = house.path().join("missing").display().to_string();
    let output = house.run(&["tool", "list", "--plugin-dir", &missing]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        TOOL              PLUGIN            STATUS   PROMISES   DESCRIPTION
        get_environment   tool-environment  enabled  read-only  Get facts about this computer, its terminal and this session.
        list_tools        jaato             enabled  read-only  Find more tools.
        get_tool_schemas  jaato             enabled  read-only  Show tools with their arguments.
        view_environment  jaato             enabled  read-only  Look at objects that tools have found in this conversation.
        --- stderr
        note: cannot search `$HOUSE/missing` for plugins: No such file or directory (os error 2)
    "#]].assert_eq(&output.to_string());
    let file = house.write_given_file("a-file", b"").display().to_string();
    let output = house.run(&["tool", "list", "--plugin-dir", &file]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        TOOL              PLUGIN            STATUS   PROMISES   DESCRIPTION
        get_environment   tool-environment  enabled  read-only  Get facts about this computer, its terminal and this session.
        list_tools        jaato             enabled  read-only  Find more tools.
        get_tool_schemas  jaato             enabled  read-only  Show tools with their arguments.
        view_environment  jaato             enabled  read-only  Look at objects that tools have found in this conversation.
        --- stderr
        note: cannot search `$HOUSE/given/a-file` for plugins: Not a directory (os error 20)
    "#]].assert_eq(&output.to_string());
}

#[test]
fn files_without_a_library_name_are_ignored() {
    let house = house!();
    house.write_given_file(".hidden.so", b"text");
    house.write_given_file("notes.txt", b"text");
    house.write_given_file("libmoon.so.1", b"text");
    let folder = house.given_folder().display().to_string();
    house.run(&["tool", "list", "--plugin-dir", &folder]).expect_silent();
}

#[test]
fn invalid_utf8_and_control_characters_in_file_names_are_escaped() {
    use std::os::unix::ffi::OsStrExt as _;
    let house = house!();
    let name = std::ffi::OsStr::from_bytes(b"m\xffn\x1b[31m.so");
    fs::write(house.given_folder().join(name), "text").unwrap();
    let folder = house.given_folder().display().to_string();
    let output = house.run(&["tool", "list", "--plugin-dir", &folder]).code(0);
    assert!(!output.stderr.contains('\u{1b}'), "no file may drive the terminal: {output}");
    expect![[r#"
        note: cannot use `$HOUSE/given/m�n<U+001B>[31m.so` as a plugin: it is not a dynamic library
    "#]]
    .assert_eq(&house.normalize_output(&output.stderr));
}

#[test]
fn shipped_plugins_work_without_a_home_folder() {
    let house = house!();
    // The system's user list would still name a home, so only a user unknown to the system has
    // none.
    if !is_root() || !can_start_as_nobody(&house) {
        return skip("only root can start a process of a user without a home");
    }
    house.write_given_file("moon.so", &fs::read(fixture("echo")).unwrap());
    let folder = house.given_folder().display().to_string();
    let homeless = |words: &[&str]| {
        let command = house.command(words).without_variable("HOME");
        command.without_variable("XDG_RUNTIME_DIR").user(NOBODY).run()
    };
    let output = homeless(&["call", "get_environment", r#"{"aspect": "arch"}"#]).expect_silent();
    assert!(output.json()["machine"].is_string(), "{output}");
    assert!(homeless(&["tool", "list"]).expect_silent().stdout.contains("get_environment"));
    homeless(&["config", "show"]).expect_silent();
    let output = homeless(&["plugin", "list", "--plugin-dir", &folder]).expect_silent();
    assert!(output.stdout.contains("not trusted"), "{output}");
    let file = house.given_folder().join("moon.so").display().to_string();
    let output = homeless(&["plugin", "trust", &file, "--sha256", &"0".repeat(64)]);
    assert!(output.code == 3 || output.code == 4, "{output}");
    let digest =
        output.stderr.split("found ").nth(1).and_then(|text| text.split_whitespace().next());
    let output = homeless(&["plugin", "trust", &file, "--sha256", digest.unwrap()]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        error: cannot find the user's folders: the system has no home folder for this user
        hint: set `HOME` to a folder that you can write
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn unwritable_cache_is_reported_in_one_note() {
    let house = house!();
    house.forget_descriptions();
    // A file in place of a required folder, which not even root can create.
    house.write("home/.cache", "");
    let output = house.run(&["tool", "list"]).code(0);
    assert!(output.stdout.contains("get_environment"), "{output}");
    expect![[r#"
        note: `$HOUSE/home/.cache` cannot be used: not a directory
        hint: set `HOME` to a folder that you can write, or move `$HOUSE/home/.cache` away
    "#]]
    .assert_eq(&house.normalize_output(&output.stderr));
}
