//! Tests trust in plugin files: by content, by the command in the list, and only by a user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::server::{Answer, Server};
use crate::support::{Command, House, fixture};

/// Returns the command in the list for an untrusted plugin.
#[track_caller]
fn printed_command(house: &House) -> String {
    let list = house.run(&["plugin", "list"]).code(0);
    let line =
        list.stdout.lines().map(str::trim).find(|line| line.starts_with("jaato plugin trust"));
    line.unwrap_or_else(|| panic!("no command is printed: {list}")).to_owned()
}

/// Runs a command line as pasted into a shell.
fn pasted_command(house: &House, line: &str) -> Command {
    let path = format!("{}:/usr/bin:/bin", house.path().join("bin").display());
    Command::program(house, "sh", &["-c", line]).variable("PATH", path)
}

const COUNT_BYTES: [&str; 3] = ["call", "count_bytes_echo", r#"{"text": "a b"}"#];

#[test]
fn dropped_in_plugin_runs_in_a_worker_until_trusted() {
    let house = house!();
    let file = house.ship_to_user(&fixture("echo"));
    let list = house.run(&["plugin", "list"]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        PLUGIN            VERSION  FROM     STATUS       RUNS          OFFERS
        tool-environment  0.1.0    shipped  active       inside jaato  get_environment
        fixture-echo      0.1.0    user     not trusted  in a worker   count_bytes_echo

        fixture-echo ($HOUSE/home/.local/share/jaato/plugins/libfixture_echo.so): not trusted
          jaato plugin trust '$HOUSE/home/.local/share/jaato/plugins/libfixture_echo.so' --sha256 DIGEST

        an untrusted plugin runs in a worker: it cannot crash jaato and gets no API key, but it can do what you can; a trusted plugin runs inside jaato. Keep only plugins that you know
    "#]].assert_eq(&list.to_string());
    // The change applies immediately, without a restart of jaato.
    let output = house.run(&COUNT_BYTES).code(0);
    assert_eq!(output.json(), json!({ "bytes": 3 }));
    expect![[r#"
        fixture-echo: plugin `fixture-echo` is not trusted: it runs in a worker without keys (a worker is not a sandbox)
    "#]]
    .assert_eq(&output.stderr);
    let shown = house.run(&["plugin", "show", "fixture-echo"]).expect_silent();
    assert!(shown.stdout.contains("in a worker, because it is not trusted"), "{shown}");

    let trusted = pasted_command(&house, &printed_command(&house)).run().expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        plugin `fixture-echo` is trusted with this content: DIGEST
    "#]]
    .assert_eq(&trusted.to_string());
    assert_eq!(house.run(&COUNT_BYTES).expect_silent().json(), json!({ "bytes": 3 }));
    let shown = house.run(&["plugin", "show", "fixture-echo"]).expect_silent();
    assert!(shown.stdout.contains("inside jaato, from a private copy"), "{shown}");

    // The copy is opened, so that no one can change the running code.
    let copies: Vec<_> =
        fs::read_dir(house.home().join(".local/share/jaato/trusted")).unwrap().flatten().collect();
    assert_eq!(copies.len(), 1);
    assert_eq!(fs::read(copies[0].path()).unwrap(), fs::read(&file).unwrap());
    let record = house.home().join(".local/share/jaato/trust.json");
    assert_eq!(fs::metadata(record).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn changed_plugin_file_is_no_longer_trusted() {
    let house = house!();
    let file = house.ship_to_user(&fixture("probe"));
    pasted_command(&house, &printed_command(&house)).run().expect_silent();
    house.run(&["call", "count"]).expect_silent();
    let mut bytes = fs::read(&file).unwrap();
    bytes.push(0);
    fs::write(&file, bytes).unwrap();
    assert!(is_in_worker(&house));
    let output = house.run(&["call", "count"]).code(0);
    assert!(output.stderr.contains("is not trusted"), "{output}");
    let command = printed_command(&house);
    pasted_command(&house, &command).run().expect_silent();
    house.run(&["call", "count"]).expect_silent();
    assert!(!is_in_worker(&house));
}

/// Returns where the probe runs, according to `plugin show`.
#[track_caller]
fn is_in_worker(house: &House) -> bool {
    let shown = house.run(&["plugin", "show", "fixture-probe", "--json"]).code(0).json();
    match shown["runs"].as_str().unwrap() {
        "in a worker, because it is not trusted" => true,
        "inside jaato, from a private copy" => false,
        other => panic!("runs {other}"),
    }
}

#[test]
fn trust_can_be_revoked_by_file_name_or_digest() {
    let house = house!();
    let file = house.ship_to_user(&fixture("probe")).display().to_string();
    let command = printed_command(&house);
    let digest = command.split_whitespace().last().unwrap().to_owned();
    for what in [file.as_str(), "fixture-probe", &digest] {
        pasted_command(&house, &command).run().expect_silent();
        assert!(!is_in_worker(&house));
        house.run(&["call", "count"]).expect_silent();
        let copies = house.home().join(".local/share/jaato/trusted");
        assert_eq!(fs::read_dir(&copies).unwrap().count(), 1);
        let output = house.run(&["plugin", "untrust", what]).expect_silent();
        assert_eq!(output.stdout, format!("the content {digest} is no longer trusted\n"));
        assert_eq!(fs::read_dir(&copies).unwrap().count(), 0, "its copy is removed");
        assert!(is_in_worker(&house), "{what}");
    }
    let output = house.run(&["plugin", "untrust", "fixture-probe"]).expect_silent();
    assert!(output.stdout.ends_with("was not trusted\n"), "{output}");
    let output = house.run(&["plugin", "untrust", "tool-environment"]).code(4);
    assert!(output.stderr.contains("`jaato plugin disable tool-environment`"), "{output}");
    let output = house.run(&["plugin", "untrust", "moon"]).code(2);
    assert!(output.stderr.contains("there is no plugin and no file `moon`"), "{output}");
    pasted_command(&house, &command).run().expect_silent();
    let untrust = house.command(&["plugin", "untrust", "fixture-probe"]);
    untrust.variable("JAATO_SESSION_ID", "s1").run().code(3);
}

#[test]
fn untrusted_plugin_gets_no_api_key() {
    let house = house!();
    let built = crate::support::fixtures::test_house().unwrap().join("plugins");
    house.ship_to_user(&built.join(crate::support::library_name("provider_openai")));
    let server = Server::start([Answer::text(&["never"])]);
    let run = house.command(&["run", "--model", "openai/m", "hello"]);
    let run = run.variable("OPENAI_BASE_URL", server.base_url()).variable("OPENAI_API_KEY", "sk-1");
    let output = run.run().code(3);
    assert!(output.stderr.contains("is not trusted, so it is given no key"), "{output}");
    assert!(server.requests().is_empty());
}

#[test]
fn trust_applies_to_the_content_wherever_the_file_is() {
    let house = house!();
    house.ship_to_user(&fixture("probe"));
    pasted_command(&house, &printed_command(&house)).run().expect_silent();
    fs::remove_dir_all(house.user_plugins()).unwrap();
    house.write_given_file("moon.so", &fs::read(fixture("probe")).unwrap());
    let folder = house.given_folder().display().to_string();
    house.run(&["call", "count", "--plugin-dir", &folder]).expect_silent();
}

#[test]
fn wrong_digest_is_refused_and_both_digests_are_shown() {
    let house = house!();
    let file = house.ship_to_user(&fixture("probe")).display().to_string();
    let output = house.run(&["plugin", "trust", &file, "--sha256", &"0".repeat(64)]).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: checksum mismatch for `$HOUSE/home/.local/share/jaato/plugins/libfixture_probe.so`: expected DIGEST, found DIGEST
        hint: check `jaato plugin list` again before you trust it
    "#]].assert_eq(&output.to_string());
    let output = house.run(&["plugin", "trust", &file, "--sha256", "moon"]);
    assert!(output.code != 0, "{output}");
    assert!(is_in_worker(&house));
}

#[test]
fn file_that_is_not_a_plugin_cannot_be_trusted() {
    let house = house!();
    let file = house.write_given_file("moon.so", b"text").display().to_string();
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
    house.ship_to_user(&fixture("probe"));
    house.write("workspace/AGENTS.md", "be kind");
    let line = printed_command(&house);
    let refused = pasted_command(&house, &line).variable("JAATO_SESSION_ID", "s1").run().code(3);
    expect![[r#"
        exit 3
        --- stderr
        error: only a user can trust, but a session started this command (`JAATO_SESSION_ID` is set, a parent process is jaato, or it bears the mark of a session's children)
        hint: run it in a terminal of your own
    "#]].assert_eq(&refused.to_string());
    let workspace = house.command(&["trust"]).variable("JAATO_SESSION_ID", "s1").run().code(3);
    assert_eq!(refused.stderr, workspace.stderr);
    let remove = ["trust", "--remove"];
    house.command(&remove).variable("JAATO_SESSION_ID", "s1").run().code(3);
    assert!(is_in_worker(&house));
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
    pasted_command(&house, line.unwrap()).run().expect_silent();
    assert!(!house.workspace().join("gone").exists());
    house.run(&["call", "count", "--plugin-dir", &folder]).expect_silent();
}

#[test]
fn trust_record_that_others_can_write_is_not_used() {
    let house = house!();
    house.ship_to_user(&fixture("probe"));
    pasted_command(&house, &printed_command(&house)).run().expect_silent();
    let record = house.home().join(".local/share/jaato/trust.json");
    let nothing_is_trusted = |why: &str| {
        assert!(is_in_worker(&house), "{why}");
        let output = house.run(&["call", "count"]).code(0);
        assert!(output.stderr.contains("is not trusted"), "{output}");
        for command in [&["plugin", "list"][..], &["doctor"], &["tool", "list"]] {
            let output = house.run(command);
            assert!(output.stderr.contains(why), "{output}");
            assert!(output.stderr.contains("nothing is trusted until this is fixed"), "{output}");
        }
        // Only a user can repair it, and nothing overwrites it.
        let before = fs::read(&record).unwrap();
        for command in [&["plugin", "untrust", "fixture-probe"][..], &["trust", "--remove"]] {
            assert!(house.run(command).code(3).stderr.contains(why));
        }
        pasted_command(&house, &printed_command(&house)).run().code(3);
        assert_eq!(fs::read(&record).unwrap(), before);
    };
    crate::support::set_mode(&record, 0o666);
    nothing_is_trusted("chmod go-w");
    crate::support::set_mode(&record, 0o600);
    assert!(!is_in_worker(&house));
    fs::write(&record, r#"{"version":9}"#).unwrap();
    nothing_is_trusted("has version 9");
    fs::write(&record, "{").unwrap();
    nothing_is_trusted("is damaged");
}

#[test]
fn modified_private_copy_of_a_plugin_is_replaced() {
    let house = house!();
    house.ship_to_user(&fixture("probe"));
    pasted_command(&house, &printed_command(&house)).run().expect_silent();
    house.run(&["call", "count"]).expect_silent();
    let folder = house.home().join(".local/share/jaato/trusted");
    let copy = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, "evil").unwrap();
    house.run(&["call", "count"]).expect_silent();
    assert_eq!(fs::read(&copy).unwrap(), fs::read(fixture("probe")).unwrap());
}
