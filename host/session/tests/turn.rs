//! The turn loop: answers, steps, limits, failures, usage, prompt and prefix.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{
    Cancel, GET_TOOL_SCHEMAS, History, HistoryEntry, LIST_TOOLS, Limits, MARK_FAILED,
    MARK_FILTERED, MARK_LIMIT, MARK_OUTPUT_LIMIT, MARK_PROCESS_ENDED, MessageMark, Session,
    SessionSetup, ToolState, TurnReport, percent_used,
};
use jaato_types::{
    CompletionRequest, Delta, Error, ErrorKind, Event, FinishReason, Message, Outcome, Part, Role,
    ToolName, Usage,
};
use serde_json::json;

fn overloaded_error() -> Error {
    Error::new(ErrorKind::Provider, "overloaded").temporary()
}

fn gone_error() -> Error {
    Error::new(ErrorKind::Provider, "no such model")
}

async fn play_turn(stage: &TestStage, setup: SessionSetup, prompt: &str) -> (Session, TurnReport) {
    let mut session = stage.start(setup).unwrap();
    let report = session.run_turn(prompt, &Cancel::new()).await;
    (session, report)
}

/// Returns the history in short form: role, texts, calls, results, mark.
fn history_outline(history: &History) -> Vec<String> {
    history.entries().iter().map(|entry| outline_entry(entry)).collect()
}

fn outline_entry(entry: &HistoryEntry) -> String {
    let parts = entry.message.parts.iter().map(|part| match part {
        Part::Text { text, .. } => format!("{text:?}"),
        Part::Thought { text, .. } => format!("thought {text:?}"),
        Part::ToolCall(call) => format!("call {} {}", call.id, call.name),
        Part::ToolResult(result) if result.is_error => {
            format!("error {} {}", result.call_id, result.content["error"]["kind"])
        }
        Part::ToolResult(result) => format!("result {}", result.call_id),
        Part::Data(data) => format!("data {}", serde_json::to_string(data).unwrap()),
        Part::Opaque(part) => format!("opaque {} {} {}", part.provider, part.model, part.item),
        Part::ToolsChanged(change) => format!("tools {:?}", change.removed),
        Part::Unknown(part) => format!("unknown {}", part["type"]),
    });
    let parts: Vec<String> = parts.collect();
    let mark = entry.mark.map(|mark| format!(" {mark:?}")).unwrap_or_default();
    format!("{:?}: {}{mark}", entry.message.role, parts.join(", "))
}

#[tokio::test(start_paused = true)]
async fn a_call_and_an_answer_make_a_turn_of_two_steps() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.provider.add_answer([
        ScriptedProviderAction::text("let me see"),
        ScriptedProviderAction::call("1", "look", json!({"at": "sky"})),
    ]);
    stage.provider.add_answer([
        ScriptedProviderAction::text("it is "),
        ScriptedProviderAction::text("blue"),
        ScriptedProviderAction::Usage(Usage {
            prompt_tokens: 90,
            output_tokens: 10,
            cached_tokens: 50,
            ..Usage::default()
        }),
    ]);
    let (session, report) = play_turn(&stage, TestStage::setup(), "what colour?").await;
    assert_eq!(
        (report.outcome, report.text.as_str(), report.steps),
        (Outcome::Done, "it is blue", 2)
    );
    assert_eq!(
        history_outline(session.history()),
        [
            "User: \"what colour?\"",
            "Model: \"let me see\", call 1 look",
            "Tool: result 1",
            "Model: \"it is blue\"",
        ]
    );
    let kinds: Vec<String> = stage
        .events
        .envelopes()
        .iter()
        .map(|envelope| {
            serde_json::to_value(envelope).unwrap()["event"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "session_started",
            "turn_started",
            "step_started",
            "text_delta",
            "step_finished",
            "permission_decided",
            "tool_call_started",
            "tool_call_finished",
            "step_started",
            "text_delta",
            "text_delta",
            "usage",
            "step_finished",
            "turn_finished",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_and_its_turns_may_move_between_threads() {
    fn may_move<T: Send>(_: &T) {}
    let stage = TestStage::new([]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    may_move(&session);
    let cancel = Cancel::new();
    may_move(&session.run_user_call(&ToolName::from("x"), json!({}), &cancel));
    may_move(&session.run_turn("x", &cancel));
}

#[tokio::test(start_paused = true)]
async fn several_turns_share_one_history_and_their_requests_one_prefix() {
    let stage = TestStage::new([ScriptedTool::echo("b"), ScriptedTool::echo("a")]);
    stage.provider.add_answer([ScriptedProviderAction::call("1", "a", json!({}))]);
    stage.provider.add_answer([ScriptedProviderAction::text("one")]);
    stage.provider.add_answer([ScriptedProviderAction::text("two")]);
    let (mut session, _) = play_turn(&stage, TestStage::setup(), "first").await;
    session.run_turn("second", &Cancel::new()).await;
    let texts: Vec<String> = stage
        .provider
        .requests()
        .iter()
        .map(|request| serde_json::to_string(request).unwrap())
        .collect();
    assert_eq!(texts.len(), 3);
    for pair in texts.windows(2) {
        // Without the closing `],"options":{}}`, because the history only grows at its end.
        let stem = pair[0].strip_suffix("],\"options\":{}}").unwrap();
        assert!(pair[1].starts_with(stem), "{}\n{}", pair[0], pair[1]);
    }
    let request = &stage.provider.requests()[0];
    let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((request.model.as_str(), names), ("model", vec!["b", "a"]));
}

#[tokio::test(start_paused = true)]
async fn an_endless_tool_loop_ends_at_the_limit_and_the_next_turn_goes_on() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    for _ in 0..3 {
        stage.provider.add_answer([ScriptedProviderAction::call("", "look", json!({}))]);
    }
    let mut setup = TestStage::setup();
    setup.limits.steps_max = 3;
    let (mut session, report) = play_turn(&stage, setup, "loop").await;
    assert_eq!((report.outcome, report.steps), (Outcome::Limit, 3));
    assert_eq!(report.error.unwrap().kind, ErrorKind::LimitReached);
    assert_eq!(report.text, MARK_LIMIT);
    assert_eq!(stage.tools.recorded_calls().len(), 2, "what no request could tell of is not run");
    let last = history_outline(session.history()).split_off(5);
    assert_eq!(
        last,
        [
            "Model: call fresh-3 look",
            "Tool: error fresh-3 \"limit_reached\"",
            "Model: \"[Stopped: the limit of steps was reached]\" Partial",
        ]
    );
    stage.provider.add_answer([ScriptedProviderAction::text("fine")]);
    assert_eq!(session.run_turn("continue", &Cancel::new()).await.outcome, Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn opaque_part_of_a_partial_answer_names_its_provider_and_model() {
    let stage = TestStage::new([]);
    let item = ScriptedProviderAction::Unseen(Part::opaque(json!({ "id": 1 })));
    stage.provider.add_answer([
        ScriptedProviderAction::text("so"),
        item,
        ScriptedProviderAction::Finish(FinishReason::Error),
    ]);
    let (session, report) = play_turn(&stage, TestStage::setup(), "x").await;
    assert_eq!(report.outcome, Outcome::Failed);
    let said = history_outline(session.history());
    assert!(said[1].starts_with(r#"Model: "so", opaque test model {"id":1}"#), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn turn_with_exactly_the_maximum_steps_succeeds() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::call("1", "look", json!({}))])
        .add_answer([ScriptedProviderAction::text("done")]);
    let mut setup = TestStage::setup();
    setup.limits.steps_max = 2;
    let (_, report) = play_turn(&stage, setup, "x").await;
    assert_eq!(report.outcome, Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_whose_request_failed_is_kept_unsent_and_can_be_sent_again() {
    let stage = TestStage::new([]);
    stage.provider.add_answer([ScriptedProviderAction::Fail(gone_error())]);
    let (mut session, report) = play_turn(&stage, TestStage::setup(), "hello").await;
    assert_eq!((report.outcome, report.error), (Outcome::Failed, Some(gone_error())));
    assert_eq!(history_outline(session.history()), ["User: \"hello\" Unsent"]);
    assert_eq!(session.facts().turns, 0);

    stage.provider.add_answer([ScriptedProviderAction::text("hi")]);
    let report = session.repeat_last_turn(&Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Done);
    assert_eq!(history_outline(session.history()), ["User: \"hello\"", "Model: \"hi\""]);
}

#[tokio::test(start_paused = true)]
async fn another_prompt_after_a_failed_one_is_sent_alone() {
    let stage = TestStage::new([]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::Fail(gone_error())])
        .add_answer([ScriptedProviderAction::text("hi")]);
    let (mut session, _) = play_turn(&stage, TestStage::setup(), "lost").await;
    session.run_turn("found", &Cancel::new()).await;
    assert_eq!(stage.provider.requests()[1].messages, [Message::user("found")]);
    assert_eq!(
        history_outline(session.history()),
        ["User: \"lost\" Unsent", "User: \"found\"", "Model: \"hi\""]
    );
    assert_eq!(session.facts().turns, 1);
}

#[tokio::test(start_paused = true)]
async fn results_whose_request_failed_stay_and_are_sent_again_or_closed() {
    let script = |stage: &TestStage| {
        stage
            .provider
            .add_answer([ScriptedProviderAction::call("1", "look", json!({}))])
            .add_answer([ScriptedProviderAction::Fail(gone_error())]);
        stage.provider.add_answer([ScriptedProviderAction::text("fine")]);
    };
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    script(&stage);
    let (mut session, report) = play_turn(&stage, TestStage::setup(), "x").await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Failed, ""));
    assert_eq!(session.repeat_last_turn(&Cancel::new()).await.text, "fine");
    assert_eq!(stage.tools.recorded_calls().len(), 1, "the call is not run again");

    let stage = TestStage::new([ScriptedTool::echo("look")]);
    script(&stage);
    let (mut session, _) = play_turn(&stage, TestStage::setup(), "x").await;
    session.run_turn("y", &Cancel::new()).await;
    let lines = history_outline(session.history());
    assert_eq!(lines[3], format!("Model: {MARK_FAILED:?} Partial"));
    assert_eq!(lines[4..], ["User: \"y\"", "Model: \"fine\""]);
}

#[tokio::test(start_paused = true)]
async fn empty_prompt_or_nothing_to_send_again_is_an_error_without_effect() {
    let stage = TestStage::new([]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    for report in [
        session.repeat_last_turn(&Cancel::new()).await,
        session.run_turn(" \n", &Cancel::new()).await,
    ] {
        assert_eq!(report.outcome, Outcome::Failed);
        assert_eq!(report.error.unwrap().kind, ErrorKind::InvalidArguments);
    }
    assert!(session.history().entries().is_empty());
    assert!(stage.provider.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_after_its_first_delta_leaves_the_partial_answer() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.provider.add_answer([
        ScriptedProviderAction::text("half an "),
        ScriptedProviderAction::call("1", "look", json!({})),
        ScriptedProviderAction::Fail(overloaded_error()),
    ]);
    let limits = Limits { attempts_max: 1, ..Limits::default() };
    let setup = SessionSetup { limits, ..TestStage::setup() };
    let (mut session, report) = play_turn(&stage, setup, "x").await;
    assert_eq!((report.outcome, report.error), (Outcome::Failed, Some(overloaded_error())));
    assert!(report.is_open);
    assert_eq!(report.text, "half an \n\n[Generation cancelled]");
    assert_eq!(
        history_outline(session.history()),
        ["User: \"x\"", "Model: \"half an \", \"\\n\\n[Generation cancelled]\" Partial"]
    );
    assert_eq!(stage.provider.requests().len(), 1);
    assert!(stage.tools.recorded_calls().is_empty());
    // The request is sent again, without the partial answer.
    stage.provider.add_answer([ScriptedProviderAction::text("whole")]);
    assert_eq!(session.repeat_last_turn(&Cancel::new()).await.text, "whole");
    assert_eq!(stage.provider.requests()[1].messages, stage.provider.requests()[0].messages);
    let sent: Vec<String> = session.history().messages().map(Message::text).collect();
    assert_eq!(sent, ["x", "whole"]);
    // An answered request can be sent again too, for another answer.
    stage.provider.add_answer([ScriptedProviderAction::text("another")]);
    assert_eq!(session.repeat_last_turn(&Cancel::new()).await.text, "another");
    let sent: Vec<String> = session.history().messages().map(Message::text).collect();
    assert_eq!(sent, ["x", "another"]);
    History::restore(session.history().entries().iter().cloned()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn broken_stream_restarts_within_the_retry_limit_without_repeated_text() {
    let stage = TestStage::new([]);
    let broken = |text: &str| {
        [ScriptedProviderAction::text(text), ScriptedProviderAction::Fail(overloaded_error())]
    };
    stage.provider.add_answer(broken("The moon")).add_answer(broken("The moon is"));
    stage.provider.add_answer([ScriptedProviderAction::text("The moon is full.")]);
    let (session, report) = play_turn(&stage, TestStage::setup(), "x").await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "The moon is full."));
    let sent: Vec<String> = session.history().messages().map(Message::text).collect();
    assert_eq!(sent, ["x", "The moon is full."]);
    let restarts = stage
        .events
        .events()
        .into_iter()
        .filter(|event| matches!(event, Event::Retry { answer_restarts: true, .. }));
    assert_eq!(restarts.count(), 2);
    assert!(session.usage().tokens > 0, "the provider bills what it said");
    // When the retries are used up, the last partial answer is kept.
    let stage = TestStage::new([]);
    (0..9).for_each(|_| {
        stage.provider.add_answer(broken("The moon"));
    });
    let (_, report) = play_turn(&stage, TestStage::setup(), "x").await;
    assert_eq!(report.text, "The moon\n\n[Generation cancelled]");
    assert_eq!(stage.provider.requests().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn temporary_failures_before_the_first_delta_are_retried_with_events() {
    let stage = TestStage::new([]);
    let told = Error { retry_after_ms: Some(7_000), ..overloaded_error() };
    stage
        .provider
        .add_answer([ScriptedProviderAction::Fail(overloaded_error())])
        .add_answer([ScriptedProviderAction::Fail(told)]);
    stage.provider.add_answer([
        ScriptedProviderAction::Shown(Delta::notice("loading")),
        ScriptedProviderAction::Fail(overloaded_error()),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("at last")]);
    let (_, report) = play_turn(&stage, TestStage::setup(), "x").await;
    assert_eq!((report.outcome, report.steps), (Outcome::Done, 1));
    let waits: Vec<(u32, u64)> = stage
        .events
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Retry { attempt, delay_ms, .. } => Some((attempt, delay_ms)),
            _ => None,
        })
        .collect();
    assert_eq!(waits.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(waits[0].1 <= 1_000 && (7_000..=8_000).contains(&waits[1].1), "{waits:?}");
    assert!(report.duration_ms >= waits.iter().map(|(_, ms)| ms).sum());
}

#[tokio::test(start_paused = true)]
async fn only_temporary_errors_are_retried_up_to_a_limit() {
    for (error, attempts) in [(overloaded_error(), 5), (gone_error(), 1)] {
        let stage = TestStage::new([]);
        for _ in 0..9 {
            stage.provider.add_answer([ScriptedProviderAction::Fail(error.clone())]);
        }
        let (_, report) = play_turn(&stage, TestStage::setup(), "x").await;
        assert_eq!(report.error, Some(error));
        assert_eq!(stage.provider.requests().len(), attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn silent_provider_times_out_but_progress_restarts_the_idle_timeout() {
    let limits = Limits { provider_idle_ms: 1_000, attempts_max: 1, ..Limits::default() };
    let setup = || SessionSetup { limits: limits.clone(), ..TestStage::setup() };

    let stage = TestStage::new([]);
    stage.provider.add_answer([ScriptedProviderAction::Hang]);
    let (session, report) = play_turn(&stage, setup(), "x").await;
    assert_eq!(report.error.unwrap().kind, ErrorKind::Timeout);
    assert_eq!(report.duration_ms, 1_000);
    assert_eq!(history_outline(session.history()), ["User: \"x\" Unsent"]);

    let stage = TestStage::new([]);
    let progress = || ScriptedProviderAction::Shown(Delta::progress("loading", 1, 2));
    stage.provider.add_answer([
        ScriptedProviderAction::Wait(999),
        progress(),
        ScriptedProviderAction::Wait(999),
        progress(),
        ScriptedProviderAction::Wait(999),
        ScriptedProviderAction::text("ok"),
    ]);
    let (_, report) = play_turn(&stage, setup(), "x").await;
    assert_eq!((report.outcome, report.duration_ms), (Outcome::Done, 2_997));

    // Data that cannot be shown yet, such as the arguments of a call.
    let stage = TestStage::new([]);
    stage.provider.add_answer([
        ScriptedProviderAction::Wait(999),
        ScriptedProviderAction::text(""),
        ScriptedProviderAction::Wait(999),
        ScriptedProviderAction::text("ok"),
    ]);
    let (session, report) = play_turn(&stage, setup(), "x").await;
    assert_eq!((report.outcome, report.duration_ms), (Outcome::Done, 1_998));
    assert_eq!(history_outline(session.history()), ["User: \"x\"", "Model: \"ok\""]);
}

#[tokio::test(start_paused = true)]
async fn answer_at_the_byte_limit_is_kept_and_a_longer_answer_is_stopped() {
    let limits = Limits { answer_bytes_max: 10, ..Limits::default() };
    let setup = || SessionSetup { limits: limits.clone(), ..TestStage::setup() };

    let stage = TestStage::new([]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("12345"), ScriptedProviderAction::text("67890")]);
    assert_eq!(play_turn(&stage, setup(), "x").await.1.outcome, Outcome::Done);

    let stage = TestStage::new([]);
    stage.provider.add_answer([
        ScriptedProviderAction::text("12345"),
        ScriptedProviderAction::text("678901"),
        ScriptedProviderAction::Hang,
    ]);
    let (session, report) = play_turn(&stage, setup(), "x").await;
    assert_eq!(report.outcome, Outcome::Limit);
    assert_eq!(report.text, "12345\n\n[Generation cancelled]");
    assert_eq!(session.history().entries()[1].mark, Some(MessageMark::Partial));
}

#[tokio::test(start_paused = true)]
async fn empty_answer_is_retried_once_and_then_the_turn_fails() {
    let stage = TestStage::new([]);
    stage.provider.add_answer([]).add_answer([ScriptedProviderAction::text("hi")]);
    assert_eq!(play_turn(&stage, TestStage::setup(), "x").await.1.outcome, Outcome::Done);

    let stage = TestStage::new([]);
    stage
        .provider
        .add_answer([])
        .add_answer([ScriptedProviderAction::text(" \n")])
        .add_answer([ScriptedProviderAction::text("too late")]);
    let (session, report) = play_turn(&stage, TestStage::setup(), "x").await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert_eq!(report.error.unwrap().message, "the model sent 2 empty answers");
    assert_eq!(history_outline(session.history()), ["User: \"x\" Unsent"]);
}

#[tokio::test(start_paused = true)]
async fn finish_reasons_decide_how_a_turn_ends() {
    let cases = [
        (FinishReason::Stop, Outcome::Done, "said"),
        (FinishReason::Unknown, Outcome::Done, "said"),
        (FinishReason::ToolUse, Outcome::Done, "said"),
        (FinishReason::MaxTokens, Outcome::Limit, "said"),
        (
            FinishReason::Safety,
            Outcome::Failed,
            "said\n\n[The provider's filter stopped the answer]",
        ),
        (FinishReason::Error, Outcome::Failed, "said\n\n[Generation cancelled]"),
        (FinishReason::Cancelled, Outcome::Failed, "said\n\n[Generation cancelled]"),
    ];
    for (reason, outcome, text) in cases {
        let stage = TestStage::new([]);
        stage.provider.add_answer([
            ScriptedProviderAction::text("said"),
            ScriptedProviderAction::Finish(reason),
        ]);
        let (session, report) = play_turn(&stage, TestStage::setup(), "x").await;
        assert_eq!((report.outcome, report.text.as_str()), (outcome, text), "{reason:?}");
        assert_eq!(report.error.is_some(), outcome != Outcome::Done, "{reason:?}");
        assert_eq!(session.history().messages().count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_finish_reason_is_reported_in_a_notice() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    let unknown = || ScriptedProviderAction::Finish(FinishReason::Unknown);
    stage.provider.add_answer([ScriptedProviderAction::call("1", "look", json!({})), unknown()]);
    let word = ScriptedProviderAction::FinishWord("moonrise".to_owned());
    stage.provider.add_answer([ScriptedProviderAction::text("said"), unknown(), word]);
    let (_, report) = play_turn(&stage, TestStage::setup(), "x").await;
    assert_eq!(report.outcome, Outcome::Done);
    assert_eq!(stage.tools.recorded_calls().len(), 1, "what came whole is run");
    assert_eq!(
        stage.events.notices(),
        "host: the provider ended its answer for an unknown reason: it may be incomplete\n\
         host: the provider ended its answer for an unknown reason, `moonrise`: it may be incomplete\n"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_in_an_answer_stopped_by_the_output_limit_do_not_run() {
    let cut = [json!({}), json!({ "text": "half of" }), json!("{\"text\": \"ha")];
    for arguments in cut {
        let stage = TestStage::new([ScriptedTool::echo("look")]);
        stage.provider.add_answer([
            ScriptedProviderAction::text("I look"),
            ScriptedProviderAction::call("1", "look", json!({ "text": "whole" })),
            ScriptedProviderAction::call("2", "look", arguments),
            ScriptedProviderAction::Finish(FinishReason::MaxTokens),
        ]);
        let (mut session, report) = play_turn(&stage, TestStage::setup(), "x").await;
        assert_eq!(report.outcome, Outcome::Limit);
        let error = report.error.unwrap();
        assert_eq!(error.kind, ErrorKind::LimitReached);
        assert!(error.message.contains("output limit"), "{error}");
        assert_eq!(report.text, MARK_OUTPUT_LIMIT);
        assert!(stage.tools.recorded_calls().is_empty());
        let outline = history_outline(session.history());
        assert_eq!(outline.len(), 4, "{outline:?}");
        assert!(outline[2].contains("error 1") && outline[2].contains("error 2"), "{outline:?}");
        // The conversation continues, and the model learns why its calls have no results.
        stage.provider.add_answer([ScriptedProviderAction::text("less, then")]);
        assert_eq!(session.run_turn("continue", &Cancel::new()).await.outcome, Outcome::Done);
        let request = stage.provider.requests().pop().unwrap();
        let results: Vec<_> = request.messages[2].tool_results().collect();
        assert!(results.iter().all(|it| json!(it.content).to_string().contains("output limit")));
    }
}

#[tokio::test(start_paused = true)]
async fn thoughts_that_end_at_the_output_limit_are_not_retried() {
    let stage = TestStage::new([]);
    let thought = ScriptedProviderAction::Thought("on and on".to_owned());
    stage.provider.add_answer([thought, ScriptedProviderAction::Finish(FinishReason::MaxTokens)]);
    stage.provider.add_answer([ScriptedProviderAction::text("too late")]);
    let (session, report) = play_turn(&stage, TestStage::setup(), "x").await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Limit, MARK_OUTPUT_LIMIT));
    assert_eq!(stage.provider.requests().len(), 1);
    assert_eq!(session.history().entries()[1].mark, Some(MessageMark::Partial));
}

#[tokio::test(start_paused = true)]
async fn a_filtered_answer_never_runs_its_calls() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.provider.add_answer([
        ScriptedProviderAction::call("1", "look", json!({})),
        ScriptedProviderAction::Finish(FinishReason::Safety),
    ]);
    let (session, _) = play_turn(&stage, TestStage::setup(), "x").await;
    assert!(stage.tools.recorded_calls().is_empty());
    assert_eq!(history_outline(session.history())[1], format!("Model: {MARK_FILTERED:?} Partial"));
}

#[tokio::test(start_paused = true)]
async fn usage_is_taken_from_the_last_request_that_reported_it() {
    let usage = |prompt_tokens, output_tokens| {
        ScriptedProviderAction::Usage(Usage { prompt_tokens, output_tokens, ..Usage::default() })
    };
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::call("1", "look", json!({})), usage(1_000, 20)]);
    stage.provider.add_answer([ScriptedProviderAction::text("done"), usage(1_100, 30)]);
    let (mut session, report) = play_turn(&stage, TestStage::setup(), "x").await;
    assert_eq!(report.usage.total_tokens(), 1_130);
    stage.provider.add_answer([ScriptedProviderAction::text("told nothing")]);
    session.run_turn("y", &Cancel::new()).await;
    let facts = session.facts();
    assert_eq!((facts.model.as_str(), facts.context_limit), ("test/model", 10_000));
    assert_eq!((facts.prompt_tokens, facts.output_tokens, facts.turns), (1_100, 30, 2));
    let percent = percent_used(facts.prompt_tokens + facts.output_tokens, facts.context_limit);
    assert_eq!(percent.to_string(), "11.3");
}

#[tokio::test(start_paused = true)]
async fn session_facts_for_a_tool_include_the_open_turn() {
    let facts = ScriptedTool::new("facts", |_, scope| async move {
        Ok(jaato_types::Output::json(serde_json::to_value(scope.facts.snapshot()).unwrap()))
    });
    let stage = TestStage::new([facts]);
    stage.provider.add_answer([
        ScriptedProviderAction::call("1", "facts", json!({})),
        ScriptedProviderAction::Usage(Usage {
            prompt_tokens: 7,
            output_tokens: 3,
            ..Usage::default()
        }),
    ]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let (session, _) = play_turn(&stage, TestStage::setup(), "x").await;
    let result = session.history().entries()[2].message.tool_results().next().unwrap().clone();
    assert_eq!(
        (&result.content["turns"], &result.content["prompt_tokens"]),
        (&json!(1), &json!(7))
    );
}

#[tokio::test(start_paused = true)]
async fn call_to_a_discoverable_tool_activates_it_at_the_end_of_the_list() {
    let stage = TestStage::new([
        ScriptedTool::echo("hidden").with_state(ToolState::Inactive),
        ScriptedTool::echo("shown"),
    ]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::call("1", "hidden", json!({}))])
        .add_answer([ScriptedProviderAction::text("done")]);
    let (session, _) = play_turn(&stage, TestStage::setup(), "x").await;
    let names = |request: &CompletionRequest| {
        request.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<ToolName>>()
    };
    let requests = stage.provider.requests();
    let before = ["shown", LIST_TOOLS, GET_TOOL_SCHEMAS].map(ToolName::from);
    assert_eq!(names(&requests[0]), before);
    assert_eq!(names(&requests[1]), [&before[..], &[ToolName::from("hidden")]].concat());
    assert_eq!(session.next_request().tools, requests[1].tools);
    assert_eq!(stage.events.notices(), "");
    assert_eq!(stage.tools.recorded_calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn session_with_unanswered_calls_in_its_history_continues() {
    let call = match ScriptedProviderAction::call("1", "look", json!({})) {
        ScriptedProviderAction::Call(call) => call,
        _ => unreachable!("made above"),
    };
    let mut history = History::new();
    history.append_prompt(vec![Part::text("before")]).unwrap();
    history.append_answer(vec![Part::ToolCall(call)], None).unwrap();
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.provider.add_answer([ScriptedProviderAction::text("hi")]);
    let setup = SessionSetup { history, ..TestStage::setup() };
    let (session, report) = play_turn(&stage, setup, "after").await;
    assert_eq!(report.outcome, Outcome::Done);
    assert_eq!(
        history_outline(session.history())[2..],
        [
            "Tool: error 1 \"cancelled\"".to_owned(),
            format!("Model: {MARK_PROCESS_ENDED:?} Partial"),
            "User: \"after\"".to_owned(),
            "Model: \"hi\"".to_owned(),
        ]
    );
    let roles: Vec<Role> = stage.provider.requests()[0].messages.iter().map(|m| m.role).collect();
    assert_eq!(roles, [Role::User, Role::Model, Role::Tool, Role::Model, Role::User]);
}

#[tokio::test(start_paused = true)]
async fn requests_keep_a_minimum_interval_and_a_cancel_ends_the_wait() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    let mut setup = TestStage::setup();
    setup.limits.request_interval_ms = 60_000;
    stage
        .provider
        .add_answer([ScriptedProviderAction::call("1", "look", json!({}))])
        .add_answer([ScriptedProviderAction::text("done")]);
    let start = tokio::time::Instant::now();
    let (mut session, report) = play_turn(&stage, setup, "x").await;
    assert_eq!(report.outcome, Outcome::Done);
    // The first begins at once, the second a minute later.
    assert_eq!(start.elapsed().as_secs(), 60);

    let cancel = Cancel::new();
    let stop = cancel.clone();
    let later = tokio::time::sleep(std::time::Duration::from_secs(10));
    let (report, ()) = tokio::join!(session.run_turn("again", &cancel), async move {
        later.await;
        stop.cancel();
    });
    assert_eq!((report.outcome, start.elapsed().as_secs()), (Outcome::Cancelled, 70));
    assert_eq!(stage.provider.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn next_request_waits_until_the_provider_has_room_with_a_notice() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.provider.add_answer([
        ScriptedProviderAction::call("1", "look", json!({})),
        ScriptedProviderAction::RoomAfter(30_000),
    ]);
    stage
        .provider
        .add_answer([
            ScriptedProviderAction::text("done"),
            ScriptedProviderAction::RoomAfter(130_000),
        ])
        .add_answer([ScriptedProviderAction::text("more")]);
    let start = tokio::time::Instant::now();
    let (mut session, report) = play_turn(&stage, TestStage::setup(), "x").await;
    assert_eq!((report.outcome, start.elapsed().as_secs()), (Outcome::Done, 30));
    let is_told = |event: &Event| {
        matches!(event, Event::Notice { text, .. }
            if text == "the provider accepts the next request in 30 s")
    };
    assert!(stage.events.envelopes().iter().any(|envelope| is_told(&envelope.event)));
    // The server itself must refuse a request that would wait longer than this.
    session.run_turn("again", &Cancel::new()).await;
    assert_eq!(start.elapsed().as_secs(), 30);
}
