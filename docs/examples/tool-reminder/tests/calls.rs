//! Tests of reminders on a host in memory, whose time passes when the test says so.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_testkit::{FakeClockMode, FakeHost, FakeInstance};

fn reminder_host() -> FakeHost {
    FakeHost::new(tool_reminder::__jaato::MODULE).with_clock(FakeClockMode::Manual)
}

fn remind_me(instance: &FakeInstance, text: &str, seconds: u64) -> Value {
    let asked = json!({ "text": text, "seconds": seconds });
    instance.call("remind_me", asked).unwrap().content["number"].clone()
}

fn list_reminders(instance: &FakeInstance) -> Value {
    instance.call("list_reminders", json!({})).unwrap().content["reminders"].clone()
}

fn pass_seconds(host: &FakeHost, seconds: u64) {
    for _ in 0..seconds {
        host.advance(Duration::from_secs(1)).unwrap();
    }
    host.settle().unwrap();
}

#[test]
fn reminder_wakes_the_session_at_its_time_and_not_earlier() {
    let host = reminder_host();
    let instance = host.create(None).unwrap();
    assert_eq!(remind_me(&instance, "the tea is ready", 300), 1);
    pass_seconds(&host, 299);
    assert_eq!(host.notifications(), [""; 0]);
    assert_eq!(list_reminders(&instance)[0]["text"], "the tea is ready");
    pass_seconds(&host, 1);
    assert_eq!(host.notifications(), ["reminder 1: the tea is ready"]);
    assert_eq!(list_reminders(&instance), json!([]));
}

#[test]
fn cancelled_reminder_sends_no_notification() {
    let host = reminder_host();
    let instance = host.create(None).unwrap();
    remind_me(&instance, "tea", 2);
    remind_me(&instance, "cake", 3);
    let cancel = |number: u64| {
        let output = instance.call("cancel_reminder", json!({ "number": number })).unwrap();
        output.content["cancelled"].clone()
    };
    assert_eq!((cancel(1), cancel(1)), (json!(true), json!(false)));
    pass_seconds(&host, 5);
    assert_eq!(host.notifications(), ["reminder 2: cake"]);
}

#[test]
fn remaining_time_of_a_reminder_is_restored_in_the_next_instance() {
    let host = reminder_host();
    let instance = host.create(None).unwrap();
    remind_me(&instance, "tea", 10);
    pass_seconds(&host, 4);
    let saved = instance.close().unwrap();
    // The background work of the old instance has ended.
    pass_seconds(&host, 60);
    assert_eq!(host.notifications(), [""; 0]);
    let next = host.create(saved.as_ref()).unwrap();
    assert_eq!(remind_me(&next, "cake", 60), 2);
    pass_seconds(&host, 7);
    assert_eq!(host.notifications(), ["reminder 1: tea"]);
    assert!(host.create(Some(&json!({ "reminders": 3 }))).is_err());
}

#[test]
fn reminder_whose_notification_fails_is_kept_with_the_reason() {
    let host = reminder_host().with_denied("notify");
    let instance = host.create(None).unwrap();
    remind_me(&instance, "tea", 0);
    pass_seconds(&host, 1);
    let problem = list_reminders(&instance)[0]["problem"].clone();
    assert!(problem.as_str().unwrap().contains("not granted `notify`"), "{problem}");
    assert!(host.log().iter().any(|line| line.text.contains("was not sent")), "{:?}", host.log());
}

#[test]
fn simultaneous_reminders_respect_the_notification_rate_limit() {
    let host = reminder_host();
    let instance = host.create(None).unwrap();
    for _ in 0..8 {
        remind_me(&instance, "tea", 1);
    }
    pass_seconds(&host, 2);
    // The fake host's minute never ends, so it accepts only six.
    assert_eq!(host.notifications().len(), 6);
    assert_eq!(list_reminders(&instance).as_array().unwrap().len(), 2);
    pass_seconds(&host, 200);
    assert_eq!(list_reminders(&instance).as_array().unwrap().len(), 2);
}
