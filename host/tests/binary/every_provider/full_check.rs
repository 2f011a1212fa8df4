//! Tests `jaato provider check --full` against every vendor.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::{
    AnswerPart, ModelTurn, PROVIDERS, Provider, VendorScript, text_turn, unchanged_answer,
};
use crate::support::Output;
use crate::support::server::Answer;

/// The checks, in order.
const CHECKS: [&str; 12] = [
    "text",
    "parallel calls",
    "thinking round trip",
    "image",
    "cached prefix",
    "cancel",
    "overflow",
    "schema",
    "long output",
    "odd names",
    "resume",
    "429",
];

/// Tokens of the context window, both at the vendor and in the configuration.
const WINDOW: u64 = 12_000;

/// Returns answers with which all possible checks pass. `colour` is the answer about the image.
fn passing_turns(colour: &'static str) -> Vec<ModelTurn> {
    let call = |aspect: &str| AnswerPart::call(json!({ "aspect": aspect }));
    let numbers: Vec<String> = (1..=200).map(|number: u32| number.to_string()).collect();
    let numbers: &'static str = numbers.join(",").leak();
    vec![
        text_turn("Hello"),
        ModelTurn::Says(vec![call("os"), call("shell")]),
        text_turn("Linux, bash"),
        ModelTurn::Says(vec![AnswerPart::Thought("17 * 23 is 391."), call("os")]),
        text_turn("391, Linux"),
        text_turn("392"),
        text_turn(colour),
        text_turn("one"),
        text_turn("two"),
        text_turn("Once the moon"),
        text_turn("ok"),
        text_turn(r#"{"city":"Paris","rivers":1}"#),
        text_turn(numbers),
        text_turn("ok"),
        text_turn("ok"),
    ]
}

/// Runs the checks. Returns the output, and each row by its name.
#[track_caller]
fn run_full_check(
    provider: &Provider,
    colour: &'static str,
    busy_first: bool,
) -> Option<(Output, Vec<String>)> {
    let house = provider.new_house()?;
    // The first answer is lost if the server is busy.
    let lost = busy_first.then(|| text_turn("never"));
    let turns = lost.into_iter().chain(passing_turns(colour)).collect();
    let script = VendorScript { turns, window: Some(WINDOW) };
    let vendor = (provider.vendor)(script);
    let count = AtomicUsize::new(0);
    let server = provider.serve(&vendor, move |answered| {
        let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
        match is_first && busy_first {
            true => Answer::error(429, "slow down").header("retry-after", "0"),
            false => unchanged_answer(answered),
        }
    });
    provider.configure_server(&house, &server);
    house.configure_more(&format!("[models.\"{}\"]\ncontext_limit = {WINDOW}\n", provider.model));
    let words = ["provider", "check", provider.model, "--full"];
    let output = provider.command(&house, &words).run();
    let rows = output.stdout.lines().skip_while(|line| !line.starts_with("CHECK "));
    let rows: Vec<String> = rows.skip(1).map(str::to_owned).collect();
    Some((output, rows))
}

fn row_text<'a>(rows: &'a [String], name: &str) -> &'a str {
    rows.iter().find(|row| row.starts_with(name)).map_or("", |row| row[name.len()..].trim_start())
}

#[test]
fn every_full_check_passes_or_is_reported_as_not_provoked() {
    for provider in &PROVIDERS {
        let Some((output, rows)) = run_full_check(provider, "Red.", false) else { return };
        assert_eq!(output.code, 0, "{}: {output}", provider.name);
        for name in CHECKS {
            let row = row_text(&rows, name);
            let may_be_missing = match name {
                "429" => !row.starts_with("passed"),
                "cached prefix" | "cancel" | "thinking round trip" => true,
                _ => false,
            };
            let is_missing = row.starts_with("not provoked");
            assert!(
                row.starts_with("passed") || (may_be_missing && is_missing),
                "{}, {name}: {output}",
                provider.name
            );
        }
        let thoughts = row_text(&rows, "thinking round trip");
        assert_eq!(thoughts.contains("signed thoughts"), provider.gives_signed, "{output}");
        assert!(output.stdout.lines().last().unwrap().starts_with("jaato "), "{output}");
    }
}

#[test]
fn full_check_reports_a_429_and_a_wrong_answer() {
    for provider in &PROVIDERS {
        let Some((output, rows)) = run_full_check(provider, "Blue.", true) else { return };
        assert_eq!(output.code, 1, "{}: {output}", provider.name);
        assert!(row_text(&rows, "429").starts_with("passed"), "{}: {output}", provider.name);
        let image = row_text(&rows, "image");
        assert!(image.starts_with("FAILED") && image.contains("Blue."), "{output}");
    }
}

#[test]
fn full_check_of_an_unavailable_vendor_fails_after_one_request() {
    for provider in &PROVIDERS {
        let Some(house) = provider.new_house() else { return };
        house.configure_more("attempts_max = 1\n");
        let vendor = provider.fake_vendor([]);
        let server = provider.serve(&vendor, |_| Answer::error(503, "busy"));
        provider.configure_server(&house, &server);
        let words = ["provider", "check", provider.model, "--full"];
        let output = provider.command(&house, &words).run().code(5);
        assert!(output.stdout.contains("FAILED"), "{}: {output}", provider.name);
        assert!(output.stderr.contains("answered 503"), "{}: {output}", provider.name);
        assert_eq!(provider.completion_requests(&server).len(), 1, "{}", provider.name);
    }
}
