//! Tests when a summary replaces old turns, and what happens if there is none.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};

use jaato_plugin_sdk::model::ModelComplete;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::service::{ContextFacts, SessionFacts};
use jaato_plugin_sdk::types::{GcReason, ToolResult};
use jaato_plugin_testkit::FakeHost;
use jaato_plugin_testkit::conformance::{apply_plan, check_plan};

jaato_plugin_testkit::conformance!(gc_summarize: gc);

/// Returns a turn in which the user states a constraint, and a call runs.
fn turn_with_constraint(number: usize) -> Vec<Message> {
    let id = format!("call-{number}");
    let call = ToolCall::new(id.as_str(), "look", json!({ "at": number }));
    let content = Map::from_iter([("text".to_owned(), json!("x".repeat(400)))]);
    vec![
        Message::user(constraint_text(number)),
        Message::model(vec![Part::ToolCall(call)]),
        Message::tool([ToolResult::new(id.as_str(), "look", content)]),
        Message::model(vec![Part::text(format!("Done with {number}. {}", "y".repeat(300)))]),
    ]
}

fn constraint_text(number: usize) -> String {
    format!("In module {number} the name `blue_{number}` stays, whatever happens.")
}

fn conversation_of_turns(turns: usize) -> Vec<Message> {
    (0..turns).flat_map(turn_with_constraint).chain([Message::user("and now?")]).collect()
}

fn gc_request(messages: Vec<Message>) -> GcRequest {
    let mut request = GcRequest::new(GcReason::Threshold, messages);
    request.context_limit = 16_000;
    request.total_tokens = 14_000;
    request.settings = json!({ "preserve_recent_turns": 1 });
    request
}

/// Answers a request to the model.
type AnswerModel = fn(&ModelComplete) -> Result<String>;

/// Requests to the model.
type RecordedModelRequests = Arc<Mutex<Vec<ModelComplete>>>;

/// Creates a host whose model answers with the result of the closure.
fn host_with_model(
    answer: impl Fn(&ModelComplete) -> Result<String> + Send + Sync + 'static,
) -> (FakeHost, RecordedModelRequests) {
    let requests = RecordedModelRequests::default();
    let recorded = Arc::clone(&requests);
    let host = FakeHost::new(gc_summarize::__jaato::MODULE).with_model(move |request| {
        recorded.lock().unwrap().push(request.clone());
        answer(request)
    });
    (host, requests)
}

#[track_caller]
fn run_plan(host: &FakeHost, request: &GcRequest) -> GcPlan {
    let plan = host.instance().unwrap().plan(request).unwrap();
    check_plan(&request.messages, &plan).unwrap();
    plan
}

fn summary_text(plan: &GcPlan) -> String {
    plan.summary.as_ref().map(Message::text).unwrap_or_default()
}

#[test]
fn summary_of_the_session_s_model_replaces_old_turns() {
    let (host, requests) = host_with_model(|_| Ok("Task: modules.".to_owned()));
    let plan = run_plan(&host, &gc_request(conversation_of_turns(6)));
    assert_eq!(plan.drop, (0..20).collect::<Vec<_>>());
    let text = summary_text(&plan);
    assert!(text.starts_with("[Context Summary - Previous conversation compressed]\n"), "{text}");
    assert!(text.contains("Summary:\nTask: modules.\n"), "{text}");
    assert!(text.contains(&constraint_text(4)) && !text.contains(&constraint_text(5)), "{text}");
    assert!(text.contains("look {\"at\":4} → {\"text\":\"xx"), "{text}");
    let note = "Context cleaned: removed 5 old turns, kept 1 recent turns.";
    assert_eq!(plan.note.as_deref(), Some(note));
    let requests = requests.lock().unwrap();
    assert_eq!((requests.len(), &requests[0].model), (1, &None));
    let asked = requests[0].messages[0].text();
    assert!(asked.contains("USER: In module 0") && asked.contains("CALL look {\"at\":4}"));
    assert!(!asked.contains("In module 5"), "{asked}");
}

#[test]
fn failed_empty_limited_or_long_summary_falls_back_to_truncation_with_a_notice() {
    let cases: [(AnswerModel, &str); 4] = [
        (|_| Err(Error::failed("no luck")), "no luck"),
        (|_| Ok("  \n".to_owned()), "the model answered with nothing"),
        (|_| Ok("long ".repeat(4_000)), "it is longer than what it replaces"),
        (|_| Err(Error::new(ErrorKind::Provider, "429: slow down").temporary()), "429: slow down"),
    ];
    for (answer, why) in cases {
        let (host, _) = host_with_model(answer);
        let plan = run_plan(&host, &gc_request(conversation_of_turns(6)));
        assert_eq!(plan.drop.len(), 20);
        let text = summary_text(&plan);
        assert!(!text.contains("Summary:\n") && text.contains(&constraint_text(0)), "{text}");
        let note = plan.note.unwrap();
        let told = format!("The summary failed ({why}), so old turns were removed without one.");
        assert!(note.ends_with(&told), "{note}");
    }
}

#[test]
fn input_larger_than_the_window_is_split_and_merged() {
    let (host, requests) = host_with_model(|request| {
        let is_merge = request.system.contains("Merge them");
        Ok(if is_merge { "merged".to_owned() } else { "part".to_owned() })
    });
    let mut request = gc_request(conversation_of_turns(60));
    request.context_limit = 8_000;
    request.total_tokens = 20_000;
    let plan = run_plan(&host, &request);
    assert!(summary_text(&plan).contains("Summary:\nmerged\n"));
    let requests = requests.lock().unwrap();
    assert!((3..=6).contains(&requests.len()), "{}", requests.len());
    for request in requests.iter() {
        assert!(request.messages[0].text().len() < 8_000 * 2 + 100);
    }
    assert_eq!(
        requests.last().unwrap().messages[0].text().matches("part").count(),
        requests.len() - 1
    );
}

#[test]
fn configured_model_with_a_smaller_window_gets_smaller_parts() {
    let (host, requests) = host_with_model(|request| match request.messages[0].text().len() {
        0..=10_000 => Ok("short".to_owned()),
        _ => Err(Error::new(ErrorKind::ContextOverflow, "too long")),
    });
    let mut request = gc_request(conversation_of_turns(30));
    request.settings = json!({ "preserve_recent_turns": 1, "summary_model": "cheap/one" });
    let plan = run_plan(&host, &request);
    assert!(summary_text(&plan).contains("Summary:\nshort\n"), "{:?}", plan.note);
    let requests = requests.lock().unwrap();
    assert!(requests.len() <= 8);
    assert!(requests.iter().all(|request| request.model.as_deref() == Some("cheap/one")));
}

#[test]
fn embedded_model_truncates_unless_another_model_is_configured() {
    let facts = || SessionFacts {
        context: Some(ContextFacts { model: "local/qwen".to_owned(), ..ContextFacts::default() }),
        ..SessionFacts::default()
    };
    let (host, requests) = host_with_model(|_| Ok("sum".to_owned()));
    let host = host.with_session(facts());
    let mut request = gc_request(conversation_of_turns(6));
    let truncated = run_plan(&host, &request);
    assert!(requests.lock().unwrap().is_empty());
    assert_eq!(truncated.drop.len(), 20);
    assert!(!truncated.note.unwrap().contains("failed"));
    request.settings = json!({ "preserve_recent_turns": 1, "summary_model": "cheap/one" });
    assert!(summary_text(&run_plan(&host, &request)).contains("Summary:\nsum\n"));
}

#[test]
fn constraints_and_calls_survive_twenty_summaries_that_drop_every_fact() {
    let (host, _) = host_with_model(|_| Ok("They talked.".to_owned()));
    let mut messages: Vec<Message> = Vec::new();
    let mut collections = 0;
    for number in 0..40 {
        messages.extend(turn_with_constraint(number));
        if number % 2 == 1 {
            let mut request = gc_request(messages.clone());
            request.context_limit = 32_000;
            request.reason = GcReason::TurnLimit;
            let plan = run_plan(&host, &request);
            collections += usize::from(plan.summary.is_some());
            messages = apply_plan(&messages, &plan);
        }
    }
    assert_eq!(collections, 20);
    let text: String = messages.iter().map(Message::text).collect();
    for number in 0..40 {
        assert!(text.contains(&constraint_text(number)), "constraint {number} is lost");
        let call = format!("look {{\"at\":{number}}} →");
        let is_recent = number >= 39;
        assert!(is_recent || text.contains(&call), "call {number} is lost");
    }
    assert_eq!(text.matches("They talked.").count(), 1, "a summary replaces the earlier one");
}

#[test]
fn names_in_long_messages_that_the_summary_lacks_are_listed() {
    let (host, _) = host_with_model(|_| Ok("It was about src/kept.rs.".to_owned()));
    let log = "0x00 [00:00:00.000] 12345 {\"a\":1}\n".repeat(40);
    let text = format!("{log}=> https://example.org/x {{src/kept.rs}} {{src/lost.rs}}");
    let mut messages = vec![Message::user(text), Message::model(vec![Part::text("ok")])];
    messages.extend(conversation_of_turns(6));
    let text = summary_text(&run_plan(&host, &gc_request(messages)));
    let (_, facts) = text.split_once("The user also named:\n").unwrap();
    assert!(facts.contains("- https://example.org/x\n") && facts.contains("- src/lost.rs\n"));
    assert!(!facts.contains("src/kept.rs"), "{facts}");
}
