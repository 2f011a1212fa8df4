//! The ends of answers that are no ordinary ones: the output limit, unknown reasons, signs of life
//! alone, and models that take no tools.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::house;
use crate::openai::{RUN, at, furnish};
use crate::support::command::LOOK_AGAIN;
use crate::support::server::{Answer, Gate, Server, Step, choices, end};

/// An answer of these choices, with the end of a stream.
fn answer(events: &[serde_json::Value]) -> Answer {
    Answer::stream(vec![Step::Bytes(choices(events)), Step::Bytes(end())])
}

#[test]
fn the_output_limit_is_told_and_a_call_that_it_cut_does_not_run() {
    for arguments in ["", "{}", "{\"aspect\": \"o"] {
        let house = house!();
        furnish(&house);
        let function = json!({ "name": "get_environment", "arguments": arguments });
        let server = Server::start([
            answer(&[
                json!({ "delta": { "tool_calls": [{ "index": 0, "id": "a", "function": function }] } }),
                json!({ "delta": {}, "finish_reason": "length" }),
            ]),
            Answer::text(&["too late"]),
        ]);
        let output = at(&house, &server, &RUN).run().code(6);
        assert!(output.stderr.contains("error: the model reached its output limit"), "{output}");
        assert!(!output.stderr.contains("get_environment"), "it ran: {output}");
        assert_eq!(server.asked().len(), 1);
    }
    let house = house!();
    furnish(&house);
    let server = Server::start([answer(&[
        json!({ "delta": { "content": "half of it" } }),
        json!({ "delta": {}, "finish_reason": "length" }),
    ])]);
    let output = at(&house, &server, &RUN).run().code(6);
    assert_eq!(output.stdout, "half of it\n");
    assert!(output.stderr.contains("output limit"), "{output}");
}

#[test]
fn an_end_for_an_unknown_reason_is_told() {
    let house = house!();
    furnish(&house);
    let server = Server::start([answer(&[
        json!({ "delta": { "content": "said" } }),
        json!({ "delta": {}, "finish_reason": "moonrise" }),
    ])]);
    let output = at(&house, &server, &RUN).run().code(0);
    assert_eq!(output.stdout, "said\n");
    assert!(output.stderr.contains("for a reason that jaato does not know"), "{output}");
}

#[test]
fn a_model_that_takes_no_tools_is_told_and_works_without() {
    let house = house!();
    furnish(&house);
    let refusal = "registry.ollama.ai/library/gemma:2b does not support tools";
    let server = Server::start([
        Answer::error(400, refusal),
        Answer::error(404, "No endpoints found that support tool use."),
        Answer::text(&["without"]),
        Answer::text(&["without"]),
    ]);
    for _ in 0..2 {
        let output = at(&house, &server, &RUN).run().code(5);
        let hint = "hint: `--tools none` runs without tools; or use a model that takes them\n";
        assert!(output.stderr.ends_with(hint), "{output}");
    }
    let words = ["run", "--model", "openai/test", "--tools", "none", "hello"];
    assert_eq!(at(&house, &server, &words).run().code(0).stdout, "without\n");
    let by_variable = at(&house, &server, &RUN).variable("JAATO_TOOLS_ENABLED", "none");
    assert_eq!(by_variable.run().code(0).stdout, "without\n");
    let asked = server.asked();
    assert!(asked[0].json()["tools"].is_array());
    assert!(asked[2..].iter().all(|asked| asked.json().get("tools").is_none()));
    let words = ["run", "--model", "openai/test", "--tools", "none,get_environment", "hello"];
    let output = at(&house, &server, &words).run().code(2);
    assert!(output.stderr.contains("`--tools none` stands alone"), "{output}");
}

/// Only a clock that goes on by itself can be outlasted: this one test waits for the real one.
#[test]
fn an_answer_that_came_while_jaato_was_stopped_is_read() {
    const IDLE: Duration = Duration::from_millis(1_500);
    let house = house!();
    furnish(&house);
    house.configure_more("provider_idle_ms = 1500\nattempts_max = 1\n");
    let gate = Gate::closed();
    let said = [json!({ "delta": { "content": "here" }, "finish_reason": "stop" })];
    let steps = vec![Step::Wait(gate.clone()), Step::Bytes(choices(&said)), Step::Bytes(end())];
    let server = Server::start([Answer::stream(steps)]);
    let running = at(&house, &server, &RUN).no_input().start();
    let begun = Instant::now();
    while server.asked().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is asked");
        std::thread::sleep(LOOK_AGAIN);
    }
    running.signal("STOP");
    let stopped = Instant::now();
    while stopped.elapsed() < IDLE * 2 {
        std::thread::sleep(LOOK_AGAIN);
    }
    gate.open();
    running.signal("CONT");
    let output = running.finish().code(0);
    assert_eq!(output.stdout, "here\n", "{output}");
}
