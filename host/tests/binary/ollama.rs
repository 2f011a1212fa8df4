//! Tests Ollama's own protocol with a strict fake, which refuses what the server refuses.

use std::net::TcpListener;
use std::sync::Arc;

use jaato_vendors::ollama::{FakeOllama, IN_LIBRARY, OllamaTurn};

use crate::house;
use crate::support::openai::{SECRET, assert_key_not_saved};
use crate::support::server::{Answer, BodyStep, Server};
use crate::support::{Command, House, fixtures, library_name};
use crate::vendors;

const RUN: [&str; 4] = ["run", "--model", "ollama/qwen3:8b", "hello"];

/// Ships the plugin with short waits.
fn add_plugin(house: &House) {
    crate::support::ship_provider(house, "provider_ollama");
}

/// Starts a server that answers like Ollama.
fn serve_vendor(ollama: &Arc<FakeOllama>) -> Server {
    let ollama = Arc::clone(ollama);
    vendors::start_vendor_server(move |asked| ollama.answer(asked))
}

fn fake_ollama(turns: impl IntoIterator<Item = OllamaTurn>) -> Arc<FakeOllama> {
    Arc::new(FakeOllama::new(turns))
}

/// Builds a command that uses a server like Ollama's own client does, without a scheme in the
/// variable.
fn command_at(house: &House, server: &Server, words: &[&str]) -> Command {
    let root = server.root_url();
    house.command(words).variable("OLLAMA_HOST", root.strip_prefix("http://").unwrap())
}

#[test]
fn ollama_server_never_truncates_a_long_conversation() {
    let house = house!(add_plugin);
    let plugins = fixtures::test_house().unwrap().join("plugins");
    house.ship(&plugins.join(library_name("gc_truncate")));
    let ollama = fake_ollama((0..6).map(|number| OllamaTurn::text(&format!("answer {number}"))));
    let server = serve_vendor(&ollama);
    let words = ["chat", "--model", "ollama/tiny", "--tools", "none"];
    let line = |number: usize| format!("{number} {}\n", "word ".repeat(300));
    let input: String = (0..6).map(line).collect();
    let output = command_at(&house, &server, &words).input(&*input).run().code(0);
    assert_eq!(ollama.accepted_requests().len(), 6, "{output}");
    // The host asked for the window separately, so the gc ran before the server refused.
    assert!(output.stderr.contains("old messages left out"), "{output}");
    assert!(output.stdout.contains("answer 5"), "{output}");
}

#[test]
fn ollama_models_are_listed_and_missing_ones_can_be_pulled() {
    let house = house!(add_plugin);
    check_list_and_pull(&house);
    house.assert_no_processes();
}

#[track_caller]
fn check_list_and_pull(house: &House) {
    let ollama = fake_ollama([OllamaTurn::text("hello")]);
    let server = serve_vendor(&ollama);
    let listed = command_at(house, &server, &["model", "list"]).run().expect_silent();
    assert!(listed.stdout.contains("ollama/qwen3:8b"), "{listed}");
    assert!(listed.stdout.contains("8.2B, Q4_K_M, 5.2 GB"), "{listed}");
    assert!(!listed.stdout.contains("nomic-embed-text"), "{listed}");
    let words = ["run", "--model", "ollama/moon:1b", "hello"];
    let missing = command_at(house, &server, &words).run();
    assert!(missing.stderr.contains("model 'moon:1b' not found"), "{missing}");
    assert!(missing.stderr.contains("hint: download it with `jaato model pull ollama/moon:1b`"));
    let pulled = command_at(house, &server, &["model", "pull", "ollama/moon:1b"]).run().code(0);
    assert_eq!(pulled.stdout, "ollama/moon:1b is on its server\n", "{pulled}");
    assert!(pulled.stderr.contains("writing manifest"), "{pulled}");
    assert_eq!(command_at(house, &server, &words).run().code(0).stdout, "hello\n");
}

#[test]
fn failed_pull_reports_the_reason() {
    let house = house!(add_plugin);
    let ollama = fake_ollama([]);
    let server = serve_vendor(&ollama);
    let pull = |model: &str| command_at(&house, &server, &["model", "pull", model]).run();
    let missing = pull("ollama/nothing").code(5);
    assert!(missing.stderr.contains("pull model manifest: file does not exist"), "{missing}");
    assert!(missing.stderr.contains("hint: https://ollama.com/search"), "{missing}");
    let wrong = pull("ollama/../x").code(2);
    assert!(wrong.stderr.contains("`../x` is not a valid model name"), "{wrong}");
    let unknown = pull("moon/nothing").code(2);
    assert!(unknown.stderr.contains("no weights to download for `moon/nothing`"), "{unknown}");
    // A provider that downloads nothing says so, through the same command.
    let other = house!();
    crate::support::ship_provider(&other, "provider_anthropic");
    let refused = other.run(&["model", "pull", "anthropic/claude"]).code(2);
    assert!(refused.stderr.contains("no weights to download for `anthropic/claude`"), "{refused}");
}

#[test]
fn ctrl_c_cancels_a_pull_and_closes_the_connection() {
    let house = house!(add_plugin);
    let begin = b"{\"status\":\"pulling manifest\"}\n".to_vec();
    let server = Server::start_with(move |_| {
        Answer::status(200).then(BodyStep::Bytes(begin.clone())).then(BodyStep::Hang)
    });
    let running =
        command_at(&house, &server, &["model", "pull", "ollama/moon:1b"]).no_input().start();
    running.wait_for_error("pulling manifest");
    running.send_signal("INT");
    running.finish().code(130);
    server.wait_until_disconnected();
    house.assert_no_processes();
}

#[test]
fn unreachable_ollama_server_is_one_error_line_and_not_listed() {
    let house = house!(add_plugin);
    // The port is free, because it was bound a moment ago.
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let host = format!("0.0.0.0:{port}");
    let output = house.command(&RUN).variable("OLLAMA_HOST", &host).run().code(5);
    let expected = format!(
        "error: cannot connect to `http://127.0.0.1:{port}/api/show`: connection refused\n\
         hint: start Ollama with `ollama serve`; if it runs elsewhere, check `OLLAMA_HOST`, or \
         `base_url` of `[plugins.provider-ollama]`\n"
    );
    assert_eq!(output.stderr, expected);
    let listed = house.command(&["model", "list"]).variable("OLLAMA_HOST", &host).run().code(0);
    assert!(listed.stderr.contains("provider `ollama`: cannot connect to"), "{listed}");
    house.configure("model = \"ollama/x\"\n");
    let doctor = house.command(&["doctor"]).variable("OLLAMA_HOST", &host).run().code(5);
    assert!(
        doctor.stdout.contains("\n             hint: start Ollama with `ollama serve`"),
        "{doctor}"
    );
}

#[test]
fn ollama_key_is_sent_only_to_the_configured_base_url() {
    let house = house!(add_plugin);
    let ollama = Arc::new(FakeOllama::new([OllamaTurn::text("hello")]).with_api_key(SECRET));
    let server = serve_vendor(&ollama);
    // With the variable of Ollama's own client, no key is sent anywhere.
    let refused =
        command_at(&house, &server, &RUN).variable("OLLAMA_API_KEY", SECRET).run().code(5);
    assert!(refused.stderr.contains("answered 401 (unauthorized)"), "{refused}");
    assert!(
        server
            .requests()
            .iter()
            .chain(&server.other_requests())
            .all(|it| it.header("authorization").is_none())
    );
    let line = format!("[plugins.provider-ollama]\nbase_url = \"{}\"\n", server.root_url());
    house.configure_more(&line);
    let output = house.command(&RUN).variable("OLLAMA_API_KEY", SECRET).run().code(0);
    assert_eq!(output.stdout, "hello\n");
    assert_key_not_saved(&house);
    let listed = house.run(&["provider", "list"]).code(0);
    assert!(listed.stdout.contains(&server.root_url()), "{listed}");
}

#[test]
fn server_with_a_custom_provider_name_answers_and_pulls_by_that_name() {
    let house = house!(add_plugin);
    let ollama = fake_ollama([OllamaTurn::text("hello")]);
    let server = serve_vendor(&ollama);
    let text =
        format!("[providers.box]\nplugin = \"ollama\"\nbase_url = \"{}\"\n", server.root_url());
    house.configure_more(&text);
    // The variable applies to the plugin's own name.
    let run = |words: &[&str]| house.command(words).variable("OLLAMA_HOST", "127.0.0.1:9").run();
    let pulled = run(&["model", "pull", &format!("box/{IN_LIBRARY}")]).code(0);
    assert_eq!(pulled.stdout, format!("box/{IN_LIBRARY} is on its server\n"), "{pulled}");
    let words = ["run", "--model", &format!("box/{IN_LIBRARY}"), "hello"];
    assert_eq!(run(&words).code(0).stdout, "hello\n");
}
