//! Tests of delegated work on a host in memory: the child's tools, the end of its turn, and that it
//! is closed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};

use jaato_plugin_sdk::child::{ChildOpen, ChildTurn, ObjectSharing};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::Outcome;
use jaato_plugin_testkit::{FakeHost, FakeServiceReply, FakeStream};
use tool_delegate::{TASK_BYTES_MAX, TOOLS_MAX};

/// Creates a host whose children end with this outcome. Also returns the requests to open them.
fn host(outcome: Outcome) -> (FakeHost, Arc<Mutex<Vec<ChildOpen>>>) {
    let opened: Arc<Mutex<Vec<ChildOpen>>> = Arc::default();
    let seen = Arc::clone(&opened);
    let host = FakeHost::new(tool_delegate::__jaato::MODULE).with_child(move |open, task| {
        seen.lock().unwrap().push(open.clone());
        ChildTurn::new(outcome, format!("done: {task}"))
    });
    (host, opened)
}

fn asked(host: &FakeHost, operation: &str) -> usize {
    host.service_requests().iter().filter(|request| request.operation == operation).count()
}

#[test]
fn child_session_gets_limited_tools_and_steps_and_is_closed() {
    let (host, opened) = host(Outcome::Done);
    let output = host.call("delegate", json!({ "task": "count the moons" })).unwrap();
    assert_eq!(
        json!(output.content),
        json!({ "answer": "done: count the moons", "outcome": "done", "steps": 0, "model": "fake/model" })
    );
    let more = json!({ "task": "x", "tools": [], "steps_max": 3, "share_objects": true });
    host.call("delegate", more).unwrap();
    host.call("delegate", json!({ "task": "x", "tools": ["a"], "steps_max": 999 })).unwrap();
    let opened = opened.lock().unwrap();
    let like = |at: usize| {
        let ChildOpen { tools, steps_max, objects, .. } = opened[at].clone();
        (json!(tools), steps_max, objects)
    };
    assert_eq!(like(0), (json!(["cli_based_tool"]), Some(12), ObjectSharing::None));
    assert_eq!(like(1), (json!([]), Some(3), ObjectSharing::Share));
    assert_eq!(like(2), (json!(["a"]), Some(12), ObjectSharing::None));
    assert_eq!((asked(&host, "session.open"), asked(&host, "session.close")), (3, 3));
}

#[test]
fn configuration_sets_model_tools_and_step_limit_of_the_child() {
    let (host, opened) = host(Outcome::Limit);
    let config = json!({ "model": "other/moon", "tools": ["a", "b"], "steps_max": 2 });
    let host = host.with_config(config);
    let output = host.call("delegate", json!({ "task": "x" })).unwrap();
    assert_eq!(
        (&output.content["outcome"], &output.content["model"]),
        (&json!("limit"), &json!("other/moon"))
    );
    let opened = opened.lock().unwrap();
    assert_eq!((json!(opened[0].tools), opened[0].steps_max), (json!(["a", "b"]), Some(2)));
}

#[test]
fn a_task_without_an_answer_is_an_error_and_its_child_is_closed() {
    let (host, _) = host(Outcome::Failed);
    let error = host.call("delegate", json!({ "task": "x" })).unwrap_err();
    assert_eq!(error.message, "the task ended without an answer (failed)");
    assert_eq!(asked(&host, "session.close"), 1);
}

#[test]
fn progress_is_shown_while_the_child_works_and_cancel_ends_the_wait() {
    let (host, _) = host(Outcome::Done);
    let event = |session: &str, event: Value| {
        let mut envelope = json!({ "v": 1, "seq": 1, "session": session });
        envelope.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
        envelope
    };
    let host = host.with_service("session.events", move |_| {
        let stream = FakeStream::open();
        stream.push_frame(&event("child_1", json!({ "event": "step_started", "step": 1 })), &[]);
        stream.push_frame(&event("another", json!({ "event": "step_started", "step": 7 })), &[]);
        Ok(FakeServiceReply::Stream(stream))
    });
    let mut call = host.start("delegate", json!({ "task": "x" })).unwrap();
    let shown = call.next_delta().unwrap();
    assert_eq!(shown, Some(Delta::progress_so_far("the delegate thinks", 1)));
    call.settle().unwrap();
    let finished = call.cancel();
    assert_eq!(finished.result.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(asked(&host, "session.wait"), 0, "it was still told of events");
}

#[test]
fn no_child_session_opens_without_the_grant_or_with_bad_arguments() {
    let (host, opened) = host(Outcome::Done);
    let too_many = vec!["a"; TOOLS_MAX + 1];
    for bad in [
        json!({ "task": " " }),
        json!({ "task": "x".repeat(TASK_BYTES_MAX + 1) }),
        json!({ "task": "x", "tools": too_many }),
    ] {
        assert_eq!(host.call("delegate", bad).unwrap_err().kind, ErrorKind::InvalidArguments);
    }
    host.deny("session.open");
    let refused = host.call("delegate", json!({ "task": "x" })).unwrap_err();
    assert_eq!(refused.hint.as_deref(), Some("jaato plugin grant tool-delegate session.open"));
    assert!(opened.lock().unwrap().is_empty());
}
