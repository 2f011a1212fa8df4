//! Runs against a server that speaks OpenAI's Responses: a strict fake, which refuses what the
//! vendor refuses.

use std::fs;
use std::sync::Arc;

use jaato_plugin_testkit::vendors::openai::{Nesting, OpenAi, Said, Turn};
use serde_json::Value;

use crate::house;
use crate::openai::{SECRET, furnish, no_file_holds_the_key};
use crate::support::server::Server;
use crate::support::{Command, House};
use crate::vendors::{self, Form, PNG};

const RUN: [&str; 4] = ["run", "--model", "openai/gpt-5.2", "hello"];
const CHAT: [&str; 3] = ["chat", "--model", "openai/gpt-5.2"];

/// A server of one's own is asked by chat completions unless it is said to have more.
const RESPONSES: &str = "[plugins.provider-openai]\napi = \"responses\"\ndialect = \"openai\"\n";

/// Where the plugin runs: inside jaato, and in a worker.
const PLACES: [&str; 2] = ["", "[plugins]\nisolated = [\"provider-openai\"]\n"];

/// A server that answers as the vendor does.
fn serve(vendor: &Arc<OpenAi>, form: Form) -> Server {
    let vendor = Arc::clone(vendor);
    vendors::serve(move |asked| vendor.answer(asked), form)
}

fn vendor(turns: impl IntoIterator<Item = Turn>) -> Arc<OpenAi> {
    Arc::new(OpenAi::new(turns))
}

/// Begins a command line that is led to a server, with a key.
fn at(house: &House, server: &Server, words: &[&str]) -> Command {
    house
        .command(words)
        .variable("OPENAI_BASE_URL", server.base_url())
        .variable("OPENAI_API_KEY", SECRET)
}

fn thought(text: &str) -> Said {
    Said::Reasoning(text.to_owned())
}

fn text(text: &str) -> Said {
    Said::Text(text.to_owned())
}

fn phase(phase: &str, text: &str) -> Said {
    Said::Phase(phase.to_owned(), text.to_owned())
}

fn look(aspect: &str) -> Said {
    Said::Call("get_environment".to_owned(), format!("{{ \"aspect\": \"{aspect}\" }}"))
}

fn turns() -> [Turn; 5] {
    [
        Turn::says([thought("I look."), phase("commentary", "Let me see."), look("os")]),
        Turn::says([thought(""), look("shell"), look("cwd")]).with_other_ids(),
        Turn::says([thought("so"), phase("final_answer", "It is Linux. ")]),
        Turn::says([thought("polite"), text("You are welcome.")]),
        Turn::text("Bye."),
    ]
}

#[test]
fn a_conversation_with_reasoning_and_tools_is_taken_request_by_request() {
    for (place, form) in PLACES.into_iter().zip([Form::Whole, Form::Torn]) {
        let house = house!();
        furnish(&house);
        house.configure_more(&format!("{RESPONSES}{place}"));
        let vendor = vendor(turns());
        let server = serve(&vendor, form);
        let input = "which system?\nthanks\nbye\n";
        let output = at(&house, &server, &CHAT).input(input).run().code(0);
        assert!(output.stdout.contains("Linux.") && output.stdout.contains("Bye."), "{output}");
        let accepted = vendor.accepted();
        assert_eq!(accepted.len(), 5, "{output}");
        // All reasoning went back, and what else the items said.
        let items = accepted[4]["input"].as_array().unwrap();
        let reasoning = items.iter().filter(|item| item["type"] == "reasoning");
        assert_eq!(reasoning.count(), 4, "{items:#?}");
        let phases: Vec<&Value> = items.iter().filter_map(|item| item.get("phase")).collect();
        assert_eq!(phases, ["commentary", "final_answer"]);
        let call = items.iter().find(|item| item["type"] == "function_call").unwrap();
        assert_eq!(call["arguments"], "{ \"aspect\": \"os\" }");
        assert_eq!(server.looked().iter().filter(|it| it.method == "POST").count(), 5);
        for asked in server.looked() {
            assert_eq!(asked.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
        }
        assert!(!output.to_string().contains(SECRET), "{output}");
        no_file_holds_the_key(&house);
        house.nothing_lives();
    }
}

#[test]
fn what_was_sent_is_read_from_the_cache_and_thoughts_are_shown() {
    let house = house!();
    furnish(&house);
    house.configure_more(RESPONSES);
    let vendor = vendor(turns());
    let server = serve(&vendor, Form::Whole);
    fs::write(house.workspace().join("long.txt"), "word ".repeat(2_000)).unwrap();
    let words = [&RUN[..3], &["--output", "json", "--attach", "long.txt", "look"]].concat();
    let lines = at(&house, &server, &words).run().code(0).json_lines();
    let usages: Vec<&Value> = lines.iter().filter(|line| line["event"] == "usage").collect();
    let [first, second, third] = usages[..] else { panic!("{lines:#?}") };
    assert_eq!(first["cached_tokens"], 0);
    for (before, after) in [(first, second), (second, third)] {
        let [cached, sent] = [&after["cached_tokens"], &before["prompt_tokens"]].map(Value::as_u64);
        // The cache gives whole steps of 128.
        assert!(cached.unwrap() + 130 >= sent.unwrap(), "{after:#}");
    }
    let key = &vendor.accepted()[0]["prompt_cache_key"];
    assert!(key.as_str().is_some_and(|key| !key.is_empty()), "{key}");
    assert!(vendor.accepted().iter().all(|body| body["prompt_cache_key"] == *key));
    let thoughts = lines.iter().filter(|line| line["event"] == "thought_delta");
    let thoughts: String = thoughts.map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(thoughts, "I look.so");
}

#[test]
fn an_answer_that_broke_before_its_first_word_is_asked_for_again() {
    let house = house!();
    furnish(&house);
    house.configure_more(RESPONSES);
    let busy = || Turn::text("never").cut_after(2);
    let failed = busy().failing("server_error", "The server had an error", Nesting::Failed);
    let vendor = vendor([busy(), failed, Turn::text("hello")]);
    let server = serve(&vendor, Form::Whole);
    assert_eq!(at(&house, &server, &RUN).run().code(0).stdout, "hello\n");
    assert_eq!(vendor.accepted().len(), 3);
}

#[test]
fn an_account_without_money_is_told_at_once_although_the_answer_began_well() {
    let house = house!();
    furnish(&house);
    house.configure_more(RESPONSES);
    let said = "You exceeded your current quota";
    let broke =
        Turn::text("never").cut_after(2).failing("insufficient_quota", said, Nesting::Nested);
    let vendor = vendor([broke]);
    let server = serve(&vendor, Form::Whole);
    let output = at(&house, &server, &RUN).run();
    assert!(output.stderr.contains(said), "{output}");
    assert_eq!(vendor.accepted().len(), 1, "{output}");
}

#[test]
fn an_image_goes_in() {
    let house = house!();
    furnish(&house);
    house.configure_more(RESPONSES);
    fs::write(house.workspace().join("moon.png"), PNG).unwrap();
    let vendor = vendor([Turn::text("A moon.")]);
    let server = serve(&vendor, Form::Whole);
    let words = [&RUN[..3], &["--attach", "moon.png", "what is this?"]].concat();
    assert_eq!(at(&house, &server, &words).run().code(0).stdout, "A moon.\n");
    let body = &vendor.accepted()[0];
    assert!(body["input"].to_string().contains("data:image/png;base64,iVBORw0KGgo"), "{body}");
}

#[test]
fn a_server_of_ones_own_without_responses_is_told_how_to_be_asked() {
    let house = house!();
    furnish(&house);
    house.configure_more(RESPONSES);
    let refuse = |_: &_| jaato_plugin_testkit::vendors::Answered {
        status: 404,
        headers: Vec::new(),
        body: b"404 page not found".to_vec(),
    };
    let server = vendors::serve(refuse, Form::Whole);
    let output = at(&house, &server, &RUN).run();
    assert!(output.stderr.contains("set `api = \"chat\"`"), "{output}");
}

#[test]
fn a_server_that_is_known_by_a_name_is_asked_with_its_own_key() {
    let house = house!();
    furnish(&house);
    let vendor = vendor([Turn::text("hello")]);
    let server = serve(&vendor, Form::Whole);
    // What stands under its name is laid over what the plugin knows of it.
    let base = server.base_url();
    house.configure_more(&format!(
        "[providers.xai]\nbase_url = \"{base}\"\napi_key_env = \"XAI_API_KEY\"\n"
    ));
    let words = ["run", "--model", "xai/gpt-5.2", "hello"];
    let output = house.command(&words).variable("XAI_API_KEY", SECRET).run().code(0);
    assert_eq!(output.stdout, "hello\n");
    let body = vendor.accepted().pop().unwrap();
    // It is asked by Responses, and for no summaries, which it gives by itself.
    assert_eq!((body.get("reasoning"), body["prompt_cache_key"].is_string()), (None, true));
    let listed = house.run(&["provider", "list"]).code(0);
    for name in ["groq", "mistral", "openrouter", "deepseek"] {
        assert!(listed.to_string().contains(name), "{listed}");
    }
}

#[test]
fn a_deployment_at_azure_is_asked_with_the_key_in_the_header_that_it_wants() {
    let house = house!();
    furnish(&house);
    let vendor = Arc::new(OpenAi::new([Turn::text("hello")]).at_azure("mine", "gpt-5.2"));
    let server = serve(&vendor, Form::Whole);
    let base = server.root_url();
    house.configure_more(&format!(
        "[providers.azure]\nplugin = \"openai\"\nbase_url = \"{base}/openai/v1\"\n\
         dialect = \"azure\"\napi_key_env = \"AZURE_OPENAI_API_KEY\"\nkey_header = \"api-key\"\n"
    ));
    let words = ["run", "--model", "azure/mine", "hello"];
    let output = house.command(&words).variable("AZURE_OPENAI_API_KEY", SECRET).run().code(0);
    assert_eq!(output.stdout, "hello\n");
    let asked = server.looked().pop().unwrap();
    assert_eq!(
        (asked.path.as_str(), asked.header("api-key")),
        ("/openai/v1/responses", Some(SECRET))
    );
    assert_eq!(asked.header("authorization"), None);
}

#[test]
fn a_server_that_is_known_by_a_name_wants_its_own_key_and_no_other() {
    let house = house!();
    furnish(&house);
    let words = ["run", "--model", "groq/some/model", "hello"];
    let command = house.command(&words).variable("OPENAI_API_KEY", SECRET);
    let output = command.variable("HTTPS_PROXY", "http://127.0.0.1:1").run().code(3);
    let expected = "there is no key for `https://api.groq.com`: `GROQ_API_KEY` is not set";
    assert!(output.stderr.contains(expected), "{output}");
}
