//! Tests grants: what a plugin may do in the user's name, and who decides that.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect;
use serde_json::{Value, json};

use crate::house;
use crate::support::{House, Output, fixture, set_mode};

/// Calls a service through the fixture.
fn ask_service(house: &House, operation: &str, request: &Value) -> Output {
    let arguments = json!({ "operation": operation, "request": request, "bytes": "moonlight" });
    house.run(&["call", "ask_wanted", &arguments.to_string()])
}

fn set_secret(house: &House) -> Output {
    ask_service(house, "secret.set", &json!({ "name": "token" }))
}

#[track_caller]
fn grant_services(house: &House) {
    house.run(&["plugin", "grant", "fixture-wants"]).expect_silent();
}

fn grants_file(house: &House) -> std::path::PathBuf {
    house.home().join(".local/share/jaato/grants.json")
}

#[test]
fn plugin_cannot_use_a_service_until_the_user_grants_it() {
    let house = house!();
    house.ship_to_user(&fixture("wants"));
    let denied = set_secret(&house).code(6);
    assert!(denied.stderr.contains("plugin `fixture-wants` was not granted `secret`"), "{denied}");
    assert!(denied.stderr.contains("hint: jaato plugin grant fixture-wants secret"), "{denied}");
    let list = house.run(&["plugin", "list"]).code(0);
    let told =
        "fixture-wants: not granted `host_process`, `secret`\n  jaato plugin grant fixture-wants";
    assert!(list.stdout.contains(told), "{list}");
    let doctor = house.run(&["doctor"]);
    assert!(doctor.stdout.contains("fixture-wants: not granted `host_process`"), "{doctor}");
    let granted = house.run(&["plugin", "grant", "fixture-wants"]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        plugin `fixture-wants` may now:
          host_process     run programs on this machine, outside of the session's environment
          secret           keep secrets of its own in your system's key store
        the grant applies to this content of its file, sha256 DIGEST; to revoke it:
          jaato plugin revoke fixture-wants
    "#]]
    .assert_eq(&granted.to_string());
    assert_eq!(fs::metadata(grants_file(&house)).unwrap().permissions().mode() & 0o777, 0o600);
    set_secret(&house).code(0);
    let shown = house.run(&["plugin", "show", "fixture-wants"]).expect_silent();
    let line = "  asks for    secret: keep secrets of its own in your system's key store (granted)";
    assert!(shown.stdout.contains(line), "{shown}");
    let revoked = house.run(&["plugin", "revoke", "fixture-wants", "secret"]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        plugin `fixture-wants` may no longer:
          secret           keep secrets of its own in your system's key store
    "#]]
    .assert_eq(&revoked.to_string());
    set_secret(&house).code(6);
    let shown = house.run(&["plugin", "show", "fixture-wants", "--json"]).expect_silent().json();
    let standing: Vec<_> = shown["asks_for"].as_array().unwrap().iter().collect();
    assert_eq!(standing[0]["standing"], "granted");
    assert_eq!(
        (&standing[1]["name"], &standing[1]["standing"]),
        (&json!("secret"), &json!("not_granted"))
    );
}

#[test]
fn shipped_plugin_has_exactly_the_services_it_lists() {
    let house = house!();
    house.ship(&fixture("wants"));
    set_secret(&house).code(0);
    let shown = house.run(&["plugin", "show", "fixture-wants"]).expect_silent();
    assert!(shown.stdout.contains("secret: keep secrets of its own"), "{shown}");
    assert!(shown.stdout.contains("(shipped)"), "{shown}");
    let denied = ask_service(&house, "session.history", &json!({})).code(6);
    assert!(denied.stderr.contains("does not list it among `services`"), "{denied}");
    let grant = house.run(&["plugin", "grant", "fixture-wants"]).expect_silent();
    assert!(
        grant.stdout.contains("is shipped with jaato, so it already has its grants"),
        "{grant}"
    );
    let revoke = house.run(&["plugin", "revoke", "fixture-wants"]).code(4);
    assert!(revoke.stderr.contains("jaato plugin disable fixture-wants"), "{revoke}");
    assert!(!grants_file(&house).exists());
}

#[test]
fn unlisted_service_cannot_be_granted() {
    let house = house!();
    house.ship_to_user(&fixture("wants"));
    grant_services(&house);
    let denied = ask_service(&house, "session.history", &json!({})).code(6);
    assert!(denied.stderr.contains("does not list it among `services`"), "{denied}");
    let refused = house.run(&["plugin", "grant", "fixture-wants", "session.history"]).code(4);
    expect![[r#"
        exit 4
        --- stderr
        error: plugin `fixture-wants` does not ask for `session.history`
        hint: it asks for host_process, secret
    "#]]
    .assert_eq(&refused.to_string());
    let refused = house.run(&["plugin", "grant", "fixture-wants", "secrets"]).code(2);
    assert!(refused.stderr.contains("did you mean `secret`?"), "{refused}");
    let refused = house.run(&["plugin", "grant", "moon"]).code(2);
    assert!(refused.stderr.contains("there is no plugin `moon`"), "{refused}");
    let nothing = house.run(&["plugin", "grant", "tool-environment"]).expect_silent();
    assert!(nothing.stdout.contains("asks for nothing that needs a grant"), "{nothing}");
}

#[test]
fn replaced_plugin_file_loses_its_grants_until_granted_or_trusted() {
    let house = house!();
    let file = house.ship_to_user(&fixture("wants"));
    grant_services(&house);
    let mut bytes = fs::read(&file).unwrap();
    bytes.push(0);
    fs::write(&file, &bytes).unwrap();
    set_secret(&house).code(6);
    let shown = house.run(&["plugin", "show", "fixture-wants", "--json"]).expect_silent().json();
    let digest = shown["sha256"].as_str().unwrap().to_owned();
    let file = file.display().to_string();
    let trusted = house.run(&["plugin", "trust", &file, "--sha256", &digest]).expect_silent();
    expect![[r#"
        exit 0
        --- stdout
        plugin `fixture-wants` is trusted with this content: DIGEST
        it keeps the grants of its earlier file and may:
          host_process     run programs on this machine, outside of the session's environment
          secret           keep secrets of its own in your system's key store
        to revoke them:
          jaato plugin revoke fixture-wants
    "#]]
    .assert_eq(&trusted.to_string());
    set_secret(&house).expect_silent();
    // Revoked for every file with this name, including the first one.
    house.run(&["plugin", "revoke", "fixture-wants"]).expect_silent();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    set_secret(&house).code(6);
}

#[test]
fn running_host_sees_new_and_revoked_grants() {
    let house = house!();
    house.ship_to_user(&fixture("wants"));
    let mut batch = house.command(&["call", "--batch"]).start();
    let set = json!({ "operation": "secret.set", "request": { "name": "token" }, "bytes": "x" });
    let line = format!("{}\n", json!({ "tool": "ask_wanted", "args": set }));
    let mut said = |expected: &str| {
        batch.write(line.as_bytes());
        let answer = batch.next_line();
        assert!(answer.contains(expected), "{answer}");
    };
    said("permission_denied");
    grant_services(&house);
    said("by_system");
    house.run(&["plugin", "revoke", "fixture-wants", "secret"]).expect_silent();
    said("permission_denied");
    house.run(&["plugin", "grant", "fixture-wants", "secret"]).expect_silent();
    said("by_system");
    batch.finish();
}

#[test]
fn a_session_cannot_grant() {
    let house = house!();
    house.ship_to_user(&fixture("wants"));
    for words in [["plugin", "grant", "fixture-wants"], ["plugin", "revoke", "fixture-wants"]] {
        let refused = house.command(&words).variable("JAATO_SESSION_ID", "s1").run().code(3);
        assert!(refused.stderr.contains("only a user can trust"), "{refused}");
    }
    assert!(!grants_file(&house).exists());
}

#[test]
fn damaged_grants_file_grants_nothing_and_is_not_changed() {
    let house = house!();
    house.ship_to_user(&fixture("wants"));
    grant_services(&house);
    let nothing_is_granted = |why: &str| {
        let denied = set_secret(&house).code(6);
        assert!(denied.stderr.contains(why), "{denied}");
        assert!(denied.stderr.contains("nothing is granted until this is fixed"), "{denied}");
        let list = house.run(&["plugin", "list"]).code(0);
        assert!(list.stderr.contains(why), "{list}");
        let before = fs::read(grants_file(&house)).unwrap();
        for words in [["plugin", "grant", "fixture-wants"], ["plugin", "revoke", "fixture-wants"]] {
            assert!(house.run(&words).code(3).stderr.contains(why));
        }
        assert_eq!(fs::read(grants_file(&house)).unwrap(), before);
    };
    let fine = fs::read(grants_file(&house)).unwrap();
    set_mode(&grants_file(&house), 0o666);
    nothing_is_granted("chmod go-w");
    set_mode(&grants_file(&house), 0o600);
    set_secret(&house).code(0);
    fs::write(grants_file(&house), "{").unwrap();
    nothing_is_granted("is damaged");
    fs::write(grants_file(&house), r#"{"version":9}"#).unwrap();
    nothing_is_granted("has version 9");
    fs::write(grants_file(&house), fine).unwrap();
    set_secret(&house).code(0);
}

#[test]
fn plugin_install_lists_the_requested_services() {
    let house = house!();
    let file = house.write_given_file("libwants.so", &fs::read(fixture("wants")).unwrap());
    let installed = house.run(&["plugin", "install", &file.display().to_string()]).expect_silent();
    let told = "it asks for `host_process`, `secret`; to grant it that:\n  jaato plugin grant fixture-wants";
    assert!(installed.stdout.contains(told), "{installed}");
}
