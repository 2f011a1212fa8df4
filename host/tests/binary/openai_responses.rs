//! Tests OpenAI's Responses with a strict fake, which refuses what the vendor refuses.

use std::sync::Arc;

use jaato_vendors::openai::{FakeOpenAi, OpenAiTurn};

use crate::house;
use crate::support::openai::{SECRET, ship_openai};
use crate::support::server::Server;
use crate::support::{Command, House};
use crate::vendors;

const RUN: [&str; 4] = ["run", "--model", "openai/gpt-5.2", "hello"];

/// The user's own server gets chat completions unless it is configured otherwise.
const RESPONSES: &str = "[plugins.provider-openai]\napi = \"responses\"\ndialect = \"openai\"\n";

/// Starts a server that answers like the vendor.
fn serve_vendor(vendor: &Arc<FakeOpenAi>) -> Server {
    let vendor = Arc::clone(vendor);
    vendors::start_vendor_server(move |asked| vendor.answer(asked))
}

fn fake_openai(turns: impl IntoIterator<Item = OpenAiTurn>) -> Arc<FakeOpenAi> {
    Arc::new(FakeOpenAi::new(turns))
}

/// Builds a command that uses a server, with a key.
fn command_at(house: &House, server: &Server, words: &[&str]) -> Command {
    house
        .command(words)
        .variable("OPENAI_BASE_URL", server.base_url())
        .variable("OPENAI_API_KEY", SECRET)
}

#[test]
fn error_for_a_server_without_responses_api_suggests_chat_api() {
    let house = house!(ship_openai);
    house.configure_more(RESPONSES);
    let refuse = |_: &_| jaato_vendors::VendorAnswer {
        status: 404,
        headers: Vec::new(),
        body: b"404 page not found".to_vec(),
    };
    let server = vendors::start_vendor_server(refuse);
    let output = command_at(&house, &server, &RUN).run();
    assert!(output.stderr.contains("set `api = \"chat\"`"), "{output}");
}

#[test]
fn predefined_provider_uses_its_own_key_and_settings() {
    let house = house!(ship_openai);
    let vendor = fake_openai([OpenAiTurn::text("hello")]);
    let server = serve_vendor(&vendor);
    // Settings under its name override the plugin's own facts about it.
    let base = server.base_url();
    house.configure_more(&format!(
        "[providers.xai]\nbase_url = \"{base}\"\napi_key_env = \"XAI_API_KEY\"\n"
    ));
    let words = ["run", "--model", "xai/gpt-5.2", "hello"];
    let output = house.command(&words).variable("XAI_API_KEY", SECRET).run().code(0);
    assert_eq!(output.stdout, "hello\n");
    let body = vendor.accepted_requests().pop().unwrap();
    // It is used with Responses, and without asking for summaries, which it returns automatically.
    assert_eq!((body.get("reasoning"), body["prompt_cache_key"].is_string()), (None, true));
    let listed = house.run(&["provider", "list"]).code(0);
    for name in ["groq", "mistral", "openrouter", "deepseek"] {
        assert!(listed.to_string().contains(name), "{listed}");
    }
}

#[test]
fn azure_deployment_gets_its_key_in_the_configured_header() {
    let house = house!(ship_openai);
    let vendor = Arc::new(
        FakeOpenAi::new([OpenAiTurn::text("hello")]).with_azure_deployment("mine", "gpt-5.2"),
    );
    let server = serve_vendor(&vendor);
    let base = server.root_url();
    house.configure_more(&format!(
        "[providers.azure]\nplugin = \"openai\"\nbase_url = \"{base}/openai/v1\"\n\
         dialect = \"azure\"\napi_key_env = \"AZURE_OPENAI_API_KEY\"\nkey_header = \"api-key\"\n"
    ));
    let words = ["run", "--model", "azure/mine", "hello"];
    let output = house.command(&words).variable("AZURE_OPENAI_API_KEY", SECRET).run().code(0);
    assert_eq!(output.stdout, "hello\n");
    let asked = server.other_requests().pop().unwrap();
    assert_eq!(
        (asked.path.as_str(), asked.header("api-key")),
        ("/openai/v1/responses", Some(SECRET))
    );
    assert_eq!(asked.header("authorization"), None);
}

#[test]
fn predefined_provider_never_uses_another_providers_key() {
    let house = house!(ship_openai);
    let words = ["run", "--model", "groq/some/model", "hello"];
    let command = house.command(&words).variable("OPENAI_API_KEY", SECRET);
    let output = command.variable("HTTPS_PROXY", "http://127.0.0.1:1").run().code(3);
    let expected = "there is no key for `https://api.groq.com`: `GROQ_API_KEY` is not set";
    assert!(output.stderr.contains(expected), "{output}");
}
