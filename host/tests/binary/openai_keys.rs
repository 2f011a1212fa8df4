//! Tests keys: where they come from, where they go, and that nothing ever shows one.

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::openai::{RUN, SECRET, assert_key_not_saved, openai_command, ship_openai};
use crate::support::server::{Answer, BodyStep, Server, choice_events, stream_end};
use crate::support::{House, Output};

/// Checks that a run contacted no server, and that no file it left contains the key.
#[track_caller]
fn assert_key_unused(house: &House, output: &Output, server: &Server) {
    assert!(server.requests().is_empty(), "the server was asked: {output}");
    assert!(!output.to_string().contains(SECRET), "{output}");
    assert_key_not_saved(house);
}

#[test]
fn server_without_authentication_gets_no_key() {
    let house = house!(ship_openai);
    let server = Server::start([Answer::text(&["hello"]), Answer::error(401, "who are you?")]);
    let command = || house.command(&RUN).variable("OPENAI_BASE_URL", server.base_url());
    assert_eq!(command().run().code(0).stdout, "hello\n");
    let output = command().run().code(5);
    assert!(output.stderr.contains("answered 401 (unauthorized): who are you?"), "{output}");
    assert!(
        output.stderr.ends_with("hint: the server requires a key: set `OPENAI_API_KEY`\n"),
        "{output}"
    );
    assert!(server.requests().iter().all(|asked| asked.header("authorization").is_none()));
}

#[test]
fn refused_key_is_masked_when_the_server_repeats_it() {
    let house = house!(ship_openai);
    let refusal =
        || Answer::error(401, &format!("incorrect key: {SECRET}")).header("x-key", SECRET);
    let server = Server::start([refusal(), refusal().in_single_bytes()]);
    for form in ["text", "json"] {
        let words = ["run", "--model", "openai/test", "--output", form, "hello"];
        let output = openai_command(&house, &server, &words).run().code(5);
        let all = format!("{}{}", output.stdout, output.stderr);
        assert!(all.contains("incorrect key: ********"), "{output}");
        assert!(all.contains("check the key in `OPENAI_API_KEY`"), "{output}");
        assert!(!all.contains(SECRET), "{output}");
    }
    assert_key_not_saved(&house);
}

#[test]
fn key_from_the_user_config_is_used_and_never_shown() {
    let house = house!(ship_openai);
    let server = Server::start([Answer::text(&["hello"])]);
    let base = server.base_url();
    house.configure_more(&format!(
        "[plugins.provider-openai]\nbase_url = \"{base}\"\napi_key = \"{SECRET}\"\n"
    ));
    assert_eq!(house.run(&RUN).code(0).stdout, "hello\n");
    let [asked] = server.requests().try_into().unwrap();
    assert_eq!(asked.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    let shown = house.run(&["config", "show"]).expect_silent();
    assert!(shown.stdout.contains("plugins.provider-openai.api_key = ********"), "{shown}");
    let plugin = house.run(&["plugin", "show", "provider-openai"]).expect_silent().stdout;
    let line = "  key         OPENAI_API_KEY for https://api.openai.com, \
                or for the server that `OPENAI_BASE_URL` names\n";
    assert!(plugin.contains(line), "{plugin}");
    for words in [&["doctor"][..], &["plugin", "show", "provider-openai"], &["plugin", "list"]] {
        let output = house.run(words);
        assert!(!output.to_string().contains(SECRET), "{output}");
    }
}

#[test]
fn users_key_is_not_sent_to_a_base_url_set_by_a_workspace() {
    let house = house!(ship_openai);
    let server = Server::start([Answer::text(&["gotcha"])]);
    let base = server.base_url();
    let section = format!("[plugins.provider-openai]\nbase_url = \"{base}\"\n");
    house.write("workspace/.jaato/config.toml", &section);
    house.run(&["trust"]).code(0);
    let command = || house.command(&RUN).variable("OPENAI_API_KEY", SECRET);
    let output = command().run().code(3);
    let origin = base.strip_suffix("/v1").unwrap();
    expect![[r#"
        exit 3
        --- stderr
        error: the credential `OPENAI_API_KEY` (variable OPENAI_API_KEY) is for `https://api.openai.com` and is not sent to `http://SERVER`
        hint: that url comes from workspace $HOUSE/workspace/.jaato/config.toml:2; if you want your key to go there, set `base_url` under `[plugins.provider-openai]` in your own config.toml
    "#]]
    .assert_eq(&output.to_string().replace(origin, "http://SERVER"));
    assert_key_unused(&house, &output, &server);
    // The same URL set by the user.
    let output = command().variable("OPENAI_BASE_URL", &base).run().code(0);
    assert_eq!(output.stdout, "gotcha\n");
}

#[test]
fn key_of_a_trusted_workspace_is_sent_to_the_workspaces_server() {
    let house = house!(ship_openai);
    let server = Server::start([Answer::text(&["hello"])]);
    let lines = format!("OPENAI_BASE_URL={}\nOPENAI_API_KEY=team-key\n", server.base_url());
    house.write("workspace/.env", &lines);
    let before = house.command(&RUN).variable("HTTPS_PROXY", "http://127.0.0.1:1").run().code(3);
    assert!(before.stderr.contains("there is no key"), "an untrusted file is not read: {before}");
    house.run(&["trust"]).code(0);
    let output = house.command(&RUN).variable("OPENAI_API_KEY", SECRET).run().code(0);
    assert_eq!(output.stdout, "hello\n");
    let [asked] = server.requests().try_into().unwrap();
    assert_eq!(asked.header("authorization"), Some("Bearer team-key"));
}

#[test]
fn key_is_not_sent_over_an_unencrypted_remote_connection() {
    let house = house!(ship_openai);
    let server = Server::start([]);
    // A name that is not on loopback. The request would go to the proxy.
    let proxy = server.base_url();
    let command = house
        .command(&RUN)
        .variable("OPENAI_BASE_URL", "http://far.example/v1")
        .variable("OPENAI_API_KEY", SECRET)
        .variable("HTTP_PROXY", proxy.strip_suffix("/v1").unwrap());
    let output = command.run().code(3);
    assert!(
        output.stderr.contains("is not sent to `http://far.example`, which is not encrypted"),
        "{output}"
    );
    assert_key_unused(&house, &output, &server);
}

#[test]
fn offline_option_sends_no_request() {
    let house = house!(ship_openai);
    let server = Server::start([Answer::text(&["hello"])]);
    let words = ["--offline", "run", "--model", "openai/test", "hello"];
    let output = openai_command(&house, &server, &words).run().code(5);
    assert!(output.stderr.contains("jaato is offline"), "{output}");
    assert_key_unused(&house, &output, &server);
}

#[test]
fn key_in_an_error_is_masked_for_every_status_and_spelling() {
    let house = house!(ship_openai);
    house.configure_more("attempts_max = 1\n");
    let escaped: String = SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let report = |spelled: &str| format!(r#"{{"error":{{"message":"incorrect key: {spelled}"}}}}"#);
    let event = |data: &str| {
        Answer::status(200)
            .header("content-type", "text/event-stream")
            .body(&format!("data: {data}\n\n"))
    };
    let spellings = [
        SECRET.to_owned(),
        escaped,
        SECRET.to_uppercase(),
        SECRET.replace('-', "%2D"),
        SECRET.replace('-', "\\u002D"),
    ];
    for spelled in &spellings {
        let answers = [
            event(&report(spelled)),
            event(&format!("no json, but {spelled}")),
            Answer::status(200).body(&report(spelled)),
            Answer::status(401).body(&report(spelled)),
            Answer::status(401).body(&format!("no json, but {spelled}")),
        ];
        for answer in answers {
            let server = Server::start([answer]);
            let words = ["run", "--model", "openai/test", "--output", "json", "hello"];
            let output = openai_command(&house, &server, &words).run().code(5).to_string();
            assert!(output.contains("********"), "{output}");
            let plain = output.to_lowercase().replace("%2d", "-").replace("\\\\u002d", "-");
            assert!(!plain.contains(SECRET) && !plain.contains("secret"), "{output}");
        }
    }
    assert_key_not_saved(&house);
}

/// Returns a stream with one tool call.
fn call_answer(id: &str, name: &str) -> Answer {
    let call = json!([{ "index": 0, "id": id, "function": { "name": name, "arguments": "{}" } }]);
    let events = [
        json!({ "delta": { "tool_calls": call } }),
        json!({ "delta": {}, "finish_reason": "tool_calls" }),
    ];
    Answer::stream(vec![BodyStep::Bytes(choice_events(&events)), BodyStep::Bytes(stream_end())])
}

#[test]
fn key_is_masked_as_finish_reason_and_as_model_name() {
    let house = house!(ship_openai);
    house.configure_more("attempts_max = 1\n");
    let escaped: String = SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let stopped = |word: &str| {
        let data = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{word}"}}]}}"#);
        let said = choice_events(&[json!({ "delta": { "content": "hi" } })]);
        let stop = format!("data: {data}\n\n").into_bytes();
        Answer::stream(vec![
            BodyStep::Bytes(said),
            BodyStep::Bytes(stop),
            BodyStep::Bytes(stream_end()),
        ])
    };
    let half = &SECRET[..SECRET.len() / 2 + 1];
    let answers = || {
        [
            stopped(SECRET),
            stopped(&format!("moon_{SECRET}")),
            stopped(&escaped),
            stopped(&SECRET.to_uppercase()),
            call_answer("call_1", SECRET),
            call_answer("call_1", &format!("do_{SECRET}")),
            call_answer("call_1", half),
            call_answer(SECRET, "readFile"),
            call_answer(&format!("call_{SECRET}"), SECRET),
        ]
    };
    for form in ["text", "json"] {
        for (number, answer) in answers().into_iter().enumerate() {
            let server = Server::start([answer, Answer::text(&["done"])]);
            let words = ["run", "--model", "openai/test", "--output", form, "hello"];
            let output = openai_command(&house, &server, &words).run().to_string();
            assert!(!server.requests().is_empty(), "{output}");
            assert!(!output.to_lowercase().contains(half), "{form} {number}: {output}");
            assert_key_not_saved(&house);
        }
    }
    // As the name of a model.
    let server = Server::start([]);
    let models = json!({ "data": [{ "id": SECRET }, { "id": format!("{SECRET}-mini") }] });
    server.set_models(Answer::status(200).body(&models.to_string()));
    for words in [&["model", "list"][..], &["model", "list", "--json"], &RUN] {
        let output = openai_command(&house, &server, words).run().to_string();
        assert!(!output.contains(half), "{output}");
    }
    assert_key_not_saved(&house);
}
