//! Tests examples that use session services: the store, other tools, models, wakes.
//! Each runs inside jaato, and as a user's plugin in a worker with grants.

use serde_json::{Value, json};

use super::built_example;
use crate::support::{House, fixtures, library_name};

/// Where an example runs.
const PLACES: [PluginTrust; 2] = [PluginTrust::Shipped, PluginTrust::Granted];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PluginTrust {
    /// Inside jaato.
    Shipped,
    /// In a worker, untrusted, with all grants that it asks for.
    Granted,
}

/// Returns an installation with an example, the command tool, and its execution environment.
#[track_caller]
fn set_up_house(example: &str, place: PluginTrust) -> Option<House> {
    let house = House::new()?;
    for plugin in ["environment_local", "tool_cli"] {
        house.ship(&fixtures::test_house()?.join("plugins").join(library_name(plugin)));
    }
    let library = built_example(example)?;
    match place {
        PluginTrust::Shipped => _ = house.ship(&library),
        PluginTrust::Granted => {
            house.ship_to_user(&library);
            house.run(&["plugin", "grant", example]).code(0);
        }
    }
    Some(house)
}

fn call_answer(name: &str, arguments: Value) -> Value {
    json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] })
}

fn text_answer(text: &str) -> Value {
    json!({ "steps": [{ "text": text }] })
}

fn with_expectation(expect: Value, mut answer: Value) -> Value {
    answer["expect"] = expect;
    answer
}

/// Adds a second provider with its own script.
fn add_provider(house: &House, name: &str, answers: Value) {
    let script = house.write(&format!("{name}.json"), &json!({ "answers": answers }).to_string());
    house.configure_more(&format!(
        "[providers.{name}]\nplugin = \"provider-scripted\"\nscript = \"{}\"\n",
        script.display()
    ));
}

fn run_events(house: &House, words: &[&str]) -> Vec<Value> {
    let run = [&["run", "--output", "json"], words].concat();
    house.run(&run).code(0).json_lines()
}

/// Returns the result of a tool's first call.
#[track_caller]
fn first_result(events: &[Value], tool: &str) -> Value {
    let is_it = |it: &&Value| it["event"] == "tool_call_finished" && it["name"] == tool;
    let found = events.iter().find(is_it).unwrap_or_else(|| panic!("no {tool} in {events:#?}"));
    found["result"].clone()
}

#[test]
fn notes_of_one_session_are_added_to_the_prompt_of_another() {
    for place in PLACES {
        let Some(house) = set_up_house("tool-notes", place) else { return };
        let note = json!({ "title": "how we release", "text": "tag first" });
        house.set_script(
            &json!({ "answers": [call_answer("keep_note", note), text_answer("kept")] }),
        );
        run_events(&house, &["--yes", "remember it"]);
        let found = with_expectation(
            json!({ "data": "There are notes, for `find_notes`: how we release" }),
            call_answer("find_notes", json!({ "words": "release" })),
        );
        let told =
            with_expectation(json!({ "tool_result": "tag first" }), text_answer("tag first"));
        house.set_script(&json!({ "answers": [found, told] }));
        let next = run_events(&house, &["--yes", "how is a release done?"]);
        assert_eq!(next.last().unwrap()["text"], "tag first", "{place:?}: {next:#?}");
        let added = next.iter().find(|it| it["event"] == "prompt_added");
        assert!(added.is_some(), "{place:?}: {next:#?}");
        let shown = house.run(&["command", "notes"]).code(0).json();
        assert_eq!(shown["result"], "of this workspace:\n  how we release", "{place:?}");
        house.assert_no_processes();
    }
}

#[test]
fn second_opinion_asks_another_model_and_errors_say_what_is_missing() {
    for place in PLACES {
        let Some(house) = set_up_house("tool-second-opinion", place) else { return };
        let asked = json!({ "intent": "the moon is far", "command": "sh -c 'echo +far'" });
        let opinion = || call_answer("second_opinion", asked.clone());
        house.set_script(&json!({ "answers": [opinion(), text_answer("done")] }));
        let seen = json!({ "model": "moon", "prompt": "The change:\n+far", "tools": [] });
        add_provider(&house, "other", json!([with_expectation(seen, text_answer("It is near."))]));
        let error = |words: &[&str]| {
            let run = [&["run", "--output", "json"], words].concat();
            let output = house.command(&run).run();
            first_result(&output.json_lines(), "second_opinion")["error"].clone()
        };
        let unset = error(&["--yes", "go"]);
        assert_eq!(unset["message"], "no model is set for second opinions", "{place:?}");
        // Variables fill no settings of an untrusted plugin, so the file sets it.
        let settings = "[plugins.tool-second-opinion]\nmodel = \"other/moon\"\n";
        if place == PluginTrust::Granted {
            house.configure_more(settings);
        }
        let run = ["run", "--output", "json", "--yes", "go"];
        let with_model =
            house.command(&run).variable("SECOND_OPINION_MODEL", "other/moon").run().code(0);
        let result = first_result(&with_model.json_lines(), "second_opinion");
        let expected = json!({
            "model": "other/moon", "opinion": "It is near.", "saw_the_beginning_only": false,
        });
        assert_eq!(result, expected, "{place:?}");
        // The user's rules apply to the command too, and no rule allows it here.
        if place == PluginTrust::Shipped {
            house.configure_more(settings);
        }
        let denied = error(&["--allow", "tool-second-opinion:second_opinion", "go"]);
        let message = denied["message"].as_str().unwrap();
        let begins = "the change was not looked at: the call to `cli_based_tool` is denied";
        assert!(message.starts_with(begins), "{place:?}: {message}");
        if place == PluginTrust::Granted {
            house.run(&["plugin", "revoke", "tool-second-opinion", "model.complete"]).code(0);
            let hint = error(&["--yes", "go"])["hint"].clone();
            assert_eq!(hint, "jaato plugin grant tool-second-opinion model.complete");
        }
        house.assert_no_processes();
    }
}

#[test]
fn a_reminder_wakes_an_idle_chat() {
    for place in PLACES {
        let Some(house) = set_up_house("tool-reminder", place) else { return };
        let tea = json!({ "text": "the tea is ready", "seconds": 1 });
        let woken = json!({ "data": "reminder 1: the tea is ready" });
        house.set_script(&json!({ "answers": [
            call_answer("remind_me", tea), text_answer("I will tell you"), with_expectation(woken, text_answer("drink it")),
        ] }));
        let running = house.command(&["chat", "--yes", "make tea"]).start();
        running.wait_for("I will tell you");
        running.wait_for("drink it");
        let output = running.finish().code(0);
        assert!(output.stderr.contains("reminder says: reminder 1"), "{place:?}: {output}");
        house.assert_no_processes();
    }
}
