//! Runs plugins with unusual demands on the boundary in a worker: their bytes, streams and saved
//! states cross as they do in the host. The worker is the real one, on its own runtime in this
//! process.

use std::io::ErrorKind::WouldBlock;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use jaato_loader::remote::WorkerStart;
use jaato_loader::remote::wire::LinkMessageHeader;
use jaato_loader::{Facet, NoServices, RunningCall, STRIKES_MAX};
use jaato_types::{Completion, Delta, GcPlan, Manifest, Message as Said, Part};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use super::*;

#[path = "../../../loader/tests/support/blobs.rs"]
mod blobs;

use super::workers::{SilentObserver, SocketWorkerProcess};
use blobs::FakeBlobs;

/// Longer than any of these tests takes, so that a test that would hang fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Builds fixtures and returns their folder.
fn build_fixtures(packages: &[String]) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/Cargo.toml");
    // This program is in the target folder, in `PROFILE/deps`.
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("fixtures");
    // `cargo xtask test` has built them.
    if std::env::var_os("JAATO_TEST_HOUSE").is_some() {
        return target.join("debug");
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--offline"]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    cargo.arg("--manifest-path").arg(manifest);
    let status = cargo.arg("--target-dir").arg(&target).status();
    assert!(status.unwrap().success(), "{packages:?} do not build");
    target.join("debug")
}

fn library_path(folder: &Path, krate: &str) -> PathBuf {
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    folder.join(format!("{prefix}{krate}{suffix}"))
}

fn fixture_path(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let packages =
        ["many", "older", "paints", "probe", "recalls"].map(|it| format!("fixture-{it}"));
    library_path(FOLDER.get_or_init(|| build_fixtures(&packages)), &format!("fixture_{name}"))
}

/// The runtime of a worker, which lives as long as this value.
struct WorkerFixture(Runtime);

impl WorkerFixture {
    fn new() -> Self {
        Self(Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap())
    }

    async fn instance(&self, name: &str, saved: Option<Vec<u8>>) -> Instance {
        let file = fixture_path(name);
        let manifest = jaato_loader::read_manifest(&file).unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        self.0.spawn(async move { serve_socket(theirs, &file).await });
        let process = Arc::new(SocketWorkerProcess);
        let services = Arc::new(NoServices);
        let start = WorkerStart { manifest, socket: ours, process, services, saved };
        let executor = Executor::new(tokio::runtime::Handle::current(), Arc::new(SilentObserver));
        with_timeout(Instance::start_in_worker(&executor, start)).await.unwrap()
    }

    /// Ends the runtime, because a runtime must not be dropped inside another one.
    fn end(self) {
        self.0.shutdown_background();
    }
}

async fn with_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("hangs")
}

async fn wait_for_answer(mut call: RunningCall) -> (Vec<Delta>, Vec<u8>) {
    let mut emitted = Vec::new();
    while let Some(emission) = with_timeout(call.next_emission()).await {
        emitted.push(Frame::read(&emission).unwrap());
    }
    (emitted, with_timeout(call.answer()).await.unwrap())
}

#[tokio::test]
async fn plugin_with_a_hundred_tools_and_long_output_works_in_a_worker() {
    let worker = WorkerFixture::new();
    let instance = worker.instance("many", None).await;
    for number in 0..99 {
        let arguments = Frame::write(&json!({ "text": "moon" })).unwrap();
        let name = format!("say{number:02}");
        let call = instance.call_tool(&name, arguments, Arc::new(NoServices)).unwrap();
        let answer: Value = Frame::read(&wait_for_answer(call).await.1).unwrap();
        let expected =
            json!({ "name": format!("Say{number:02}"), "text": "moon", "calls": number + 1 });
        assert_eq!(answer, expected);
    }
    let arguments = Frame::write(&json!({ "lines": 20_000 })).unwrap();
    let call = instance.call_tool("stream_lines", arguments, Arc::new(NoServices)).unwrap();
    let (lines, answer) = wait_for_answer(call).await;
    let last = "line 19999 of a hundred tools' output\n".to_owned();
    assert_eq!((lines.len(), lines.last()), (20_000, Some(&Delta::output(last))));
    assert_eq!(Frame::read::<Value>(&answer).unwrap()["shown"], 20_000);
    worker.end();
}

#[tokio::test]
async fn gc_state_is_restored_in_the_next_worker() {
    let worker = WorkerFixture::new();
    let plan = async |instance: &Instance, prompts: [&str; 2]| {
        let turn = |name: &str| [Said::user(name), Said::model(vec![Part::text("yes")])];
        let messages: Vec<Said> = prompts.into_iter().flat_map(turn).collect();
        let request = json!({
            "v": 1, "reason": "manual", "messages": messages, "context_limit": 9, "total_tokens": 9,
        });
        let frame = Frame::write(&request).unwrap();
        let answer =
            wait_for_answer(instance.begin_plan(frame, Arc::new(NoServices)).unwrap()).await.1;
        Frame::read::<GcPlan>(&answer).unwrap().summary.unwrap().text()
    };
    let first = worker.instance("recalls", None).await;
    assert_eq!(plan(&first, ["sun", "moon"]).await, "[1 earlier prompts, dropped in 1 steps: sun]");
    let saved = with_timeout(first.save()).await.unwrap();
    // Dropped without closing, so the worker dies.
    drop(first);
    let second = worker.instance("recalls", saved).await;
    let summary = plan(&second, ["moon", "star"]).await;
    assert_eq!(summary, "[2 earlier prompts, dropped in 2 steps: sun; moon]");
    worker.end();
}

#[tokio::test]
async fn images_are_sent_as_bytes_and_read_back_in_pieces() {
    let worker = WorkerFixture::new();
    let instance = worker.instance("paints", None).await;
    let blobs = FakeBlobs::default();
    let prompt = Said::user("paint");
    let mut history = vec![prompt.clone()];
    let mut said = Vec::new();
    for _ in 0..2 {
        let request = json!({ "v": 1, "model": "canvas", "messages": history });
        let frame = Frame::write(&request).unwrap();
        let call = instance.begin_completion(frame, Arc::new(blobs.clone())).unwrap();
        let (emitted, answer) = wait_for_answer(call).await;
        assert!(matches!(emitted[0], Delta::Thought { .. }));
        let answer = Said::model(Frame::read::<Completion>(&answer).unwrap().parts);
        said.push(answer.text());
        history.extend([answer, prompt.clone()]);
    }
    assert_eq!(blobs.sizes(), [120_015; 4]);
    assert_eq!(said[1], "I saw 240030 bytes of images and paint 2 more.");
    worker.end();
}

#[tokio::test]
async fn plugin_built_with_an_older_sdk_runs_in_a_worker() {
    let worker = WorkerFixture::new();
    let instance = worker.instance("older", None).await;
    let facets = instance.facets();
    assert!([Facet::Tool, Facet::Gc, Facet::Complete].iter().all(|facet| facets.has(*facet)));
    let request = Frame::write(&json!({ "v": 2, "model": "one", "messages": [], "new": 1 }));
    let call = instance.begin_completion(request.unwrap(), Arc::new(NoServices)).unwrap();
    let (emitted, answer) = wait_for_answer(call).await;
    assert_eq!(emitted, [Delta::text("0 messages")]);
    let parts = Frame::read::<Completion>(&answer).unwrap().parts;
    assert_eq!(parts, [Part::text("0 messages")]);
    worker.end();
}

#[tokio::test]
async fn worker_with_another_protocol_version_is_refused() {
    let manifest = br#"{"v":1,"name":"tool-moon","version":"1","api":"1.0.0","kinds":["tool"]}"#;
    let manifest = Manifest::parse(manifest).unwrap();
    for (flag, version) in [
        (LinkMessageFlag::Nothing, &[][..]),
        (LinkMessageFlag::Frame, &[1]),
        (LinkMessageFlag::Frame, &[2, 2]),
    ] {
        let (ours, mut other) = UnixStream::pair().unwrap();
        other.set_nonblocking(true).unwrap();
        let header =
            LinkMessageHeader { kind: LinkMessageKind::Ready, flag, id: 0, length: version.len() };
        other.write_all(&[&header.encode(), version].concat()).unwrap();
        let (process, services) = (Arc::new(SocketWorkerProcess), Arc::new(NoServices));
        let start = WorkerStart {
            manifest: manifest.clone(),
            socket: ours,
            process,
            services,
            saved: None,
        };
        let executor = Executor::new(tokio::runtime::Handle::current(), Arc::new(SilentObserver));
        let error = with_timeout(Instance::start_in_worker(&executor, start)).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(error.message.ends_with("jaato was replaced while it runs"), "{error}");
        let asked = other.read(&mut [0]).map_err(|error| error.kind());
        assert!(matches!(asked, Ok(0) | Err(WouldBlock)), "{asked:?}");
    }
}

#[tokio::test]
async fn calls_of_a_disabled_plugin_in_a_worker_fail_with_plugin_disabled() {
    let worker = WorkerFixture::new();
    let instance = worker.instance("probe", None).await;
    let folder = tempfile::tempdir().unwrap();
    let until = folder.path().join("until");
    let mut blockers = Vec::new();
    for _ in 0..STRIKES_MAX {
        let arguments = Frame::write(&json!({ "how": "sleep", "until": until })).unwrap();
        let mut call = instance.call_tool("block", arguments, Arc::new(NoServices)).unwrap();
        assert!(with_timeout(call.next_emission()).await.is_some());
        blockers.push(call);
    }
    for mut blocker in blockers {
        assert_eq!(with_timeout(blocker.next_emission()).await, None);
        let error = with_timeout(blocker.answer()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::PluginDisabled);
    }
    std::fs::write(&until, "").unwrap();
    worker.end();
}

/// The host's end of a worker's socket, written and read manually.
struct RawWorkerLink(UnixStream);

impl RawWorkerLink {
    fn send(&mut self, kind: LinkMessageKind, flag: LinkMessageFlag, id: u64, payload: &[u8]) {
        let header = LinkMessageHeader { kind, flag, id, length: payload.len() }.encode();
        self.0.write_all(&[&header, payload].concat()).unwrap();
    }

    fn next(&mut self) -> (LinkMessageHeader, Vec<u8>) {
        let mut header = [0; wire::HEADER_BYTES];
        self.0.read_exact(&mut header).unwrap();
        let header = LinkMessageHeader::decode(&header).unwrap();
        let mut payload = vec![0; header.length];
        self.0.read_exact(&mut payload).unwrap();
        (header, payload)
    }
}

#[test]
fn worker_keeps_reading_while_polls_block() {
    let worker = WorkerFixture::new();
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(PATIENCE)).unwrap();
    ours.set_write_timeout(Some(PATIENCE)).unwrap();
    let file = fixture_path("probe");
    worker.0.spawn(async move { serve_socket(theirs, &file).await });
    let mut host = RawWorkerLink(ours);
    assert_eq!(host.next().0.kind, LinkMessageKind::Ready);
    host.send(LinkMessageKind::Create, LinkMessageFlag::Nothing, 1, b"");
    assert_eq!(host.next().0.kind, LinkMessageKind::Created);
    let folder = tempfile::tempdir().unwrap();
    let until = folder.path().join("until");
    for id in [2, 3] {
        let arguments = Frame::write(&json!({ "how": "sleep", "until": until })).unwrap();
        let head = wire::call_head(Facet::Tool, "block");
        host.send(LinkMessageKind::Call, LinkMessageFlag::Frame, id, &[head, arguments].concat());
        while host.next().0.kind != LinkMessageKind::Emit {}
    }
    // More than the socket holds, so the write completes only if the worker reads.
    let unknown = LinkMessageHeader {
        kind: LinkMessageKind::Cancel,
        flag: LinkMessageFlag::Nothing,
        id: 4,
        length: 0,
    }
    .encode();
    host.0.write_all(&unknown.repeat(256 * 1024)).unwrap();
    std::fs::write(&until, "").unwrap();
    let answers = std::iter::repeat_with(|| host.next().0);
    let mut answered: Vec<u64> = answers
        .filter(|header| header.kind == LinkMessageKind::Answer)
        .map(|header| header.id)
        .take(2)
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, [2, 3]);
    worker.end();
}

#[test]
fn unread_emissions_end_the_call_but_not_the_worker() {
    let worker = WorkerFixture::new();
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(PATIENCE)).unwrap();
    let file = fixture_path("probe");
    let (give, worker_of) = std::sync::mpsc::channel();
    worker.0.spawn(async move {
        let link = Arc::new(WorkerLink::new(theirs).unwrap());
        let executor = Executor::new(tokio::runtime::Handle::current(), Arc::new(SilentObserver));
        give.send((Arc::clone(&link), executor.clone())).unwrap();
        let writing = Arc::clone(&link);
        tokio::spawn(async move { writing.write_queued_bytes().await });
        handle_messages(link, open_plugin(&executor, &file).await.unwrap()).await
    });
    let mut host = RawWorkerLink(ours);
    assert_eq!(host.next().0.kind, LinkMessageKind::Ready);
    host.send(LinkMessageKind::Create, LinkMessageFlag::Nothing, 1, b"");
    assert_eq!(host.next().0.kind, LinkMessageKind::Created);
    let piece = 1024 * 1024;
    let arguments = Frame::write(&json!({ "pieces": 100, "bytes": piece })).unwrap();
    let head = wire::call_head(Facet::Tool, "emit");
    host.send(LinkMessageKind::Call, LinkMessageFlag::Frame, 1, &[head, arguments].concat());
    let (link, executor) = worker_of.recv().unwrap();
    let begun = std::time::Instant::now();
    // Wait until the call has ended and only the instance's own context is left.
    while link.queued_bytes() == 0 || executor.live_objects().contexts > 1 {
        assert!(begun.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut emitted = 0;
    let answer = loop {
        match host.next() {
            (LinkMessageHeader { kind: LinkMessageKind::Emit, .. }, _) => emitted += 1,
            answer => break answer,
        }
    };
    // The socket itself holds some more.
    assert!((31..=34).contains(&emitted), "{emitted}");
    assert_eq!((answer.0.kind, answer.0.flag), (LinkMessageKind::Answer, LinkMessageFlag::Error));
    let error: Error = Frame::read(&answer.1).unwrap();
    assert_eq!(error.kind, ErrorKind::LimitReached, "{error}");
    host.send(LinkMessageKind::Save, LinkMessageFlag::Nothing, 1, b"");
    assert_eq!(host.next().0.kind, LinkMessageKind::Saved);
    worker.end();
}
