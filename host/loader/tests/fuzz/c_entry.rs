//! Tests the C entry with a plugin that behaves arbitrarily. Each call must end, and everything
//! that began must end once.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use jaato_loader::{Instance, LiveCounts, RunningCall, StartedPlugin, factory_of_table};
use jaato_types::{Frame, Manifest};
use serde_json::json;

use crate::c_plugin::{SEED, TABLE, TALLY};
use crate::panics;
use crate::random::{Random, times};
use crate::support::*;

/// How long to wait for a call that is never woken.
const FORGOTTEN: Duration = Duration::from_millis(5);

fn begin_call(instance: &Instance, random: &mut Random) -> RunningCall {
    let frame = match random.below(3) {
        0 => random.bytes(20),
        1 => Frame::empty(),
        _ => frame(&json!({ "text": "moon" })),
    };
    let begun = match random.below(5) {
        0 => instance.plan(frame, services()),
        1 => instance.complete(frame, services()),
        2 => instance.models(services()),
        3 => instance.operation("command", frame, services()),
        _ => instance.call_tool(["moon", "", "é"][random.below(3)], frame, services()),
    };
    begun.unwrap()
}

/// Reads a call to its end, or drops it before that.
async fn follow(mut call: RunningCall, random: &mut Random) {
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
    guarded(async {
        tokio::select! { () = ended => {}, () = forgotten => {} }
    })
    .await;
}

async fn live_instance(house: &House, manifest: &Manifest, seed: u64) -> bool {
    SEED.store(seed << 20, SeqCst);
    let mut random = Random(seed);
    // SAFETY: a static table of this program's.
    let Ok(factory) = (unsafe { factory_of_table(&TABLE, manifest) }) else { return false };
    let plugin = StartedPlugin::from_factory(&house.executor, factory, manifest.clone());
    let saved = (random.below(2) == 0).then(|| random.bytes(30));
    let Ok(instance) = guarded(plugin.create(services(), saved)).await else { return false };
    for _ in 0..=random.below(4) {
        let calls: Vec<_> =
            (0..=random.below(3)).map(|_| begin_call(&instance, &mut random)).collect();
        for call in calls {
            follow(call, &mut random).await;
        }
    }
    if random.below(3) == 0 {
        let _ = guarded(instance.save()).await;
    }
    if random.below(8) == 0 {
        let _ = guarded(instance.close()).await;
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_call_ends_and_nothing_leaks_whatever_a_c_plugin_does() {
    let panics_before = panics();
    let house = House::new();
    let manifest =
        br#"{"v":1,"name":"c-fuzz","version":"1","api":"1.0.0","kinds":["tool","gc","provider"]}"#;
    let manifest = Manifest::parse(manifest).unwrap();
    let (mut lived, lives) = (0, times(2_000));
    for seed in 0..lives {
        lived += u64::from(live_instance(&house, &manifest, seed).await);
    }
    assert!(lived > lives / 2, "{lived} of {lives}");
    guarded(async {
        while house.executor.live() != LiveCounts::default() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let counts = [&TALLY.instances, &TALLY.calls, &TALLY.buffers, &TALLY.wrong];
    assert_eq!(counts.map(|count| count.load(SeqCst)), [0; 4], "instances, calls, buffers, wrong");
    assert_eq!(panics(), panics_before, "the host panics");
}
