//! The user's grants to plugins: bound to name and content, revoked by name, noticed by running
//! hosts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime};

use expect_test::{Expect, expect};
use jaato_config::trust::{GrantStore, LiveGrants, TrustError};

use crate::bench::ConfigFixture;

const OLD: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const NEW: &str = "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn store(bench: &ConfigFixture) -> GrantStore {
    GrantStore::in_folder(bench.folders.data_folder().unwrap())
}

#[track_caller]
fn check_error(bench: &ConfigFixture, error: &TrustError, expected: Expect) {
    let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    expected.assert_eq(&bench.relative_text(&format!("{error}{hint}")));
}

#[test]
fn grant_applies_to_one_plugin_name_and_content_until_revoked() {
    let bench = ConfigFixture::new();
    let store = store(&bench);
    let has = |plugin: &str, sha256: &str, grant: &str| {
        store.read_grants().unwrap().has_grant(plugin, sha256, grant)
    };
    assert!(!has("moon", OLD, "ask"));
    let later = NOW + Duration::from_secs(7);
    store.grant_services("moon", &OLD.to_uppercase(), ["notify", "ask"], later).unwrap();
    assert!(has("moon", OLD, "ask") && has("moon", &OLD.to_uppercase(), "notify"));
    for (plugin, sha256, grant) in
        [("moon", NEW, "ask"), ("sun", OLD, "ask"), ("moon", OLD, "secret"), ("moon", "", "ask")]
    {
        assert!(!has(plugin, sha256, grant), "{plugin} {grant}");
    }
    expect![[r#"
        {
          "version": 1,
          "plugins": {
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": {
              "name": "moon",
              "services": [
                "ask",
                "notify"
              ],
              "granted_at_s": 7
            }
          }
        }
    "#]]
    .assert_eq(&fs::read_to_string(store.path()).unwrap());
    let mode = fs::metadata(store.path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(Vec::from_iter(store.revoke_services("moon", &["ask", "secret"]).unwrap()), ["ask"]);
    assert!(!has("moon", OLD, "ask") && has("moon", OLD, "notify"));
    assert_eq!(Vec::from_iter(store.revoke_services("moon", &[]).unwrap()), ["notify"]);
    assert!(store.revoke_services("moon", &[]).unwrap().is_empty());
    assert!(store.read_grants().unwrap().plugins.is_empty());
}

#[test]
fn latest_grants_are_carried_over_once_to_a_new_plugin_file() {
    let bench = ConfigFixture::new();
    let store = store(&bench);
    assert!(store.carry_over_grants("moon", NEW, NOW).unwrap().is_empty());
    assert!(!store.path().exists(), "nothing was granted, so nothing is written");
    store.grant_services("moon", OLD, ["ask"], NOW).unwrap();
    assert!(store.carry_over_grants("sun", NEW, NOW).unwrap().is_empty(), "another plugin");
    assert_eq!(Vec::from_iter(store.carry_over_grants("moon", NEW, NOW).unwrap()), ["ask"]);
    assert!(store.read_grants().unwrap().has_grant("moon", NEW, "ask"));
    assert!(store.carry_over_grants("moon", NEW, NOW).unwrap().is_empty(), "it has it already");
    // A revocation applies to every file, so that no older one brings the grant back.
    store.revoke_services("moon", &["ask"]).unwrap();
    assert!(store.carry_over_grants("moon", OLD, NOW).unwrap().is_empty());
    assert!(store.read_grants().unwrap().plugins.is_empty());
}

#[test]
fn same_plugin_file_under_another_name_has_no_grants() {
    let bench = ConfigFixture::new();
    let store = store(&bench);
    store.grant_services("moon", OLD, ["ask"], NOW).unwrap();
    store.grant_services("sun", OLD, ["notify"], NOW).unwrap();
    let grants = store.read_grants().unwrap();
    assert!(grants.has_grant("sun", OLD, "notify") && !grants.has_grant("sun", OLD, "ask"));
    assert!(!grants.has_grant("moon", OLD, "ask"));
}

#[test]
fn a_damaged_record_grants_nothing_and_is_not_overwritten() {
    let bench = ConfigFixture::new();
    let store = store(&bench);
    store.grant_services("moon", OLD, ["ask"], NOW).unwrap();
    for damage in ["", "{", "[]", r#"{"version":1}"#, r#"{"version":1,"plugins":{},"x":1}"#] {
        fs::write(store.path(), damage).unwrap();
        assert!(matches!(store.read_grants(), Err(TrustError::Corrupt { .. })), "{damage}");
        assert!(store.grant_services("moon", OLD, ["ask"], NOW).is_err(), "{damage}");
        assert!(store.revoke_services("moon", &[]).is_err(), "{damage}");
        assert!(store.carry_over_grants("moon", NEW, NOW).is_err(), "{damage}");
        assert_eq!(fs::read_to_string(store.path()).unwrap(), damage);
    }
    fs::write(store.path(), "{").unwrap();
    check_error(
        &bench,
        &store.read_grants().unwrap_err(),
        expect![[r#"
            the record of grants `ROOT/user/data/grants.json` is damaged: EOF while parsing an object at line 1 column 1
            hint: nothing is granted until this is fixed: run `mv ROOT/user/data/grants.json ROOT/user/data/grants.json.broken`, then grant what you need again"#]],
    );
    fs::write(store.path(), r#"{"version":2,"x":1}"#).unwrap();
    check_error(
        &bench,
        &store.read_grants().unwrap_err(),
        expect![[r#"
            the record of grants `ROOT/user/data/grants.json` has version 2, this host knows 1
            hint: nothing is granted until this is fixed: update jaato"#]],
    );
}

#[test]
fn running_host_sees_grants_and_revocations_of_another_process() {
    let bench = ConfigFixture::new();
    let store = store(&bench);
    let live = LiveGrants::new(store.clone());
    let has = || live.current_grants().is_ok_and(|grants| grants.has_grant("moon", OLD, "ask"));
    assert!(!has());
    for _ in 0..3 {
        store.grant_services("moon", OLD, ["ask"], NOW).unwrap();
        assert!(has());
        store.revoke_services("moon", &["ask"]).unwrap();
        assert!(!has());
    }
    store.grant_services("moon", OLD, ["ask"], NOW).unwrap();
    fs::write(store.path(), "{").unwrap();
    assert!(live.current_grants().is_err());
    fs::remove_file(store.path()).unwrap();
    assert!(live.current_grants().is_ok() && !has());
}

#[test]
fn a_record_that_others_can_write_grants_nothing() {
    let bench = ConfigFixture::new();
    let store = store(&bench);
    store.grant_services("moon", OLD, ["ask"], NOW).unwrap();
    let live = LiveGrants::new(store.clone());
    assert!(live.current_grants().is_ok());
    fs::set_permissions(store.path(), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(store.read_grants(), Err(TrustError::NotBelieved { .. })));
    assert!(live.current_grants().is_err());
}
