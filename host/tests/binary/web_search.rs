//! Tests `web_search` with fakes of search services on loopback, and the line of `jaato doctor`.

use serde_json::{Value, json};

use crate::support::House;
use crate::support::command::Output;
use crate::support::server::{Answer, Server};
use crate::web_fetch::with_web;

const KEY: &str = "BSA-0123456789abcdef";

fn search(house: &House, variables: &[(&str, &str)]) -> Output {
    let arguments = json!({ "query": "frogs & toads" }).to_string();
    let mut command = house.command(&["call", "web_search", &arguments]);
    for (name, value) in variables {
        command = command.variable(name, *value);
    }
    command.run()
}

fn service(status: u16, body: &Value) -> Server {
    let body = body.to_string();
    Server::answering(move |_| Answer::status(status).body(&body))
}

fn brave(server: &Server) -> [(&'static str, String); 2] {
    [("BRAVE_API_KEY", KEY.to_owned()), ("WEB_SEARCH_BASE_URL", server.root_url())]
}

fn search_brave(house: &House, server: &Server) -> Output {
    let variables = brave(server);
    search(house, &variables.each_ref().map(|(name, value)| (*name, value.as_str())))
}

#[test]
fn results_come_from_the_service_whose_key_is_set() {
    let Some(house) = with_web() else { return };
    let found = json!({ "web": { "results": [
        { "title": "Frogs", "url": "https://a.example/", "description": "<strong>Frogs</strong>", "age": "1 day" },
    ] } });
    let server = service(200, &found);
    let output = search_brave(&house, &server).code(0);
    let answer = output.json();
    assert_eq!((&answer["backend"], &answer["result_count"]), (&json!("Brave"), &json!(1)));
    assert_eq!(answer["references"], json!(["web_search_1"]), "{output}");
    let text = format!("{}{}", output.stdout, output.stderr);
    assert!(text.contains("1 results from Brave") && !text.contains(KEY), "{output}");
    let asked = &server.looked()[0];
    assert!(
        asked.path.ends_with("/res/v1/web/search?count=10&q=frogs+%26+toads"),
        "{}",
        asked.path
    );
    let key = asked.headers.iter().find(|(name, _)| name == "x-subscription-token");
    assert_eq!(key.map(|(_, value)| value.as_str()), Some(KEY));
    house.nothing_lives();
}

#[test]
fn failures_differ_from_nothing_found() {
    let Some(house) = with_web() else { return };
    let nothing = search_brave(&house, &service(200, &json!({}))).code(0).json();
    assert_eq!(nothing["message"], "No results found for the query.");
    for (status, text) in [
        (401, "Brave refused the key in `BRAVE_API_KEY`"),
        (429, "Brave got too many searches"),
        (402, "no searches left"),
        (500, "status 500"),
    ] {
        let output = search_brave(&house, &service(status, &json!({})));
        assert_ne!(output.code, 0, "{output}");
        assert!(output.stderr.contains(text) && !output.stderr.contains(KEY), "{output}");
    }
    let engines = json!({ "results": [], "unresponsive_engines": [["google", "CAPTCHA"]] });
    let server = service(200, &engines);
    let output = search(&house, &[("SEARXNG_URL", &server.root_url())]);
    assert!(output.stderr.contains("did not answer: google: CAPTCHA"), "{output}");
    let server = service(403, &json!({}));
    let output = search(&house, &[("SEARXNG_URL", &server.root_url())]);
    assert!(output.stderr.contains("`json` under `search.formats`"), "{output}");
    house.nothing_lives();
}

#[test]
fn check_of_the_reader_with_status_200_is_a_block() {
    let Some(house) = with_web() else { return };
    let server = Server::answering(|_| Answer::status(200).body("<form id=challenge-form></form>"));
    house.configure_more(&format!(
        "[plugins.tool-web-search.backends.page]\nurl = \"{}/html/\"\nhtml = true\n\
         form = {{ q = \"{{query}}\" }}\nresults = \"div.result\"\nblocked = \"form#challenge-form\"\n\
         fields = {{ title = \"h2\", url = \"a\" }}\n",
        server.root_url()
    ));
    let output = search(&house, &[]);
    assert!(output.stderr.contains("blocked the search"), "{output}");
    assert!(server.looked().iter().chain(&server.asked()).any(|it| it.method == "POST"));
    house.nothing_lives();
}

#[test]
fn doctor_names_the_backend_in_use() {
    let Some(house) = with_web() else { return };
    let doctor = |variables: &[(&str, &str)]| {
        let mut command = house.command(&["doctor"]);
        for (name, value) in variables {
            command = command.variable(name, *value);
        }
        command.run().stdout
    };
    let without = doctor(&[]);
    assert!(without.contains("web search   DuckDuckGo, without a key"), "{without}");
    assert!(without.contains("set BRAVE_API_KEY"), "{without}");
    let with_key = doctor(&[("BRAVE_API_KEY", KEY)]);
    assert!(with_key.contains("web search   Brave\n") && !with_key.contains(KEY), "{with_key}");
    house.nothing_lives();
}
