//! Random sessions from one seed, in simulated time. Every invariant applies to any events in any
//! order.
//!
//! A failure prints its seed; `JAATO_SEED=N cargo test -p jaato-session --test it random_turns`
//! replays it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::random;
use futures_util::future::BoxFuture;
use jaato_session::testing::{RecordedEvents, ScriptedProvider, ScriptedProviderAction, TestStage};
use jaato_session::{
    Cancel, DeltaSink, History, Limits, MARK_CANCELLED, MessageMark, Provider, Random,
    SeededRandom, Session, SessionPorts, SessionSetup, TurnReport, WindowOrigin,
};
use jaato_types::{
    Completion, CompletionRequest, DataContent, DataPart, Error, ErrorKind, Event, Message,
    Outcome, Part, Role, TOOLS_CHANGED,
};
use parking_lot::Mutex;
use tokio::time::Instant;

const SEEDS: u64 = 600;

/// The result of a session, for checks and for comparing two runs of one seed.
struct PlayedSession {
    stage: TestStage,
    session: Session,
    reports: Vec<TurnReport>,
    /// The number of events before each request.
    events_before: Vec<usize>,
    /// Whether the provider takes changes of tools in the history.
    takes_changes: bool,
}

/// Records the position of each request in the stream of events.
struct NotingProvider {
    provider: Arc<ScriptedProvider>,
    events: Arc<RecordedEvents>,
    events_before: Arc<Mutex<Vec<usize>>>,
}

impl Provider for NotingProvider {
    fn source(&self) -> &str {
        self.provider.source()
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        sink: DeltaSink,
        cancel: Cancel,
    ) -> BoxFuture<'a, Result<Completion, Error>> {
        self.events_before.lock().push(self.events.envelopes().len());
        self.provider.complete(request, sink, cancel)
    }
}

async fn play_seed(seed: u64) -> PlayedSession {
    let random = SeededRandom::new(seed);
    let stage = TestStage::new(random::random_tools());
    if random.number_below(2) == 0 {
        stage.person.add_replies(random::random_answers(&random));
    }
    let limits = Limits {
        steps_max: 4,
        calls_per_step_max: 5,
        provider_idle_ms: 5_000,
        call_deadline_ms: 20_000,
        answer_bytes_max: 400,
        auto_background_threshold_ms: 200,
        tasks_max: 3,
        ..Limits::default()
    };
    let mut setup = SessionSetup { limits, ..TestStage::setup() };
    setup.rules.lock().allow_all = random.number_below(3) == 0;
    if random.number_below(2) == 0 {
        setup.model.takes.options.push(TOOLS_CHANGED.to_owned());
    }
    if random.number_below(2) == 0 {
        stage.gc.add_gc(random::random_gc_actions(seed));
        setup.model.context_limit = 1_000 + random.number_below(9_000);
        setup.gc = random::random_gc_settings(&random);
        if random.number_below(3) == 0 {
            setup.model.origin = WindowOrigin::Assumed;
            stage
                .provider
                .set_window(1_000 + random.number_below(9_000), random.number_below(3_000));
        }
    }
    let takes_changes = setup.model.takes.honours_option(TOOLS_CHANGED);
    let events_before = Arc::new(Mutex::new(Vec::new()));
    let noting = NotingProvider {
        provider: stage.provider.clone(),
        events: stage.events.clone(),
        events_before: events_before.clone(),
    };
    let ports = SessionPorts { provider: Arc::new(noting), ..stage.ports() };
    let mut session = Session::start(setup, ports).unwrap();
    let mut reports = Vec::new();
    for turn in 0..=random.number_below(4) {
        for _ in 0..random.number_below(10) {
            stage.provider.add_answer(random::random_actions(&random));
        }
        if random.number_below(5) > 0 {
            stage.provider.add_answer([ScriptedProviderAction::text("the end")]);
        }
        let report = play_turn(&mut session, &random, turn).await;
        stage.provider.drop_unused_answers();
        check_history(session.history());
        check_turn(&stage, &session, &report);
        reports.push(report);
        if random.number_below(6) == 0 {
            // It may fail, or find nothing. Either way there is an event, and the history is valid.
            let _ = session.collect_for_user(&Cancel::new()).await;
            check_history(session.history());
        }
    }
    reports.push(run_last_turn(&stage, &mut session).await);
    let events_before = events_before.lock().clone();
    PlayedSession { stage, session, reports, events_before, takes_changes }
}

/// Runs one turn, cancelled at some moment or not. A cancellation must end it within 100 ms.
async fn play_turn(session: &mut Session, random: &SeededRandom, turn: u64) -> TurnReport {
    let cancel = Cancel::new();
    // Some questions and some providers stay silent forever, so a turn without an early
    // cancellation gets a late one.
    let cancel_ms = if random.number_below(3) == 0 { random.number_below(2_000) } else { 600_000 };
    let again = random.number_below(8) == 0;
    let drop_it = random.number_below(10) == 0;
    let start = Instant::now();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(cancel_ms)).await;
        cancel.cancel();
        // A turn may be dropped at any moment, so this one will do.
        if drop_it { Instant::now() } else { std::future::pending().await }
    };
    let prompt = format!("prompt {turn}");
    let inbox = session.inbox();
    let said = random.number_below(4) == 0;
    let say = async {
        tokio::time::sleep(Duration::from_millis(cancel_ms / 2)).await;
        if said {
            inbox.send_message(format!("said in turn {turn}")).unwrap();
        }
        std::future::pending::<()>().await;
    };
    let report = tokio::select! {
        biased;
        () = say => None,
        report = async {
            if again {
                session.repeat_last_turn(&cancel).await
            } else {
                session.run_turn(prompt, &cancel).await
            }
        } => Some(report),
        _ = stop => None,
    };
    let taken = start.elapsed();
    assert!(taken <= Duration::from_millis(cancel_ms + 100), "cancelled at {cancel_ms}: {taken:?}");
    match report {
        Some(report) => report,
        // The turn was dropped. The next one must be able to continue, and this one ends it.
        None => session.run_turn("after a dropped turn", &cancelled_token()).await,
    }
}

/// Runs a turn without cancellation and with enough answers, so that every task ends.
async fn run_last_turn(stage: &TestStage, session: &mut Session) -> TurnReport {
    for _ in 0..4 {
        stage.provider.add_answer([ScriptedProviderAction::text("the end")]);
    }
    let report = session.run_turn("last", &Cancel::new()).await;
    assert_eq!((report.outcome, session.running_task_count()), (Outcome::Done, 0));
    stage.provider.drop_unused_answers();
    check_history(session.history());
    report
}

fn cancelled_token() -> Cancel {
    let cancel = Cancel::new();
    cancel.cancel();
    cancel
}

/// Checks the invariants of the sent messages, reimplemented without the code under test.
fn check_messages(messages: &[Message]) {
    let mut ids = BTreeSet::new();
    let mut before: Option<&Message> = None;
    for message in messages {
        assert!(!message.parts.is_empty());
        let calls: Vec<_> =
            before.into_iter().flat_map(Message::tool_calls).map(|call| &call.id).collect();
        let expected = match before.map(|message| message.role) {
            None => Role::User,
            Some(Role::User | Role::Tool) => Role::Model,
            Some(Role::Model) if calls.is_empty() => Role::User,
            Some(Role::Model) => Role::Tool,
            Some(Role::Unknown) => panic!("no history takes it"),
        };
        assert_eq!(message.role, expected);
        let results: Vec<_> = message.tool_results().map(|result| &result.call_id).collect();
        assert_eq!(results, calls);
        for call in message.tool_calls() {
            assert!(call.name.is_valid() && !call.id.as_str().is_empty());
            assert!(ids.insert(call.id.clone()), "{} twice", call.id);
        }
        before = Some(message);
    }
}

fn check_history(history: &History) {
    assert_eq!(History::restore(history.entries().iter().cloned()).as_ref(), Ok(history));
    let messages: Vec<Message> = history.messages().cloned().collect();
    check_messages(&messages);
}

fn check_turn(stage: &TestStage, session: &Session, report: &TurnReport) {
    let events = stage.events.events();
    assert!(matches!(
        events.last(),
        Some(Event::TurnFinished { outcome, text, error })
            if (outcome, text, error) == (&report.outcome, &report.text, &report.error)
    ));
    let expects_error =
        matches!(report.outcome, Outcome::Failed | Outcome::Limit | Outcome::Denied);
    assert_eq!(report.error.is_some(), expects_error, "{report:?}");
    let is_bug = |error: &Error| error.kind == ErrorKind::HostBug;
    assert!(!report.error.as_ref().is_some_and(is_bug), "{report:?}");
    let last = session.history().entries().last();
    match report.outcome {
        Outcome::Done | Outcome::Denied => assert_eq!(last.unwrap().mark, None),
        Outcome::Cancelled => {
            let last = last.unwrap();
            assert_eq!(last.mark, Some(MessageMark::Partial));
            assert!(last.message.text().ends_with(MARK_CANCELLED));
            assert_eq!(last.message.tool_calls().count(), 0);
            check_seen_is_kept(&events, &last.message);
        }
        Outcome::Limit | Outcome::Failed => {}
        Outcome::Unknown => panic!("no session ends so"),
    }
}

/// Checks that everything that the user saw of a broken-off step is in the history.
fn check_seen_is_kept(events: &[Event], answer: &Message) {
    let begin = events.iter().rposition(|event| matches!(event, Event::StepStarted { .. }));
    let ran = |event: &Event| {
        matches!(event, Event::StepFinished { finish_reason, .. }
        if *finish_reason != jaato_types::FinishReason::Cancelled)
    };
    let step = &events[begin.unwrap()..];
    if step.iter().any(ran) {
        return; // It was the calls that were cut short.
    }
    let seen: String = step
        .iter()
        .filter_map(|event| match event {
            Event::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!(answer.text().starts_with(&seen), "saw {seen:?}, kept {:?}", answer.text());
}

fn check_events(played: &PlayedSession) {
    let envelopes = played.stage.events.envelopes();
    let numbers: Vec<u64> = envelopes.iter().map(|envelope| envelope.seq).collect();
    assert_eq!(numbers, (1..=u64::try_from(envelopes.len()).unwrap()).collect::<Vec<_>>());
    let (mut running, mut tasks) = (BTreeMap::new(), BTreeMap::new());
    for envelope in &envelopes {
        match &envelope.event {
            Event::ToolCallStarted { call_id, .. } => {
                assert!(running.insert(call_id.clone(), true).is_none(), "{call_id} began twice");
            }
            Event::ToolCallFinished { call_id, .. } => {
                assert_eq!(running.insert(call_id.clone(), false), Some(true), "{call_id}");
            }
            Event::TaskStarted { task_id, call_id, .. } => {
                assert_eq!(running.get(call_id), Some(&true), "{task_id} was no call that ran");
                assert!(
                    tasks.insert(task_id.clone(), call_id.clone()).is_none(),
                    "{task_id} twice"
                );
            }
            Event::TaskFinished { task_id, call_id, .. } => {
                assert_eq!(tasks.remove(task_id).as_ref(), Some(call_id), "{task_id}");
            }
            Event::ToolOutput { call_id, .. } if !tasks.values().any(|task| task == call_id) => {
                assert_eq!(running.get(call_id), Some(&true), "{call_id} shows output when over");
            }
            _ => {}
        }
    }
    assert!(tasks.is_empty(), "left running: {tasks:?}");
}

/// Checks that each outcome of a task and each user message is sent once.
fn check_news(played: &PlayedSession) {
    let (mut started, mut said, mut sent) = (Vec::new(), 0, Vec::new());
    for event in played.stage.events.events() {
        match event {
            Event::TaskStarted { task_id, .. } => started.push(task_id),
            Event::MessageJoined { .. } => said += 1,
            _ => {}
        }
    }
    let (mut heard, mut by_themselves) = (0, 0);
    let entries = played.session.history().entries();
    for entry in entries.iter().filter(|entry| entry.mark != Some(MessageMark::Unsent)) {
        for part in &entry.message.parts {
            match part {
                Part::Data(DataPart { content: DataContent::Json { json, .. }, .. }) => {
                    if let Some(id) = json["task_outcome"]["task_id"].as_str() {
                        sent.push(id.to_owned());
                    } else if json["tool_ran_by_itself"].is_string() {
                        by_themselves += 1;
                    } else {
                        assert!(json["environment"].is_object(), "who says {json}?");
                    }
                }
                Part::Text { text, .. } if text.starts_with("said in turn") => heard += 1,
                _ => {}
            }
        }
    }
    started.sort();
    sent.sort();
    assert_eq!(sent, started, "each task has one outcome in what is sent");
    let notices = played.stage.events.notices();
    let ran = notices.matches("runs automatically: ").count();
    // A run that was in progress when its turn was dropped has no report.
    assert!(by_themselves <= ran, "{by_themselves} of {ran} runs");
    // News that joined a prompt that was never sent stays in the record with it.
    let unsent =
        played.session.history().entries().iter().any(|it| it.mark == Some(MessageMark::Unsent));
    assert!(heard == said || (unsent && heard < said), "{heard} of {said} messages");
}

/// Checks that a call that changes something ran alone, and the others at most eight at once.
fn check_concurrent_calls(stage: &TestStage) {
    for seat in stage.tools.recorded_calls() {
        let most = if seat.call.name.as_str() == random::WRITER { 0 } else { 7 };
        assert!(seat.beside <= most, "{seat:?}");
        assert!(seat.call.arguments.is_object(), "not checked: {seat:?}");
    }
}

/// Checks that requests end where the model must answer, or with its paused answer. Sent messages
/// stay the same byte for byte, and only the end grows. At a cut, which an event or the list of
/// tools shows, no earlier thought, signature or opaque part remains.
fn check_requests(played: &PlayedSession) {
    let requests = played.stage.provider.requests();
    for request in &requests {
        check_messages(&request.messages);
        for message in &request.messages {
            let is_note = |part: &&Part| matches!(part, Part::Text { text, .. } if text.starts_with("[Left out here"));
            let notes = message.parts.iter().filter(is_note).count();
            assert!(notes <= usize::from(message.is_prompt()), "{message:?}");
        }
    }
    let events = played.stage.events.events();
    for (pair, bounds) in requests.windows(2).zip(played.events_before.windows(2)) {
        assert_eq!(pair[0].system, pair[1].system);
        let has_changed = |event: &Event| {
            matches!(event,
            Event::Gc { messages_removed, messages_cut, .. } if messages_removed + messages_cut > 0)
        };
        if events[bounds[0]..bounds[1]].iter().any(has_changed) {
            continue;
        }
        // Another prompt may replace one that failed. Everything before it stays. A server's paused
        // answer also stays, within the whole answer.
        let kept = pair[0].messages.len() - 1;
        let (before, after) = (&pair[0].messages[..kept], &pair[1].messages[..kept]);
        if pair[0].tools == pair[1].tools {
            assert_eq!(before, after);
            continue;
        }
        // A new tool joins the list if the provider has no better way.
        assert!(!played.takes_changes, "its tools stay as they were");
        assert!(pair[1].tools.iter().any(|spec| !pair[0].tools.contains(spec)));
        let plain: Vec<Message> = before.iter().map(message_after_cut).collect();
        assert_eq!(plain, after);
    }
    for entry in played.session.history().entries() {
        if entry.mark == Some(MessageMark::Unsent) {
            let parts = &entry.message.parts;
            let is_prompts = |part: &Part| {
                matches!(part, Part::Text { .. } | Part::Data(_) | Part::ToolsChanged(_))
            };
            assert!(parts.iter().all(is_prompts));
        }
    }
}

/// Returns what a cut leaves of a message, reimplemented.
fn message_after_cut(message: &Message) -> Message {
    let plain = |part: &Part| {
        let mut json = serde_json::to_value(part).unwrap();
        let kind = json["type"].as_str().unwrap().to_owned();
        let signature = json.as_object_mut().unwrap().remove("signature");
        let is_empty = kind == "text" && json["text"] == "" && signature.is_some();
        let goes = ["thought", "opaque", "tools_changed"].contains(&kind.as_str()) || is_empty;
        (!goes).then(|| serde_json::from_value(json).unwrap())
    };
    let mut left = message.clone();
    left.parts = message.parts.iter().filter_map(plain).collect();
    left
}

/// Returns one run of a seed as text.
fn played_transcript(played: &PlayedSession) -> Vec<String> {
    let events = played
        .stage
        .events
        .envelopes()
        .iter()
        .map(|envelope| serde_json::to_string(envelope).unwrap())
        .collect::<Vec<_>>();
    let entries = played.session.history().entries().iter().map(|entry| format!("{entry:?}"));
    let reports = played.reports.iter().map(|report| format!("{report:?}"));
    events.into_iter().chain(entries).chain(reports).collect()
}

#[track_caller]
fn check_same_transcripts(first: &[String], second: &[String]) {
    let differs = first.iter().zip(second).find(|(a, b)| a != b);
    assert_eq!(differs, None, "the seed does not replay");
    assert_eq!(first.len(), second.len(), "the seed does not replay");
}

fn run_seed(seed: u64) -> PlayedSession {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(play_seed(seed))
}

/// Prints the seed that failed.
struct SeedReporter(u64);

impl Drop for SeedReporter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with JAATO_SEED={}", self.0);
        }
    }
}

#[test]
fn random_turns_keep_all_invariants_and_replay_from_a_seed() {
    let seeds = match std::env::var("JAATO_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("JAATO_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..SEEDS,
    };
    let replayed = seeds.end - seeds.start == 1;
    let (mut outcomes, mut gcs) = (BTreeMap::new(), BTreeMap::new());
    for seed in seeds {
        let _tell = SeedReporter(seed);
        let played = run_seed(seed);
        check_events(&played);
        check_concurrent_calls(&played.stage);
        check_requests(&played);
        check_news(&played);
        check_same_transcripts(&played_transcript(&played), &played_transcript(&run_seed(seed)));
        for event in played.stage.events.events() {
            if let Event::Gc { error, source, messages_removed, messages_cut, .. } = event {
                let what = match (error, messages_cut, messages_removed) {
                    (Some(_), ..) => "failed",
                    (None, 0, 1..) if source == "host" => "calls left out",
                    (None, 0, _) => "collected",
                    (None, ..) => "cut",
                };
                *gcs.entry(what.to_owned()).or_insert(0) += 1;
            }
        }
        for report in played.reports {
            *outcomes.entry(format!("{:?}", report.outcome)).or_insert(0) += 1;
        }
    }
    // If the generator no longer produced one of the endings, nothing would test it.
    let names: Vec<&String> = outcomes.keys().collect();
    assert!(
        replayed || names == ["Cancelled", "Denied", "Done", "Failed", "Limit"],
        "{outcomes:?}"
    );
    println!("{outcomes:?} {gcs:?}");
    let names: Vec<&String> = gcs.keys().collect();
    assert!(replayed || names == ["calls left out", "collected", "cut", "failed"], "{gcs:?}");
    assert!(replayed || gcs.values().all(|count| *count >= 10), "{gcs:?}");
    assert!(replayed || outcomes.values().all(|count| *count >= 10), "{outcomes:?}");
}
