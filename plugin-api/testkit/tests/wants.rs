//! Tests of a plugin's own services and of its grants, from its source, as its author would write
//! them.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../fixtures/wants/src/lib.rs"]
mod wants;

use jaato_plugin_testkit::{FakeClockMode, FakeHost};
use jaato_types::{ErrorKind, Output, Result};
use serde_json::{Value, json};
// `tool!` expects it at the crate root, where a plugin has it and this test does not.
use wants::__jaato;

jaato_plugin_testkit::conformance!(crate::wants: tool);

fn wants_host() -> FakeHost {
    FakeHost::new(__jaato::MODULE).with_clock(FakeClockMode::Real)
}

fn ask_service(host: &FakeHost, operation: &str, request: &Value, bytes: &str) -> Result<Output> {
    let arguments = json!({ "operation": operation, "request": request, "bytes": bytes });
    host.call("ask_wanted", arguments)
}

#[test]
fn stored_value_is_visible_to_the_next_instance() {
    let host = wants_host();
    ask_service(&host, "store.set", &json!({ "key": "k" }), "full").unwrap();
    let next = host.create(None).unwrap();
    let arguments = json!({ "operation": "store.get", "request": { "key": "k" }, "at_home": true });
    assert_eq!(next.call("ask_wanted", arguments).unwrap().content["bytes"], "full");
}

#[test]
fn grant_can_be_denied_given_and_revoked() {
    let host = wants_host().with_denied("secret");
    let set = || ask_service(&host, "secret.set", &json!({ "name": "token" }), "moonlight");
    let denied = set().unwrap_err();
    assert_eq!(denied.kind, ErrorKind::PermissionDenied);
    let hint = denied.hint.unwrap();
    assert!(hint.starts_with("jaato plugin grant ") && hint.ends_with(" secret"), "{hint}");
    host.grant("secret");
    set().unwrap();
    host.deny("secret");
    assert_eq!(set().unwrap_err().kind, ErrorKind::PermissionDenied);
    // A service that the plugin does not list is refused, whatever the test grants.
    let unlisted = ask_service(&host, "session.history", &json!({}), "").unwrap_err();
    assert!(unlisted.message.contains("does not list it among `services`"), "{unlisted}");
}

#[test]
fn helper_process_is_reused_by_later_calls() {
    let host = wants_host();
    for line in ["one", "two"] {
        let output = host.call("use_helper", json!({ "line": line })).unwrap();
        assert_eq!(output.content["repeated"], format!("{line}\n"));
        assert_eq!(output.content["is_new"], line == "one");
    }
}

#[test]
fn tokens_are_estimated() {
    let counted = ask_service(&wants_host(), "count", &json!({ "text": "moonlight" }), "").unwrap();
    assert_eq!(counted.content["answer"], json!({ "tokens": 3, "is_estimate": true }));
}
