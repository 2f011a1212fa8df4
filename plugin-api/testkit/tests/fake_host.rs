//! Tests of the fake host, with a plugin that uses all of its services.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::time::Duration;

use jaato_plugin_engine::testing::{
    BLOB_CHECKS, CallBody, CallResults, CallUnderTest, HostCheck, HostUnderTest, PROCESS_CHECKS,
    SECRET_CHECKS, STORE_CHECKS,
};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::service::SessionFacts;
use jaato_plugin_testkit::{
    EXECUTOR_THREAD, FakeClockMode, FakeHost, FakeRunningCall, FakeServiceReply, FakeStream,
    LiveObjectCounts, POOL_THREAD,
};
use parking_lot::Mutex;

/// The events of all tools.
#[derive(Default)]
struct DiaryState(Mutex<Vec<String>>);

impl DiaryState {
    fn write(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }
}

impl State for DiaryState {
    async fn create(home: &Home, saved: Option<Value>) -> Result<Self> {
        let lines = saved.map(serde_json::from_value).transpose();
        let lines = lines.map_err(|error| Error::failed(error.to_string()))?.unwrap_or_default();
        let host = home.clone();
        home.spawn(async move {
            // Runs until the instance is closed.
            while host.sleep(Duration::from_secs(60)).await.is_ok() {
                host.log(LogLevel::Debug, "a minute has passed");
            }
        });
        Ok(Self(Mutex::new(lines)))
    }

    async fn save(&self) -> Result<Option<Value>> {
        Ok(Some(json!(*self.0.lock())))
    }

    async fn command(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        cx.state().write(format!("{name} {arguments}"));
        Ok(Output::text("done"))
    }
}

/// Does one of the things that a tool can do.
#[derive(ToolInput)]
struct Act {
    /// Which.
    what: DiaryAction,
}

#[tool_type]
#[derive(Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum DiaryAction {
    Sleep,
    Emit,
    Read,
    Threads,
    Config,
    Panic,
    Wait,
    Forget,
    Session,
    Write,
    Count,
    Block,
}

/// Records on which thread it is dropped.
struct DropNote<'a>(&'a DiaryState);

impl Drop for DropNote<'_> {
    fn drop(&mut self) {
        self.0.write(format!("dropped on {}", thread_name()));
    }
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

impl Tool for Act {
    type State = DiaryState;

    async fn call(self, cx: &Cx<DiaryState>) -> Result<Output> {
        let _dropped = DropNote(cx.state());
        match self.what {
            DiaryAction::Sleep => {
                cx.output("sleeping");
                cx.sleep(Duration::from_secs(3600)).await?;
                cx.state().write("slept");
                Ok(Output::text("slept"))
            }
            DiaryAction::Emit => {
                let taken = (0..1000).filter(|number| cx.output(number.to_string())).count();
                Ok(Output::json(json!(taken)))
            }
            DiaryAction::Read => {
                let mut stream = cx.open("moon", &json!({"side": "far"})).await?;
                let mut pieces = Vec::new();
                while let Some(piece) = stream.next().await? {
                    pieces.push(piece.len());
                }
                Ok(Output::json(json!(pieces)))
            }
            DiaryAction::Threads => {
                let pool = cx.blocking(|_| thread_name()).await?;
                Ok(Output::json(json!({ "call": thread_name(), "pool": pool })))
            }
            DiaryAction::Config => Ok(Output::json(cx.config().await?)),
            DiaryAction::Panic => panic!("no moon"),
            DiaryAction::Wait => {
                let answer: Result<Value> = cx.service("slow", &()).await;
                cx.state().write(format!("waited: {answer:?}"));
                Ok(Output::json(answer?))
            }
            DiaryAction::Forget => {
                let host = cx.reporter();
                cx.blocking(move |_| std::mem::forget(host)).await?;
                Ok(Output::default())
            }
            DiaryAction::Session => Ok(Output::text(cx.session().await?.session_id)),
            DiaryAction::Block => {
                let waited = cx.blocking(|host| {
                    let facts = host.block_on(host.session())?;
                    host.block_on(host.sleep(Duration::from_secs(60)))?;
                    Ok(facts.session_id)
                });
                Ok(Output::text(waited.await??))
            }
            DiaryAction::Count => {
                Ok(Output::json(cx.service("count", &json!({ "text": "a" })).await?))
            }
            DiaryAction::Write => {
                let written: Value = cx.service_with_bytes("output", &json!({}), b"moon").await?;
                Ok(Output::json(json!(written["bytes"])))
            }
        }
    }
}

tool!(Act);
export_plugin! { state: DiaryState, tools }

fn diary_host() -> FakeHost {
    FakeHost::new(__jaato::MODULE)
}

#[track_caller]
fn call_action(host: &FakeHost, what: &str) -> Result<Value> {
    host.call("act", json!({ "what": what })).map(|output| output.content["result"].clone())
}

fn diary_lines(host: &FakeHost) -> Value {
    host.instance().unwrap().save().unwrap().unwrap()
}

#[test]
fn sleep_advances_the_fake_clock_without_waiting() {
    let host = diary_host();
    assert_eq!(call_action(&host, "sleep").unwrap(), "slept");
    assert!(host.elapsed() >= Duration::from_secs(3600));
}

#[test]
fn manual_clock_moves_only_when_the_test_advances_it() {
    let host = diary_host().with_clock(FakeClockMode::Manual);
    let mut call = host.start("act", json!({ "what": "sleep" })).unwrap();
    assert_eq!(call.next_delta().unwrap(), Some(Delta::output("sleeping")));
    host.advance(Duration::from_secs(3599)).unwrap();
    assert_eq!(diary_lines(&host), json!([]), "a second is missing");
    host.advance(Duration::from_secs(1)).unwrap();
    assert_eq!(call.wait().result.unwrap(), Output::text("slept"));
}

#[test]
fn cancelled_call_is_dropped_on_the_executor_and_never_resumes() {
    let host = diary_host().with_clock(FakeClockMode::Manual);
    let call = host.start("act", json!({ "what": "sleep" })).unwrap();
    call.settle().unwrap();
    let finished = call.cancel();
    assert_eq!(finished.result.unwrap_err(), Error::cancelled());
    assert_eq!(finished.deltas, [Delta::output("sleeping")]);
    host.advance(Duration::from_secs(7200)).unwrap();
    assert_eq!(diary_lines(&host), json!([format!("dropped on {EXECUTOR_THREAD}")]));
}

#[test]
fn call_to_a_service_that_never_answers_can_be_cancelled() {
    let host = diary_host().with_service("slow", |_| Ok(FakeServiceReply::Never));
    let call = host.start("act", json!({ "what": "wait" })).unwrap();
    let finished = call.cancel();
    assert_eq!(finished.result.unwrap_err().kind, ErrorKind::Cancelled);
    let lines = diary_lines(&host).to_string();
    assert!(!lines.contains("waited"), "{lines}");
}

#[test]
fn all_deltas_emitted_before_the_answer_are_kept() {
    let host = diary_host();
    let finished = host.start("act", json!({ "what": "emit" })).unwrap().wait();
    assert_eq!(finished.result.unwrap(), Output::json(json!(1000)));
    let expected = (0..1000).map(|number| Delta::output(number.to_string()));
    assert!(finished.deltas.into_iter().eq(expected));
}

#[test]
fn stream_is_read_in_the_chunks_that_the_test_sets() {
    let host = diary_host().with_service("moon", |request| {
        assert_eq!(request.json, json!({ "side": "far" }));
        Ok(FakeServiceReply::Stream(FakeStream::from_pieces([
            "a".to_owned(),
            "bc".to_owned(),
            "x".repeat(70_000),
        ])))
    });
    assert_eq!(call_action(&host, "read").unwrap(), json!([1, 2, 65_536, 4_464]));
    assert_eq!(host.service_requests().len(), 1);
}

#[test]
fn stream_waits_for_later_data_and_reports_a_failure() {
    let stream = FakeStream::open();
    let fed = stream.clone();
    let host =
        diary_host().with_service("moon", move |_| Ok(FakeServiceReply::Stream(stream.clone())));
    let call = host.start("act", json!({ "what": "read" })).unwrap();
    call.settle().unwrap();
    fed.push("a");
    fed.fail(Error::failed("the line is cut").temporary());
    assert_eq!(call.wait().result.unwrap_err().message, "the line is cut");
}

#[test]
fn blocking_work_may_wait_for_services() {
    let facts = SessionFacts { session_id: "s1".into(), ..SessionFacts::default() };
    assert_eq!(call_action(&diary_host().with_session(facts), "block").unwrap(), "s1");
}

#[test]
fn blocking_work_has_a_thread_of_its_own() {
    let host = diary_host();
    let output = host.call("act", json!({ "what": "threads" })).unwrap();
    assert_eq!(output.content["call"], EXECUTOR_THREAD);
    assert_eq!(output.content["pool"], POOL_THREAD);
}

#[test]
fn config_and_session_services_answer_with_the_tests_values() {
    let facts = SessionFacts { session_id: "s1".into(), ..SessionFacts::default() };
    let host = diary_host().with_config(json!({ "result": 7 })).with_session(facts);
    assert_eq!(call_action(&host, "config").unwrap(), 7);
    assert_eq!(call_action(&host, "session").unwrap(), "s1");
    let finished = host.start("act", json!({ "what": "write" })).unwrap().wait();
    assert_eq!(
        (finished.result.unwrap(), finished.output),
        (Output::json(json!({ "result": 4, "output": "moon" })), b"moon".into())
    );
    let unknown = call_action(&host, "wait").unwrap_err();
    assert_eq!(unknown.kind, ErrorKind::UnknownOperation);
}

#[test]
fn delayed_service_reply_advances_the_clock() {
    let late = FakeServiceReply::Later(5000, Box::new(FakeServiceReply::Json(json!(9))));
    let host = diary_host().with_service("slow", move |_| Ok(late.clone()));
    assert_eq!(call_action(&host, "wait").unwrap(), 9);
    assert_eq!(host.elapsed(), Duration::from_secs(5));
}

#[test]
fn panic_in_a_fake_service_is_a_host_bug() {
    let host = diary_host().with_service("slow", |_| panic!("a bug of the host"));
    assert_eq!(call_action(&host, "wait").unwrap_err().kind, ErrorKind::HostBug);
}

#[test]
fn plugin_panic_is_an_error_and_is_logged() {
    let host = diary_host();
    let error = call_action(&host, "panic").unwrap_err();
    assert_eq!(error.kind, ErrorKind::PluginPanicked);
    assert!(error.message.ends_with("no moon"), "{error}");
    assert_eq!(host.log().last().map(|line| line.text.clone()), Some(error.message));
}

#[test]
fn arguments_are_checked_before_the_plugin_sees_them() {
    let host = diary_host();
    let error = host.call("act", json!({ "what": "dance" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    assert!(error.message.contains("`act`") && error.message.contains("/what"), "{error}");
    assert_eq!(host.call("dance", json!({})).unwrap_err().kind, ErrorKind::UnknownTool);
    assert_eq!(diary_lines(&host), json!([]), "the plugin was not called");
}

#[test]
fn instance_starts_with_the_saved_state_of_the_last_one() {
    let host = diary_host();
    let first = host.create(None).unwrap();
    first.command("note", json!("moon")).unwrap();
    let saved = first.close().unwrap();
    assert_eq!(saved, Some(json!([r#"note "moon""#])));
    let second = host.create(saved.as_ref()).unwrap();
    let other = host.create(None).unwrap();
    assert_eq!((second.save().unwrap(), other.save().unwrap()), (saved, Some(json!([]))));
    assert!(host.create(Some(&json!(1))).is_err());
}

#[test]
fn close_releases_everything_except_leaked_contexts() {
    let host = diary_host().with_clock(FakeClockMode::Manual);
    let instance = host.create(None).unwrap();
    let call = instance.start("act", json!({ "what": "sleep" })).unwrap();
    call.settle().unwrap();
    assert_ne!(host.live(), LiveObjectCounts::default());
    instance.close().unwrap();
    host.settle().unwrap();
    assert_eq!(call.wait().result.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(host.live(), LiveObjectCounts::default());

    let instance = host.create(None).unwrap();
    instance.call("act", json!({ "what": "forget" })).unwrap();
    instance.close().unwrap();
    host.settle().unwrap();
    assert_eq!(host.live(), LiveObjectCounts { contexts: 1, ..LiveObjectCounts::default() });
}

#[test]
fn background_work_runs_until_the_close() {
    let host = diary_host().with_clock(FakeClockMode::Manual);
    let instance = host.create(None).unwrap();
    for _ in 0..3 {
        host.advance(Duration::from_secs(60)).unwrap();
    }
    instance.close().unwrap();
    host.advance(Duration::from_secs(600)).unwrap();
    assert_eq!(host.log().len(), 3);
}

/// The fake host as a host under test.
struct FakeHostUnderTest<'a>(&'a FakeHost);

impl HostUnderTest for FakeHostUnderTest<'_> {
    fn start(&self, body: CallBody) -> Box<dyn CallUnderTest> {
        Box::new(FakeHostCall(self.0.start_body(body)))
    }
}

struct FakeHostCall(FakeRunningCall<Vec<u8>>);

impl CallUnderTest for FakeHostCall {
    fn cancel(self: Box<Self>) {
        self.0.cancel();
    }

    fn wait(self: Box<Self>) -> CallResults {
        // The checks of services emit nothing.
        CallResults::new(Vec::new(), self.0.wait().result)
    }
}

/// Runs checks of a host, each on a fresh one that holds nothing afterwards.
fn assert_checks_pass(checks: &[(&str, HostCheck)], host: impl Fn() -> FakeHost) {
    for (name, check) in checks {
        eprintln!("{name}");
        let host = host();
        check(&FakeHostUnderTest(&host));
        host.settle().unwrap();
        assert_eq!(host.live(), LiveObjectCounts::default(), "{name}");
    }
}

#[test]
fn fake_host_passes_the_blob_checks() {
    assert_checks_pass(BLOB_CHECKS, || diary_host().with_clock(FakeClockMode::Manual));
}

#[test]
fn fake_host_passes_the_store_checks() {
    assert_checks_pass(STORE_CHECKS, || diary_host().with_clock(FakeClockMode::Manual));
}

#[test]
fn fake_host_passes_the_secret_checks() {
    assert_checks_pass(SECRET_CHECKS, || {
        diary_host().with_clock(FakeClockMode::Manual).with_all_grants()
    });
}

#[test]
#[cfg(unix)]
fn fake_host_passes_the_process_checks() {
    assert_checks_pass(PROCESS_CHECKS, || diary_host().with_clock(FakeClockMode::Real));
}
