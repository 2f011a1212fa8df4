//! Tests cancel and end: in two phases, on the executor's threads, with nothing left behind.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use crate::support::*;
use jaato_types::{ErrorKind, Frame};
use serde_json::json;

#[tokio::test]
async fn a_thousand_cancelled_sleeps_write_no_marker() {
    let fixture = LoaderFixture::new();
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("marker");
    let instance = fixture.create_instance(&open_probe(), None).await;
    for turn in 0..1000 {
        let arguments = json!({ "path": marker, "milliseconds": 3_600_000 });
        let mut call = begin_call(&instance, "sleep_and_mark", arguments);
        wait_for_output(&mut call, "sleeping").await;
        if turn % 2 == 0 {
            drop(call);
        } else {
            call.cancel();
            assert_eq!(with_timeout(call.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
        }
    }
    with_timeout(instance.close()).await.unwrap();
    assert!(!marker.exists());
    drop(instance);
    fixture.assert_no_live_objects();
}

#[tokio::test]
async fn a_sleep_that_is_not_cancelled_does_end() {
    let fixture = LoaderFixture::new();
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("marker");
    let instance = fixture.create_instance(&open_probe(), None).await;
    run_call(&instance, "sleep_and_mark", json!({ "path": marker, "milliseconds": 1 }))
        .await
        .unwrap();
    assert!(marker.exists());
}

#[tokio::test]
async fn every_poll_and_every_drop_happens_on_the_executor() {
    let fixture = LoaderFixture::new();
    let plugin = fixture.start_plugin(&open_probe()).await;
    let asker = plugin.create_instance(test_services(), None).await.unwrap();
    let key = unique_name("places");
    let saved = json_frame(&json!({ "key": key, "background": true }));
    let instance = plugin.create_instance(test_services(), Some(saved)).await.unwrap();
    let mut dropped = begin_call(&instance, "wait", json!({ "key": key }));
    wait_for_output(&mut dropped, "waiting").await;
    drop(dropped);
    let mut closed = begin_call(&instance, "wait", json!({ "key": key }));
    wait_for_output(&mut closed, "waiting").await;
    with_timeout(instance.close()).await.unwrap();
    assert_eq!(with_timeout(closed.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    let lines = recorded_lines(&asker, &key).await;
    assert_executor_threads(&lines);
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
    let fixture = LoaderFixture::new();
    let plugin = fixture.start_plugin(&open_probe()).await;
    let asker = plugin.create_instance(test_services(), None).await.unwrap();
    let key = unique_name("let-go");
    let saved = json_frame(&json!({ "key": key, "background": true }));
    let instance = plugin.create_instance(test_services(), Some(saved)).await.unwrap();
    let mut in_flight = begin_call(&instance, "wait", json!({ "key": key }));
    wait_for_output(&mut in_flight, "waiting").await;
    drop(instance);
    assert_eq!(with_timeout(in_flight.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    let dropped = |what: &'static str| move |line: &String| line.starts_with(what);
    let lines = wait_for_lines(&asker, &key, |lines| {
        lines.iter().any(dropped("state dropped"))
            && lines.iter().filter(|line| dropped("future dropped")(line)).count() == 2
    });
    assert_executor_threads(&lines.await);
}

#[tokio::test]
async fn a_create_that_is_abandoned_never_drops_on_the_callers_thread() {
    let fixture = LoaderFixture::new();
    let plugin = fixture.start_plugin(&open_probe()).await;
    let asker = plugin.create_instance(test_services(), None).await.unwrap();
    // Abandoned while it waits.
    let waiting = unique_name("waiting-create");
    let saved = json_frame(&json!({ "key": waiting, "wait_in_create": true }));
    let mut create = Box::pin(plugin.create_instance(test_services(), Some(saved)));
    assert!(poll_once(&mut create).await.is_pending());
    wait_for_lines(&asker, &waiting, |lines| !lines.is_empty()).await;
    drop(create);
    let dropped = |lines: &[String]| lines.iter().any(|line| line.starts_with("future dropped"));
    assert_executor_threads(&wait_for_lines(&asker, &waiting, dropped).await);
    // Abandoned when it is done but was not polled.
    let done = unique_name("done-create");
    let folder = tempfile::tempdir().unwrap();
    let when = folder.path().join("when");
    let saved = json_frame(&json!({ "key": done, "create_when": when }));
    let mut create = Box::pin(plugin.create_instance(test_services(), Some(saved)));
    assert!(poll_once(&mut create).await.is_pending());
    create_release_file(&when);
    wait_for_lines(&asker, &done, |lines| !lines.is_empty()).await;
    drop(create);
    let dropped = |lines: &[String]| lines.iter().any(|line| line.starts_with("state dropped"));
    assert_executor_threads(&wait_for_lines(&asker, &done, dropped).await);
}

#[tokio::test]
async fn cancelled_call_is_dropped_before_it_can_see_its_cancellation() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let key = unique_name("cancel");
    let mut call = begin_call(&instance, "wait_for_cancel", json!({ "key": key }));
    wait_for_output(&mut call, "waiting").await;
    call.cancel();
    assert_eq!(with_timeout(call.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(recorded_lines(&instance, &key).await, Vec::<String>::new());
}

#[tokio::test]
async fn close_ends_all_running_calls_and_frees_everything() {
    let fixture = LoaderFixture::new();
    let instance =
        fixture.create_instance(&open_probe(), Some(json!({ "background": true }))).await;
    let mut reading = begin_call(&instance, "read_for_ever", json!({ "operation": "stream" }));
    wait_for_output(&mut reading, "reading").await;
    let mut waiting = begin_call(&instance, "wait", json!({ "key": unique_name("left") }));
    wait_for_output(&mut waiting, "waiting").await;
    let asking = begin_call(&instance, "ask", json!({ "operation": "wait" }));
    let panicked =
        begin_call(&instance, "read", json!({ "operation": "panicking", "drop_waits": false }));
    assert_eq!(with_timeout(panicked.answer()).await.unwrap_err().kind, ErrorKind::HostBug);
    assert!(
        fixture.executor.live_objects().contexts >= 4
            && fixture.executor.live_objects().streams == 1
    );
    with_timeout(instance.close()).await.unwrap();
    for call in [reading, waiting, asking] {
        assert_eq!(with_timeout(call.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    }
    assert!(instance.call_tool("count", Frame::empty(), test_services()).is_err());
    drop(instance);
    fixture.assert_no_live_objects();
}

#[tokio::test]
async fn context_kept_after_answer_or_cancel_refuses_everything() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_raw(), None).await;
    let refused = json!({
        "is_cancelled": true, "emit": false, "old_sleep": false, "sleep": false,
        "spawn_blocking": false, "spawn": false, "service": "cancelled", "next": "cancelled",
    });
    run_call(&instance, "keep", json!({})).await.unwrap();
    assert_eq!(
        fixture.executor.live_objects().streams,
        0,
        "the end of the call closes its streams"
    );
    assert_eq!(run_call(&instance, "use_kept", json!({})).await.unwrap(), refused);
    let mut call = begin_call(&instance, "keep_and_wait", json!({}));
    wait_for_output(&mut call, "kept").await;
    assert_eq!(fixture.executor.live_objects().streams, 1);
    call.cancel();
    assert_eq!(with_timeout(call.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(run_call(&instance, "use_kept", json!({})).await.unwrap(), refused);
    with_timeout(instance.close()).await.unwrap();
    drop(instance);
    fixture.assert_no_live_objects();
}

#[tokio::test]
async fn hanging_jobs_do_not_block_other_calls_close_or_shutdown() {
    let mut fixture = LoaderFixture::new();
    let folder = tempfile::tempdir().unwrap();
    let (free, hung) = (folder.path().join("free"), folder.path().join("hung"));
    create_release_file(&free);
    let instance = fixture.create_instance(&open_probe(), None).await;
    let mut hanging = Vec::new();
    // More than the executor has threads, because each of those may have taken one.
    for _ in 0..jaato_loader::JOBS_PER_PLUGIN_MAX - 1 {
        let mut job = begin_call(&instance, "job", json!({ "until": hung }));
        wait_for_output(&mut job, "job runs").await;
        hanging.push(job);
        let answer =
            with_timeout(run_call(&instance, "job", json!({ "until": free }))).await.unwrap();
        let thread = answer["thread"].as_str().unwrap();
        assert!(thread.starts_with("jaato-") || cfg!(not(target_os = "linux")), "{answer}");
    }
    let report = fixture.reports.try_recv();
    assert!(report.is_err(), "no thread is taken for one that a plugin blocks: {report:?}");
    with_timeout(instance.close()).await.unwrap();
    for job in hanging {
        assert_eq!(with_timeout(job.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    }
    drop(instance);
    drop(fixture);
    create_release_file(&hung);
}

#[tokio::test]
async fn a_job_runs_even_if_the_poll_that_handed_it_over_does_not_end() {
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let answer =
        with_timeout(run_call(&instance, "job_of_a_blocked_poll", json!({}))).await.unwrap();
    assert_eq!(answer["has_run"], true);
}

fn create_release_file(path: &Path) {
    std::fs::write(path, "").unwrap();
}

#[tokio::test]
async fn plugin_with_many_blocking_jobs_does_not_delay_other_plugins() {
    let fixture = LoaderFixture::new();
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let greedy = fixture.create_instance(&open_probe(), None).await;
    let modest = fixture.create_instance(&open_probe(), None).await;
    let start = || begin_call(&greedy, "job", json!({ "until": gate }));
    let mut calls: Vec<_> = (0..jaato_loader::JOBS_PER_PLUGIN_MAX).map(|_| start()).collect();
    for call in &mut calls {
        wait_for_output(call, "job runs").await;
    }
    // Calls that start together run in any order, so the ones that wait start later.
    calls.push(start());
    let last = start();
    let free = folder.path().join("free");
    create_release_file(&free);
    run_call(&modest, "job", json!({ "until": free })).await.unwrap();
    // A waiting call is cancelled before it begins. The others run when there is space.
    last.cancel();
    assert_eq!(with_timeout(last.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    create_release_file(&gate);
    for call in calls {
        with_timeout(call.answer()).await.unwrap();
    }
}
