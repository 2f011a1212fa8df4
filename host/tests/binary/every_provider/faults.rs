//! Tests failures with every provider: temporary ones are retried, permanent ones are reported,
//! nothing waits forever, and no key goes astray.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use jaato_vendors::VendorAnswer;

use super::{ModelTurn, PROVIDERS, Provider, head_of_answer, text_turn, unchanged_answer};
use crate::support::openai::{SECRET, assert_key_not_saved};
use crate::support::server::{Answer, BodyStep, Server};

/// Marks an answer without a head.
const NO_HEAD: u16 = 0;

/// Replaces a vendor's answer.
type AnswerFault = fn(VendorAnswer) -> Answer;

/// Returns the first part of an answer to [`text_turn`], up to the end of the event or line
/// with word.
fn truncate_after(body: &[u8], word: &str) -> Vec<u8> {
    let at = body.windows(word.len()).position(|window| window == word.as_bytes()).unwrap();
    let line_end = at + body[at..].iter().position(|byte| *byte == b'\n').unwrap();
    let blanks = body[line_end..].iter().take_while(|byte| b"\r\n".contains(byte)).count();
    body[..line_end + blanks].to_vec()
}

/// Returns the start of an answer, in the middle of a frame.
fn first_half(answered: &VendorAnswer) -> BodyStep {
    BodyStep::Bytes(answered.body[..12].to_vec())
}

/// Runs with faults in the first answers of a vendor that always answers hello.
#[track_caller]
fn run_with_faults(
    provider: &Provider,
    faults: &'static [AnswerFault],
    more: &str,
) -> Option<(crate::support::Output, Server)> {
    let house = provider.new_house()?;
    house.configure_more(more);
    let vendor = provider.fake_vendor(std::iter::repeat_n(text_turn("hello there"), 20));
    let count = AtomicUsize::new(0);
    let server = provider.serve(&vendor, move |answered| {
        let fault = faults.get(count.fetch_add(1, Ordering::SeqCst));
        fault.map_or_else(|| unchanged_answer(answered.clone()), |fault| fault(answered.clone()))
    });
    provider.configure_server(&house, &server);
    let output = provider.hello_command(&house).run();
    assert!(!output.to_string().contains(SECRET), "{}: {output}", provider.name);
    assert_key_not_saved(&house);
    house.assert_no_processes();
    Some((output, server))
}

#[test]
fn temporary_faults_are_retried_until_the_request_succeeds() {
    static FAULTS: [AnswerFault; 9] = [
        |_| Answer::status(NO_HEAD).then(BodyStep::Cut),
        |answered| head_of_answer(&answered).then(BodyStep::Cut),
        |answered| head_of_answer(&answered).then(first_half(&answered)).then(BodyStep::Cut),
        |answered| head_of_answer(&answered).then(first_half(&answered)),
        |answered| head_of_answer(&answered),
        |_| Answer::error(429, "slow down").header("retry-after", "0"),
        |_| Answer::error(500, "oops"),
        |_| Answer::status(503).body("<html>busy</html>"),
        |_| Answer::error(529, "overloaded"),
    ];
    for provider in &PROVIDERS {
        let patient = "attempts_max = 10\n";
        let Some((output, _)) = run_with_faults(provider, &FAULTS, patient) else { return };
        assert_eq!(output.code, 0, "{}: {output}", provider.name);
        assert_eq!(output.stdout, "hello there\n", "{}", provider.name);
        let again = output.stderr.matches("trying again").count();
        assert_eq!(again, FAULTS.len(), "{}: {output}", provider.name);
    }
}

#[test]
fn silent_server_times_out_and_the_request_is_retried() {
    static FAULTS: [AnswerFault; 2] = [
        |_| Answer::silence(),
        |answered| head_of_answer(&answered).then(first_half(&answered)).then(BodyStep::Hang),
    ];
    for provider in &PROVIDERS {
        let impatient = "provider_idle_ms = 500\nattempts_max = 12\n";
        let Some((output, server)) = run_with_faults(provider, &FAULTS, impatient) else { return };
        assert_eq!(output.code, 0, "{}: {output}", provider.name);
        assert_eq!(output.stdout, "hello there\n", "{}", provider.name);
        server.wait_until_disconnected();
    }
}

#[test]
fn error_inside_an_answer_is_retried_and_the_restart_is_shown() {
    for provider in &PROVIDERS {
        let Some(house) = provider.new_house() else { return };
        let turns = [
            ModelTurn::FailsAtOnce,
            text_turn("hello"),
            ModelTurn::FailsBehind("half"),
            text_turn("whole"),
            text_turn("next"),
        ];
        let vendor = provider.fake_vendor(turns);
        let server = provider.serve(&vendor, unchanged_answer);
        provider.configure_server(&house, &server);
        let first = provider.hello_command(&house).run().code(0);
        assert_eq!(first.stdout, "hello\n", "{}: {first}", provider.name);
        assert_eq!(first.stderr.matches("trying again").count(), 1, "{}: {first}", provider.name);
        let words = ["chat", "--model", provider.model, "--tools", "none"];
        let chat = provider.command(&house, &words).input("one\ntwo\n").run();
        // A program that reads the output cannot take "half" back.
        assert_eq!(chat.stdout, "whole\nnext\n", "{}: {chat}", provider.name);
        assert!(chat.stderr.contains("; the answer starts again in "), "{}: {chat}", provider.name);
        assert!(!chat.stderr.contains("\nerror: "), "{}: {chat}", provider.name);
    }
}

#[test]
fn answer_that_breaks_in_mid_stream_is_retried_up_to_the_limit() {
    const BREAKS: AnswerFault = |answered| {
        let begin = truncate_after(&answered.body, "hello");
        head_of_answer(&answered).then(BodyStep::Bytes(begin)).then(BodyStep::Cut)
    };
    static FAULTS: [AnswerFault; 2] = [BREAKS; 2];
    for provider in &PROVIDERS {
        let Some((output, _)) = run_with_faults(provider, &FAULTS, "") else { return };
        assert_eq!(output.code, 0, "{}: {output}", provider.name);
        assert_eq!(output.stdout, "hello there\n", "{}: {output}", provider.name);
        assert_eq!(output.stderr.matches("the answer starts again").count(), 2, "{output}");
        let Some((output, _)) = run_with_faults(provider, &FAULTS, "attempts_max = 2\n") else {
            return;
        };
        assert_eq!(output.code, 5, "{}: {output}", provider.name);
        assert!(output.stdout.starts_with("hello"), "{}: {output}", provider.name);
        assert_eq!(output.stdout.matches("hello").count(), 1, "{}: {output}", provider.name);
    }
}

#[test]
fn again_command_resends_the_last_request_after_a_broken_or_whole_answer() {
    for provider in &PROVIDERS {
        let Some(house) = provider.new_house() else { return };
        house.configure_more("attempts_max = 1\n");
        let turns = [
            ModelTurn::FailsBehind("half"),
            text_turn("whole"),
            text_turn("another"),
            text_turn("last"),
        ];
        let vendor = provider.fake_vendor(turns);
        let server = provider.serve(&vendor, unchanged_answer);
        provider.configure_server(&house, &server);
        let words = ["chat", "--model", provider.model, "--tools", "none"];
        let chat = provider.command(&house, &words).input("one\n/again\n/again\ntwo\n").run();
        let said: Vec<&str> = chat.stdout.lines().filter(|line| !line.is_empty()).collect();
        assert!(said.ends_with(&["whole", "another", "last"]), "{}: {chat}", provider.name);
        let sent = provider.completion_requests(&server).last().unwrap().json().to_string();
        assert!(sent.contains("another") && !sent.contains("half"), "{}: {sent}", provider.name);
        assert!(!sent.contains("whole"), "{}: {sent}", provider.name);
    }
}

#[test]
fn slow_answer_and_wrong_content_type_are_still_read() {
    static DRIP: [AnswerFault; 1] = [|answered| unchanged_answer(answered).in_single_bytes()];
    static WRONG: [AnswerFault; 1] = [|answered| {
        let body = answered.body.clone();
        Answer::status(200).header("content-type", "text/plain").then(BodyStep::Bytes(body))
    }];
    for provider in &PROVIDERS {
        for faults in [&DRIP, &WRONG] {
            let Some((output, _)) = run_with_faults(provider, faults, "") else { return };
            assert_eq!(output.code, 0, "{}: {output}", provider.name);
            assert_eq!(output.stdout, "hello there\n", "{}", provider.name);
            assert!(!output.stderr.contains("trying again"), "{}: {output}", provider.name);
        }
    }
}

#[test]
fn html_page_is_reported_with_a_hint_and_not_retried() {
    static PAGE: [AnswerFault; 1] = [|_| {
        let page = Answer::status(200).header("content-type", "text/html");
        page.body("<html>Please sign in</html>")
    }];
    for provider in &PROVIDERS {
        let Some((output, _)) = run_with_faults(provider, &PAGE, "") else { return };
        assert_eq!(output.code, 5, "{}: {output}", provider.name);
        assert!(output.stderr.contains("\nhint: "), "{}: {output}", provider.name);
        assert!(!output.stderr.contains("trying again"), "{}: {output}", provider.name);
    }
}

#[test]
fn a_server_that_speaks_another_protocol_is_named_at_once_and_with_a_hint() {
    /// The first event of each vendor's answer.
    const FIRST: [(&str, &str); 4] = [
        ("OpenAI's chat completions", r#"{"choices":[{"index":0,"delta":{"content":"hi"}}]}"#),
        ("OpenAI's Responses", r#"{"type":"response.created","response":{"id":"r"}}"#),
        ("Anthropic's Messages", r#"{"type":"message_start","message":{"id":"m"}}"#),
        ("Google's generateContent", r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}"#),
    ];
    for provider in &PROVIDERS {
        let mut refused = 0;
        for (name, event) in FIRST {
            let Some(house) = provider.new_house() else { return };
            let vendor = provider.fake_vendor([text_turn("never")]);
            let server = provider.serve(&vendor, move |_| {
                let events = format!("data: {event}\n\ndata: [DONE]\n\n");
                Answer::stream(vec![BodyStep::Bytes(events.into_bytes())])
            });
            provider.configure_server(&house, &server);
            let output = provider.hello_command(&house).run();
            // Its own protocol, in which the answer has a text or no end.
            if !output.stdout.trim().is_empty() || output.stderr.contains("trying again") {
                continue;
            }
            assert_eq!(output.code, 5, "{}: {output}", provider.name);
            refused += 1;
            assert!(output.stderr.contains("\nhint: "), "{}: {output}", provider.name);
            let is_named = output.stderr.contains(&format!("answered with {name}"));
            assert!(is_named || provider.name == "ollama", "{}: {output}", provider.name);
        }
        let expected = if provider.name == "ollama" { FIRST.len() } else { FIRST.len() - 1 };
        assert_eq!(refused, expected, "{}", provider.name);
    }
}

#[test]
fn error_with_a_stalled_body_is_reported_by_its_status() {
    static STALLED: [AnswerFault; 1] = [|_| {
        let begin = b"{\"error\":{\"message\":\"over".to_vec();
        Answer::status(500).then(BodyStep::Bytes(begin)).then(BodyStep::Hang)
    }];
    for provider in &PROVIDERS {
        let Some((output, server)) = run_with_faults(provider, &STALLED, "attempts_max = 1\n")
        else {
            return;
        };
        assert_eq!(output.code, 5, "{}: {output}", provider.name);
        let is_told = output.stderr.contains("500 (internal server error)");
        assert!(is_told, "{}: {output}", provider.name);
        server.wait_until_disconnected();
    }
}

#[test]
fn endless_answer_is_stopped_at_a_limit() {
    static ENDLESS: [(&str, [AnswerFault; 1]); 4] = [
        (
            "one text",
            [|answered| {
                let body = vec![b'x'; 64 * 1024];
                head_of_answer(&answered).then(BodyStep::Endless(body))
            }],
        ),
        (
            "one endless line",
            [|answered| {
                let begin = answered.body[..12].to_vec();
                let more = BodyStep::Endless(vec![b'x'; 64 * 1024]);
                head_of_answer(&answered).then(BodyStep::Bytes(begin)).then(more)
            }],
        ),
        (
            "endless words",
            [|answered| {
                let begin = truncate_after(&answered.body, "hello");
                let once = begin.repeat(64);
                head_of_answer(&answered).then(BodyStep::Endless(once))
            }],
        ),
        (
            "an endless refusal",
            [|_| Answer::status(400).then(BodyStep::Endless(vec![b'x'; 64 * 1024]))],
        ),
    ];
    for provider in &PROVIDERS {
        for (name, faults) in &ENDLESS {
            // Without retries, temporary errors are reported immediately. A small text limit is
            // reached soon.
            let bounds = "attempts_max = 1\nanswer_bytes_max = 65536\n";
            let Some((output, server)) = run_with_faults(provider, faults, bounds) else { return };
            assert_ne!(output.code, 0, "{} {name}: {output}", provider.name);
            assert!(output.stderr.contains("error: "), "{} {name}: {output}", provider.name);
            // The provider did its part, so it reports the server's error instead of being disabled
            // for being busy.
            assert!(!output.stderr.contains("is disabled"), "{} {name}: {output}", provider.name);
            server.wait_until_disconnected();
        }
    }
}

#[test]
fn a_redirect_to_another_server_takes_no_key_along() {
    for provider in &PROVIDERS {
        for status in [302, 307] {
            let Some(house) = provider.new_house() else { return };
            let other = Server::start_with(|_| Answer::status(200).body("{}"));
            let place = format!("{}{}", other.root_url(), provider.path);
            let vendor = provider.fake_vendor([text_turn("never")]);
            let server =
                provider.serve(&vendor, move |_| Answer::status(status).header("location", &place));
            provider.configure_server(&house, &server);
            let output = provider.hello_command(&house).run().code(5);
            assert!(output.stderr.contains("error: "), "{}: {output}", provider.name);
            assert!(output.stderr.contains("\nhint: "), "{}: {output}", provider.name);
            let astray = other.requests().into_iter().chain(other.other_requests());
            for asked in astray {
                let is_key = |(_, value): &(String, String)| value.contains(SECRET);
                assert!(!asked.headers.iter().any(is_key), "{}: {asked:?}", provider.name);
                assert!(!asked.path.contains(SECRET), "{}: {asked:?}", provider.name);
            }
        }
    }
}

#[test]
fn ctrl_c_in_mid_stream_closes_the_connection() {
    for provider in &PROVIDERS {
        let Some(house) = provider.new_house() else { return };
        // An answer that is never requested again is written as it comes.
        house.configure_more("attempts_max = 1\n");
        let vendor = provider.fake_vendor([text_turn("hello there")]);
        let server = provider.serve(&vendor, |answered| {
            let begin = truncate_after(&answered.body, "hello");
            head_of_answer(&answered).then(BodyStep::Bytes(begin)).then(BodyStep::Hang)
        });
        provider.configure_server(&house, &server);
        let running = provider.hello_command(&house).no_input().start();
        running.wait_for_text("hello");
        let signalled = Instant::now();
        running.send_signal("INT");
        server.wait_until_disconnected();
        // The promise is 100 ms. A measurement has to verify it.
        println!("{}: the server saw the end after {:?}", provider.name, signalled.elapsed());
        running.finish().code(130);
        house.assert_no_processes();
    }
}
