//! Tests which model answers: named without its provider, changed in mid-conversation, or replaced
//! after a permanent failure.

use jaato_vendors::google::{FakeGoogle, GoogleTurn};
use serde_json::{Value, json};

use crate::house;
use crate::support::House;
use crate::support::openai::{SECRET, openai_command};
use crate::support::server::{Answer, Server};
use crate::vendors;

/// The first seed's lines about Vertex AI, as users have them in a workspace.
const SEEDS_ENV: &str = "PROJECT_ID=my-project\nLOCATION=us-central1\nMODEL_NAME=gemini-2.5-flash\n\
                         GOOGLE_APPLICATION_CREDENTIALS=key.json\nAI_USE_CHAT_FUNCTIONS=1\n";

/// Returns a login whose tokens come from a server.
fn login_json(tokens: &Server) -> String {
    json!({ "type": "authorized_user", "client_id": "id", "client_secret": "s",
        "refresh_token": "r", "token_uri": format!("{}/token", tokens.root_url()) })
    .to_string()
}

fn serve_tokens() -> Server {
    let body = json!({ "access_token": "minted", "expires_in": 3599 }).to_string();
    Server::start_with(move |_| Answer::status(200).body(&body))
}

fn add_plugin(house: &House) {
    for library in ["provider_google_genai", "provider_anthropic", "provider_openai"] {
        crate::support::ship_provider(house, library);
    }
}

#[test]
fn google_variables_in_env_file_configure_vertex_ai() {
    let house = house!(add_plugin);
    let (vendor, tokens) = (FakeGoogle::new([GoogleTurn::text("hello")]), serve_tokens());
    let server = vendors::start_vendor_server(move |asked| vendor.answer(asked));
    house.write("workspace/.env", SEEDS_ENV);
    house.write("workspace/key.json", &login_json(&tokens));
    house.run(&["trust"]).code(0);
    let command = house
        .command(&["run", "hello"])
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("ANTHROPIC_API_KEY", SECRET);
    assert_eq!(command.run().code(0).stdout, "hello\n");
    let asked = server.other_requests().pop().unwrap();
    assert_eq!(asked.header("authorization"), Some("Bearer minted"));
    let expected = "/v1beta1/projects/my-project/locations/us-central1/publishers/google/models/\
                    gemini-2.5-flash:streamGenerateContent?alt=sse";
    assert_eq!(asked.path, expected);
}

#[test]
fn model_name_without_provider_resolves_by_family_or_available_key() {
    let house = house!(add_plugin);
    // Chosen by its family, whichever provider has a key.
    let output = house.command(&["run", "--model", "claude-next", "x"]).run();
    assert!(output.stderr.contains("`ANTHROPIC_API_KEY` is not set"), "{output}");
    // An unknown model, and one provider has a key.
    let server = Server::start([Answer::text(&["mine"])]);
    let output =
        openai_command(&house, &server, &["run", "--model", "my-tuned-one", "x"]).run().code(0);
    assert_eq!(output.stdout, "mine\n");
    assert_eq!(server.requests()[0].json()["model"], "my-tuned-one");
    let both = openai_command(&house, &server, &["run", "--model", "my-tuned-one", "x"])
        .variable("ANTHROPIC_API_KEY", SECRET)
        .run()
        .code(3);
    let said = "`my-tuned-one` may be a model of anthropic, openai: choose one";
    assert!(both.stderr.contains(said), "{both}");
    let failed = house.run(&["run", "--model", "my-tuned-one", "x"]).code(3);
    assert!(failed.stderr.contains("the provider of model `my-tuned-one` is unknown"), "{failed}");
}

#[test]
fn conversation_continues_after_the_model_is_changed() {
    let house = house!(add_plugin);
    let server = Server::start([Answer::text(&["one"]), Answer::text(&["two"])]);
    let words = ["chat", "--model", "openai/first"];
    server.set_models(Answer::status(200).body(r#"{"data": [{"id": "second-2026"}]}"#));
    let input = "hello\n/model\n/model openai/none\n/model openai/second\n/model nobody/x\nagain\n";
    let output = openai_command(&house, &server, &words).input(input).run();
    assert!(output.stderr.contains("the model is now openai/second"), "{output}");
    assert!(output.stderr.contains("no plugin offers the provider `nobody`"), "{output}");
    assert!(output.stderr.contains("note: `openai` does not list `openai/none`"), "{output}");
    assert!(!output.stderr.contains("list `openai/second`"), "{output}");
    let asked: Vec<Value> = server.requests().iter().map(|asked| asked.json()).collect();
    assert_eq!((&asked[0]["model"], &asked[1]["model"]), (&json!("first"), &json!("second")));
    let messages = asked[1]["messages"].as_array().unwrap();
    assert_eq!(messages[messages.len() - 2]["content"], "one", "{asked:?}");
}

#[test]
fn fallback_model_answers_after_a_permanent_failure() {
    let house = house!(add_plugin);
    let gone = json!({ "error": { "message": "The model `gone` does not exist",
        "code": "model_not_found" } });
    let server = Server::start([
        Answer::status(404).body(&gone.to_string()),
        Answer::text(&["I am the next one"]),
    ]);
    let words = ["run", "--model", "openai/gone", "hello"];
    let command = openai_command(&house, &server, &words).variable("JAATO_FALLBACK", "openai/next");
    let output = command.run().code(0);
    assert_eq!(output.stdout, "I am the next one\n");
    let said = "trying `openai/next` instead";
    assert!(output.stderr.contains(said), "{output}");
    let ledger = house.run(&["ledger", "show"]).code(0);
    assert!(ledger.stdout.contains("openai/next"), "{ledger}");
    assert!(ledger.stdout.contains("2 requests (1 failed)"), "{ledger}");
}

#[test]
fn vendor_specific_body_fields_and_headers_are_sent() {
    let house = house!(add_plugin);
    house.configure_more(
        "[models.\"openai/m\"]\nservice_tier = \"flex\"\nextra_body = { verbosity = \"low\", user = \"a\" }\n\
         extra_headers = { x-team = \"moon\" }\n",
    );
    let server = Server::start([Answer::text(&["one"]), Answer::text(&["two"])]);
    let words = ["run", "--model", "openai/m", "hello"];
    openai_command(&house, &server, &words).run().code(0);
    let more =
        [&words[..], &["--service-tier", "priority", "--extra-header", "x-team=sun"]].concat();
    let more = [&more[..], &["--extra-body", r#"{"user":"b","stream_options":null}"#]].concat();
    openai_command(&house, &server, &more).run().code(0);
    let asked = server.requests();
    let keys = |at: usize| {
        let body = asked[at].json();
        ["service_tier", "verbosity", "user"].map(|key| body[key].as_str().unwrap().to_owned())
    };
    assert_eq!(keys(0), ["flex", "low", "a"]);
    assert_eq!(keys(1), ["priority", "low", "b"]);
    assert_eq!(asked[1].json()["stream_options"], Value::Null);
    let headers: Vec<_> = asked.iter().map(|asked| asked.header("x-team")).collect();
    assert_eq!(headers, [Some("moon"), Some("sun")]);
    let wrong = openai_command(&house, &server, &[&words[..], &["--extra-body", "[1]"]].concat())
        .run()
        .code(2);
    assert!(wrong.stderr.contains("not a JSON object"), "{wrong}");
    let host =
        openai_command(&house, &server, &[&words[..], &["--extra-header", "host=x"]].concat())
            .run();
    assert!(host.stderr.contains("the header `host` is set only by the host"), "{host}");
}

#[test]
fn host_waits_for_the_announced_rate_limit_before_the_next_request() {
    let house = house!(add_plugin);
    let used_up = Answer::calls(&[("get_environment", json!({ "aspect": "os" }))])
        .header("x-ratelimit-remaining-requests", "0")
        .header("x-ratelimit-reset-requests", "5500ms");
    let server = Server::start([used_up, Answer::text(&["done"])]);
    let output =
        openai_command(&house, &server, &["run", "--model", "openai/m", "hello"]).run().code(0);
    assert!(output.stderr.contains("accepts the next request in 6 s"), "{output}");
}
