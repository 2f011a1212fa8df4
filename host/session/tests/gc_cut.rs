//! Content for which no gc can make room is truncated, and requests change only with an event.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::collecting::*;
use jaato_session::testing::{ScriptedGcAction, ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_types::{CompletionRequest, Outcome, Output, Part, Role};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn oversized_prompt_is_always_sent_as_the_same_head_and_tail() {
    let stage = TestStage::new([]);
    let setup = TestStage::setup_with_limit(8_192);
    let mut session = session_after_turns(&stage, setup, 2).await;
    let prompt = format!("the beginning {} the end", "0123456789".repeat(105_000));
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("I see"), usage_action(3_400)])
        .add_answer([ScriptedProviderAction::text("yes")]);
    assert_eq!(run_turn(&mut session, &prompt).await.outcome, Outcome::Done);
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
    let [line] = &recorded_collections(&stage)[..] else {
        panic!("{:?}", recorded_collections(&stage))
    };
    assert!(
        line.starts_with("Threshold host: 0/0 removed, 1 cut. a text of 1050022 bytes"),
        "{line}"
    );
    // Earlier messages stay, and so does the truncated one in later requests.
    assert_eq!(last_request(&stage).messages.len(), 5);
    run_turn(&mut session, "and?").await;
    assert_eq!(last_request(&stage).messages[4].text(), sent);
    assert_eq!(session.history().entries()[4].message.text(), prompt, "the record has it whole");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_fits_is_left_alone() {
    let stage = TestStage::new([]);
    stage.provider.add_answer([ScriptedProviderAction::text("I see")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let prompt = "word ".repeat(6_000);
    run_turn(&mut session, &prompt).await;
    assert_eq!(last_request(&stage).messages[0].text(), prompt);
    assert!(recorded_collections(&stage).is_empty());
}

fn loud_tool(name: &str) -> ScriptedTool {
    ScriptedTool::new(name, |call, _| async move {
        let text = format!("{}-", call.id).repeat(4_000);
        Ok(Output::json(json!({ "stdout": text, "exit_code": 0 })))
    })
}

#[tokio::test(start_paused = true)]
async fn oversized_results_share_the_remaining_room() {
    let stage = TestStage::new([loud_tool("loud"), ScriptedTool::echo("look")]);
    let calls =
        (0..6).map(|n| ScriptedProviderAction::call(&format!("call-{n}"), "loud", json!({})));
    let small = ScriptedProviderAction::call("small", "look", json!({ "text": "small" }));
    stage
        .provider
        .add_answer(calls.chain([small]))
        .add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    assert_eq!(run_turn(&mut session, "look at all").await.outcome, Outcome::Done);
    let results: Vec<_> = last_request(&stage).messages[2].tool_results().cloned().collect();
    let bytes: usize = results.iter().map(|result| json!(result.content).to_string().len()).sum();
    assert!((12_000..17_000).contains(&bytes), "{bytes}");
    for result in &results[..6] {
        assert_eq!(result.content["exit_code"], 0, "what is small stays");
        let shown = result.content["stdout"].as_str().unwrap();
        let (head, rest) = shown.split_once("\n[… ").unwrap();
        let (note, tail) = rest.split_once(" …]\n").unwrap();
        // Truncated a second time: the file and the count are still those of the whole.
        let files = stage.outputs.files();
        let file = &result.content["output_file"];
        let (path, whole) = files.iter().find(|(path, _)| path == file).unwrap();
        assert_eq!(whole.len(), 4_000 * (result.call_id.as_str().len() + 1));
        let left_out = whole.len() - head.len() - tail.len();
        assert_eq!(note, format!("{left_out} bytes left out; the whole output: {path}"));
    }
    assert_eq!(results[6].content.get("output_file"), None);
    assert_eq!(stage.outputs.files().len(), 6, "a second cut makes no file");
    assert_eq!(recorded_collections(&stage).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn long_turn_continues_with_truncated_results() {
    let stage = TestStage::new([loud_tool("loud")]);
    for number in 0..12 {
        stage.provider.add_answer([ScriptedProviderAction::call(
            &format!("c{number}"),
            "loud",
            json!({}),
        )]);
    }
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let report = run_turn(&mut session, "start").await;
    assert_eq!((report.outcome, report.steps), (Outcome::Done, 13));
    for request in stage.provider.requests() {
        let bytes = serde_json::to_string(&request).unwrap().len();
        assert!(bytes / 4 < 10_000, "{bytes}");
    }
    let lines = recorded_collections(&stage);
    assert!((1..10).contains(&lines.len()), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn full_window_truncates_results_but_not_model_text() {
    let stage = TestStage::new([loud_tool("loud")]);
    let said = "thinking aloud ".repeat(200);
    for number in 0..5 {
        let call = ScriptedProviderAction::call(&format!("c{number}"), "loud", json!({}));
        stage.provider.add_answer([ScriptedProviderAction::text(&said), call]);
    }
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    assert_eq!(run_turn(&mut session, "start").await.outcome, Outcome::Done);
    for request in stage.provider.requests() {
        let bytes = serde_json::to_string(&request).unwrap().len();
        assert!(bytes / 4 < 9_600, "{bytes}");
        let model = request.messages.iter().filter(|message| message.role == Role::Model);
        assert!(model.into_iter().all(|message| message.text() == said));
    }
}

/// A request begins differently only directly after a gc event.
#[tokio::test(start_paused = true)]
async fn requests_share_their_beginning_except_after_gc_events() {
    let stage = TestStage::new([loud_tool("loud")]);
    stage.gc.add_gc([ScriptedGcAction::keep_last_turns(2)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    let mut changed = Vec::new();
    let (mut before, mut told): (Option<CompletionRequest>, usize) = (None, 0);
    for number in 0..12 {
        // The first and the second request of the turn.
        stage.provider.add_answer([ScriptedProviderAction::call(
            &format!("c{number}"),
            "loud",
            json!({}),
        )]);
        stage.provider.add_answer([ScriptedProviderAction::text("done")]);
        let from = stage.provider.requests().len();
        run_turn(&mut session, &format!("prompt {number}")).await;
        for request in &stage.provider.requests()[from..] {
            let text = serde_json::to_string(&(&request.system, &request.tools, &request.messages));
            if let Some(before) = before.replace(request.clone()) {
                let text = text.unwrap();
                let old = (&before.system, &before.tools, &before.messages);
                let old = serde_json::to_string(&old).unwrap();
                changed.push(!text.starts_with(old.strip_suffix("]]").unwrap()));
            }
        }
        let collected = recorded_collections(&stage).len();
        let changes = changed.iter().filter(|changed| **changed).count();
        assert_eq!(changes, collected, "turn {number}: {:?}", recorded_collections(&stage));
        told = collected;
    }
    assert!((2..=12).contains(&told), "{told}");
}

/// Returns the notes in front of a request's prompt.
fn truncation_notes(request: &CompletionRequest) -> Vec<String> {
    let parts = &request.messages[0].parts;
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } if text.starts_with("[Left out here") => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

#[tokio::test(start_paused = true)]
async fn turn_with_many_small_results_drops_its_oldest_calls() {
    let small = ScriptedTool::new("small", |call, _| async move {
        Ok(Output::text(format!("{}: {}", call.id, "a line of text ".repeat(40))))
    });
    let stage = TestStage::new([small]);
    for number in 0..200 {
        stage.provider.add_answer([ScriptedProviderAction::call(
            &format!("c{number}"),
            "small",
            json!({}),
        )]);
    }
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let mut setup = TestStage::setup_with_limit(4_096);
    setup.limits.steps_max = 300;
    let mut session = stage.start(setup).unwrap();
    let report = run_turn(&mut session, "start").await;
    assert_eq!((report.outcome, report.steps), (Outcome::Done, 201), "{:?}", report.error);
    let requests = stage.provider.requests();
    for (step, request) in requests.iter().enumerate() {
        let bytes = serde_json::to_string(&request).unwrap().len();
        assert!(bytes / 4 < 4_096, "{bytes}");
        let results: Vec<_> =
            request.messages.iter().flat_map(|message| message.tool_results()).collect();
        if let Some(last) = step.checked_sub(1) {
            let id = results.last().unwrap().call_id.as_str();
            assert_eq!(id, format!("c{last}"), "the newest is always there");
            assert!(results.len() >= 4.min(step), "{} at {step}", results.len());
        }
        // The calls in the request and those that the note counts add up to all executed calls.
        let said = match truncation_notes(request).as_slice() {
            [] => 0,
            [note] => {
                let count = note.split("(small: ").nth(1).and_then(|it| it.split(')').next());
                count.unwrap().parse::<usize>().unwrap()
            }
            many => panic!("{many:?}"),
        };
        assert_eq!(said + results.len(), step, "step {step}");
    }
    assert_eq!(requests[200].messages[0].parts.len(), 2, "one note, and the prompt");
    assert_eq!(session.history().entries().len(), 402, "the record keeps everything");
    let lines = recorded_collections(&stage);
    assert!(lines.iter().all(|line| line.starts_with("Threshold host: ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(" oldest calls of this turn ")), "{lines:?}");
    // The next turn keeps the note where it is.
    stage.provider.add_answer([ScriptedProviderAction::text("yes")]);
    assert_eq!(run_turn(&mut session, "and?").await.outcome, Outcome::Done);
    assert_eq!(truncation_notes(&last_request(&stage)).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn large_results_are_truncated_before_calls_are_dropped() {
    let stage = TestStage::new([loud_tool("loud")]);
    for number in 0..3 {
        stage.provider.add_answer([ScriptedProviderAction::call(
            &format!("c{number}"),
            "loud",
            json!({}),
        )]);
    }
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    run_turn(&mut session, "start").await;
    assert_eq!(truncation_notes(&last_request(&stage)), Vec::<String>::new());
    assert_eq!(last_request(&stage).messages.len(), 7);
}
