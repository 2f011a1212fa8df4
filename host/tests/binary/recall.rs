//! Tests that a model finds what a gc has left out: in a saved session, without one, and after a
//! restart.

use serde_json::{Value, json};

use crate::support::cli::house_with_cli;
use crate::support::openai::{openai_command, ship_openai};
use crate::support::server::{Answer, ReceivedRequest, Server};
use crate::support::{House, fixtures, library_name};

const FACT: &str = "The staging database listens on port 5433.";

fn set_up_house() -> Option<House> {
    let house = house_with_cli()?;
    ship_openai(&house);
    let plugins = fixtures::test_house()?.join("plugins");
    for library in ["gc_truncate", "tool_recall"] {
        house.ship(&plugins.join(library_name(library)));
    }
    house.configure_more("[gc]\npreserve_recent_turns = 1\n");
    Some(house)
}

fn text_answer(text: &str) -> Answer {
    Answer::text(&[text])
}

fn request_tools(asked: &ReceivedRequest) -> Vec<String> {
    let tools = asked.json()["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn request_messages(asked: &ReceivedRequest) -> Vec<Value> {
    asked.json()["messages"].as_array().unwrap().clone()
}

/// Returns the result of the tool call that the last message of a request has.
fn last_result(asked: &ReceivedRequest) -> Value {
    let last = request_messages(asked).pop().unwrap();
    assert_eq!(last["role"], "tool", "{last}");
    serde_json::from_str(last["content"].as_str().unwrap()).unwrap()
}

fn recall_answer(arguments: Value) -> Answer {
    Answer::calls(&[("recall", arguments)])
}

#[test]
fn question_finds_the_fact_that_a_gc_left_out_without_a_saved_session() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([
        text_answer("I see."),
        text_answer("It is fine."),
        recall_answer(json!({ "query": "Which port does the staging database use?" })),
        text_answer("5433"),
    ]);
    let words = ["chat", "--no-save", "--model", "openai/test"];
    let lines = format!("{FACT}\nHow is the weather?\n/gc\nWhich port is it?\n");
    let output = openai_command(&house, &server, &words).input(lines).run().code(0);
    assert!(output.stdout.ends_with("5433\n"), "{output}");
    let asked = server.requests();
    for before in &asked[..2] {
        assert!(!request_tools(before).contains(&"recall".to_owned()), "nothing was left out yet");
    }
    assert_eq!(request_tools(&asked[2]).last().unwrap(), "recall");
    let sent = json!(request_messages(&asked[2])).to_string();
    assert!(!sent.contains(FACT), "the gc left it out: {sent}");
    assert_eq!(sent.matches("`recall` finds what they contain").count(), 1, "{sent}");
    let found = last_result(&asked[3]);
    let expected = json!({ "turn": 1, "from": "user", "text": FACT });
    assert_eq!(found["matches"][0], expected, "{found}");
    assert_eq!(
        request_tools(&asked[3]),
        request_tools(&asked[2]),
        "the beginning of requests stays"
    );
    house.assert_no_processes();
}

#[test]
fn results_of_tools_are_found_by_path_after_a_restart() {
    let Some(house) = set_up_house() else { return };
    house.write("workspace/notes.md", "The key of the safe is below the mat.\n");
    let server = Server::start([
        Answer::calls(&[("cli_based_tool", json!({ "command": "cat notes.md" }))]),
        text_answer("read"),
        text_answer("fine"),
        text_answer("gone"),
        recall_answer(json!({ "path": "notes.md" })),
        recall_answer(json!({ "turn": 1 })),
        text_answer("below the mat"),
    ]);
    let words = ["chat", "--model", "openai/test"];
    let lines = "Read the notes.\nWhat else?\n/gc\nGo on.\n";
    openai_command(&house, &server, &words).input(lines).run().code(0);
    let words = ["run", "--continue", "Where is the key?"];
    let output = openai_command(&house, &server, &words).run().code(0);
    assert_eq!(output.stdout, "below the mat\n", "{output}");
    let asked = server.requests();
    assert_eq!(request_tools(&asked[3]).last().unwrap(), "recall");
    assert!(request_tools(&asked[4]).contains(&"recall".to_owned()), "it is there after a restart");
    let found = last_result(&asked[5]);
    assert!(found["matches"].to_string().contains("below the mat"), "{found}");
    let turn = last_result(&asked[6]);
    let from: Vec<&str> =
        turn["matches"].as_array().unwrap().iter().map(|it| it["from"].as_str().unwrap()).collect();
    assert_eq!(from, ["user", "call of cli_based_tool", "tool cli_based_tool", "assistant"]);
    house.assert_no_processes();
}

#[test]
fn call_before_anything_was_left_out_says_why_it_is_not_available() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([recall_answer(json!({ "query": "port" })), text_answer("well")]);
    // The only call of the run has failed.
    openai_command(&house, &server, &["run", "--model", "openai/test", "hello"]).run().code(1);
    let refused = last_result(&server.requests()[1])["error"]["message"].clone();
    let why = "the tool `recall` is not available: once earlier messages were removed to save room";
    assert_eq!(refused, why);
}

#[test]
fn collection_is_taken_back_in_a_chat_and_after_a_restart() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start(["one", "two", "three", "four"].map(text_answer));
    let words = ["chat", "--model", "openai/test"];
    let lines = "/gc undo\na\nb\n/gc\n/gc undo\nc\n/gc\n";
    let output = openai_command(&house, &server, &words).input(lines).run().code(1);
    let nothing = "error: nothing to undo";
    assert!(output.stderr.contains(nothing), "{output}");
    assert!(output.stdout.contains("\"messages_restored\": 2"), "{output}");
    let words = ["chat", "--continue"];
    let output =
        openai_command(&house, &server, &words).input("/gc undo\nd\n/gc undo\n").run().code(1);
    assert!(output.stdout.contains("\"messages_restored\": 4"), "{output}");
    assert!(output.stderr.contains(nothing), "only once: {output}");
    let texts = |asked: &ReceivedRequest| -> Vec<Value> {
        let messages = request_messages(asked);
        let said = messages.iter().filter(|message| message["role"] != "system");
        said.map(|message| message["content"].clone()).collect()
    };
    let asked = server.requests();
    assert_eq!(texts(&asked[2]), ["a", "one", "b", "two", "c"]);
    assert_eq!(texts(&asked[3]), ["a", "one", "b", "two", "c", "three", "d"]);
    assert!(!request_tools(&asked[3]).contains(&"recall".to_owned()), "nothing is left out");
    house.assert_no_processes();
}

#[test]
fn plan_says_what_would_go_and_changes_nothing() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start(["one", "two", "three"].map(text_answer));
    let words = ["chat", "--model", "openai/test"];
    let output =
        openai_command(&house, &server, &words).input("The first.\nb\n/gc plan\nc\n").run().code(0);
    let shown = "\"begins\": \"The first.\"";
    assert!(output.stdout.contains(shown), "{output}");
    let record = || {
        let mut folders = vec![house.home()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.path() {
                    path if path.ends_with("session.jsonl") => return std::fs::read(path).unwrap(),
                    path if path.is_dir() => folders.push(path),
                    _ => {}
                }
            }
        }
        panic!("no session is saved");
    };
    let before = record();
    let plan = openai_command(&house, &server, &["gc", "plan", "--json"]).run().code(0).json();
    let freed = plan["tokens_freed"].as_u64().unwrap();
    assert_eq!(plan["tokens_before"].as_u64().unwrap() - freed, plan["tokens_after"], "{plan}");
    assert!(freed > 0 && plan["gc"] == "truncate", "{plan}");
    let turns: Vec<&Value> = plan["turns"].as_array().unwrap().iter().collect();
    assert_eq!(turns.len(), 2, "{plan}");
    assert_eq!((&turns[0]["turn"], &turns[0]["messages"]), (&json!(1), &json!(2)));
    assert_eq!(turns[0]["why"], "old turn: 2 turns came after it");
    let output = openai_command(&house, &server, &["gc", "plan"]).run().code(0);
    assert!(output.stdout.contains("The first."), "{output}");
    assert!(record() == before, "nothing has changed");
    let unknown = openai_command(&house, &server, &["gc", "plan", "--resume", "xxxx"]).run();
    assert_eq!((unknown.code, unknown.stdout.as_str()), (2, ""), "{unknown}");
    assert_eq!(server.requests().len(), 3, "no model was asked");
    house.assert_no_processes();
}

#[test]
fn context_lists_what_fills_the_window_as_get_environment_reports_it() {
    let Some(house) = set_up_house() else { return };
    house.configure_more(
        "pinned_turn_indices = [0]\n[models.\"openai/test\"]\ncontext_limit = 9000\n",
    );
    let server = Server::start([
        Answer::calls(&[("get_environment", json!({ "aspect": "context" }))]),
        Answer::text_of_prompt("one", 3_000),
        Answer::text_of_prompt("two", 3_100),
    ]);
    let words = ["chat", "--model", "openai/test"];
    let output = openai_command(&house, &server, &words).input("a\nb\n/context\n").run().code(0);
    let from = output.stdout.find('{').unwrap();
    let shown: Value = serde_json::from_str(&output.stdout[from..]).unwrap();
    let told = last_result(&server.requests()[1]);
    for field in ["model", "provider", "context_limit", "gc"] {
        assert_eq!(shown[field], told[field], "{field}");
    }
    assert_eq!((&shown["model"], &shown["provider"]), (&json!("test"), &json!("openai")));
    assert_eq!(shown["counted_by"], "last usage", "{shown}");
    let total = shown["total_tokens"].as_u64().unwrap();
    assert!((3_100..3_200).contains(&total), "{shown}");
    assert_eq!(shown["tokens_remaining"], 9_000 - total);
    let parts = shown["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["tokens"].as_u64().unwrap()).sum();
    assert!(sum <= total && sum + parts.len() as u64 >= total, "the parts add up: {shown}");
    let has =
        |part: &str, name: &str| parts.iter().any(|it| it["part"] == part && it["name"] == name);
    for (part, name) in [
        ("system prompt", "built-in"),
        ("tools", "tool-cli"),
        ("tools", "tool-environment"),
        ("history", "user"),
        ("history", "assistant"),
        ("history", "tool results"),
    ] {
        assert!(has(part, name), "{part} {name}: {shown}");
    }
    assert!(shown["pinned_tokens"].as_u64().unwrap() > 0, "{shown}");
    house.assert_no_processes();
}
