//! When a provider's silence ends a request: what counts as a sign of life, and which time counts.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{
    Cancel, DeltaSink, Limits, Provider, Session, SessionClock, SessionPorts, SessionSetup,
    SystemClock, TurnReport,
};
use jaato_types::{
    Completion, CompletionRequest, Delta, ErrorKind, FinishReason, Outcome, Output, Part, Result,
    Usage,
};
use serde_json::json;
use tokio::sync::watch;

fn setup_with_limits(limits: Limits) -> SessionSetup {
    SessionSetup { limits, ..TestStage::setup() }
}

fn impatient_limits() -> Limits {
    Limits { provider_idle_ms: 1_000, attempts_max: 3, ..Limits::default() }
}

async fn play_turn(stage: &TestStage, limits: Limits) -> TurnReport {
    stage.start(setup_with_limits(limits)).unwrap().run_turn("x", &Cancel::new()).await
}

#[tokio::test(start_paused = true)]
async fn keep_alive_bytes_prevent_the_idle_timeout() {
    let stage = TestStage::new([]);
    let pings =
        (0..100).flat_map(|_| [ScriptedProviderAction::Wait(999), ScriptedProviderAction::Alive]);
    stage.provider.add_answer(pings.chain([ScriptedProviderAction::text("at last")]));
    let report = play_turn(&stage, impatient_limits()).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "at last"));
    assert_eq!((report.duration_ms, stage.provider.requests().len()), (99_900, 1));
}

#[tokio::test(start_paused = true)]
async fn provider_that_only_sends_keep_alives_times_out_without_a_retry() {
    let limits = Limits { provider_keep_alive_ms: 10_000, ..impatient_limits() };
    for ping in [
        ScriptedProviderAction::Alive,
        ScriptedProviderAction::Shown(Delta::Alive),
        ScriptedProviderAction::Shown(Delta::Unknown),
    ] {
        let stage = TestStage::new([]);
        let pings = (0..1_000).flat_map(|_| [ScriptedProviderAction::Wait(500), ping.clone()]);
        stage.provider.add_answer(pings);
        let report = play_turn(&stage, limits.clone()).await;
        assert_eq!((report.outcome, report.duration_ms), (Outcome::Failed, 10_000));
        let error = report.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert_eq!(error.message, "the provider kept the request open for 10 s without an answer");
        assert!(error.hint.unwrap().contains("session.provider_keep_alive_ms"));
        assert_eq!(stage.provider.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn content_restarts_the_keep_alive_timeout() {
    let limits = Limits { provider_keep_alive_ms: 10_000, ..impatient_limits() };
    let stage = TestStage::new([]);
    let pings =
        || (0..19).flat_map(|_| [ScriptedProviderAction::Wait(500), ScriptedProviderAction::Alive]);
    // An empty text represents data that cannot be shown yet, such as the arguments of a call.
    for said in ["a", ""] {
        stage.provider.add_answer(
            pings()
                .chain([ScriptedProviderAction::text(said)])
                .chain(pings())
                .chain([ScriptedProviderAction::text("b")]),
        );
        let report = play_turn(&stage, limits.clone()).await;
        assert_eq!((report.outcome, report.text), (Outcome::Done, format!("{said}b")));
    }
}

/// A clock that continues while the process is stopped. Timers are due when the process resumes.
struct StoppedClock {
    running: Arc<SystemClock>,
    stopped_ms: watch::Sender<u64>,
}

impl StoppedClock {
    fn new() -> Self {
        Self { running: Arc::default(), stopped_ms: watch::Sender::new(0) }
    }

    fn stop_process(&self, ms: u64) {
        self.stopped_ms.send_modify(|stopped_ms| *stopped_ms += ms);
    }
}

impl SessionClock for StoppedClock {
    fn monotonic_ms(&self) -> u64 {
        self.running.monotonic_ms() + *self.stopped_ms.borrow()
    }

    fn wall_ms(&self) -> u64 {
        self.running.wall_ms()
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()> {
        let due_ms = self.monotonic_ms() + ms;
        let (running, mut stopped_ms) = (self.running.clone(), self.stopped_ms.subscribe());
        Box::pin(async move {
            loop {
                let now_ms = running.monotonic_ms() + *stopped_ms.borrow_and_update();
                if now_ms >= due_ms {
                    return;
                }
                tokio::select! {
                    () = running.sleep(due_ms - now_ms) => {}
                    _ = stopped_ms.changed() => {}
                }
            }
        })
    }
}

/// A provider that waits, is stopped for an hour, and answers a little later, as if its answer was
/// in the socket.
struct StoppedProvider {
    clock: Arc<StoppedClock>,
    before_ms: u64,
    after_ms: u64,
}

impl Provider for StoppedProvider {
    fn source(&self) -> &str {
        "stopped"
    }

    fn complete<'a>(
        &'a self,
        _request: &'a CompletionRequest,
        _sink: DeltaSink,
        _cancel: Cancel,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async {
            self.clock.running.sleep(self.before_ms).await;
            self.clock.stop_process(3_600_000);
            self.clock.running.sleep(self.after_ms).await;
            let (parts, finish_reason) = (vec![Part::text("here")], FinishReason::Stop);
            Ok(Completion::new(parts, finish_reason, Usage::default()))
        })
    }
}

async fn play_stopped(before_ms: u64, after_ms: u64) -> TurnReport {
    let stage = TestStage::new([]);
    let clock = Arc::new(StoppedClock::new());
    let provider = Arc::new(StoppedProvider { clock: clock.clone(), before_ms, after_ms });
    let ports = SessionPorts { provider, clock, ..stage.ports() };
    let limits = Limits { provider_idle_ms: 5_000, attempts_max: 1, ..Limits::default() };
    let mut session = Session::start(setup_with_limits(limits), ports).unwrap();
    session.run_turn("x", &Cancel::new()).await
}

#[tokio::test(start_paused = true)]
async fn stopped_process_time_does_not_count_as_provider_silence() {
    for (before_ms, after_ms) in [(10, 10), (4_990, 500), (10, 4_900)] {
        let report = play_stopped(before_ms, after_ms).await;
        assert_eq!(report.outcome, Outcome::Done, "{before_ms} {after_ms}: {:?}", report.error);
    }
    // Silence before and after still adds up.
    let report = play_stopped(3_000, 4_000).await;
    assert_eq!(report.error.unwrap().message, "the provider sent nothing for 5 s");
}

#[tokio::test(start_paused = true)]
async fn stopped_process_time_does_not_count_for_a_call_deadline() {
    let clock = Arc::new(StoppedClock::new());
    let stopped = clock.clone();
    let tool = ScriptedTool::new("slow", move |_, _| {
        let clock = stopped.clone();
        async move {
            clock.running.sleep(500).await;
            clock.stop_process(3_600_000);
            clock.running.sleep(500).await;
            Ok(Output::text("done"))
        }
    });
    let stage = TestStage::new([tool]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::call("1", "slow", json!({}))])
        .add_answer([ScriptedProviderAction::text("ok")]);
    let limits = Limits { call_deadline_ms: 2_000, ..Limits::default() };
    let mut session =
        Session::start(setup_with_limits(limits), SessionPorts { clock, ..stage.ports() }).unwrap();
    let report = session.run_turn("x", &Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Done);
    let requests = stage.provider.requests();
    let result = requests[1].messages[2].tool_results().next().unwrap();
    assert!(!result.is_error, "{result:?}");
}
