//! Runs against a server that speaks Anthropic's Messages API: a strict fake, which refuses what
//! the vendor refuses.

use std::fs;
use std::sync::Arc;

use jaato_plugin_testkit::vendors::anthropic::{Anthropic, Said, Turn};
use serde_json::{Value, json};

use crate::house;
use crate::openai::{SECRET, no_file_holds_the_key};
use crate::support::server::Server;
use crate::support::{Command, House, fixture};
use crate::vendors::{self, Form, PNG};

const RUN: [&str; 4] = ["run", "--model", "anthropic/claude-opus-5-5", "hello"];
const CHAT: [&str; 3] = ["chat", "--model", "anthropic/claude-opus-5-5"];

/// Where the plugin runs: inside jaato, and in a worker.
const PLACES: [&str; 2] = ["", "[plugins]\nisolated = [\"provider-anthropic\"]\n"];

/// Ships the plugin, and lets nothing wait for long.
fn furnish(house: &House) {
    vendors::furnish(house, "provider_anthropic");
}

/// A server that answers as the vendor does.
fn serve(vendor: &Arc<Anthropic>, form: Form) -> Server {
    let vendor = Arc::clone(vendor);
    vendors::serve(move |asked| vendor.answer(asked), form)
}

fn vendor(turns: impl IntoIterator<Item = Turn>) -> Arc<Anthropic> {
    Arc::new(Anthropic::new(turns))
}

/// Begins a command line that is led to a server, with a key.
fn at(house: &House, server: &Server, words: &[&str]) -> Command {
    house
        .command(words)
        .variable("ANTHROPIC_BASE_URL", server.root_url())
        .variable("ANTHROPIC_API_KEY", SECRET)
}

fn thought(text: &str) -> Said {
    Said::Thought(text.to_owned())
}

fn text(text: &str) -> Said {
    Said::Text(text.to_owned())
}

fn look(aspect: &str) -> Said {
    Said::Call("get_environment".to_owned(), json!({ "aspect": aspect }))
}

fn turns() -> [Turn; 5] {
    [
        Turn::says([thought("I look."), text("Let me see."), look("os"), thought(""), look("cwd")]),
        Turn::says([Said::Hidden("secret".to_owned()), look("shell")]),
        Turn::says([thought("so"), text("It is "), text("Linux. ")]),
        Turn::says([thought("polite"), text("You are welcome.")]),
        Turn::text("Bye."),
    ]
}

#[test]
fn a_conversation_with_thoughts_and_tools_is_taken_request_by_request() {
    for (place, form) in PLACES.into_iter().zip([Form::Whole, Form::Torn]) {
        let house = house!();
        furnish(&house);
        house.configure_more(place);
        let vendor = vendor(turns());
        let server = serve(&vendor, form);
        let input = "which system?\nthanks\nbye\n";
        let output = at(&house, &server, &CHAT).input(input).run().code(0);
        assert!(output.stdout.contains("Linux.") && output.stdout.contains("Bye."), "{output}");
        let asked = server.asked();
        assert_eq!((asked.len(), vendor.accepted().len()), (5, 5), "{output}");
        for asked in &asked {
            assert_eq!(asked.header("x-api-key"), Some(SECRET));
            assert_eq!(asked.header("anthropic-version"), Some("2023-06-01"));
            assert_eq!(asked.header("authorization"), None);
        }
        assert!(!output.to_string().contains(SECRET), "{output}");
        no_file_holds_the_key(&house);
        house.nothing_lives();
    }
}

#[test]
fn what_was_sent_is_read_from_the_cache() {
    let house = house!();
    furnish(&house);
    let vendor = vendor(turns());
    let server = serve(&vendor, Form::Whole);
    fs::write(house.workspace().join("long.txt"), "word ".repeat(2_000)).unwrap();
    let words = [&RUN[..3], &["--output", "json", "--attach", "long.txt", "look"]].concat();
    let lines = at(&house, &server, &words).run().code(0).json_lines();
    let usages: Vec<&Value> = lines.iter().filter(|line| line["event"] == "usage").collect();
    let [first, second, third] = usages[..] else { panic!("{lines:#?}") };
    assert_eq!(first["cached_tokens"], 0);
    for (before, after) in [(first, second), (second, third)] {
        assert_eq!(after["cached_tokens"], before["prompt_tokens"], "{after:#}");
    }
    let thoughts = lines.iter().filter(|line| line["event"] == "thought_delta");
    let thoughts: String = thoughts.map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(thoughts, "I look.so");
}

#[test]
fn an_answer_that_is_cut_before_its_first_word_is_asked_for_again() {
    let house = house!();
    furnish(&house);
    let busy = || Turn::text("never").cut_after(2);
    let overloaded = busy().failing("overloaded_error", "Overloaded");
    let vendor = vendor([busy(), overloaded, Turn::text("hello")]);
    let server = serve(&vendor, Form::Whole);
    assert_eq!(at(&house, &server, &RUN).run().code(0).stdout, "hello\n");
    assert_eq!(vendor.accepted().len(), 3);
}

#[test]
fn an_answer_that_is_cut_behind_its_first_word_is_told_and_the_conversation_goes_on() {
    let house = house!();
    furnish(&house);
    let cut = Turn::says([thought("hm"), text("half of it")]).cut_after(9);
    let vendor = vendor([cut, Turn::says([thought("so"), text("whole")]), Turn::text("bye")]);
    let server = serve(&vendor, Form::Whole);
    let output = at(&house, &server, &CHAT).input("one\ntwo\nthree\n").run();
    assert!(output.stderr.contains("ended in the middle"), "{output}");
    assert!(output.stdout.contains("whole") && output.stdout.contains("bye"), "{output}");
    assert_eq!(vendor.accepted().len(), 3, "{output}");
}

#[test]
fn an_image_goes_in() {
    let house = house!();
    furnish(&house);
    fs::write(house.workspace().join("moon.png"), PNG).unwrap();
    let vendor = vendor([Turn::says([thought("hm"), text("A moon.")])]);
    let server = serve(&vendor, Form::Whole);
    let words = [&RUN[..3], &["--attach", "moon.png", "what is this?"]].concat();
    assert_eq!(at(&house, &server, &words).run().code(0).stdout, "A moon.\n");
    let body = &vendor.accepted()[0];
    let content = body["messages"][0]["content"].as_array().unwrap();
    let image = content.iter().find(|block| block["type"] == "image").expect("it is shown");
    assert!(image["source"]["data"].as_str().unwrap().starts_with("iVBORw0KGgo"), "{image}");
}

#[test]
fn tools_that_are_found_on_the_way_leave_the_list_and_the_thoughts_as_they_are() {
    let house = house!();
    furnish(&house);
    // Its tool stands in no request as long as nobody looks it up.
    house.ship(&fixture("echo"));
    let names = json!({ "names": ["count_bytes_echo"] });
    let schemas = Said::Call("get_tool_schemas".to_owned(), names);
    let echo = Said::Call("count_bytes_echo".to_owned(), json!({ "text": "moon" }));
    let vendor = vendor([
        Turn::says([thought("what is there?"), schemas]),
        Turn::says([thought("there it is"), echo]),
        Turn::says([thought("so"), text("done")]),
        Turn::text("bye"),
    ]);
    let server = serve(&vendor, Form::Whole);
    let words = [&CHAT[..], &["--yes"]].concat();
    let output = at(&house, &server, &words).input("find it\nbye\n").run().code(0);
    let accepted = vendor.accepted();
    assert_eq!(accepted.len(), 4, "{output}");
    assert!(accepted.iter().all(|body| body["tools"] == accepted[0]["tools"]), "{output}");
    let history = accepted[3]["messages"].to_string();
    for said in ["tool_addition", "what is there?", "there it is", r#"{\"bytes\":4}"#] {
        assert!(history.contains(said), "{said}: {history}");
    }
    assert!(!output.stderr.contains("left out earlier thoughts"), "{output}");
}

#[test]
fn a_token_goes_as_a_bearer_where_there_is_no_key() {
    let house = house!();
    furnish(&house);
    let vendor = vendor([Turn::text("hello")]);
    let server = serve(&vendor, Form::Whole);
    let command = house
        .command(&RUN)
        .variable("ANTHROPIC_BASE_URL", server.root_url())
        .variable("ANTHROPIC_AUTH_TOKEN", SECRET);
    assert_eq!(command.run().code(0).stdout, "hello\n");
    let last = server.asked().pop().unwrap();
    assert_eq!(last.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert_eq!(last.header("x-api-key"), None);
}

#[test]
fn without_a_key_the_vendor_is_not_even_asked() {
    let house = house!();
    furnish(&house);
    let output = house.command(&RUN).variable("HTTPS_PROXY", "http://127.0.0.1:1").run().code(3);
    assert_eq!(
        output.stderr,
        "error: there is no key for `https://api.anthropic.com`: `ANTHROPIC_API_KEY` is not set\n\
         hint: set `ANTHROPIC_API_KEY`, or `api_key` under `[plugins.provider-anthropic]`, or run \
         `jaato provider login anthropic`; for another server set `ANTHROPIC_BASE_URL`\n"
    );
    assert_eq!(house.run(&["model", "list"]).silent().stdout, "no models\n");
}

#[test]
fn models_are_asked_of_the_server_and_what_one_does_not_take_is_refused_by_name() {
    let house = house!();
    furnish(&house);
    let vendor = vendor([]);
    let server = serve(&vendor, Form::Whole);
    let output = at(&house, &server, &["model", "list"]).run().silent();
    assert!(output.stdout.contains("anthropic/claude-opus-5-5"), "{output}");
    let words = [&RUN[..], &["--temperature", "0.5"]].concat();
    let output = at(&house, &server, &words).run();
    let said = "the model `claude-opus-5-5` does not take the option `temperature`";
    assert!(output.stderr.contains(said), "{output}");
    assert!(server.asked().is_empty());
}
