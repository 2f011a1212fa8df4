//! Tests that a conversation in several processes sends each vendor the same bytes as in one:
//! signatures, thoughts and parts that only their maker understands.

use serde_json::{Value, json};

use super::switched::opaque_parts;
use super::{AnswerPart, ModelTurn, PROVIDERS, Provider, text_turn, unchanged_answer};
use crate::support::House;
use crate::support::server::ReceivedRequest;

fn resumed_turns() -> [ModelTurn; 5] {
    let look = |aspect: &str| AnswerPart::call(json!({ "aspect": aspect }));
    [
        ModelTurn::Says(vec![
            AnswerPart::Thought("I look."),
            AnswerPart::Text("Let me see."),
            look("os"),
            look("moon"),
        ]),
        ModelTurn::Says(vec![AnswerPart::Thought("Again."), look("shell")]),
        ModelTurn::Says(vec![
            AnswerPart::Thought("so"),
            AnswerPart::Text("It is "),
            AnswerPart::Text("Linux. "),
        ]),
        ModelTurn::Says(vec![AnswerPart::Thought("polite"), AnswerPart::Text("You are welcome.")]),
        text_turn("Bye."),
    ]
}

/// Runs jaato once for each of these inputs, and returns the last request with its messages.
fn last_request(provider: &Provider, house: &House, runs: &[(&[&str], &str)]) -> (Value, String) {
    let vendor = provider.fake_vendor(resumed_turns());
    let server = provider.serve(&vendor, unchanged_answer);
    let settings = provider.server_config(&server);
    house.configure(&settings);
    for (words, input) in runs {
        let words = [&["chat"], *words].concat();
        let output = provider.command(house, &words).input(format!("{input}\n")).run().code(0);
        assert!(!output.stderr.contains("dropped earlier thoughts"), "{output}");
    }
    let accepted = vendor.accepted_requests();
    assert_eq!(accepted.len(), 5, "{}", provider.name);
    let asked = provider.completion_requests(&server).pop().unwrap();
    (accepted.into_iter().last().unwrap(), messages_text(provider, &asked))
}

/// Returns the messages of a request as they were sent.
fn messages_text(provider: &Provider, asked: &ReceivedRequest) -> String {
    let key = match provider.name {
        "google" => "\"contents\":",
        "openai" => "\"input\":",
        _ => "\"messages\":",
    };
    let body = String::from_utf8(asked.body.clone()).unwrap();
    let from = body.find(key).unwrap() + key.len();
    let mut values = serde_json::Deserializer::from_str(&body[from..]).into_iter::<Value>();
    values.next().unwrap().unwrap();
    body[from..from + values.byte_offset()].to_owned()
}

#[test]
fn every_vendor_gets_the_same_bytes_from_a_session_in_several_processes() {
    for provider in &PROVIDERS {
        let Some(house) = provider.new_house() else { return };
        let begin = ["--model", provider.model];
        let whole = "which system?\nthanks\nbye";
        let (request, in_one) =
            last_request(provider, &house, &[(&[&begin[..], &["--no-save"]].concat(), whole)]);
        let runs: [(&[&str], &str); 3] =
            [(&begin, "which system?"), (&["--continue"], "thanks"), (&["--continue"], "bye")];
        let (_, in_several) = last_request(provider, &house, &runs);
        assert_eq!(in_one, in_several, "{}", provider.name);
        assert_eq!(opaque_parts(&request).len() >= 4, provider.gives_signed, "{request:#}");
    }
}
