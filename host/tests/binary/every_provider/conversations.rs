//! Tests every provider in successful conversations: several turns, cached tokens, tools found on
//! demand, models, and a missing key.

use std::fs;

use serde_json::{Value, json};

use super::switched::opaque_parts;
use super::{AnswerPart, ModelTurn, PROVIDERS, Provider, text_turn, unchanged_answer};
use crate::support::openai::{SECRET, assert_key_not_saved};
use crate::support::server::Server;
use crate::support::{Command, House, fixture};

fn conversation_turns() -> [ModelTurn; 5] {
    let look = |aspect: &str| AnswerPart::call(json!({ "aspect": aspect }));
    [
        ModelTurn::Says(vec![
            AnswerPart::Thought("I look."),
            AnswerPart::Text("Let me see."),
            look("os"),
            look("cwd"),
        ]),
        ModelTurn::Says(vec![AnswerPart::Thought("Again."), look("shell")]),
        ModelTurn::Says(vec![
            AnswerPart::Thought("so"),
            AnswerPart::Text("It is "),
            AnswerPart::Text("Linux. "),
        ]),
        ModelTurn::Says(vec![AnswerPart::Thought("polite"), AnswerPart::Text("You are welcome.")]),
        text_turn("Bye."),
    ]
}

/// Builds a command that uses a server in the user's way, by the provider's variable.
fn conversation_command(
    provider: &Provider,
    house: &House,
    server: &Server,
    words: &[&str],
) -> Command {
    let command = provider.command(house, words);
    if provider.variable.is_empty() {
        provider.configure_server(house, server);
        return command;
    }
    let Provider { section, settings, root, .. } = provider;
    house.configure_more(&format!("[{section}]\n{settings}"));
    command.variable(provider.variable, format!("{}{root}", server.root_url()))
}

#[test]
fn every_vendor_accepts_a_conversation_with_thoughts_and_tools() {
    for provider in &PROVIDERS {
        let name = provider.name;
        let Some(house) = provider.new_house() else { return };
        let vendor = provider.fake_vendor(conversation_turns());
        let server = provider.serve(&vendor, unchanged_answer);
        let command =
            conversation_command(provider, &house, &server, &["chat", "--model", provider.model]);
        let output = command.input("which system?\nthanks\nbye\n").run().code(0);
        assert!(output.stdout.contains("Linux.") && output.stdout.contains("Bye."), "{output}");
        let accepted = vendor.accepted_requests();
        assert_eq!(accepted.len(), 5, "{name}: {output}");
        let thoughts = opaque_parts(&accepted[4]).len();
        assert_eq!(thoughts >= 4, provider.gives_signed, "{name}: {:#}", accepted[4]);
        let (header, scheme) = provider.key_header;
        let key = format!("{scheme}{SECRET}");
        for asked in server.requests().iter().chain(&server.other_requests()) {
            let keys: Vec<_> = asked.headers.iter().filter(|it| it.1.contains(SECRET)).collect();
            match header {
                "" => assert!(keys.is_empty(), "{name}: {keys:?}"),
                _ => assert_eq!((keys.len(), asked.header(header)), (1, Some(key.as_str()))),
            }
        }
        assert!(!output.to_string().contains(SECRET), "{name}: {output}");
        assert_key_not_saved(&house);
        house.assert_no_processes();
    }
}

#[test]
fn sent_messages_are_read_from_the_cache_and_thoughts_are_shown() {
    for provider in &PROVIDERS {
        let Some(uncached) = provider.uncached_tokens_max else { continue };
        let Some(house) = provider.new_house() else { return };
        let vendor = provider.fake_vendor(conversation_turns());
        let server = provider.serve(&vendor, unchanged_answer);
        provider.configure_server(&house, &server);
        fs::write(house.workspace().join("long.txt"), "word ".repeat(2_000)).unwrap();
        let words =
            ["run", "--model", provider.model, "--output", "json", "--attach", "long.txt", "look"];
        let lines = provider.command(&house, &words).run().code(0).json_lines();
        let usages: Vec<&Value> = lines.iter().filter(|line| line["event"] == "usage").collect();
        let [first, second, third] = usages[..] else { panic!("{lines:#?}") };
        assert_eq!(first["cached_tokens"], 0);
        for (before, after) in [(first, second), (second, third)] {
            let [cached, sent] =
                [&after["cached_tokens"], &before["prompt_tokens"]].map(|it| it.as_u64().unwrap());
            assert!(cached + uncached >= sent, "{}: {after:#}", provider.name);
        }
        let thoughts = lines.iter().filter(|line| line["event"] == "thought_delta");
        let thoughts: String = thoughts.map(|line| line["text"].as_str().unwrap()).collect();
        assert_eq!(thoughts, "I look.Again.so", "{}", provider.name);
    }
}

#[test]
fn tool_found_during_a_conversation_is_called_and_thoughts_are_kept() {
    for provider in &PROVIDERS {
        let Some(house) = provider.new_house() else { return };
        // Its tool is in no request until the model looks it up.
        house.ship(&fixture("echo"));
        let schemas = json!({ "names": ["count_bytes_echo"] });
        let vendor = provider.fake_vendor([
            ModelTurn::Says(vec![
                AnswerPart::Thought("what is there?"),
                AnswerPart::Call("get_tool_schemas", schemas),
            ]),
            ModelTurn::Says(vec![
                AnswerPart::Thought("there it is"),
                AnswerPart::Call("count_bytes_echo", json!({ "text": "moon" })),
            ]),
            ModelTurn::Says(vec![AnswerPart::Thought("so"), AnswerPart::Text("done")]),
            text_turn("bye"),
        ]);
        let server = provider.serve(&vendor, unchanged_answer);
        provider.configure_server(&house, &server);
        let command = provider.command(&house, &["chat", "--yes", "--model", provider.model]);
        let output = command.input("find it\nbye\n").run().code(0);
        let accepted = vendor.accepted_requests();
        assert_eq!(accepted.len(), 4, "{}: {output}", provider.name);
        let defined = |body: &Value| body.to_string().contains("Text to count.");
        assert!(!defined(&accepted[0]) && defined(&accepted[1]), "{}", provider.name);
        let history = accepted[3].to_string();
        assert!(history.contains("bytes") && history.contains("done"), "{history}");
        assert!(!output.stderr.contains("dropped earlier thoughts"), "{output}");
    }
}

#[test]
fn model_list_is_read_from_the_server() {
    // GitHub lists no models.
    for provider in PROVIDERS.iter().filter(|provider| provider.name != "github-models") {
        let Some(house) = provider.new_house() else { return };
        let vendor = provider.fake_vendor([]);
        let server = provider.serve(&vendor, unchanged_answer);
        provider.configure_server(&house, &server);
        let output = provider.command(&house, &["model", "list"]).run().expect_silent();
        assert!(output.stdout.contains(provider.model), "{output}");
        assert!(!output.stdout.contains("embed"), "{output}");
    }
}

#[test]
fn without_a_key_a_vendor_is_not_even_asked() {
    let nowhere = crate::support::closed_port();
    for (library, model, key, url, helps) in [
        (
            "provider_anthropic",
            "anthropic/claude",
            "ANTHROPIC_API_KEY",
            "https://api.anthropic.com",
            "`api_key` under `[plugins.provider-anthropic]`, or run `jaato provider login \
             anthropic`; for another server set `ANTHROPIC_BASE_URL`",
        ),
        (
            "provider_google_genai",
            "google/gemini",
            "GOOGLE_API_KEY",
            "https://generativelanguage.googleapis.com",
            "`api_key` under `[plugins.provider-google-genai]`, or run `jaato provider login \
             google`; for another server set `GOOGLE_GEMINI_BASE_URL`",
        ),
        (
            "provider_openai",
            "openai/test",
            "OPENAI_API_KEY",
            "https://api.openai.com",
            "`api_key` under `[plugins.provider-openai]`, or run `jaato provider login openai`; \
             for another server set `OPENAI_BASE_URL`",
        ),
    ] {
        let house = crate::house!();
        crate::support::ship_provider(&house, library);
        // Any request that left the machine would go through this proxy.
        let run = |words: &[&str]| house.command(words).variable("HTTPS_PROXY", &nowhere).run();
        let output = run(&["run", "--model", model, "hello"]).code(3);
        let expected = format!(
            "error: there is no key for `{url}`: `{key}` is not set\nhint: set `{key}`, or {helps}\n"
        );
        assert_eq!(output.stderr, expected);
        // A model list does not mention a provider that is not set up, unless the user wants it.
        assert_eq!(run(&["model", "list"]).expect_silent().stdout, "no models\n");
        let wanted = house.command(&["model", "list"]).variable("JAATO_MODEL", model).run();
        assert!(wanted.stderr.contains(": there is no key for"), "{wanted}");
    }
}
