//! Runs against a server that speaks Google's generateContent: a strict fake, which refuses what
//! the vendor refuses.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jaato_plugin_testkit::vendors::google::{Google, Said, Turn};
use serde_json::{Value, json};

use crate::house;
use crate::openai::{SECRET, no_file_holds_the_key};
use crate::support::server::{Answer, Asked, Server, Step};
use crate::support::{Command, House, fixture, fixtures, library_name};
use crate::vendors::{self, Form, PNG};

const RUN: [&str; 4] = ["run", "--model", "google/gemini-4-argon", "hello"];
const CHAT: [&str; 3] = ["chat", "--model", "google/gemini-4-argon"];

/// Where the plugin runs: inside jaato, and in a worker.
const PLACES: [&str; 2] = ["", "[plugins]\nisolated = [\"provider-google-genai\"]\n"];

/// Ships the plugin, and lets nothing wait for long.
fn furnish(house: &House) {
    vendors::furnish(house, "provider_google_genai");
}

/// A server that answers as the vendor does.
fn serve(vendor: &Arc<Google>, form: Form) -> Server {
    let vendor = Arc::clone(vendor);
    vendors::serve(move |asked| vendor.answer(asked), form)
}

fn vendor(turns: impl IntoIterator<Item = Turn>) -> Arc<Google> {
    Arc::new(Google::new(turns))
}

/// Begins a command line that is led to a server, with a key.
fn at(house: &House, server: &Server, words: &[&str]) -> Command {
    house
        .command(words)
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("GOOGLE_API_KEY", SECRET)
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
        Turn::says([thought("I look."), text("Let me see."), look("os"), look("cwd")]),
        Turn::says([thought("Again."), look("shell")]),
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
        let accepted = vendor.accepted();
        assert_eq!(accepted.len(), 5, "{output}");
        // Every signature went back as it came, and none was made up.
        let history = accepted[4].to_string();
        assert_eq!(history.matches("thoughtSignature").count(), 4, "{history}");
        assert!(!history.contains("skip_thought_signature_validator"), "{history}");
        for asked in server.looked() {
            assert_eq!(asked.header("x-goog-api-key"), Some(SECRET));
            assert_eq!(asked.header("authorization"), None);
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
        // All but the brackets at the end of the body before.
        assert!(cached.unwrap() + 1 >= sent.unwrap(), "{after:#}");
    }
    let thoughts = lines.iter().filter(|line| line["event"] == "thought_delta");
    let thoughts: String = thoughts.map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(thoughts, "I look.Again.so");
}

#[test]
fn an_answer_that_is_cut_before_its_first_word_is_asked_for_again() {
    let house = house!();
    furnish(&house);
    let cut = || Turn::text("never").cut_after(0);
    let report = json!({ "error": { "code": 503, "status": "UNAVAILABLE", "message": "busy" } });
    let broken = Turn::says([]).stopping("MALFORMED_FUNCTION_CALL");
    let turns = [cut(), cut().failing(report), broken, Turn::text("hello")];
    let vendor = vendor(turns);
    let server = serve(&vendor, Form::Whole);
    assert_eq!(at(&house, &server, &RUN).run().code(0).stdout, "hello\n");
    assert_eq!(vendor.accepted().len(), 4);
}

#[test]
fn an_error_behind_the_first_word_is_told_and_the_conversation_goes_on() {
    let house = house!();
    furnish(&house);
    let report = json!({ "error": { "code": 500, "status": "INTERNAL", "message": "internal" } });
    let cut = Turn::says([text("half of it")]).cut_after(1).failing_barely(report);
    let vendor = vendor([cut, Turn::says([thought("so"), text("whole")]), Turn::text("bye")]);
    let server = serve(&vendor, Form::Whole);
    let output = at(&house, &server, &CHAT).input("one\ntwo\nthree\n").run();
    assert!(output.stderr.contains("reports an error: internal"), "{output}");
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
    let parts = body["contents"][0]["parts"].as_array().unwrap();
    let image = parts.iter().find_map(|part| part.get("inlineData")).expect("it is shown");
    assert!(image["data"].as_str().unwrap().starts_with("iVBORw0KGgo"), "{image}");
}

#[test]
fn a_change_of_tools_is_a_cut_after_which_calls_say_that_they_are_unsigned() {
    let house = house!();
    furnish(&house);
    // Its tool stands in no request as long as nobody looks it up.
    house.ship(&fixture("echo"));
    let schemas =
        Said::Call("get_tool_schemas".to_owned(), json!({ "names": ["count_bytes_echo"] }));
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
    assert!(accepted[1]["contents"].to_string().contains("skip_thought_signature_validator"));
    assert!(
        accepted[1]["tools"].to_string().contains("count_bytes_echo"),
        "{}",
        accepted[1]["tools"]
    );
}

#[test]
fn a_key_in_another_variable_is_found_once_the_server_wants_one() {
    let house = house!();
    furnish(&house);
    let vendor = vendor([Turn::text("hello"), Turn::text("bye")]);
    let server = serve(&vendor, Form::Whole);
    let command = house
        .command(&CHAT)
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("GEMINI_API_KEY", SECRET);
    let output = command.input("one\ntwo\n").run().code(0);
    assert_eq!(vendor.accepted().len(), 2, "{output}");
    let generates = |asked: &Asked| asked.path.contains(":streamGenerateContent");
    let asked: Vec<_> = server.looked().into_iter().filter(generates).collect();
    let keys: Vec<_> = asked.iter().map(|asked| asked.header("x-goog-api-key")).collect();
    assert_eq!(keys, [None, Some(SECRET), Some(SECRET)]);
}

#[test]
fn a_project_is_asked_for_with_a_token_as_a_bearer() {
    let house = house!();
    furnish(&house);
    let vendor = vendor([look("os"), text("Linux.")].map(|said| Turn::says([said])));
    let server = serve(&vendor, Form::Whole);
    house.configure_more("[plugins.provider-google-genai]\nproject = \"my-project\"\n");
    let command = house
        .command(&RUN)
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("GOOGLE_OAUTH_ACCESS_TOKEN", SECRET);
    assert_eq!(command.run().code(0).stdout, "Linux.\n");
    let last = server.looked().pop().unwrap();
    assert_eq!(last.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert_eq!(last.header("x-goog-api-key"), None);
    assert_eq!(
        last.path,
        "/v1beta1/projects/my-project/locations/global/publishers/google/models/\
         gemini-4-argon:streamGenerateContent?alt=sse"
    );
}

#[test]
fn a_project_may_stand_in_the_variables_of_a_trusted_workspace() {
    let house = house!();
    furnish(&house);
    let vendor = vendor([Turn::text("hello")]);
    let server = serve(&vendor, Form::Whole);
    house.write("workspace/.env", "PROJECT_ID=theirs\nLOCATION=eu\n");
    house.run(&["trust"]).code(0);
    let command = house
        .command(&RUN)
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("GOOGLE_OAUTH_ACCESS_TOKEN", SECRET)
        .variable("GOOGLE_CLOUD_LOCATION", "global")
        .variable("GOOGLE_CLOUD_PROJECT", "of-something-else");
    assert_eq!(command.run().code(0).stdout, "hello\n");
    let path = server.looked().pop().unwrap().path;
    assert!(path.starts_with("/v1beta1/projects/theirs/locations/global/"), "{path}");
    let wrong = house.command(&RUN).variable("GOOGLE_GENAI_USE_VERTEXAI", "perhaps").run();
    assert!(wrong.stderr.contains("`GOOGLE_GENAI_USE_VERTEXAI` wants true or false"), "{wrong}");
}

/// What `gcloud auth application-default login` leaves, of a person whose tokens a server gives.
fn login(tokens: &Server) -> String {
    json!({ "type": "authorized_user", "client_id": "id", "client_secret": SECRET,
        "refresh_token": "1//refresh", "quota_project_id": "billed",
        "token_uri": format!("{}/token", tokens.root_url()) })
    .to_string()
}

/// A server that gives a token of another number each time.
fn serve_tokens() -> Server {
    let given = AtomicU32::new(0);
    Server::answering(move |_| {
        let token = format!("token-{}", given.fetch_add(1, Ordering::Relaxed));
        let body = json!({ "access_token": token, "expires_in": 3599 }).to_string();
        Answer::status(200).then(Step::Bytes(body.into_bytes()))
    })
}

#[test]
fn tokens_are_minted_from_a_persons_login_and_again_when_one_is_refused() {
    let house = house!();
    furnish(&house);
    let (tokens, vendor) = (serve_tokens(), vendor([Turn::text("hello"), Turn::text("again")]));
    let answers = Arc::clone(&vendor);
    let server = vendors::serve(
        move |asked| {
            if asked.header("authorization") == Some("Bearer token-0") {
                let refused = json!({ "error": { "code": 401, "status": "UNAUTHENTICATED" } });
                let body = refused.to_string().into_bytes();
                return jaato_plugin_testkit::vendors::Answered {
                    status: 401,
                    headers: vec![],
                    body,
                };
            }
            answers.answer(asked)
        },
        Form::Whole,
    );
    house.write("home/.config/gcloud/application_default_credentials.json", &login(&tokens));
    let command = house
        .command(&CHAT)
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("PROJECT_ID", "mine");
    let output = command.input("one\ntwo\n").run().code(0);
    assert!(output.stdout.contains("hello") && output.stdout.contains("again"), "{output}");
    assert_eq!(tokens.looked().len(), 2, "one in place of that which was refused");
    let last = server.looked().pop().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer token-1"));
    assert_eq!(last.header("x-goog-user-project"), Some("billed"));
    assert!(!output.to_string().contains("token-"), "{output}");
    let checked = house
        .command(&["provider", "check", "google/gemini-4-argon"])
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("PROJECT_ID", "mine")
        .run();
    assert!(checked.stdout.contains("gcloud's file"), "{checked}");
}

#[test]
fn a_file_of_credentials_may_be_named_in_a_workspace_and_one_that_is_not_there_is_told() {
    let house = house!();
    furnish(&house);
    let (tokens, vendor) = (serve_tokens(), vendor([Turn::text("hello")]));
    let server = serve(&vendor, Form::Whole);
    let lines =
        "PROJECT_ID=theirs\nLOCATION=global\nGOOGLE_APPLICATION_CREDENTIALS=keys/mine.json\n";
    house.write("workspace/.env", lines);
    house.write("workspace/keys/mine.json", &login(&tokens));
    house.run(&["trust"]).code(0);
    let at =
        |words: &[&str]| house.command(words).variable("GOOGLE_GEMINI_BASE_URL", server.root_url());
    assert_eq!(at(&RUN).run().code(0).stdout, "hello\n");
    assert_eq!(server.looked().pop().unwrap().header("authorization"), Some("Bearer token-0"));
    house.write("workspace/.env", &lines.replace("mine.json", "none.json"));
    house.run(&["trust"]).code(0);
    let output = at(&RUN).run().code(3);
    assert!(output.stderr.contains("none.json") && output.stderr.contains("cannot be read"));
    // Nobody named one: the machine is not asked beyond loopback in tests.
    house.write("workspace/.env", "PROJECT_ID=theirs\n");
    house.run(&["trust"]).code(0);
    let output = at(&RUN).variable("GCE_METADATA_HOST", "127.0.0.1:9").run();
    assert!(output.stderr.contains("gcloud auth application-default login"), "{output}");
}

#[test]
fn a_plugin_that_is_not_trusted_is_told_no_variables() {
    let house = house!();
    let built = fixtures::house().unwrap().join("plugins");
    house.drop_in(&built.join(library_name("provider_google_genai")));
    let server = serve(&vendor([]), Form::Whole);
    let command = house
        .command(&RUN)
        .variable("GOOGLE_GEMINI_BASE_URL", server.root_url())
        .variable("PROJECT_ID", "private");
    let output = command.run();
    let asked = server.looked();
    assert!(!asked.is_empty(), "{output}");
    for asked in asked {
        assert!(asked.path.starts_with("/v1beta/models"), "{}", asked.path);
    }
}

#[test]
fn without_a_key_the_vendor_is_not_even_asked() {
    let house = house!();
    furnish(&house);
    let output = house.command(&RUN).variable("HTTPS_PROXY", "http://127.0.0.1:1").run().code(3);
    assert_eq!(
        output.stderr,
        "error: there is no key for `https://generativelanguage.googleapis.com`: `GOOGLE_API_KEY` \
         is not set\nhint: set `GOOGLE_API_KEY`, or `api_key` under \
         `[plugins.provider-google-genai]`, or run `jaato provider login google`; for another server set `GOOGLE_GEMINI_BASE_URL`\n"
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
    assert!(output.stdout.contains("google/gemini-4-argon"), "{output}");
    assert!(!output.stdout.contains("embedding"), "{output}");
    let words = ["run", "--model", "google/gemini-2.0-flash", "--effort", "high", "hello"];
    let output = at(&house, &server, &words).run();
    let said = "the model `gemini-2.0-flash` does not take the option `effort`";
    assert!(output.stderr.contains(said), "{output}");
    assert!(vendor.accepted().is_empty());
}
