//! Tests the tool on a host in memory, with the conformance suite.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::prelude::{Error, ErrorKind, Output, Value, json};
use jaato_plugin_sdk::types::http::HTTP_CREDENTIAL;
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer, FakeServiceReply};

const FOUND: &str = r#"{"results":[{"title":"T","url":"https://a.example/","content":"S"}]}"#;

jaato_plugin_testkit::conformance!(tool_web_search: tool; |suite| suite.with_host(|host| {
    host_with_keys(host, &[]).with_http(|_| Ok(FakeHttpAnswer::status(200).body("<p>nothing")))
}));

fn host_with_keys(host: FakeHost, keys: &'static [&'static str]) -> FakeHost {
    host.with_service(HTTP_CREDENTIAL, move |request| {
        let asked: Value = request.read()?;
        let is_set = keys.contains(&asked["variable"].as_str().unwrap());
        Ok(FakeServiceReply::Json(json!({ "is_set": is_set })))
    })
}

fn search_host(keys: &'static [&'static str], status: u16, body: &'static str) -> FakeHost {
    host_with_keys(FakeHost::new(tool_web_search::__jaato::MODULE), keys)
        .with_http(move |_| Ok(FakeHttpAnswer::status(status).body(body)))
}

fn call_search(host: &FakeHost) -> Result<Value, Error> {
    let arguments = json!({ "query": "frogs" });
    host.call("web_search", arguments).map(|output: Output| json!(output.content))
}

#[test]
fn results_become_objects() {
    let host = search_host(&["TAVILY_API_KEY"], 200, FOUND);
    let answer = call_search(&host).unwrap();
    assert_eq!((&answer["backend"], &answer["result_count"]), (&json!("Tavily"), &json!(1)));
    let request = &host.http_requests()[0];
    assert_eq!(request.head.credential.as_deref(), Some("TAVILY_API_KEY"));
    assert!(request.head.credential_required);
    let text = format!("{:?}", host.objects());
    for part in ["https://a.example/", "\"T\"", "\"S\"", "\"frogs\"", "Tavily"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn backend_follows_from_the_keys_and_settings() {
    let asked = |host: FakeHost| {
        call_search(&host).unwrap();
        host.http_requests()[0].head.url.split('?').next().unwrap().to_owned()
    };
    assert_eq!(asked(search_host(&[], 200, "<p>")), "https://html.duckduckgo.com/html/");
    let both = search_host(&["BRAVE_API_KEY", "TAVILY_API_KEY"], 200, "{}");
    assert_eq!(asked(both), "https://api.search.brave.com/res/v1/web/search");
    let named = search_host(&["BRAVE_API_KEY", "TAVILY_API_KEY"], 200, "{}");
    assert_eq!(
        asked(named.with_config(json!({ "backend": "tavily" }))),
        "https://api.tavily.com/search"
    );
    let searxng = json!({ "searxng_url": "https://s.example" });
    assert_eq!(
        asked(search_host(&["BRAVE_API_KEY"], 200, "{}").with_config(searxng)),
        "https://s.example/search"
    );
    let own = json!({ "backends": { "mine": {
        "url": "https://m.example/find", "query": { "text": "{query}" }, "results": "/hits",
        "fields": { "title": "/name", "url": "/link" },
    } } });
    assert_eq!(asked(search_host(&[], 200, "{}").with_config(own)), "https://m.example/find");
}

#[test]
fn wrong_settings_are_explained() {
    let with =
        |config: Value| call_search(&search_host(&[], 200, "{}").with_config(config)).unwrap_err();
    let error = with(json!({ "backend": "moon" }));
    assert_eq!(
        error.message,
        "the search backend `moon` does not exist; known are brave, duckduckgo, searxng, tavily"
    );
    let error = with(json!({ "backend": "brave" }));
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Configuration, "the search backend `brave` needs a key in `BRAVE_API_KEY`")
    );
    let error = with(json!({ "backend": "searxng" }));
    assert_eq!(
        error.message,
        "the search backend `searxng` needs `searxng_url` or the variable `SEARXNG_URL`"
    );
}

#[test]
fn failures_and_nothing_found_are_different_answers() {
    let brave = |status| call_search(&search_host(&["BRAVE_API_KEY"], status, "{}"));
    let nothing = brave(200).unwrap();
    assert_eq!(nothing["message"], "No results found for the query.");
    for (status, kind, text) in [
        (401, ErrorKind::PermissionDenied, "Brave refused the key in `BRAVE_API_KEY`"),
        (402, ErrorKind::LimitReached, "the account at Brave has no searches left"),
        (429, ErrorKind::Unavailable, "Brave got too many searches"),
        (500, ErrorKind::Unavailable, "Brave answered with the status 500"),
    ] {
        let error = brave(status).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, text));
    }
    let engines = r#"{"results":[],"unresponsive_engines":[["bing","timeout"]]}"#;
    let searxng =
        search_host(&[], 200, engines).with_config(json!({ "searxng_url": "https://s.example" }));
    assert_eq!(
        call_search(&searxng).unwrap_err().message,
        "the engines of SearXNG did not answer: bing: timeout"
    );
}

#[test]
fn service_that_blocks_is_not_asked_again() {
    let host = search_host(&[], 200, "<form id=challenge-form></form>");
    for _ in 0..3 {
        let error = call_search(&host).unwrap_err();
        assert_eq!(
            error.message,
            "DuckDuckGo blocked the search because it takes jaato for a robot"
        );
    }
    assert_eq!(host.http_requests().len(), 1);
}

#[test]
fn bad_queries_are_refused() {
    let host = search_host(&[], 200, "");
    for query in ["", "  ", "x".repeat(401).as_str()] {
        let error = host.call("web_search", json!({ "query": query })).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
    }
}
