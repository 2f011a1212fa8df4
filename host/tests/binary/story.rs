//! Tests a whole user session: a small repository is repaired through the shell, with prompts, at a
//! terminal. The work is stopped in the middle, continued by the next message of the same
//! conversation, and reported correctly.

use serde_json::{Value, json};

use crate::support::openai::{SECRET, ship_openai};
use crate::support::server::{Answer, Server};
use crate::support::{Command, House, fixtures, library_name};
use crate::terminal::run_on_terminal;

fn shell_answer(command: &str) -> Answer {
    Answer::calls(&[("cli_based_tool", json!({ "command": command }))])
}

/// Returns the result of the model's last call.
#[track_caller]
fn last_result(server: &Server) -> Value {
    let asked = server.requests().pop().unwrap().json();
    let messages = asked["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] == "tool");
    serde_json::from_str(last.unwrap()["content"].as_str().unwrap()).unwrap()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a story")]
fn repository_repair_is_interrupted_and_continued_in_one_conversation() {
    let Some(house) = House::new() else { return };
    ship_openai(&house);
    let plugins = fixtures::test_house().unwrap().join("plugins");
    house.ship(&plugins.join(library_name("tool_cli")));
    house.ship(&plugins.join(library_name("environment_local")));
    house.write("workspace/greet.sh", "echo 'Helo, world'\n");
    house.write("workspace/test.sh", "test \"$(sh greet.sh)\" = 'Hello, world'\n");

    let server = Server::start([
        shell_answer("sh test.sh; cat greet.sh"),
        shell_answer("rm -rf greet.sh"),
        shell_answer("sed -i s/Helo/Hello/ greet.sh && sh test.sh"),
        shell_answer("sleep 300; echo late >> greet.sh"),
        shell_answer("sh test.sh && cat greet.sh"),
        Answer::text(&[
            "`greet.sh` says Hello now and its test passes; ",
            "the last command was stopped.",
        ]),
    ]);
    let url = server.base_url();
    let editing = |command: Command| {
        command
            .variable("TERM", "xterm")
            .variable("OPENAI_BASE_URL", url)
            .variable("OPENAI_API_KEY", SECRET)
    };
    let Some(mut running) = run_on_terminal(&house, "chat --model openai/test", editing) else {
        return;
    };
    running.wait_for_text("> ");
    running.write(b"Mend the greeting\r");

    // A look at the files, with the command shown before it runs.
    running.wait_for_text("sh test.sh; cat greet.sh");
    running.wait_for_question();
    running.write(b"y\n");
    // Denied, with a reason for the model.
    running.wait_for_text("rm -rf");
    running.wait_for_question();
    assert_eq!(last_result(&server)["stdout"], "echo 'Helo, world'\n");
    running.write(b"do not delete it, edit it\n");
    running.wait_for_text("sed -i");
    running.wait_for_question();
    let refusal = last_result(&server)["error"]["message"].to_string();
    assert!(refusal.contains("do not delete it, edit it"), "{refusal}");
    running.write(b"y\n");
    running.wait_for_text("sleep 300");
    running.wait_for_question();
    assert_eq!(last_result(&server)["returncode"], 0);
    running.write(b"y\n");
    running.wait_for_text("running");
    house.wait_for_process("sleep 300");
    running.write(b"\x03");
    running.wait_for_text("cancelled");
    running.wait_for_text("> ");

    running.write(b"Leave that. What is the status?\r");
    running.wait_for_question();
    // The model knows its finished, denied and stopped calls.
    let messages = server.requests().pop().unwrap().json()["messages"].clone();
    let messages = messages.as_array().unwrap();
    let [.., stopped, marked, asked] = messages.as_slice() else { panic!("{messages:#?}") };
    assert!(
        stopped["content"].as_str().unwrap().contains("cancelled this call while it ran"),
        "{messages:#?}"
    );
    assert!(marked["content"].as_str().unwrap().contains("[Generation cancelled]"), "{marked}");
    assert_eq!(asked["content"], "Leave that. What is the status?");
    running.write(b"y\n");
    running.wait_for_text("the last command was stopped.");
    running.wait_for_text("> ");
    running.write(b"/quit\r");
    running.wait_with_open_input().code(0);

    assert_eq!(last_result(&server)["stdout"], "echo 'Hello, world'\n");
    let mended = std::fs::read_to_string(house.workspace().join("greet.sh")).unwrap();
    assert_eq!(mended, "echo 'Hello, world'\n");
    house.assert_no_processes();
    let ledger = house.run(&["ledger", "show"]).code(0).stdout;
    assert!(ledger.contains("openai/test"), "{ledger}");
}
