//! Tests `web_search` with fakes of search services on loopback, and the line of `jaato doctor`.

use serde_json::{Value, json};

use crate::support::House;
use crate::support::command::Output;
use crate::support::server::{Answer, Server};
use crate::web_fetch::house_with_web;

const KEY: &str = "BSA-0123456789abcdef";

fn run_search(house: &House, variables: &[(&str, &str)]) -> Output {
    let arguments = json!({ "query": "frogs & toads" }).to_string();
    let mut command = house.command(&["call", "web_search", &arguments]);
    for (name, value) in variables {
        command = command.variable(name, *value);
    }
    command.run()
}

fn start_search_server(status: u16, body: &Value) -> Server {
    let body = body.to_string();
    Server::start_with(move |_| Answer::status(status).body(&body))
}

fn brave_variables(server: &Server) -> [(&'static str, String); 2] {
    [("BRAVE_API_KEY", KEY.to_owned()), ("WEB_SEARCH_BASE_URL", server.root_url())]
}

fn search_brave(house: &House, server: &Server) -> Output {
    let variables = brave_variables(server);
    run_search(house, &variables.each_ref().map(|(name, value)| (*name, value.as_str())))
}

#[test]
fn results_come_from_the_service_whose_key_is_set() {
    let Some(house) = house_with_web() else { return };
    let found = json!({ "web": { "results": [
        { "title": "Frogs", "url": "https://a.example/", "description": "<strong>Frogs</strong>", "age": "1 day" },
    ] } });
    let server = start_search_server(200, &found);
    let output = search_brave(&house, &server).code(0);
    let answer = output.json();
    assert_eq!((&answer["backend"], &answer["result_count"]), (&json!("Brave"), &json!(1)));
    assert_eq!(answer["references"], json!(["web_search_1"]), "{output}");
    let text = format!("{}{}", output.stdout, output.stderr);
    assert!(text.contains("1 results from Brave") && !text.contains(KEY), "{output}");
    let asked = &server.other_requests()[0];
    assert!(
        asked.path.ends_with("/res/v1/web/search?count=10&q=frogs+%26+toads"),
        "{}",
        asked.path
    );
    let key = asked.headers.iter().find(|(name, _)| name == "x-subscription-token");
    assert_eq!(key.map(|(_, value)| value.as_str()), Some(KEY));
    house.assert_no_processes();
}

#[test]
fn failures_differ_from_nothing_found() {
    let Some(house) = house_with_web() else { return };
    let nothing = search_brave(&house, &start_search_server(200, &json!({}))).code(0).json();
    assert_eq!(nothing["message"], "No results found for the query.");
    for (status, text) in [
        (401, "Brave refused the key in `BRAVE_API_KEY`"),
        (429, "Brave got too many searches"),
        (402, "no searches left"),
        (500, "status 500"),
    ] {
        let output = search_brave(&house, &start_search_server(status, &json!({})));
        assert_ne!(output.code, 0, "{output}");
        assert!(output.stderr.contains(text) && !output.stderr.contains(KEY), "{output}");
    }
    let engines = json!({ "results": [], "unresponsive_engines": [["google", "CAPTCHA"]] });
    let server = start_search_server(200, &engines);
    let output = run_search(&house, &[("SEARXNG_URL", &server.root_url())]);
    assert!(output.stderr.contains("did not answer: google: CAPTCHA"), "{output}");
    let server = start_search_server(403, &json!({}));
    let output = run_search(&house, &[("SEARXNG_URL", &server.root_url())]);
    assert!(output.stderr.contains("`json` under `search.formats`"), "{output}");
    house.assert_no_processes();
}

#[test]
fn check_of_the_reader_with_status_200_is_a_block() {
    let Some(house) = house_with_web() else { return };
    let server =
        Server::start_with(|_| Answer::status(200).body("<form id=challenge-form></form>"));
    house.configure_more(&format!(
        "[plugins.tool-web-search.backends.page]\nurl = \"{}/html/\"\nhtml = true\n\
         form = {{ q = \"{{query}}\" }}\nresults = \"div.result\"\nblocked = \"form#challenge-form\"\n\
         fields = {{ title = \"h2\", url = \"a\" }}\n",
        server.root_url()
    ));
    let output = run_search(&house, &[]);
    assert!(output.stderr.contains("blocked the search"), "{output}");
    assert!(server.other_requests().iter().chain(&server.requests()).any(|it| it.method == "POST"));
    house.assert_no_processes();
}

#[test]
fn doctor_names_the_backend_in_use() {
    let Some(house) = house_with_web() else { return };
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
    house.assert_no_processes();
}
