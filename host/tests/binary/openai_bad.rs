//! Tests servers that are down, busy, wrong, rude or silent: the error line, the exit code, and an
//! end.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::House;
use crate::support::command::DEADLINE;
use crate::support::openai::{RUN, openai_command, ship_openai};
use crate::support::server::{Answer, BodyStep, Server, choice_events};

/// From the signal to the end of the process. The promise is 100 ms for the work and 2 s for
/// closing plugins. The rest is for a busy machine.
const END_WITHIN: Duration = DEADLINE;

/// Runs against a server and returns the output, with the server's port replaced.
#[track_caller]
fn error_output(house: &House, server: &Server, code: i32) -> String {
    let output = openai_command(house, server, &RUN).run().code(code);
    house.assert_no_processes();
    output.to_string().replace(&server.base_url(), "http://SERVER/v1")
}

#[test]
fn unreachable_server_error_names_the_url() {
    let house = house!(ship_openai);
    house.configure_more("attempts_max = 2\n");
    // The port is free, because it was bound a moment ago.
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
fn ctrl_c_ends_a_hanging_request_at_any_stage() {
    let house = house!(ship_openai);
    let begun = Answer::stream(vec![BodyStep::Bytes(b": hello\n\n".to_vec()), BodyStep::Hang]);
    for hanging in [Answer::silence(), begun] {
        let server = Server::start([hanging]);
        let running = openai_command(&house, &server, &RUN).no_input().start();
        let bound = Instant::now() + END_WITHIN;
        while server.requests().is_empty() {
            assert!(Instant::now() < bound, "no request is sent");
            std::thread::sleep(crate::support::command::LOOK_AGAIN);
        }
        running.send_signal("INT");
        let signalled = Instant::now();
        let output = running.finish().code(130);
        assert!(signalled.elapsed() < END_WITHIN, "{:?}: {output}", signalled.elapsed());
        server.wait_until_disconnected();
        house.assert_no_processes();
    }
}

#[test]
fn endless_answers_are_aborted_at_a_limit() {
    let house = house!(ship_openai);
    house.configure_more("answer_bytes_max = 2048\nprovider_idle_ms = 500\nattempts_max = 1\n");
    house.configure_more("provider_keep_alive_ms = 700\n");
    let words = choice_events(&[json!({ "delta": { "content": "x".repeat(100) } })]);
    let server = Server::start([Answer::stream(vec![BodyStep::Endless(words)])]);
    let told_of = error_output(&house, &server, 6);
    assert!(told_of.contains("longer than 2048 bytes"), "{told_of}");
    server.wait_until_disconnected();
    let function = json!({ "name": "get_environment", "arguments": "x".repeat(60_000) });
    let call = choice_events(&[
        json!({ "delta": { "tool_calls": [{ "index": 0, "function": function }] } }),
    ]);
    let server = Server::start([Answer::stream(vec![BodyStep::Endless(call)])]);
    let told_of = error_output(&house, &server, 6);
    assert!(told_of.contains("more than 4194304 bytes of tool calls"), "{told_of}");
    server.wait_until_disconnected();
    let comments = BodyStep::Endless(b": still thinking\n\n".to_vec());
    let server = Server::start([Answer::stream(vec![comments])]);
    let told_of = error_output(&house, &server, 5);
    assert!(told_of.contains("kept the request open for 1 s without an answer"), "{told_of}");
    server.wait_until_disconnected();
}
