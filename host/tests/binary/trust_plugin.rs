//! Trust in plugin files: by content, by the command that the list prints, and by a person alone.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::{Command, House, fixture};

/// The command that the list prints for a plugin that is not trusted.
#[track_caller]
fn printed_command(house: &House) -> String {
    let list = house.run(&["plugin", "list"]).code(0);
    let line =
        list.stdout.lines().map(str::trim).find(|line| line.starts_with("jaato plugin trust"));
    line.unwrap_or_else(|| panic!("no command is printed: {list}")).to_owned()
}

/// Runs a command line as a person pastes it into a shell.
fn paste(house: &House, line: &str) -> Command {
    let path = format!("{}:/usr/bin:/bin", house.path().join("bin").display());
    Command::program(house, "sh", &["-c", line]).variable("PATH", path)
}

const COUNT_BYTES: [&str; 3] = ["call", "count_bytes_echo", r#"{"text": "a b"}"#];

#[test]
fn a_plugin_that_is_dropped_in_is_listed_trusted_and_called() {
    let house = house!();
    let file = house.drop_in(&fixture("echo"));
    let list = house.run(&["plugin", "list"]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        PLUGIN            VERSION  FROM     STATUS       OFFERS
        tool-environment  0.1.0    shipped  active       get_environment
        fixture-echo      0.1.0    user     not trusted  count_bytes_echo

        fixture-echo ($HOUSE/home/.local/share/jaato/plugins/libfixture_echo.so): not trusted
          jaato plugin trust '$HOUSE/home/.local/share/jaato/plugins/libfixture_echo.so' --sha256 DIGEST

        a trusted plugin runs as you do, inside jaato: trust only what you know
    "#]].assert_eq(&list.to_string());
    let tools = house.run(&["tool", "list"]).silent();
    assert!(tools.stdout.contains("count_bytes_echo  fixture-echo      not trusted"), "{tools}");

    let refused = house.run(&COUNT_BYTES).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: tool `count_bytes_echo` of plugin `fixture-echo` cannot be used: not trusted
        hint: jaato plugin trust '$HOUSE/home/.local/share/jaato/plugins/libfixture_echo.so' --sha256 DIGEST
    "#]].assert_eq(&refused.to_string());

    let trusted = paste(&house, &printed_command(&house)).run().silent();
    expect![[r#"
        exit 0
        --- stdout
        plugin `fixture-echo` is trusted with this content: DIGEST
    "#]]
    .assert_eq(&trusted.to_string());
    assert_eq!(house.run(&COUNT_BYTES).silent().json(), json!({ "bytes": 3 }));
    let shown = house.run(&["plugin", "show", "fixture-echo"]).silent();
    assert!(shown.stdout.contains("inside jaato, from a private copy"), "{shown}");

    // What is opened is the copy, so that nobody can change what runs.
    let copies: Vec<_> =
        fs::read_dir(house.home().join(".local/share/jaato/trusted")).unwrap().flatten().collect();
    assert_eq!(copies.len(), 1);
    assert_eq!(fs::read(copies[0].path()).unwrap(), fs::read(&file).unwrap());
    let record = house.home().join(".local/share/jaato/trust.json");
    assert_eq!(fs::metadata(record).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_changed_file_is_not_trusted_any_more() {
    let house = house!();
    let file = house.drop_in(&fixture("probe"));
    paste(&house, &printed_command(&house)).run().silent();
    house.run(&["call", "count"]).silent();
    let mut bytes = fs::read(&file).unwrap();
    bytes.push(0);
    fs::write(&file, bytes).unwrap();
    house.run(&["call", "count"]).code(4);
    let command = printed_command(&house);
    paste(&house, &command).run().silent();
    house.run(&["call", "count"]).silent();
}

#[test]
fn a_trusted_copy_of_the_content_is_trusted_wherever_it_lies() {
    let house = house!();
    house.drop_in(&fixture("probe"));
    paste(&house, &printed_command(&house)).run().silent();
    fs::remove_dir_all(house.user_plugins()).unwrap();
    house.give("moon.so", &fs::read(fixture("probe")).unwrap());
    let folder = house.given_folder().display().to_string();
    house.run(&["call", "count", "--plugin-dir", &folder]).silent();
}

#[test]
fn a_wrong_digest_is_refused_with_both() {
    let house = house!();
    let file = house.drop_in(&fixture("probe")).display().to_string();
    let output = house.run(&["plugin", "trust", &file, "--sha256", &"0".repeat(64)]).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: `$HOUSE/home/.local/share/jaato/plugins/libfixture_probe.so` is another file than you mean: its sha256 is DIGEST, you gave DIGEST
        hint: look at `jaato plugin list` again before you trust it
    "#]].assert_eq(&output.to_string());
    let output = house.run(&["plugin", "trust", &file, "--sha256", "moon"]);
    assert!(output.code != 0, "{output}");
    house.run(&["call", "count"]).code(4);
}

#[test]
fn what_is_no_plugin_cannot_be_trusted() {
    let house = house!();
    let file = house.give("moon.so", b"text").display().to_string();
    let output = house.run(&["plugin", "trust", &file, "--sha256", &"0".repeat(64)]).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: cannot use `$HOUSE/given/moon.so` as a plugin: it is not a dynamic library
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn a_session_cannot_trust() {
    let house = house!();
    house.drop_in(&fixture("probe"));
    house.write("workspace/AGENTS.md", "be kind");
    let line = printed_command(&house);
    let refused = paste(&house, &line).variable("JAATO_SESSION_ID", "s1").run().code(3);
    expect![[r#"
        exit 3
        --- stderr
        error: only a person can trust, and this command was started by a session (`JAATO_SESSION_ID` is set, or a parent process is jaato)
        hint: run it in a terminal of your own
    "#]].assert_eq(&refused.to_string());
    let workspace = house.command(&["trust"]).variable("JAATO_SESSION_ID", "s1").run().code(3);
    assert_eq!(refused.stderr, workspace.stderr);
    let remove = ["trust", "--remove"];
    house.command(&remove).variable("JAATO_SESSION_ID", "s1").run().code(3);
    house.run(&["call", "count"]).code(4);
}

#[test]
fn a_path_with_a_quote_is_printed_so_that_it_can_be_pasted() {
    let house = house!();
    let folder = house.path().join("it's here $(touch gone)");
    fs::create_dir(&folder).unwrap();
    fs::copy(fixture("probe"), folder.join("moon.so")).unwrap();
    let folder = folder.display().to_string();
    let list = house.run(&["plugin", "list", "--plugin-dir", &folder]).code(0);
    let line =
        list.stdout.lines().map(str::trim).find(|line| line.starts_with("jaato plugin trust"));
    paste(&house, line.unwrap()).run().silent();
    assert!(!house.workspace().join("gone").exists());
    house.run(&["call", "count", "--plugin-dir", &folder]).silent();
}

#[test]
fn a_record_that_others_can_write_proves_nothing() {
    let house = house!();
    house.drop_in(&fixture("probe"));
    paste(&house, &printed_command(&house)).run().silent();
    let record = house.home().join(".local/share/jaato/trust.json");
    crate::support::set_mode(&record, 0o666);
    let output = house.run(&["call", "count"]);
    assert!(output.code == 3 || output.code == 4, "{output}");
    assert!(output.stderr.contains("chmod 600"), "{output}");
    crate::support::set_mode(&record, 0o600);
    fs::write(&record, "{").unwrap();
    let output = house.run(&["call", "count"]);
    assert!(output.code == 3 || output.code == 4, "{output}");
    assert!(output.stderr.contains("is damaged"), "{output}");
}

#[test]
fn a_private_copy_that_was_tampered_with_is_not_opened() {
    let house = house!();
    house.drop_in(&fixture("probe"));
    paste(&house, &printed_command(&house)).run().silent();
    house.run(&["call", "count"]).silent();
    let folder = house.home().join(".local/share/jaato/trusted");
    let copy = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, "evil").unwrap();
    house.run(&["call", "count"]).silent();
    assert_eq!(fs::read(&copy).unwrap(), fs::read(fixture("probe")).unwrap());
}
