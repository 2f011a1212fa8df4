//! Context garbage collection: when it runs, what it may do, and what the model is sent afterwards.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use jaato_session::testing::{Beat, GcBeat, Stage, Tool};
use jaato_session::{
    Cancel, GcReport, GcSettings, Mark, OVERFLOWS_MAX, Random, SeededRandom, Session, SessionSetup,
    TurnReport,
};
use jaato_types::{
    Error, ErrorKind, Event, GcPlan, GcReason, Message, Outcome, Output, Part, Request, Usage,
};
use serde_json::json;

/// Tokens that a provider tells.
fn used(prompt_tokens: u64) -> Beat {
    Beat::Usage(Usage { prompt_tokens, output_tokens: 10, cached_tokens: 0 })
}

fn overflow() -> Beat {
    Beat::Fail(Error::new(ErrorKind::ContextOverflow, "prompt is too long"))
}

fn setup(settings: GcSettings) -> SessionSetup {
    SessionSetup { gc: settings, ..Stage::setup() }
}

/// Starts a session and plays so many turns, each answered with `so`.
async fn after_turns(stage: &Stage, setup: SessionSetup, turns: usize) -> Session {
    let mut session = stage.start(setup).unwrap();
    for turn in 0..turns {
        stage.provider.then([Beat::text("so"), used(100)]);
        let report = session.turn(format!("prompt {turn}"), &Cancel::new()).await;
        assert_eq!(report.outcome, Outcome::Done);
    }
    session
}

async fn turn(session: &mut Session, prompt: &str) -> TurnReport {
    session.turn(prompt, &Cancel::new()).await
}

/// The events of the gc: reason, source, removed, cut, note or error.
fn gcs(stage: &Stage) -> Vec<String> {
    let lines = stage.events.events().into_iter().filter_map(|event| match event {
        Event::Gc { reason, source, messages_removed, turns_removed, messages_cut, note, error, .. } => {
            let end = error.map(|error| error.message).or(note).unwrap_or_default();
            Some(format!(
                "{reason:?} {source}: {messages_removed}/{turns_removed} removed, {messages_cut} cut. {end}"
            ))
        }
        _ => None,
    });
    lines.collect()
}

fn texts(request: &Request) -> Vec<String> {
    request.messages.iter().map(Message::text).collect()
}

fn last_request(stage: &Stage) -> Request {
    stage.provider.requests().pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn at_the_threshold_old_turns_go_and_the_record_keeps_them() {
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::keeping(1)]);
    let mut session = after_turns(&stage, Stage::setup(), 2).await;
    assert!(stage.gc.requests().is_empty(), "nothing is asked before it is needed");
    // 7,990 and 10, and the next prompt's few.
    stage.provider.then([Beat::text("so"), used(7_989)]).then([Beat::text("done"), used(300)]);
    turn(&mut session, "prompt 2").await;
    turn(&mut session, "prompt 3").await;
    let asked = stage.gc.requests();
    assert_eq!(
        (asked.len(), asked[0].reason, asked[0].context_limit),
        (1, GcReason::Threshold, 10_000)
    );
    assert!((8_000..8_050).contains(&asked[0].total_tokens), "{}", asked[0].total_tokens);
    assert_eq!(asked[0].messages.len(), 7);
    assert_eq!(asked[0].settings["preserve_recent_turns"], 5);
    assert_eq!(gcs(&stage), ["Threshold scripted: 6/3 removed, 0 cut. "]);
    assert_eq!(texts(&last_request(&stage)), ["prompt 3"]);
    let marks: Vec<_> = session.history().entries().iter().map(|entry| entry.mark).collect();
    assert_eq!(marks, [vec![Some(Mark::Collected); 6], vec![None; 2]].concat());
    assert_eq!(session.facts().turns, 4, "turns that went were turns all the same");
}

#[tokio::test(start_paused = true)]
async fn below_the_threshold_nothing_is_asked() {
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::keeping(1)]);
    let mut session = after_turns(&stage, Stage::setup(), 2).await;
    stage.provider.then([Beat::text("so"), used(7_950)]).then([Beat::text("done")]);
    turn(&mut session, "x").await;
    turn(&mut session, "y").await;
    assert!(stage.gc.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_a_count_a_quarter_of_the_bytes_counts() {
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::keeping(1)]);
    let mut session = stage.start(Stage::setup()).unwrap();
    for _ in 0..3 {
        stage.provider.then([Beat::text("so")]);
        turn(&mut session, &"word ".repeat(2_400)).await;
    }
    let asked = stage.gc.requests();
    assert_eq!(asked.len(), 1, "three times 3,000 tokens of 10,000");
    assert!((9_000..9_500).contains(&asked[0].total_tokens), "{}", asked[0].total_tokens);
    assert_eq!(last_request(&stage).messages.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn more_turns_than_allowed_make_it_run() {
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::keeping(2)]);
    let settings = GcSettings { max_turns: 3, ..GcSettings::default() };
    after_turns(&stage, setup(settings), 5).await;
    let reasons: Vec<_> = stage.gc.requests().iter().map(|asked| asked.reason).collect();
    assert_eq!(reasons, [GcReason::TurnLimit]);
    assert_eq!(texts(&last_request(&stage)), ["prompt 2", "so", "prompt 3", "so", "prompt 4"]);
}

#[tokio::test(start_paused = true)]
async fn it_runs_by_itself_only_where_it_may() {
    let settings = GcSettings { auto_trigger: false, ..GcSettings::default() };
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::keeping(1)]);
    let mut session = after_turns(&stage, setup(settings), 2).await;
    stage.provider.then([Beat::text("so"), used(9_000)]).then([Beat::text("so"), used(9_001)]);
    turn(&mut session, "x").await;
    turn(&mut session, "y").await;
    assert!(stage.gc.requests().is_empty());
    // A refused request is helped all the same.
    stage.provider.then([overflow()]).then([Beat::text("done")]);
    assert_eq!(turn(&mut session, "z").await.outcome, Outcome::Done);
    assert_eq!(stage.gc.requests()[0].reason, GcReason::ContextLimit);
}

#[tokio::test(start_paused = true)]
async fn it_may_wait_until_a_turn_is_over() {
    let settings = GcSettings { check_before_send: false, ..GcSettings::default() };
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::keeping(1)]);
    let mut session = after_turns(&stage, setup(settings), 2).await;
    stage.provider.then([Beat::text("so"), used(9_000)]);
    turn(&mut session, "x").await;
    assert_eq!(stage.gc.requests().len(), 1);
    assert_eq!(texts(&session.request()), ["x", "so"]);
    let events = stage.events.events();
    assert!(matches!(events.last(), Some(Event::TurnFinished { .. })), "the turn's end comes last");
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_sent_again_with_less() {
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::keeping(1)]);
    let mut session = after_turns(&stage, Stage::setup(), 3).await;
    stage.provider.then([overflow()]).then([Beat::text("done"), used(50)]);
    let report = turn(&mut session, "now").await;
    assert_eq!((report.outcome, report.steps), (Outcome::Done, 1));
    let asked = stage.gc.requests();
    assert_eq!((asked.len(), asked[0].reason), (1, GcReason::ContextLimit));
    assert!(asked[0].total_tokens >= 10_000, "what was refused fills the window");
    assert_eq!(gcs(&stage), ["ContextLimit scripted: 6/3 removed, 0 cut. "]);
    assert_eq!(texts(&last_request(&stage)), ["now"]);
    // The next turn is counted by what the provider told, and needs no gc.
    stage.provider.then([Beat::text("more")]);
    turn(&mut session, "again").await;
    assert_eq!(stage.gc.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_for_ever_is_asked_so_often_and_no_more() {
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::keeping(1)]);
    let mut session = after_turns(&stage, Stage::setup(), 3).await;
    let before = stage.provider.requests().len();
    for _ in 0..20 {
        stage.provider.then([overflow()]);
    }
    let report = turn(&mut session, &"word ".repeat(4_000)).await;
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::ContextOverflow, "prompt is too long")
    );
    assert!(error.hint.unwrap().contains("larger window"));
    let requests = stage.provider.requests().len() - before;
    assert_eq!(requests, usize::try_from(OVERFLOWS_MAX).unwrap() + 1);
    // The prompt stays, and can be sent again.
    stage.provider.forget();
    stage.provider.then([Beat::text("done")]);
    assert_eq!(session.turn_again(&Cancel::new()).await.outcome, Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_with_nothing_to_leave_out_is_final_at_once() {
    let stage = Stage::new([]);
    stage.provider.then([overflow()]);
    let mut session = stage.start(Stage::setup()).unwrap();
    let report = turn(&mut session, "hi").await;
    assert_eq!(report.error.unwrap().kind, ErrorKind::ContextOverflow);
    assert_eq!(stage.provider.requests().len(), 1);
    assert_eq!(gcs(&stage), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_is_not_asked_for_again() {
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::keeping(1)]);
    let mut session = after_turns(&stage, Stage::setup(), 3).await;
    stage.provider.then([Beat::text("so "), overflow()]);
    let report = turn(&mut session, "now").await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(stage.gc.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_person_may_ask_between_turns() {
    let stage = Stage::new([]);
    let planner = |request: &jaato_types::GcRequest| GcPlan {
        note: Some("n".repeat(1_000)),
        drop: (0..request.messages.len() - 2).collect(),
        ..GcPlan::default()
    };
    stage.gc.does([GcBeat::plan_of(planner), GcBeat::Plan(GcPlan::default())]);
    let mut session = after_turns(&stage, Stage::setup(), 4).await;
    let report = session.gc(&Cancel::new()).await.unwrap();
    let GcReport { messages_removed, turns_removed, tokens_before, tokens_after, note } = report;
    assert_eq!((messages_removed, turns_removed, tokens_before), (6, 3, 110));
    assert!(tokens_after < 110);
    assert_eq!(note.unwrap().len(), 400, "a note has its bound");
    let report = session.gc(&Cancel::new()).await.unwrap();
    assert_eq!((report.messages_removed, report.tokens_after), (0, report.tokens_before));
    let lines = gcs(&stage);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1], "Manual scripted: 0/0 removed, 0 cut. ");
}

#[tokio::test(start_paused = true)]
async fn without_a_gc_a_person_is_told_what_to_do() {
    let stage = Stage::new([]);
    let mut session = after_turns(&stage, Stage::setup(), 1).await;
    let error = session.gc(&Cancel::new()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "this session has no gc\nhint: name a plugin under `[gc] plugin`"
    );
    assert_eq!(session.facts().gc, None);
}

#[tokio::test(start_paused = true)]
async fn tools_may_know_the_settings() {
    let stage = Stage::new([]);
    stage.gc.does([]);
    let settings = GcSettings { threshold_percent: 70, max_turns: 9, ..GcSettings::default() };
    let facts = stage.start(setup(settings)).unwrap().facts().gc.unwrap();
    assert!((facts.threshold_percent - 70.0).abs() < 1e-9);
    assert_eq!((facts.max_turns, facts.preserve_recent_turns), (Some(9), 5));
}

/// Plays until the gc is asked, twice, and returns the events of the gc.
async fn misbehaving(beat: GcBeat, settings: GcSettings) -> Vec<String> {
    let stage = Stage::new([]);
    stage.gc.does([beat]);
    let mut session = after_turns(&stage, setup(settings), 3).await;
    for _ in 0..3 {
        stage.provider.then([Beat::text("so"), used(9_000)]);
    }
    for prompt in ["x", "y", "z"] {
        let before = session.history().messages().count();
        assert_eq!(turn(&mut session, prompt).await.outcome, Outcome::Done);
        assert_eq!(session.history().messages().count(), before + 2, "nothing has gone");
    }
    assert_eq!(stage.gc.requests().len(), 2);
    gcs(&stage)
}

#[tokio::test(start_paused = true)]
async fn a_gc_that_misbehaves_costs_nothing_but_the_collection_and_is_told_once() {
    let plan = |drop: &[usize]| GcBeat::dropping(drop.iter().copied());
    let summary = GcPlan {
        summary: Some(Message::user("x".repeat(999))),
        drop: vec![0, 1],
        ..GcPlan::default()
    };
    let cases = [
        (GcBeat::Fail(Error::failed("out of ideas")), "out of ideas"),
        (GcBeat::Hang, "the gc took longer than 10 s for its plan"),
        (plan(&[3, 2]), "the gc's plan is refused: its indices do not ascend"),
        (plan(&[0, 1, 900]), "the gc's plan is refused: it drops message 900, and there are 9"),
        (
            plan(&[0, 1, 8]),
            "the gc's plan is refused: it drops message 8, which belongs to the last turn",
        ),
        (
            plan(&[2, 3]),
            "the gc's plan is refused: it drops message 2, which belongs to a pinned turn",
        ),
        (
            plan(&[0]),
            "the gc's plan is refused: the history needs a prompt next, not a message of role `model`",
        ),
        (
            GcBeat::Plan(summary),
            "the gc's plan is refused: it makes nothing smaller: 113 bytes go and 1050 bytes of summary come",
        ),
    ];
    for (beat, expected) in cases {
        let settings = GcSettings { pinned_turn_indices: vec![1], ..GcSettings::default() };
        let lines = misbehaving(beat, settings).await;
        // Plans that name the last turn by number are other plans in the next turn.
        let first = lines[0].split_once("cut. ").unwrap();
        assert_eq!(first.1, expected, "{lines:?}");
        assert!(
            lines.len() == 1 || expected.contains("message 8") || expected.contains("are 9"),
            "{lines:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_gc_that_hangs_is_waited_for_so_long_and_once_a_turn() {
    let stage = Stage::new([Tool::echo("look")]);
    stage.gc.does([GcBeat::Hang]);
    let settings = GcSettings { deadline_ms: 2_000, ..GcSettings::default() };
    let mut session = after_turns(&stage, setup(settings), 2).await;
    stage.provider.then([Beat::text("so"), used(9_000)]);
    turn(&mut session, "x").await;
    for number in 0..5 {
        stage.provider.then([Beat::call(&number.to_string(), "look", json!({})), used(9_000)]);
    }
    stage.provider.then([Beat::text("done")]);
    let start = tokio::time::Instant::now();
    turn(&mut session, "y").await;
    assert_eq!(start.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_the_gc_thinks_ends_the_turn_at_once() {
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::Hang]);
    let mut session = after_turns(&stage, Stage::setup(), 2).await;
    stage.provider.then([Beat::text("so"), used(9_000)]);
    turn(&mut session, "x").await;
    let cancel = Cancel::new();
    let start = tokio::time::Instant::now();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(session.turn("y", &cancel), stop);
    assert_eq!((report.outcome, start.elapsed()), (Outcome::Cancelled, Duration::from_millis(500)));
    assert_eq!(gcs(&stage), Vec::<String>::new(), "a cancel is nobody's failure");
}

#[tokio::test(start_paused = true)]
async fn pinned_turns_keep_their_numbers_after_others_went() {
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::dropping([0, 1, 2, 3]), GcBeat::dropping([0, 1])]);
    let settings = GcSettings { pinned_turn_indices: vec![2], ..GcSettings::default() };
    let mut session = after_turns(&stage, setup(settings), 5).await;
    session.gc(&Cancel::new()).await.unwrap();
    session.gc(&Cancel::new()).await.unwrap_err();
    let places: Vec<_> = stage
        .gc
        .requests()
        .iter()
        .map(|asked| asked.settings["pinned_turn_indices"].clone())
        .collect();
    assert_eq!(places, [json!([2]), json!([0])]);
    assert_eq!(texts(&session.request())[0], "prompt 2");
}

#[tokio::test(start_paused = true)]
async fn a_summary_stands_before_what_stays() {
    let stage = Stage::new([]);
    let summary = Some(Message::user("[before] "));
    stage.gc.does([GcBeat::Plan(GcPlan { drop: vec![0, 1, 2, 3], summary, ..GcPlan::default() })]);
    let mut session = after_turns(&stage, Stage::setup(), 3).await;
    session.gc(&Cancel::new()).await.unwrap();
    assert_eq!(texts(&session.request()), ["[before] prompt 2", "so"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_too_large_is_sent_as_head_and_tail_for_ever_the_same() {
    let stage = Stage::new([]);
    let setup = SessionSetup { context_limit: 8_192, ..Stage::setup() };
    let mut session = after_turns(&stage, setup, 2).await;
    let prompt = format!("the beginning {} the end", "0123456789".repeat(105_000));
    stage.provider.then([Beat::text("I see"), used(3_400)]).then([Beat::text("yes")]);
    assert_eq!(turn(&mut session, &prompt).await.outcome, Outcome::Done);
    let sent = last_request(&stage).messages.pop().unwrap().text();
    assert!(sent.starts_with("the beginning 0123") && sent.ends_with(" the end"));
    assert!((10_000..13_500).contains(&sent.len()), "{}", sent.len());
    let (path, whole) = stage.outputs.files().pop().unwrap();
    assert_eq!(whole, prompt.as_bytes());
    let (head, rest) = sent.split_once("\n\n[… ").unwrap();
    let (gap, tail) = rest.split_once(" …]\n\n").unwrap();
    let left_out = prompt.len() - head.len() - tail.len();
    let counts = format!("{left_out} of {} bytes are left out here", prompt.len());
    assert_eq!(gap, format!("{counts}; the whole text is in the file `{path}`"));
    let [line] = &gcs(&stage)[..] else { panic!("{:?}", gcs(&stage)) };
    assert!(
        line.starts_with("Threshold host: 0/0 removed, 1 cut. a text of 1050022 bytes"),
        "{line}"
    );
    // What went before stays, and so does the cut one from here on.
    assert_eq!(last_request(&stage).messages.len(), 5);
    turn(&mut session, "and?").await;
    assert_eq!(last_request(&stage).messages[4].text(), sent);
    assert_eq!(session.history().entries()[4].message.text(), prompt, "the record has it whole");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_fits_is_left_alone() {
    let stage = Stage::new([]);
    stage.provider.then([Beat::text("I see")]);
    let mut session = stage.start(Stage::setup()).unwrap();
    let prompt = "word ".repeat(6_000);
    turn(&mut session, &prompt).await;
    assert_eq!(last_request(&stage).messages[0].text(), prompt);
    assert!(gcs(&stage).is_empty());
}

fn loud(name: &str) -> Tool {
    Tool::new(name, |call, _| async move {
        let text = format!("{}-", call.id).repeat(4_000);
        Ok(Output::json(json!({ "stdout": text, "exit_code": 0 })))
    })
}

#[tokio::test(start_paused = true)]
async fn results_that_are_too_large_together_share_what_room_there_is() {
    let stage = Stage::new([loud("loud"), Tool::echo("look")]);
    let calls = (0..6).map(|n| Beat::call(&format!("call-{n}"), "loud", json!({})));
    let small = Beat::call("small", "look", json!({ "text": "small" }));
    stage.provider.then(calls.chain([small])).then([Beat::text("done")]);
    let mut session = stage.start(Stage::setup()).unwrap();
    assert_eq!(turn(&mut session, "look at all").await.outcome, Outcome::Done);
    let results: Vec<_> = last_request(&stage).messages[2].tool_results().cloned().collect();
    let bytes: usize = results.iter().map(|result| json!(result.content).to_string().len()).sum();
    assert!((12_000..17_000).contains(&bytes), "{bytes}");
    for result in &results[..6] {
        assert_eq!(result.content["exit_code"], 0, "what is small stays");
        let cut = &result.content["output_cut"]["stdout"];
        let shown = result.content["stdout"].as_str().unwrap();
        let (head, tail) = shown.split_once("\n[… ").unwrap();
        let (_, tail) = tail.split_once(" …]\n").unwrap();
        // Cut for the second time: the file and the count are those of the whole.
        assert_eq!(cut["bytes"], 4_000 * (result.call_id.as_str().len() + 1));
        assert_eq!(
            (&cut["head_bytes"], &cut["tail_bytes"]),
            (&json!(head.len()), &json!(tail.len()))
        );
        let files = stage.outputs.files();
        let (_, whole) = files.iter().find(|(path, _)| *path == cut["file"]).unwrap();
        assert_eq!(cut["bytes"], whole.len());
    }
    assert_eq!(results[6].content.get("output_cut"), None);
    assert_eq!(gcs(&stage).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_turn_goes_on_with_shorter_results() {
    let stage = Stage::new([loud("loud")]);
    for number in 0..12 {
        stage.provider.then([Beat::call(&format!("c{number}"), "loud", json!({}))]);
    }
    stage.provider.then([Beat::text("done")]);
    let mut session = stage.start(Stage::setup()).unwrap();
    let report = turn(&mut session, "go on").await;
    assert_eq!((report.outcome, report.steps), (Outcome::Done, 13));
    for request in stage.provider.requests() {
        let bytes = serde_json::to_string(&request).unwrap().len();
        assert!(bytes / 4 < 10_000, "{bytes}");
    }
    let lines = gcs(&stage);
    assert!((1..10).contains(&lines.len()), "{lines:?}");
}

/// Only directly behind an event of the gc does a request begin differently.
#[tokio::test(start_paused = true)]
async fn requests_share_their_beginning_but_for_recorded_events() {
    let stage = Stage::new([loud("loud")]);
    stage.gc.does([GcBeat::keeping(2)]);
    let mut session = stage.start(Stage::setup()).unwrap();
    let mut changed = Vec::new();
    let (mut before, mut told): (Option<Request>, usize) = (None, 0);
    for number in 0..12 {
        // The first and the second request of the turn.
        stage.provider.then([Beat::call(&format!("c{number}"), "loud", json!({}))]);
        stage.provider.then([Beat::text("done")]);
        let from = stage.provider.requests().len();
        turn(&mut session, &format!("prompt {number}")).await;
        for request in &stage.provider.requests()[from..] {
            let text = serde_json::to_string(&(&request.system, &request.tools, &request.messages));
            if let Some(before) = before.replace(request.clone()) {
                let text = text.unwrap();
                let old = (&before.system, &before.tools, &before.messages);
                let old = serde_json::to_string(&old).unwrap();
                changed.push(!text.starts_with(old.strip_suffix("]]").unwrap()));
            }
        }
        let collected = gcs(&stage).len();
        let changes = changed.iter().filter(|changed| **changed).count();
        assert_eq!(changes, collected, "turn {number}: {:?}", gcs(&stage));
        told = collected;
    }
    assert!((2..=12).contains(&told), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_window_that_nobody_knows_is_told_once_when_it_matters() {
    let stage = Stage::new([]);
    stage.gc.does([GcBeat::keeping(1)]);
    let setup = SessionSetup { context_limit_assumed: true, ..Stage::setup() };
    let mut session = after_turns(&stage, setup, 2).await;
    assert_eq!(stage.events.notices(), "");
    for _ in 0..3 {
        stage.provider.then([Beat::text("so"), used(9_000)]);
        turn(&mut session, "x").await;
    }
    assert_eq!(
        stage.events.notices(),
        "host: nobody says how large the context window of `test/model` is: 10000 tokens are \
         assumed; `context_limit` under `[models.\"test/model\"]` sets it\n"
    );
}

/// Plans at random, from a history with calls and torn turns: each is applied whole or not at all.
#[tokio::test(start_paused = true)]
async fn whatever_a_plan_says_the_history_stays_whole() {
    let random = SeededRandom::new(11);
    let (mut applied, mut refused) = (0, 0);
    for round in 0..150_u64 {
        let stage = Stage::new([Tool::echo("look")]);
        let seed = random.next_u64();
        let dice = SeededRandom::new(seed);
        stage.gc.does([GcBeat::plan_of(move |request| {
            let count = request.messages.len() as u64;
            // Runs of messages: single ones are hardly ever a plan.
            let (first, second) = (dice.below(count + 1), dice.below(count + 1));
            let drop = (first.min(second)..first.max(second)).map(|at| at as usize).collect();
            let summary = (dice.below(3) == 0).then(|| Message::user("s"));
            GcPlan { drop, summary, ..GcPlan::default() }
        })]);
        let settings = GcSettings {
            pinned_turn_indices: (0..random.below(2)).map(|_| random.below(5)).collect(),
            ..GcSettings::default()
        };
        let mut session = stage.start(setup(settings)).unwrap();
        for turn_number in 0..4 {
            for call in 0..random.below(3) {
                let id = format!("{round}-{turn_number}-{call}");
                stage.provider.then([Beat::call(&id, "look", json!({}))]);
            }
            stage.provider.then([Beat::text("so")]);
            turn(&mut session, &format!("prompt {turn_number}")).await;
            for _ in 0..3 {
                let before = session.history().clone();
                match session.gc(&Cancel::new()).await {
                    Ok(report) => {
                        applied += u64::from(report.messages_removed > 0);
                        assert!(report.tokens_after <= report.tokens_before);
                    }
                    Err(error) => {
                        refused += 1;
                        assert_eq!(error.kind, ErrorKind::PluginMisbehaved);
                        assert_eq!(*session.history(), before);
                    }
                }
                let entries = session.history().entries().iter().cloned();
                assert_eq!(
                    jaato_session::History::restore(entries).as_ref(),
                    Ok(session.history())
                );
                let last = session.history().messages().next_back().unwrap();
                assert!(matches!(&last.parts[..], [Part::Text { text }] if text == "so"));
                assert_eq!(session.history().entries().len(), before.entries().len());
            }
        }
    }
    assert!(applied > 50 && refused > 200, "{applied} {refused}");
}
