//! Runs the vendors' own client libraries against the same strict fakes. The fakes accept their
//! requests, and a plugin's requests in the same conversation have the same form.
//!
//! Part of the full tier. `cargo xtask setup --outside` downloads the libraries.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::{Expect, expect};
use serde_json::Value;

use super::switched::first_turns;
use super::{PROVIDERS, Provider, text_turn, unchanged_answer};
use crate::support::server::Server;
use crate::support::{fixtures, skip};
use crate::vendors::PNG;

/// Returns the folder of the libraries, or `None` if they are missing.
fn client_libraries() -> Option<PathBuf> {
    let folder = fixtures::target_folder().join("outside/python");
    if !folder.is_dir() {
        skip("no client libraries of vendors: `cargo xtask setup --outside` fetches them");
        return None;
    }
    Some(folder)
}

/// Returns the output of a client library for this action.
#[track_caller]
fn client_output(provider: &Provider, libraries: &Path, what: &str, server: &Server) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/binary/every_provider/clients.py");
    let mut python = Command::new("python3");
    python.args(["-B", script, what, provider.name, &server.root_url()]).env_clear();
    python.envs(std::env::var_os("PATH").map(|path| ("PATH", path))).env("NO_PROXY", "*");
    let output = python.env("PYTHONPATH", libraries).output().unwrap();
    let [said, complained] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(output.status.success(), "{}: {complained}", provider.name);
    said
}

/// Returns a client library's requests in the conversation.
#[track_caller]
fn library_requests(provider: &Provider, libraries: &Path) -> Vec<Value> {
    let vendor = provider.fake_vendor(first_turns());
    let server = provider.serve(&vendor, unchanged_answer);
    let said = client_output(provider, libraries, "converse", &server);
    assert_eq!(said, "It is Linux.\nWe met before.\n", "{}", provider.name);
    vendor.accepted_requests()
}

/// Returns the plugin's requests in the same conversation.
#[track_caller]
fn plugin_requests(provider: &Provider) -> Option<Vec<Value>> {
    let house = provider.new_house()?;
    let vendor = provider.fake_vendor(first_turns());
    let server = provider.serve(&vendor, unchanged_answer);
    provider.configure_server(&house, &server);
    fs::write(house.workspace().join("moon.png"), PNG).unwrap();
    let words = ["chat", "--yes", "--model", provider.model, "--tools", "get_environment"];
    let input = "/attach moon.png\nwhich system is this?\nthanks\n";
    let output = provider.command(&house, &words).input(input).run().code(0);
    assert!(output.stdout.contains("We met before."), "{}: {output}", provider.name);
    Some(vendor.accepted_requests())
}

/// Fields with free content: schemas, arguments, and tool results.
const FREE: [&str; 7] = [
    "args",
    "arguments",
    "input_schema",
    "parameters",
    "parametersJsonSchema",
    "response",
    "input",
];

/// Lists the places of a request that hold a value, each with the kind of its parent.
fn value_paths(value: &Value, place: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let kinds = ["role", "type"].iter().filter_map(|key| fields.get(*key)?.as_str());
            let kinds = kinds.collect::<Vec<_>>().join(" ");
            let place =
                if kinds.is_empty() { place.to_owned() } else { format!("{place}({kinds})") };
            let is_kind = |key: &str| ["role", "type"].contains(&key);
            for (key, value) in fields.iter().filter(|(key, _)| !is_kind(key)) {
                let place = format!("{place}.{key}");
                // Responses uses this name for the whole conversation.
                let is_free = FREE.contains(&key.as_str()) && place != ".input";
                if is_free {
                    found.insert(place);
                } else {
                    value_paths(value, &place, found);
                }
            }
        }
        Value::Array(all) => {
            all.iter().for_each(|one| value_paths(one, &format!("{place}[]"), found))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            found.insert(place.to_owned());
        }
    }
}

/// Compares the last requests of both conversations. The snapshot lists the differences: choices of
/// the plugin (cache marks, ids that the library drops), or another form that the vendor accepts (a
/// text instead of a list).
#[track_caller]
fn check_requests(name: &str, expected: &Expect) {
    let Some(libraries) = client_libraries() else { return };
    let provider = PROVIDERS.iter().find(|provider| provider.name == name).unwrap();
    let theirs = library_requests(provider, &libraries);
    let Some(ours) = plugin_requests(provider) else { return };
    assert_eq!((theirs.len(), ours.len()), (4, 4), "{name}");
    let [theirs, ours] = [theirs, ours].map(|mut requests| {
        let mut found = BTreeSet::new();
        value_paths(&requests.pop().unwrap(), "", &mut found);
        found
    });
    let mut text = String::new();
    for (who, one, other) in [("plugin", &ours, &theirs), ("library", &theirs, &ours)] {
        text.extend(one.difference(other).map(|place| format!("{who} alone: {place}\n")));
    }
    let shared = ours.intersection(&theirs).count();
    expected.assert_eq(&format!("{shared} places are the same\n{text}"));
}

#[test]
fn anthropic_request_has_the_same_fields_as_the_vendor_library() {
    check_requests(
        "anthropic",
        &expect![[r#"
        19 places are the same
        plugin alone: .system[](text).text
        plugin alone: .thinking(adaptive).block_binding.prefix_mismatch_behavior
        library alone: .messages[](user).content
        library alone: .system
    "#]],
    );
}

#[test]
fn google_request_has_the_same_fields_as_the_vendor_library() {
    check_requests(
        "google",
        &expect![[r#"
        15 places are the same
        plugin alone: .systemInstruction.parts[].text
        library alone: .contents[](model).parts[].thought
        library alone: .systemInstruction(user).parts[].text
    "#]],
    );
}

#[test]
fn ollama_request_has_the_same_fields_as_the_vendor_library() {
    check_requests(
        "ollama",
        &expect![[r#"
        14 places are the same
        plugin alone: .messages[](assistant).tool_calls[].id
        plugin alone: .messages[](tool).tool_call_id
        plugin alone: .options.num_ctx
        plugin alone: .shift
        plugin alone: .truncate
        library alone: .think
    "#]],
    );
}

#[test]
fn openai_responses_request_has_the_same_fields_as_the_vendor_library() {
    check_requests(
        "openai",
        &expect![[r#"
        17 places are the same
        plugin alone: .input[](developer message).content
        plugin alone: .input[](user message).content
        plugin alone: .input[](user message).content[](input_image).image_url
        plugin alone: .input[](user message).content[](input_text).text
        plugin alone: .prompt_cache_key
        library alone: .input[](assistant message).status
        library alone: .input[](function_call).status
        library alone: .input[](user).content
        library alone: .input[](user).content[](input_image).detail
        library alone: .input[](user).content[](input_image).image_url
        library alone: .input[](user).content[](input_text).text
        library alone: .instructions
    "#]],
    );
}

#[test]
fn openai_chat_request_has_the_same_fields_as_the_vendor_library() {
    check_requests(
        "openai-chat",
        &expect![[r#"
        16 places are the same
        plugin alone: .prompt_cache_key
    "#]],
    );
}

/// Lists the providers whose vendors have a library.
fn with_a_library() -> impl Iterator<Item = &'static Provider> {
    PROVIDERS.iter().filter(|provider| provider.name != "github-models")
}

#[test]
fn every_vendor_library_reads_an_answer_that_is_not_streamed() {
    let Some(libraries) = client_libraries() else { return };
    for provider in with_a_library() {
        let vendor = provider.fake_vendor([text_turn("all at once")]);
        let server = provider.serve(&vendor, unchanged_answer);
        let said = client_output(provider, &libraries, "ask", &server);
        assert_eq!(said, "all at once\n", "{}", provider.name);
    }
}

#[test]
fn every_library_lists_the_models_that_jaato_lists() {
    let Some(libraries) = client_libraries() else { return };
    for provider in with_a_library() {
        let Some(house) = provider.new_house() else { return };
        let vendor = provider.fake_vendor([]);
        let server = provider.serve(&vendor, unchanged_answer);
        provider.configure_server(&house, &server);
        let listed = provider.command(&house, &["model", "list", "--json"]).run().json();
        let listed = listed["models"].as_array().unwrap();
        let ids = listed.iter().filter_map(|model| model["model"].as_str());
        let begin = format!("{}/", provider.name);
        let ours: BTreeSet<String> =
            ids.filter_map(|id| Some(id.strip_prefix(&begin)?.to_owned())).collect();
        let theirs = client_output(provider, &libraries, "list", &server);
        let theirs: BTreeSet<String> = theirs.lines().map(str::to_owned).collect();
        let name = provider.name;
        assert!(!ours.is_empty() && ours.is_subset(&theirs), "{name}: {ours:?} {theirs:?}");
        // A model that cannot hold a conversation is in none of our lists.
        let rest: Vec<&String> = theirs.difference(&ours).collect();
        assert!(rest.iter().all(|name| name.contains("embed")), "{name}: {rest:?}");
    }
}
