//! Feeds random bytes to everything that parses untrusted bytes: manifests, frames, messages of a
//! worker, and the behaviour of a C plugin. Nothing may panic, hang or leak, and each result must
//! be an answer or an error.
//!
//! The seeds are fixed, so that failures are reproducible.
//! `JAATO_FUZZ_TIMES=100 cargo test --release -p jaato-loader --test fuzz` tries a hundred times as
//! many.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod c_entry;
mod c_plugin;
mod random;
#[path = "../support/mod.rs"]
mod support;

use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_loader::remote::wire::{
    HEADER_BYTES, LinkMessageFlag, LinkMessageHeader, LinkMessageKind, VERSION, split_call,
    split_service_request, split_stream_payload,
};
use jaato_loader::remote::{WorkerProcess, WorkerStart};
use jaato_loader::{Instance, LiveCounts, read_manifest};
use jaato_types::{Delta, Frame, Manifest};
use random::{Random, times};
use serde_json::{Value, json};
use support::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

#[test]
fn damaged_plugin_file_never_panics_the_reader() {
    let whole = std::fs::read(fixture_path("probe")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.so");
    std::fs::write(&path, &whole).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let manifest = whole.windows(12).position(|window| window == b"\"name\":\"fixt").unwrap() - 8;
    let sections =
        usize::try_from(u64::from_le_bytes(whole[0x28..0x30].try_into().unwrap())).unwrap();
    let mut random = Random(1);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..times(4_000) {
        // The places that a reader examines: the header, the section headers, the manifest.
        let places = [(0, 64), (sections, whole.len() - sections), (manifest, 200)];
        let (start, length) = places[random.below(3)];
        let changes: Vec<usize> =
            (0..=random.below(6)).map(|_| start + random.below(length)).collect();
        for at in &changes {
            file.write_at(&[random.byte()], *at as u64).unwrap();
        }
        match read_manifest(&path) {
            Ok(_) => read += 1,
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "{error}");
                refused += 1;
            }
        }
        for at in &changes {
            file.write_at(&whole[*at..=*at], *at as u64).unwrap();
        }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
    assert!(read_manifest(&path).is_ok(), "what was changed is restored");
}

#[test]
fn damaged_frame_never_panics_the_parser() {
    let good = Frame::write_with_bytes(
        &json!({ "delta": "text", "text": "naïve \u{1f600}", "n": [1, 2.5, null] }),
        b"bytes",
    )
    .unwrap();
    let mut random = Random(2);
    for _ in 0..times(100_000) {
        let mut bytes = good.clone();
        random.damage(&mut bytes);
        if let Ok(frame) = Frame::parse(&bytes) {
            let _: Result<Value, _> = frame.json();
        }
        let _ = Frame::read::<Delta>(&bytes);
        let _ = split_call(&bytes);
        let _ = split_service_request(&bytes);
        let _ = split_stream_payload(&bytes);
        if let Some(header) = bytes.first_chunk::<HEADER_BYTES>() {
            let _ = LinkMessageHeader::decode(header);
        }
    }
}

/// Returns the number of the host's panics since the first call.
fn caught_panics() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // A service of these tests often panics on purpose.
            if !info.to_string().contains("support/mod.rs") {
                COUNT.fetch_add(1, Ordering::SeqCst);
                before(info);
            }
        }));
    });
    COUNT.load(Ordering::SeqCst)
}

/// A worker without a process. The test writes its messages.
struct FakeWorkerProcess(Arc<AtomicUsize>);

impl WorkerProcess for FakeWorkerProcess {
    fn wait_for_end(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::ready("exited with 0".to_owned()))
    }

    fn end_process(&self) -> BoxFuture<'_, ()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }

    fn resume(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(false))
    }

    fn last_output(&self) -> String {
        String::new()
    }
}

fn link_message(kind: LinkMessageKind, flag: LinkMessageFlag, id: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = LinkMessageHeader { kind, flag, id, length: payload.len() }.encode().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns a message that a worker might send, sometimes damaged.
fn random_bytes(random: &mut Random) -> Vec<u8> {
    const KINDS: [LinkMessageKind; 14] = [
        LinkMessageKind::Emit,
        LinkMessageKind::Emit,
        LinkMessageKind::Answer,
        LinkMessageKind::Ask,
        LinkMessageKind::Ask,
        LinkMessageKind::Next,
        LinkMessageKind::CloseStream,
        LinkMessageKind::Forget,
        LinkMessageKind::Log,
        LinkMessageKind::Saved,
        LinkMessageKind::Closed,
        LinkMessageKind::Created,
        LinkMessageKind::Ready,
        LinkMessageKind::Call,
    ];
    const FLAGS: [LinkMessageFlag; 4] = [
        LinkMessageFlag::Frame,
        LinkMessageFlag::Error,
        LinkMessageFlag::Nothing,
        LinkMessageFlag::Stream,
    ];
    let kind = KINDS[random.below(KINDS.len())];
    let flag = FLAGS[random.below(FLAGS.len())];
    let id = random.below(4) as u64;
    let mut payload = match kind {
        LinkMessageKind::Ask => {
            let operation = ["stream", "echo", "wait", "panicking", "unknown"][random.below(5)];
            let mut payload =
                jaato_loader::remote::wire::service_request_head(random.below(3) as u64, operation);
            payload.extend(Frame::empty());
            payload
        }
        LinkMessageKind::Next | LinkMessageKind::CloseStream => {
            let (context, handle) = (random.below(3) as u64, random.below(200) as u64);
            jaato_loader::remote::wire::stream_payload(context, handle).to_vec()
        }
        _ => match random.below(3) {
            0 => random.bytes(40),
            1 => Frame::empty().to_vec(),
            _ => Frame::write(&json!({ "delta": "output", "text": "x" })).unwrap(),
        },
    };
    if random.below(4) == 0 {
        random.damage(&mut payload);
    }
    let mut bytes = link_message(kind, flag, id, &payload);
    if random.below(12) == 0 {
        random.damage(&mut bytes);
    }
    bytes
}

#[tokio::test]
async fn every_call_ends_and_nothing_leaks_whatever_a_worker_sends() {
    let panics_before = caught_panics();
    let fixture = LoaderFixture::new();
    let manifest = br#"{"v":1,"name":"tool-fuzz","version":"1","api":"1.0.0","kinds":["tool"]}"#;
    let manifest = Manifest::parse(manifest).unwrap();
    for seed in 0..times(3_000) {
        let mut random = Random(seed);
        let (host, mut worker) = UnixStream::pair().unwrap();
        let ended = Arc::new(AtomicUsize::new(0));
        let start = WorkerStart {
            manifest: manifest.clone(),
            socket: host.into_std().unwrap(),
            process: Arc::new(FakeWorkerProcess(Arc::clone(&ended))),
            services: test_services(),
            saved: None,
        };
        let greet = async {
            worker
                .write_all(&link_message(
                    LinkMessageKind::Ready,
                    LinkMessageFlag::Frame,
                    0,
                    &[VERSION],
                ))
                .await
                .unwrap();
            let mut create = [0; HEADER_BYTES];
            worker.read_exact(&mut create).await.unwrap();
            let create = LinkMessageHeader::decode(&create).unwrap();
            assert_eq!(create.kind, LinkMessageKind::Create);
            let created =
                link_message(LinkMessageKind::Created, LinkMessageFlag::Frame, create.id, &[1]);
            worker.write_all(&created).await.unwrap();
        };
        let (made, ()) = tokio::join!(Instance::start_in_worker(&fixture.executor, start), greet);
        let instance = made.unwrap();
        let mut calls = Vec::new();
        for _ in 0..=random.below(3) {
            calls.push(begin_call(&instance, "any", json!({})));
        }
        let talk: Vec<u8> = (0..random.below(30)).flat_map(|_| random_bytes(&mut random)).collect();
        // The host may hang up on invalid data before everything is written.
        let _ = worker.write_all(&talk).await;
        if random.below(3) == 0 {
            calls.pop();
        }
        drop(worker);
        for mut call in calls {
            with_timeout(async { while call.next_emission().await.is_some() {} }).await;
            // Either a matching answer or an error exists.
            let _ = with_timeout(call.answer()).await;
        }
        let _ = with_timeout(instance.close()).await;
        drop(instance);
        assert!(ended.load(Ordering::SeqCst) > 0, "seed {seed}: the worker is not ended");
    }
    // The tasks that read and write for a worker end a little later.
    with_timeout(async {
        while fixture.executor.live_objects() != LiveCounts::default() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(caught_panics(), panics_before, "the host panics");
}
