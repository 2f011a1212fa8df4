//! Tests that `jaato doctor` promises no task that could not run, because it asks the configured
//! model's server.

use crate::cli::cli_house;
use crate::house;
use crate::support::openai::{openai_command, ship_openai};
use crate::support::server::{Answer, Server};
use crate::support::{Command, House, Output};

fn run_doctor(command: Command) -> Output {
    command.variable("JAATO_MODEL", "openai/test").run()
}

fn run_doctor_with_server(house: &House, server: &Server) -> Output {
    run_doctor(openai_command(house, server, &["doctor"]))
}

#[test]
fn doctor_reports_ready_if_the_server_offers_the_model() {
    let house = house!(ship_openai);
    let server = Server::start([]);
    let output = run_doctor_with_server(&house, &server).code(0);
    assert!(output.stdout.contains("openai/test (default)"), "{output}");
    assert!(output.stdout.contains("\nready: jaato run"), "{output}");
    // Ollama's list has the tag that users omit.
    server.set_models(Answer::status(200).body(r#"{"data":[{"id":"test:latest"}]}"#));
    let output = run_doctor_with_server(&house, &server).code(0);
    assert!(output.stdout.contains("openai/test (default)"), "{output}");
}

#[test]
fn doctor_reports_not_ready_for_invalid_plugin_settings() {
    let house = cli_house!();
    ship_openai(&house);
    let server = Server::start([]);
    let settings = "[plugins.tool-cli]\nmax_output_chars = 5\n";
    house.configure_more(settings);
    let output = run_doctor_with_server(&house, &server).code(3);
    assert!(
        output.stderr.contains("`[plugins.tool-cli]` has no key `max_output_chars`"),
        "{output}"
    );
    assert!(output.stderr.contains("its settings are wrong"), "{output}");
    assert!(!output.stdout.contains("ready:"), "{output}");
}

#[test]
fn doctor_reports_not_ready_for_a_dead_server_or_a_missing_model() {
    let house = house!(ship_openai);
    let server = Server::start([]);
    server.set_models(Answer::status(200).body(r#"{"data":[{"id":"other"}]}"#));
    let output = run_doctor_with_server(&house, &server).code(3);
    assert!(output.stderr.contains("not ready: `openai/test` is the configured model"), "{output}");
    assert!(output.stderr.contains("jaato model list"), "{output}");
    assert!(!output.stdout.contains("ready:"), "{output}");

    server.set_models(Answer::error(500, "no memory"));
    let output = run_doctor_with_server(&house, &server).code(5);
    assert!(output.stderr.contains("answered 500 (internal server error): no memory"), "{output}");

    let nobody = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    let dead = house.command(&["doctor"]);
    let dead = dead.variable("OPENAI_BASE_URL", format!("http://127.0.0.1:{port}/v1"));
    let output = run_doctor(dead).code(5);
    assert!(output.stderr.contains("not ready: "), "{output}");
    assert!(!output.stdout.contains("ready:"), "{output}");
}

#[test]
fn doctor_reports_not_ready_if_no_plugin_offers_the_provider() {
    let house = house!(ship_openai);
    let output = house.command(&["doctor"]).variable("JAATO_MODEL", "moon/phase").run().code(3);
    let line = "not ready: no plugin offers the provider `moon` of the model `moon/phase`";
    assert!(output.stderr.contains(line), "{output}");
}
