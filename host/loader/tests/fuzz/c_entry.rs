//! Tests the C entry with a plugin that behaves arbitrarily. Each call must end, and everything
//! that began must end once.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use jaato_loader::{Instance, LiveCounts, RunningCall, StartedPlugin, factory_of_table};
use jaato_types::{Frame, Manifest};
use serde_json::json;

use crate::c_plugin::{SEED, TABLE, TALLY};
use crate::caught_panics;
use crate::random::{Random, times};
use crate::support::*;

/// How long to wait for a call that is never woken.
const FORGOTTEN: Duration = Duration::from_millis(5);

fn begin_call(instance: &Instance, random: &mut Random) -> RunningCall {
    let frame = match random.below(3) {
        0 => random.bytes(20),
        1 => Frame::empty(),
        _ => json_frame(&json!({ "text": "moon" })),
    };
    let begun = match random.below(5) {
        0 => instance.begin_plan(frame, test_services()),
        1 => instance.begin_completion(frame, test_services()),
        2 => instance.begin_model_list(test_services()),
        3 => instance.begin_operation("command", frame, test_services()),
        _ => instance.call_tool(["moon", "", "é"][random.below(3)], frame, test_services()),
    };
    begun.unwrap()
}

/// Reads a call to its end, or drops it before that.
async fn follow_call(mut call: RunningCall, random: &mut Random) {
    if random.below(4) == 0 {
        return;
    }
    if random.below(6) == 0 {
        call.cancel();
    }
    let canceller = call.canceller();
    let ended = async {
        while call.next_emission().await.is_some() {}
        let _ = call.answer().await;
    };
    let forgotten = async {
        tokio::time::sleep(FORGOTTEN).await;
        canceller.cancel();
        std::future::pending::<()>().await;
    };
    with_timeout(async {
        tokio::select! { () = ended => {}, () = forgotten => {} }
    })
    .await;
}

async fn live_instance(fixture: &LoaderFixture, manifest: &Manifest, seed: u64) -> bool {
    SEED.store(seed << 20, SeqCst);
    let mut random = Random(seed);
    // SAFETY: a static table of this program's.
    let Ok(factory) = (unsafe { factory_of_table(&TABLE, manifest) }) else { return false };
    let plugin = StartedPlugin::from_factory(&fixture.executor, factory, manifest.clone());
    let saved = (random.below(2) == 0).then(|| random.bytes(30));
    let Ok(instance) = with_timeout(plugin.create_instance(test_services(), saved)).await else {
        return false;
    };
    for _ in 0..=random.below(4) {
        let calls: Vec<_> =
            (0..=random.below(3)).map(|_| begin_call(&instance, &mut random)).collect();
        for call in calls {
            follow_call(call, &mut random).await;
        }
    }
    if random.below(3) == 0 {
        let _ = with_timeout(instance.save()).await;
    }
    if random.below(8) == 0 {
        let _ = with_timeout(instance.close()).await;
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_call_ends_and_nothing_leaks_whatever_a_c_plugin_does() {
    let panics_before = caught_panics();
    let fixture = LoaderFixture::new();
    let manifest =
        br#"{"v":1,"name":"c-fuzz","version":"1","api":"1.0.0","kinds":["tool","gc","provider"]}"#;
    let manifest = Manifest::parse(manifest).unwrap();
    let (mut lived, lives) = (0, times(2_000));
    for seed in 0..lives {
        lived += u64::from(live_instance(&fixture, &manifest, seed).await);
    }
    assert!(lived > lives / 2, "{lived} of {lives}");
    with_timeout(async {
        while fixture.executor.live_objects() != LiveCounts::default() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let counts = [&TALLY.instances, &TALLY.calls, &TALLY.buffers, &TALLY.wrong];
    assert_eq!(counts.map(|count| count.load(SeqCst)), [0; 4], "instances, calls, buffers, wrong");
    assert_eq!(caught_panics(), panics_before, "the host panics");
}
