//! Shared by the loader's tests: fixtures, a watch that records, services that behave and
//! misbehave.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_loader::{
    ByteStream, EngineObserver, EngineServiceAnswer, EngineServices, Executor, Instance,
    LiveCounts, MisbehaviorReport, OpenedPlugin, PluginLibrary, RunningCall, ServiceCaller,
    StartedPlugin,
};
use jaato_types::{Delta, Error, ErrorKind, Frame, PluginName};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// The fixtures that these tests open.
const FIXTURES: [&str; 10] = [
    "bare",
    "constructor",
    "echo",
    "many",
    "older",
    "paints",
    "probe",
    "raw",
    "recalls",
    "vanished",
];

/// Returns the path of a built fixture. The first call of a test binary builds all of them.
pub fn fixture_path(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let target = fixtures_target();
        // `cargo xtask test` has built them.
        if std::env::var_os("JAATO_TEST_HOUSE").is_some() {
            return target.join("debug");
        }
        let workspace =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/Cargo.toml");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "--offline", "--manifest-path"])
            .arg(workspace)
            .arg("--target-dir")
            .arg(&target)
            .args(
                FIXTURES
                    .iter()
                    .flat_map(|name| ["--package".to_owned(), format!("fixture-{name}")]),
            )
            .status();
        assert!(status.unwrap().success(), "the fixtures do not build");
        target.join("debug")
    });
    folder.join(library_name(&format!("fixture_{name}")))
}

/// Returns the target folder of all fixtures, kept between runs.
pub fn fixtures_target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("fixtures")
}

/// Returns the file name of a crate's dynamic library.
pub fn library_name(krate: &str) -> String {
    format!("{}{krate}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// Opens a fixture. Each test binary does so once.
pub fn open_fixture(name: &str) -> OpenedPlugin {
    PluginLibrary::open(&fixture_path(name)).unwrap_or_else(|error| panic!("{error}"))
}

pub fn open_probe() -> OpenedPlugin {
    static PROBE: OnceLock<OpenedPlugin> = OnceLock::new();
    PROBE.get_or_init(|| open_fixture("probe")).clone()
}

pub fn open_raw() -> OpenedPlugin {
    static RAW: OnceLock<OpenedPlugin> = OnceLock::new();
    RAW.get_or_init(|| open_fixture("raw")).clone()
}

/// Records the loader's reports.
pub struct RecordingObserver {
    reports: mpsc::UnboundedSender<MisbehaviorReport>,
    troubles: Mutex<Vec<String>>,
}

impl EngineObserver for RecordingObserver {
    fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}

    fn report_misbehavior(&self, report: &MisbehaviorReport) {
        let _ = self.reports.send(report.clone());
    }

    fn log_trouble(&self, text: &str) {
        self.troubles.lock().push(text.to_owned());
    }
}

/// An executor and its reports.
pub struct LoaderFixture {
    pub executor: Executor,
    pub reports: mpsc::UnboundedReceiver<MisbehaviorReport>,
    recorder: Arc<RecordingObserver>,
}

impl LoaderFixture {
    /// Creates an executor on the test's runtime.
    pub fn new() -> Self {
        let (sender, reports) = mpsc::unbounded_channel();
        let recorder = Arc::new(RecordingObserver { reports: sender, troubles: Mutex::default() });
        let watch: Arc<dyn EngineObserver> = recorder.clone();
        Self { executor: Executor::new(Handle::current(), watch), reports, recorder }
    }

    pub fn troubles(&self) -> Vec<String> {
        self.recorder.troubles.lock().clone()
    }

    pub async fn start_plugin(&self, opened: &OpenedPlugin) -> StartedPlugin {
        StartedPlugin::start(&self.executor, opened).await.unwrap()
    }

    pub async fn create_instance(&self, opened: &OpenedPlugin, saved: Option<Value>) -> Instance {
        let plugin = self.start_plugin(opened).await;
        plugin
            .create_instance(test_services(), saved.map(|saved| json_frame(&saved)))
            .await
            .unwrap()
    }

    /// Waits until nothing lives, because the thread of the last poll may hold the future a moment
    /// longer than its waiter.
    #[track_caller]
    pub fn assert_no_live_objects(&self) {
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while self.executor.live_objects() != LiveCounts::default()
            && std::time::Instant::now() < deadline
        {
            std::thread::yield_now();
        }
        assert_eq!(self.executor.live_objects(), LiveCounts::default());
    }
}

pub fn test_services() -> Arc<dyn EngineServices> {
    Arc::new(TestServices)
}

pub fn json_frame(value: &Value) -> Vec<u8> {
    Frame::write(value).unwrap()
}

pub fn begin_call(instance: &Instance, tool: &str, arguments: Value) -> RunningCall {
    instance.call_tool(tool, json_frame(&arguments), test_services()).unwrap()
}

/// Runs a call to its end.
pub async fn run_call(instance: &Instance, tool: &str, arguments: Value) -> Result<Value, Error> {
    with_timeout(begin_call(instance, tool, arguments).answer())
        .await
        .map(|frame| parse_json_frame(&frame))
}

pub fn parse_json_frame(frame: &[u8]) -> Value {
    Frame::read(frame).unwrap()
}

pub fn parse_output(frame: &[u8]) -> String {
    match Frame::read(frame).unwrap() {
        Delta::Output { text, .. } | Delta::Text { text, .. } => text,
        other => panic!("emitted {other:?}"),
    }
}

/// Waits until the call has emitted this text.
pub async fn wait_for_output(call: &mut RunningCall, text: &str) {
    let emission = with_timeout(call.next_emission()).await.expect("the call emits before it ends");
    assert_eq!(parse_output(&emission), text);
}

/// Fails after a minute, so that a test that would hang fails.
pub async fn with_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("hangs")
}

/// Returns the lines that the probe recorded under a key, through another instance.
pub async fn recorded_lines(asker: &Instance, key: &str) -> Vec<String> {
    let answer = run_call(asker, "places", json!({ "key": key })).await.unwrap();
    let lines = answer["places"].as_array().unwrap();
    lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

/// Waits until the probe has recorded the expected lines under a key.
pub async fn wait_for_lines(
    asker: &Instance,
    key: &str,
    done: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    with_timeout(async {
        loop {
            let lines = recorded_lines(asker, key).await;
            if done(&lines) {
                return lines;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

/// Checks the names of threads, if the system shows a plugin the names of the host's threads.
#[track_caller]
pub fn assert_executor_threads(lines: &[String]) {
    assert!(!lines.is_empty());
    if !cfg!(target_os = "linux") {
        return;
    }
    for line in lines {
        let thread = line.split(" on ").last().unwrap();
        let number = thread.strip_prefix("jaato-plugin-").map(str::parse::<usize>);
        assert!(matches!(number, Some(Ok(_))), "{line}");
    }
}

/// Services for tests, good and bad.
pub struct TestServices;

impl EngineServices for TestServices {
    fn call(
        &self,
        caller: ServiceCaller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        let served = match operation {
            "echo" => Ok(EngineServiceAnswer::Frame(frame)),
            "caller" => Ok(EngineServiceAnswer::Frame(json_frame(&json!({
                "plugin": caller.plugin, "kind": format!("{:?}", caller.kind),
            })))),
            "panic" => panic!("a service panics"),
            "panic_later" => {
                return Box::pin(async {
                    tokio::task::yield_now().await;
                    panic!("a service panics in a poll")
                });
            }
            "sleep" => {
                return Box::pin(async {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    Ok(EngineServiceAnswer::Frame(json_frame(&json!("slept"))))
                });
            }
            "slow_host" => {
                std::thread::sleep(2 * jaato_loader::ABLE_TO_RUN_MAX);
                Ok(EngineServiceAnswer::Frame(json_frame(&json!(null))))
            }
            "refuse" => Err(Error::new(ErrorKind::PermissionDenied, "no")),
            "bad_frame" => Ok(EngineServiceAnswer::Frame(vec![1, 2])),
            "wait" => return Box::pin(std::future::pending()),
            "stream" => Ok(EngineServiceAnswer::Stream(Box::new(futures_util::stream::pending()))),
            "pieces" => Ok(EngineServiceAnswer::Stream(Box::new(TestPieceStream::default()))),
            "broken" => Ok(EngineServiceAnswer::Stream(Box::new(futures_util::stream::iter([
                Ok(vec![1; 3]),
                Err(Error::new(ErrorKind::Io, "the line is cut")),
            ])))),
            "panicking" => {
                Ok(EngineServiceAnswer::Stream(Box::new(futures_util::stream::poll_fn(|_| {
                    panic!("a stream panics")
                }))))
            }
            other => Err(Error::new(ErrorKind::UnknownOperation, format!("no service `{other}`"))),
        };
        Box::pin(std::future::ready(served))
    }
}

/// Pieces of sizes around the limit, each after a pending poll.
#[derive(Default)]
struct TestPieceStream {
    polls: usize,
}

pub const PIECES: [usize; 5] = [1, 64 * 1024, 64 * 1024 + 1, 200_000, 7];

impl futures_util::Stream for TestPieceStream {
    type Item = Result<Vec<u8>, Error>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        let polls = self.polls;
        self.polls += 1;
        if polls.is_multiple_of(2) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(PIECES.get(polls / 2).map(|&size| Ok(vec![1; size])))
    }
}

const _: fn(TestPieceStream) -> Box<dyn ByteStream> = |pieces| Box::new(pieces);

/// Returns a name that no other test of this binary has.
pub fn unique_name(what: &str) -> String {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    format!("{what}-{}", LAST.fetch_add(1, Ordering::SeqCst))
}

/// Polls a future once.
pub async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx))).await
}
