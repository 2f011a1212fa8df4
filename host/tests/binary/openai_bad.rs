//! Servers that are down, busy, wrong, rude or silent: the line that says so, the exit code, and an
//! end.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::openai::{RUN, at, furnish};
use crate::support::House;
use crate::support::server::{Answer, Server, Step, choices, end};

/// From the signal to the end of the process. The promise is 100 ms for the work and 2 s for
/// plugins to close; a busy machine gets the rest.
const END_WITHIN: Duration = Duration::from_secs(10);

/// Runs against a server and gives what it printed, with the server's port replaced.
#[track_caller]
fn told(house: &House, server: &Server, code: i32) -> String {
    let output = at(house, server, &RUN).run().code(code);
    house.nothing_lives();
    output.to_string().replace(&server.base_url(), "http://SERVER/v1")
}

fn text(piece: &str) -> Step {
    Step::Bytes(choices(&[json!({ "delta": { "content": piece } })]))
}

#[test]
fn a_busy_server_is_asked_again() {
    let house = house!();
    furnish(&house);
    for status in [429, 503] {
        let busy = Answer::error(status, "busy").header("retry-after", "0");
        let server = Server::start([busy.clone(), busy, Answer::text(&["there"])]);
        let output = at(&house, &server, &RUN).run().code(0);
        assert_eq!(output.stdout, "there\n");
        assert_eq!(output.stderr.matches("busy; trying again in 0.0 s").count(), 2, "{output}");
        let [first, second, third] = server.asked().try_into().unwrap();
        assert!(first.body == second.body && second.body == third.body);
    }
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_url() {
    let house = house!();
    furnish(&house);
    house.configure_more("attempts_max = 2\n");
    // Free, because it was bound a moment ago.
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let base = format!("http://127.0.0.1:{port}/v1");
    let command = house.command(&RUN).variable("OPENAI_BASE_URL", &base);
    let output = command.run().code(5).to_string().replace(&base, "http://SERVER/v1");
    expect![[r#"
        exit 5
        --- stderr
        error: cannot connect to `http://SERVER/v1/chat/completions`: connection refused
        hint: check that the server runs; behind a proxy set `HTTPS_PROXY`
    "#]]
    .assert_eq(&output);
    let command = house.command(&["model", "list"]).variable("OPENAI_BASE_URL", &base);
    let output = command.run().code(0);
    assert!(output.stderr.contains("provider `openai`: cannot connect to `"), "{output}");
    assert_eq!(output.stdout, "no models\n");
}

#[test]
fn what_is_no_completion_is_told_with_what_to_check() {
    let house = house!();
    furnish(&house);
    let page = Answer::status(200).header("content-type", "text/html").body("<html>hello</html>");
    expect![[r#"
        exit 5
        --- stderr
        error: `http://SERVER/v1/chat/completions` answered with what is no completion (`text/html`)
        hint: check the base url: most end in `/v1`
    "#]]
    .assert_eq(&told(&house, &Server::start([page]), 5));
    let missing = Answer::error(404, "model `test` not found");
    expect![[r#"
        exit 5
        --- stderr
        error: `http://SERVER/v1/chat/completions` answered 404 (not found): model `test` not found
        hint: `jaato model list` tells which models there are
    "#]]
    .assert_eq(&told(&house, &Server::start([missing]), 5));
}

#[test]
fn a_cut_before_the_first_word_is_tried_again_and_one_after_it_is_told() {
    let house = house!();
    furnish(&house);
    let half = || Step::Bytes(b"data: {\"choices\":[{\"delta\":{\"conte".to_vec());
    let server = Server::start([
        Answer::stream(vec![half(), Step::Cut]),
        Answer::stream(vec![]),
        Answer::text(&["there"]),
    ]);
    let output = at(&house, &server, &RUN).run().code(0);
    assert_eq!(output.stdout, "there\n");
    assert_eq!(output.stderr.matches("trying again").count(), 2, "{output}");
    let server = Server::start([Answer::stream(vec![text("half a wo"), half(), Step::Cut])]);
    let told = told(&house, &server, 5);
    assert!(told.contains("--- stdout\nhalf a wo"), "{told}");
    assert!(told.contains("ended in the middle") && !told.contains("trying again"), "{told}");
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn an_error_in_the_middle_of_an_answer_ends_it() {
    let house = house!();
    furnish(&house);
    let error = Step::Bytes(b"data: {\"error\":{\"message\":\"out of memory\"}}\n\n".to_vec());
    let server = Server::start([Answer::stream(vec![text("half"), error])]);
    expect![[r#"
        exit 5
        --- stdout
        half
        --- stderr
        error: `http://SERVER/v1/chat/completions` reports an error: out of memory
    "#]]
    .assert_eq(&told(&house, &server, 5));
}

#[test]
fn ctrl_c_ends_a_request_that_hangs_wherever_it_does() {
    let house = house!();
    furnish(&house);
    let begun = Answer::stream(vec![Step::Bytes(b": hello\n\n".to_vec()), Step::Hang]);
    for hanging in [Answer::silence(), begun] {
        let server = Server::start([hanging]);
        let running = at(&house, &server, &RUN).no_input().start();
        let bound = Instant::now() + END_WITHIN;
        while server.asked().is_empty() {
            assert!(Instant::now() < bound, "nothing is asked");
            std::thread::sleep(crate::support::command::LOOK_AGAIN);
        }
        running.signal("INT");
        let signalled = Instant::now();
        let output = running.finish().code(130);
        assert!(signalled.elapsed() < END_WITHIN, "{:?}: {output}", signalled.elapsed());
        server.wait_until_gone();
        house.nothing_lives();
    }
}

#[test]
fn answers_without_end_are_ended() {
    let house = house!();
    furnish(&house);
    house.configure_more("answer_bytes_max = 2048\nprovider_idle_ms = 500\nattempts_max = 1\n");
    house.configure_more("provider_keep_alive_ms = 700\n");
    let words = choices(&[json!({ "delta": { "content": "x".repeat(100) } })]);
    let server = Server::start([Answer::stream(vec![Step::Endless(words)])]);
    let told_of = told(&house, &server, 6);
    assert!(told_of.contains("longer than 2048 bytes"), "{told_of}");
    server.wait_until_gone();
    let function = json!({ "name": "get_environment", "arguments": "x".repeat(60_000) });
    let call =
        choices(&[json!({ "delta": { "tool_calls": [{ "index": 0, "function": function }] } })]);
    let server = Server::start([Answer::stream(vec![Step::Endless(call)])]);
    let told_of = told(&house, &server, 6);
    assert!(told_of.contains("more than 4194304 bytes of tool calls"), "{told_of}");
    server.wait_until_gone();
    let comments = Step::Endless(b": still thinking\n\n".to_vec());
    let server = Server::start([Answer::stream(vec![comments])]);
    let told_of = told(&house, &server, 5);
    assert!(told_of.contains("kept the request open for 1 s and said nothing"), "{told_of}");
    server.wait_until_gone();
}

#[test]
fn an_empty_reason_to_stop_does_not_make_a_cut_answer_whole() {
    let house = house!();
    furnish(&house);
    let piece = |text: &str| json!({ "delta": { "content": text }, "finish_reason": "" });
    let said = choices(&[piece("one "), piece("two ")]);
    for last in [vec![], vec![Step::Cut]] {
        let steps = [vec![Step::Bytes(said.clone())], last].concat();
        let told = told(&house, &Server::start([Answer::stream(steps)]), 5);
        assert!(told.contains("--- stdout\none two"), "{told}");
        assert!(told.contains("ended in the middle") || told.contains("incomplete"), "{told}");
    }
}

#[test]
fn every_word_for_a_limit_is_told_as_one() {
    let house = house!();
    furnish(&house);
    for (word, says) in [
        ("length", "output limit"),
        ("model_length", "the context window was full"),
        ("MAX_TOKENS", "output limit"),
    ] {
        let said = choices(&[json!({ "delta": { "content": "so far" }, "finish_reason": word })]);
        let server = Server::start([Answer::stream(vec![Step::Bytes(said), Step::Bytes(end())])]);
        let told = told(&house, &server, 6);
        assert!(told.contains(says), "{word}: {told}");
    }
}

#[test]
fn an_answer_that_is_whole_is_done_though_the_server_neither_says_so_nor_goes() {
    let house = house!();
    furnish(&house);
    // The session's own patience would end it as a failure, and much later.
    house.configure_more("provider_idle_ms = 60000\n");
    let said = choices(&[json!({ "delta": { "content": "all" }, "finish_reason": "stop" })]);
    let server = Server::start([Answer::stream(vec![Step::Bytes(said), Step::Hang])]);
    let begun = Instant::now();
    assert_eq!(at(&house, &server, &RUN).run().code(0).stdout, "all\n");
    assert!(begun.elapsed() < END_WITHIN, "{:?}", begun.elapsed());
    server.wait_until_gone();
}

#[test]
fn a_refusal_whose_words_do_not_come_is_told_by_its_status() {
    let house = house!();
    furnish(&house);
    house.configure_more("attempts_max = 1\nprovider_idle_ms = 60000\n");
    let stalled = Answer::status(503).then(Step::Hang);
    let told = told(&house, &Server::start([stalled]), 5);
    assert!(told.contains("answered 503 (service unavailable)"), "{told}");
}

#[test]
fn errors_are_told_in_whatever_form_they_come() {
    let house = house!();
    furnish(&house);
    house.configure_more("attempts_max = 1\n");
    for error in [
        "event: error\ndata: {\"message\":\"out of memory\"}\n\n",
        "event: error\ndata: out of memory\n\n",
        "error: {\"code\":500,\"message\":\"out of memory\"}\n\n",
    ] {
        let server = Server::start([Answer::stream(vec![Step::Bytes(error.as_bytes().to_vec())])]);
        let told = told(&house, &server, 5);
        let line = "error: `http://SERVER/v1/chat/completions` reports an error: out of memory\n";
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn what_hides_behind_a_wrong_form_is_told_with_what_to_do() {
    let house = house!();
    furnish(&house);
    let gzip = Answer::status(200).then(Step::Bytes(b"\x1f\x8b\x08\x00\x00\x00".to_vec()));
    let line = json!({ "model": "m", "message": { "content": "a" }, "done": false });
    let ollama = Answer::status(200).body(&format!("{line}\n{line}\n"));
    let path = Answer::status(404).body(r#"{"detail":"Not Found"}"#);
    let model = Answer::error(400, "moon is not a valid model ID");
    for (answer, text, hint) in [
        (gzip, "answered compressed (gzip)", "a proxy or gateway in between compresses"),
        (ollama, "in the form of Ollama's own api", "`http://localhost:11434/v1`"),
        (path, "answered 404 (not found): Not Found", "check the base url"),
        (model, "not a valid model ID", "`jaato model list` tells"),
    ] {
        let told = told(&house, &Server::start([answer]), 5);
        assert!(told.contains(text) && told.contains("hint: ") && told.contains(hint), "{told}");
        assert!(!told.contains("trying again"), "{told}");
    }
}

#[test]
fn answers_in_endless_tiny_pieces_are_ended() {
    let house = house!();
    furnish(&house);
    let (thought, text) = (json!({ "reasoning": "a" }), json!({ "content": "b" }));
    let pieces = choices(&[json!({ "delta": thought }), json!({ "delta": text })]);
    let server = Server::start([Answer::stream(vec![Step::Endless(pieces)])]);
    let told = told(&house, &server, 6);
    assert!(
        told.contains("more than 4096 switches between reasoning and text"),
        "{}",
        &told[told.len() - 400..]
    );
    server.wait_until_gone();
}
