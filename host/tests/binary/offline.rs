//! Tests that everything that needs no network works without one, and that no name is looked up.

use serde_json::json;

use crate::house;
use crate::support::{Command, no_network, skip};

const CALL: [&str; 3] = ["call", "get_environment", r#"{"aspect": "network"}"#];

#[test]
fn lists_calls_and_runs_need_no_network() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "get_environment", "arguments": {} } }] },
        { "steps": [{ "text": "done" }] },
    ] }));
    let Some(way) = no_network(&house) else {
        return skip("a network namespace cannot be created here");
    };
    let offline = |words: &[&str]| Command::wrapped_in(&house, "unshare", way, words).run();
    assert!(offline(&["tool", "list"]).expect_silent().stdout.contains("get_environment"));
    assert!(offline(&CALL).expect_silent().json()["proxy"].is_object());
    offline(&["plugin", "list"]).expect_silent();
    offline(&["model", "list"]).expect_silent();
    offline(&["doctor"]).expect_silent();
    assert_eq!(offline(&["run", "hello"]).code(0).stdout, "done\n");
}

#[test]
fn no_host_name_is_resolved_and_no_connection_is_opened() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "get_environment", "arguments": {} } }] },
        { "steps": [{ "text": "done" }] },
    ] }));
    let trace = house.path().join("trace");
    let trace_text = trace.display().to_string();
    let before = ["-f", "-e", "trace=socket,connect,openat,open", "-o", &trace_text, "--"];
    let works = std::process::Command::new("strace").args(["-V"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return skip("`strace` is not installed");
    }
    for words in [&["tool", "list"][..], &CALL, &["plugin", "list"], &["run", "hello"]] {
        Command::wrapped_in(&house, "strace", &before, words).run().code(0);
        let calls = std::fs::read_to_string(&trace).unwrap();
        assert!(calls.contains("openat("), "the trace lists opened files");
        let network: Vec<_> = calls
            .lines()
            .filter(|line| {
                ["AF_INET", "resolv.conf", "nscd", "/etc/hosts"].iter().any(|it| line.contains(it))
            })
            .collect();
        assert!(network.is_empty(), "{words:?}: {network:#?}");
    }
}
