//! Tests the gcs in whole conversations: what the model is sent after many collections, summaries
//! that fail, and contexts that no gc can make smaller in the usual way.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::cli::cli_house;
use crate::house;
use crate::support::openai::{openai_command, ship_openai};
use crate::support::server::{Answer, ReceivedRequest, Server};
use crate::support::{House, Output, fixtures, library_name};
use crate::vendors::PNG;

const CHAT: [&str; 4] = ["chat", "--yes", "--model", "openai/test"];

/// The number of turns, of which the last 20 begin with a collection.
const TURNS: usize = 23;

/// Prepares a gc that keeps one recent turn.
fn set_up(house: &House, gc: &str, more: &str) {
    set_up_window(house, gc, 32_000, more);
}

fn set_up_window(house: &House, gc: &str, tokens: u64, more: &str) {
    ship_openai(house);
    let plugins = fixtures::test_house().unwrap().join("plugins");
    house.ship(&plugins.join(library_name(&format!("gc_{gc}"))));
    house.configure_more(&format!("[models.\"openai/test\"]\ncontext_limit = {tokens}\n"));
    house.configure_more(&format!("[gc]\nplugin = \"{gc}\"\npreserve_recent_turns = 1\n{more}"));
}

fn constraint_text(number: usize) -> String {
    format!("In module {number}, the name blue_{number} stays as it is")
}

fn request_messages(asked: &ReceivedRequest) -> Vec<Value> {
    asked.json()["messages"].as_array().unwrap().clone()
}

fn is_summary_request(asked: &ReceivedRequest) -> bool {
    let messages = request_messages(asked);
    messages[0]["content"].to_string().contains("You summarise the first part")
}

fn gc_notices(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter(|line| line.starts_with("gc ")).collect()
}

/// Answers each prompt with a call, and its result with a text that has many words.
fn call_answer(asked: &ReceivedRequest, number: &AtomicUsize) -> Answer {
    if is_summary_request(asked) {
        return Answer::text(&["They talked."]);
    }
    if request_messages(asked).last().unwrap()["role"] == "tool" {
        return Answer::text_of_prompt(&"fine ".repeat(200), 4_000);
    }
    let number = number.fetch_add(1, Ordering::SeqCst);
    let command = json!({ "command": format!("echo ran_{number}") });
    Answer::calls(&[("cli_based_tool", command)])
}

#[test]
fn constraints_and_finished_calls_stay_in_the_request_after_twenty_collections() {
    for gc in ["truncate", "summarize", "hybrid", "budget"] {
        let house = cli_house!();
        set_up(&house, gc, "max_turns = 2\n");
        let calls = AtomicUsize::new(0);
        let server = Server::start_with(move |asked| call_answer(asked, &calls));
        let input: String = (0..TURNS).map(|number| constraint_text(number) + "\n").collect();
        let output = openai_command(&house, &server, &CHAT)
            .input(&*input)
            .with_long_deadline()
            .run()
            .code(0);
        let collections = gc_notices(&output);
        assert!(collections.len() >= 20, "{gc}: {} collections: {output}", collections.len());
        let asked = server.requests();
        let last = asked.iter().rev().find(|asked| !is_summary_request(asked)).unwrap();
        let text = last.json()["messages"].to_string();
        for number in 0..TURNS {
            assert!(text.contains(&constraint_text(number)), "{gc}: {number} is lost: {text}");
            assert!(text.contains(&format!("echo ran_{number}")), "{gc}: call {number}: {text}");
        }
        let summaries = asked.iter().filter(|asked| is_summary_request(asked)).count();
        let has_summary = text.contains("They talked.");
        assert_eq!(has_summary, matches!(gc, "summarize" | "hybrid"), "{gc}: {text}");
        assert_eq!(has_summary, summaries > 0, "{gc}");
        house.assert_no_processes();
    }
}

/// A failure, with the answer of the server.
type SummaryCase = (&'static str, fn() -> Answer);

#[test]
fn summary_that_fails_is_reported_in_one_event_and_the_conversation_continues() {
    let busy = || Answer::error(429, "Rate limit reached").header("retry-after", "0");
    let cases: [SummaryCase; 3] = [
        ("Rate limit reached", busy),
        ("the model answered with nothing", || Answer::text(&[" "])),
        ("it is longer than what it replaces", || Answer::text(&[&"long ".repeat(2_000)])),
    ];
    for (why, answer) in cases {
        let house = house!();
        set_up(&house, "summarize", "max_turns = 2\n");
        let server = Server::start_with(move |asked| match is_summary_request(asked) {
            true => answer(),
            false => Answer::text(&["fine ".repeat(100).as_str()]),
        });
        let input = "Never touch main.\nb\nc\n";
        let chat = openai_command(&house, &server, &CHAT).variable("AI_RETRY_ATTEMPTS", "2");
        let output = chat.input(input).run().code(0);
        let [line] = gc_notices(&output)[..] else { panic!("{why}: {output}") };
        assert!(line.contains("The summary failed (") && line.contains(why), "{why}: {output}");
        let asked = server.requests();
        let text = asked.last().unwrap().json()["messages"].to_string();
        assert!(text.contains("- Never touch main.") && !text.contains("Summary:"), "{text}");
        house.assert_no_processes();
    }
}

#[test]
fn shortened_results_stay_shortened_when_the_session_continues() {
    let house = cli_house!();
    set_up(&house, "truncate", "threshold_percent = 50\ntarget_percent = 45\n");
    let calls = Mutex::new(vec!["seq 3000"]);
    let server = Server::start_with(move |asked| {
        let command = match request_messages(asked).last().unwrap()["role"].as_str() {
            Some("user") => calls.lock().unwrap().pop(),
            _ => None,
        };
        let used = if request_messages(asked).len() < 7 { 8_000 } else { 16_500 };
        match command {
            Some(command) => Answer::calls(&[("cli_based_tool", json!({ "command": command }))]),
            None => Answer::text_of_prompt("fine", used),
        }
    });
    let output = openai_command(&house, &server, &CHAT).input("count\nb\nc\nd\n").run().code(0);
    let [line] = gc_notices(&output)[..] else { panic!("{output}") };
    assert!(line.contains("Shortened 1 old results."), "{output}");
    let words = ["run", "--continue", "--yes", "--model", "openai/test", "e"];
    openai_command(&house, &server, &words).no_input().run().code(0);
    let asked = server.requests();
    let before = request_messages(&asked[asked.len() - 2]);
    let after = request_messages(&asked[asked.len() - 1]);
    assert_eq!(before[..], after[..before.len()]);
    let result = after.iter().find(|message| message["role"] == "tool").unwrap();
    let content = result["content"].as_str().unwrap();
    assert!(content.len() < 1_200 && content.contains("output_file"), "{content}");
}

#[test]
fn settings_of_the_original_gc_json_apply_in_a_trusted_workspace() {
    let house = house!();
    house.write(
        "workspace/.jaato/gc.json",
        r#"{"type": "gc_hybrid", "max_turns": 7, "summarizer": 1}"#,
    );
    let shown = |house: &House| house.run(&["config", "show"]).code(0);
    assert!(shown(&house).stdout.contains("gc.plugin = \"gc-truncate\""), "it is not trusted");
    house.run(&["trust"]).code(0);
    let output = shown(&house);
    assert!(output.stdout.contains("gc.plugin = \"gc_hybrid\""), "{output}");
    assert!(output.stdout.contains("gc.max_turns = 7"), "{output}");
    assert!(output.stdout.contains("gc.json:1"), "{output}");
    assert!(output.stderr.contains("`summarizer`"), "{output}");
}

#[test]
fn old_images_of_a_history_of_images_become_descriptions() {
    let house = house!();
    set_up_window(&house, "truncate", 5_000, "");
    std::fs::write(house.workspace().join("moon.png"), PNG).unwrap();
    let server = Server::start_with(|asked| {
        let images = asked.json()["messages"].to_string().matches("data:image/png").count();
        Answer::text_of_prompt("It is the moon.", 1_350 * images as u64)
    });
    let input = "/attach moon.png\nlook\n".repeat(5);
    let words = [&CHAT[..], &["--tools", "none"]].concat();
    let output = openai_command(&house, &server, &words).input(&*input).run().code(0);
    assert_eq!(output.stdout, "It is the moon.\n".repeat(5), "{output}");
    assert!(gc_notices(&output)[0].contains("Shortened "), "{output}");
    let asked = server.requests();
    let last = asked.last().unwrap().json()["messages"].to_string();
    let images = last.matches("data:image/png").count();
    assert!((1..4).contains(&images), "{images}");
    assert!(last.contains("left out to save room; the answer to it: It is the moon."), "{last}");
    assert_eq!(
        request_messages(asked.last().unwrap()).iter().filter(|it| it["role"] == "user").count(),
        5
    );
}

#[test]
fn usage_numbers_that_cannot_be_true_are_reported_once_and_change_nothing() {
    let house = house!();
    set_up(&house, "truncate", "");
    let server = Server::start_with(|_| Answer::text_of_prompt("fine", 900_000_000));
    let output = openai_command(&house, &server, &CHAT).input("a\nb\nc\nd\n").run().code(0);
    assert_eq!(output.stdout, "fine\n".repeat(4), "{output}");
    assert_eq!(gc_notices(&output), Vec::<&str>::new(), "{output}");
    let told =
        output.stderr.lines().filter(|line| line.contains("jaato uses its own estimate")).count();
    assert_eq!(told, 1, "{output}");
    assert_eq!(request_messages(server.requests().last().unwrap()).len(), 8);
}
