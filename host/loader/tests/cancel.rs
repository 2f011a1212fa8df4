//! Tests cancel and end: in two phases, on the executor's threads, with nothing left behind.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use crate::support::*;
use jaato_types::{ErrorKind, Frame};
use serde_json::json;

#[tokio::test]
async fn a_thousand_cancelled_sleeps_write_no_marker() {
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("marker");
    let instance = house.instance(&probe(), None).await;
    for turn in 0..1000 {
        let arguments = json!({ "path": marker, "milliseconds": 3_600_000 });
        let mut call = call(&instance, "sleep_and_mark", arguments);
        wait_for(&mut call, "sleeping").await;
        if turn % 2 == 0 {
            drop(call);
        } else {
            call.cancel();
            assert_eq!(guarded(call.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
        }
    }
    guarded(instance.close()).await.unwrap();
    assert!(!marker.exists());
    drop(instance);
    house.nothing_lives();
}

#[tokio::test]
async fn a_sleep_that_is_not_cancelled_does_end() {
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("marker");
    let instance = house.instance(&probe(), None).await;
    ask(&instance, "sleep_and_mark", json!({ "path": marker, "milliseconds": 1 })).await.unwrap();
    assert!(marker.exists());
}

#[tokio::test]
async fn every_poll_and_every_drop_happens_on_the_executor() {
    let house = House::new();
    let plugin = house.plugin(&probe()).await;
    let asker = plugin.create(services(), None).await.unwrap();
    let key = unique("places");
    let saved = frame(&json!({ "key": key, "background": true }));
    let instance = plugin.create(services(), Some(saved)).await.unwrap();
    let mut dropped = call(&instance, "wait", json!({ "key": key }));
    wait_for(&mut dropped, "waiting").await;
    drop(dropped);
    let mut closed = call(&instance, "wait", json!({ "key": key }));
    wait_for(&mut closed, "waiting").await;
    guarded(instance.close()).await.unwrap();
    assert_eq!(guarded(closed.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    let lines = places(&asker, &key).await;
    all_on_the_executor(&lines);
    let count = |what: &str| lines.iter().filter(|line| line.starts_with(what)).count();
    // Two calls and the background task.
    let expected = [("state made", 1), ("future dropped", 3), ("closed", 1), ("state dropped", 1)];
    for (what, times) in expected {
        assert_eq!(count(what), times, "{what}: {lines:?}");
    }
    assert!(lines.last().unwrap().starts_with("state dropped"), "{lines:?}");
}

#[tokio::test]
async fn an_instance_that_is_let_go_without_a_close_is_dropped_on_the_executor() {
    let house = House::new();
    let plugin = house.plugin(&probe()).await;
    let asker = plugin.create(services(), None).await.unwrap();
    let key = unique("let-go");
    let saved = frame(&json!({ "key": key, "background": true }));
    let instance = plugin.create(services(), Some(saved)).await.unwrap();
    let mut in_flight = call(&instance, "wait", json!({ "key": key }));
    wait_for(&mut in_flight, "waiting").await;
    drop(instance);
    assert_eq!(guarded(in_flight.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    let dropped = |what: &'static str| move |line: &String| line.starts_with(what);
    let lines = places_when(&asker, &key, |lines| {
        lines.iter().any(dropped("state dropped"))
            && lines.iter().filter(|line| dropped("future dropped")(line)).count() == 2
    });
    all_on_the_executor(&lines.await);
}

#[tokio::test]
async fn a_create_that_is_abandoned_never_drops_on_the_callers_thread() {
    let house = House::new();
    let plugin = house.plugin(&probe()).await;
    let asker = plugin.create(services(), None).await.unwrap();
    // Abandoned while it waits.
    let waiting = unique("waiting-create");
    let saved = frame(&json!({ "key": waiting, "wait_in_create": true }));
    let mut create = Box::pin(plugin.create(services(), Some(saved)));
    assert!(poll_once(&mut create).await.is_pending());
    places_when(&asker, &waiting, |lines| !lines.is_empty()).await;
    drop(create);
    let dropped = |lines: &[String]| lines.iter().any(|line| line.starts_with("future dropped"));
    all_on_the_executor(&places_when(&asker, &waiting, dropped).await);
    // Abandoned when it is done but was not polled.
    let done = unique("done-create");
    let folder = tempfile::tempdir().unwrap();
    let when = folder.path().join("when");
    let saved = frame(&json!({ "key": done, "create_when": when }));
    let mut create = Box::pin(plugin.create(services(), Some(saved)));
    assert!(poll_once(&mut create).await.is_pending());
    release(&when);
    places_when(&asker, &done, |lines| !lines.is_empty()).await;
    drop(create);
    let dropped = |lines: &[String]| lines.iter().any(|line| line.starts_with("state dropped"));
    all_on_the_executor(&places_when(&asker, &done, dropped).await);
}

#[tokio::test]
async fn cancelled_call_is_dropped_before_it_can_see_its_cancellation() {
    let house = House::new();
    let instance = house.instance(&probe(), None).await;
    let key = unique("cancel");
    let mut call = call(&instance, "wait_for_cancel", json!({ "key": key }));
    wait_for(&mut call, "waiting").await;
    call.cancel();
    assert_eq!(guarded(call.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(places(&instance, &key).await, Vec::<String>::new());
}

#[tokio::test]
async fn close_ends_all_running_calls_and_frees_everything() {
    let house = House::new();
    let instance = house.instance(&probe(), Some(json!({ "background": true }))).await;
    let mut reading = call(&instance, "read_for_ever", json!({ "operation": "stream" }));
    wait_for(&mut reading, "reading").await;
    let mut waiting = call(&instance, "wait", json!({ "key": unique("left") }));
    wait_for(&mut waiting, "waiting").await;
    let asking = call(&instance, "ask", json!({ "operation": "wait" }));
    let panicked =
        call(&instance, "read", json!({ "operation": "panicking", "drop_waits": false }));
    assert_eq!(guarded(panicked.answer()).await.unwrap_err().kind, ErrorKind::HostBug);
    assert!(house.executor.live().contexts >= 4 && house.executor.live().streams == 1);
    guarded(instance.close()).await.unwrap();
    for call in [reading, waiting, asking] {
        assert_eq!(guarded(call.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    }
    assert!(instance.call_tool("count", Frame::empty(), services()).is_err());
    drop(instance);
    house.nothing_lives();
}

#[tokio::test]
async fn context_kept_after_answer_or_cancel_refuses_everything() {
    let house = House::new();
    let instance = house.instance(&raw(), None).await;
    let refused = json!({
        "is_cancelled": true, "emit": false, "old_sleep": false, "sleep": false,
        "spawn_blocking": false, "spawn": false, "service": "cancelled", "next": "cancelled",
    });
    ask(&instance, "keep", json!({})).await.unwrap();
    assert_eq!(house.executor.live().streams, 0, "the end of the call closes its streams");
    assert_eq!(ask(&instance, "use_kept", json!({})).await.unwrap(), refused);
    let mut call = call(&instance, "keep_and_wait", json!({}));
    wait_for(&mut call, "kept").await;
    assert_eq!(house.executor.live().streams, 1);
    call.cancel();
    assert_eq!(guarded(call.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(ask(&instance, "use_kept", json!({})).await.unwrap(), refused);
    guarded(instance.close()).await.unwrap();
    drop(instance);
    house.nothing_lives();
}

#[tokio::test]
async fn hanging_jobs_do_not_block_other_calls_close_or_shutdown() {
    let mut house = House::new();
    let folder = tempfile::tempdir().unwrap();
    let (free, hung) = (folder.path().join("free"), folder.path().join("hung"));
    release(&free);
    let instance = house.instance(&probe(), None).await;
    let mut hanging = Vec::new();
    // More than the executor has threads, because each of those may have taken one.
    for _ in 0..jaato_loader::JOBS_PER_PLUGIN_MAX - 1 {
        let mut job = call(&instance, "job", json!({ "until": hung }));
        wait_for(&mut job, "job runs").await;
        hanging.push(job);
        let answer = guarded(ask(&instance, "job", json!({ "until": free }))).await.unwrap();
        let thread = answer["thread"].as_str().unwrap();
        assert!(thread.starts_with("jaato-") || cfg!(not(target_os = "linux")), "{answer}");
    }
    let report = house.reports.try_recv();
    assert!(report.is_err(), "no thread is taken for one that a plugin blocks: {report:?}");
    guarded(instance.close()).await.unwrap();
    for job in hanging {
        assert_eq!(guarded(job.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    }
    drop(instance);
    drop(house);
    release(&hung);
}

#[tokio::test]
async fn a_job_runs_even_if_the_poll_that_handed_it_over_does_not_end() {
    let house = House::new();
    let instance = house.instance(&probe(), None).await;
    let answer = guarded(ask(&instance, "job_of_a_blocked_poll", json!({}))).await.unwrap();
    assert_eq!(answer["has_run"], true);
}

fn release(path: &Path) {
    std::fs::write(path, "").unwrap();
}

#[tokio::test]
async fn plugin_with_many_blocking_jobs_does_not_delay_other_plugins() {
    let house = House::new();
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let greedy = house.instance(&probe(), None).await;
    let modest = house.instance(&probe(), None).await;
    let start = || call(&greedy, "job", json!({ "until": gate }));
    let mut calls: Vec<_> = (0..jaato_loader::JOBS_PER_PLUGIN_MAX).map(|_| start()).collect();
    for call in &mut calls {
        wait_for(call, "job runs").await;
    }
    // Calls that start together run in any order, so the ones that wait start later.
    calls.push(start());
    let last = start();
    let free = folder.path().join("free");
    release(&free);
    ask(&modest, "job", json!({ "until": free })).await.unwrap();
    // A waiting call is cancelled before it begins. The others run when there is space.
    last.cancel();
    assert_eq!(guarded(last.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    release(&gate);
    for call in calls {
        guarded(call.answer()).await.unwrap();
    }
}
