//! Tests the watchdog: it catches blocking plugins but does not blame plugins for a busy machine.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use jaato_loader::{ABLE_TO_RUN_MAX, LONG_BLOCK, Misbehavior, MisbehaviorReport, STRIKES_MAX};
use jaato_types::ErrorKind;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use support::*;

/// Runs one test at a time, because these tests load the machine or measure it.
fn lock_tests() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock()
}

fn create_release_file(path: &Path) {
    std::fs::write(path, "").unwrap();
}

/// Returns the next misdeed that is a strike.
async fn next_report(fixture: &mut LoaderFixture) -> MisbehaviorReport {
    loop {
        let report = with_timeout(fixture.reports.recv()).await.unwrap();
        if !matches!(report.misdeed, Misbehavior::StillBlocked { .. }) {
            return report;
        }
    }
}

#[track_caller]
fn blocked_thread(report: &MisbehaviorReport) -> usize {
    assert_eq!(report.plugin.to_string(), "fixture-probe");
    let Misbehavior::Blocked { thread, able_to_run } = report.misdeed else { panic!("{report:?}") };
    assert!(able_to_run > ABLE_TO_RUN_MAX);
    thread
}

/// Threads that keep the processor busy until this is dropped.
struct BusyThreads(Arc<AtomicBool>);

impl BusyThreads {
    fn start(threads: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..threads {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    black_box(());
                }
            });
        }
        Self(over)
    }
}

impl Drop for BusyThreads {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[allow(clippy::await_holding_lock)]
#[tokio::test]
async fn busy_machine_is_not_reported_but_a_blocking_plugin_is() {
    let _alone = lock_tests();
    let mut fixture = LoaderFixture::new();
    let folder = tempfile::tempdir().unwrap();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let _busy = BusyThreads::start(24);
    // Polls of some milliseconds, which the busy threads stretch far beyond the limit.
    let work = json!({ "polls": 12, "steps": 500_000 });
    let calls: Vec<_> = (0..2).map(|_| begin_call(&instance, "work", work.clone())).collect();
    for call in calls {
        with_timeout(call.answer()).await.unwrap();
    }
    let report = fixture.reports.try_recv().ok();
    assert_eq!(report, None, "a plugin that only waited was reported");
    for how in ["spin", "sleep"] {
        let until = folder.path().join(how);
        let mut blocker = begin_call(&instance, "block", json!({ "how": how, "until": until }));
        wait_for_output(&mut blocker, "blocking").await;
        blocked_thread(&next_report(&mut fixture).await);
        create_release_file(&until);
        with_timeout(blocker.answer()).await.unwrap();
    }
}

#[allow(clippy::await_holding_lock)]
#[tokio::test]
async fn blocked_threads_are_replaced_and_the_plugin_is_disabled_in_the_end() {
    let _alone = lock_tests();
    let mut fixture = LoaderFixture::new();
    let folder = tempfile::tempdir().unwrap();
    let until = folder.path().join("until");
    let plugin = fixture.start_plugin(&open_probe()).await;
    let instance = plugin.create_instance(test_services(), None).await.unwrap();
    let other = fixture.create_instance(&open_raw(), None).await;
    let mut threads = Vec::new();
    let mut blockers = Vec::new();
    for strike in 1..=STRIKES_MAX {
        let mut blocker = begin_call(&instance, "block", json!({ "how": "sleep", "until": until }));
        wait_for_output(&mut blocker, "blocking").await;
        let report = next_report(&mut fixture).await;
        threads.push(blocked_thread(&report));
        assert_eq!((report.strikes, report.disabled), (strike, strike == STRIKES_MAX));
        blockers.push(blocker);
        // More threads are blocked than the executor has, but other calls are still served.
        run_call(&other, "bad_emit", json!({})).await.unwrap_err();
    }
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), STRIKES_MAX as usize, "each blocked a thread of its own");
    assert!(plugin.is_disabled());
    // Callers of the blocked calls get an error at once, and new calls are refused.
    for mut blocker in blockers {
        assert_eq!(with_timeout(blocker.next_emission()).await, None);
        let error = with_timeout(blocker.answer()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::PluginDisabled);
    }
    let refused =
        instance.call_tool("count", json_frame(&json!({})), test_services()).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::PluginDisabled);
    assert!(refused.to_string().contains("`fixture-probe` is disabled"), "{refused}");
    let refused = plugin.create_instance(test_services(), None).await.err().unwrap();
    assert_eq!(refused.kind, ErrorKind::PluginDisabled);
    create_release_file(&until);
}

#[allow(clippy::await_holding_lock)]
#[tokio::test]
async fn poll_that_blocks_for_long_is_reported_once_more_without_a_strike() {
    let _alone = lock_tests();
    let mut fixture = LoaderFixture::new();
    let folder = tempfile::tempdir().unwrap();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let until = folder.path().join("until");
    let mut blocker = begin_call(&instance, "block", json!({ "how": "sleep", "until": until }));
    wait_for_output(&mut blocker, "blocking").await;
    blocked_thread(&next_report(&mut fixture).await);
    let report = with_timeout(fixture.reports.recv()).await.unwrap();
    let Misbehavior::StillBlocked { able_to_run } = report.misdeed else { panic!("{report:?}") };
    assert!(able_to_run >= LONG_BLOCK);
    assert_eq!((report.strikes, report.disabled), (1, false));
    create_release_file(&until);
    with_timeout(blocker.answer()).await.unwrap();
}

#[allow(clippy::await_holding_lock)]
#[tokio::test]
async fn a_drop_that_blocks_is_caught_too() {
    let _alone = lock_tests();
    let mut fixture = LoaderFixture::new();
    let folder = tempfile::tempdir().unwrap();
    let until = folder.path().join("until");
    let instance = fixture.create_instance(&open_probe(), None).await;
    let mut blocker = begin_call(&instance, "block_in_drop", json!({ "until": until }));
    wait_for_output(&mut blocker, "waiting").await;
    drop(blocker);
    blocked_thread(&next_report(&mut fixture).await);
    create_release_file(&until);
    assert!(run_call(&instance, "count", json!({})).await.is_ok());
}

#[allow(clippy::await_holding_lock)]
#[tokio::test]
async fn futures_that_wake_themselves_are_held_back_reported_and_disabled() {
    let _alone = lock_tests();
    let mut fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    let other = fixture.create_instance(&open_raw(), None).await;
    // As many as there are threads, so that every check finds both in a new poll.
    let spins: Vec<_> = (0..2).map(|_| begin_call(&instance, "spin", json!({}))).collect();
    for strike in 1..=STRIKES_MAX {
        let report = next_report(&mut fixture).await;
        assert_eq!((report.misdeed, report.strikes), (Misbehavior::PollsWithoutEnd, strike));
        run_call(&other, "bad_emit", json!({})).await.unwrap_err();
    }
    for spin in spins {
        assert_eq!(with_timeout(spin.answer()).await.unwrap_err().kind, ErrorKind::PluginDisabled);
    }
}

#[allow(clippy::await_holding_lock)]
#[tokio::test]
async fn blocking_host_service_is_not_blamed_on_the_plugin() {
    let _alone = lock_tests();
    let mut fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    run_call(&instance, "ask", json!({ "operation": "slow_host" })).await.unwrap();
    assert!(fixture.reports.try_recv().is_err());
}

#[allow(clippy::await_holding_lock)]
#[tokio::test]
async fn the_threads_end_with_the_last_handle() {
    let _alone = lock_tests();
    let fixture = LoaderFixture::new();
    let instance = fixture.create_instance(&open_probe(), None).await;
    run_call(&instance, "count", json!({})).await.unwrap();
    drop(instance);
    let before = plugin_threads();
    drop(fixture);
    with_timeout(async {
        while plugin_threads() >= before && before > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Returns the number of plugin executor threads in this process, if the system reports them.
fn plugin_threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let names =
        tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("jaato-plugin-")).count()
}
