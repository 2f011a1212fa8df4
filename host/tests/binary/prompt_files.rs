//! Tests files attached to a prompt, and options of requests: what a server receives, and what is
//! refused.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::house;
use crate::support::House;
use crate::support::openai::{openai_command, ship_openai};
use crate::support::server::{Answer, Server};
use crate::vendors::PNG;

/// The beginning of the image in a request, as base64.
const PNG_URL: &str = "data:image/png;base64,iVBORw0KGgo";

const MODEL: [&str; 3] = ["run", "--model", "openai/test"];

fn put_file(house: &House, name: &str, bytes: &[u8]) {
    fs::write(house.workspace().join(name), bytes).unwrap();
}

/// Runs a task, and returns the content of the user's message.
#[track_caller]
fn received_prompt(house: &House, words: &[&str]) -> Value {
    let server = Server::start([Answer::text(&["I see."])]);
    let words: Vec<&str> = MODEL.iter().chain(words).copied().collect();
    let output = openai_command(house, &server, &words).run().code(0);
    assert_eq!(output.stdout, "I see.\n");
    let request = server.requests()[0].json();
    request["messages"].as_array().unwrap().last().unwrap()["content"].clone()
}

#[test]
fn image_type_is_detected_from_content_not_file_name() {
    let house = house!(ship_openai);
    put_file(&house, "moon.txt", PNG);
    for words in [&["--attach", "moon.txt", "what is this?"][..], &["what is this? @moon.txt."]] {
        let content = received_prompt(&house, words);
        let url = content[0]["image_url"]["url"].as_str().unwrap_or_default();
        assert!(url.starts_with(PNG_URL), "{content:#}");
        assert!(content[1]["text"].as_str().unwrap().starts_with("what is this?"), "{content:#}");
    }
    house.assert_no_processes();
}

#[test]
fn model_without_vision_gets_a_note_and_the_user_a_warning() {
    let house = house!(ship_openai);
    put_file(&house, "moon.png", PNG);
    let server = Server::start([Answer::text(&["I do not see."])]);
    server.set_models(
        Answer::status(200).body(
            r#"{"data":[{"id":"test","max_model_len":9000,"capabilities":{"vision":false}}]}"#,
        ),
    );
    let words = ["--attach", "moon.png", "what is this?"];
    let words: Vec<&str> = MODEL.iter().chain(&words).copied().collect();
    let output = openai_command(&house, &server, &words).run().code(0);
    let line = "`openai/test` cannot look at moon.png (image/png): it gets only a note";
    assert!(output.stderr.contains(line), "{output}");
    let sent = server.requests()[0].json().to_string();
    assert!(sent.contains("[moon.png, image/png: this model cannot look at it]"), "{sent}");
    assert!(!sent.contains(PNG_URL), "{sent}");
    house.assert_no_processes();
}

#[test]
fn text_file_mention_is_inlined_and_other_mentions_stay_as_text() {
    let house = house!(ship_openai);
    put_file(&house, "notes.png", b"buy milk");
    house.write("workspace/my notes.txt", "sell honey");
    let content =
        received_prompt(&house, &["do as @notes.png and @\"my notes.txt\" say, @missing"])
            .to_string();
    for part in ["The file `notes.png`:", "buy milk", "sell honey", "@missing"] {
        assert!(content.contains(part), "{content}");
    }
    // Piped input may come from anyone, so it cannot name files.
    let server = Server::start([Answer::text(&["I see."])]);
    openai_command(&house, &server, &MODEL).input("see @notes.png").run().code(0);
    let sent = server.requests()[0].json().to_string();
    assert!(sent.contains("@notes.png") && !sent.contains("buy milk"), "{sent}");
}

/// Runs a task with words that name files outside, and returns the server's request and the user's
/// output.
#[track_caller]
fn request_and_errors(house: &House, words: &[&str], input: &str) -> (String, String) {
    let server = Server::start([Answer::text(&["I see."])]);
    let output = openai_command(house, &server, words).input(input).run().code(0);
    (server.requests()[0].json().to_string(), output.stderr)
}

#[test]
fn pasted_mentions_attach_no_outside_or_hidden_files() {
    let house = house!(ship_openai);
    house.write("home/.ssh/id_rsa", "TOP-SECRET");
    put_file(&house, ".env", b"TOP-SECRET");
    put_file(&house, "notes.txt", b"buy milk");
    house.write("workspace/.git/config", "TOP-SECRET");
    symlink("../home/.ssh", house.workspace().join("keys")).unwrap();
    symlink("../home/.ssh/id_rsa", house.workspace().join("id.txt")).unwrap();
    let absolute = house.home().join(".ssh/id_rsa").display().to_string();
    let outside = "it is outside the workspace";
    for (file, why) in [
        ("../home/.ssh/id_rsa", outside),
        ("./../home/.ssh/id_rsa", outside),
        (&absolute, outside),
        ("keys/id_rsa", outside),
        ("id.txt", outside),
        (".env", "it is hidden"),
        (".git/config", "it is hidden"),
    ] {
        let task = format!("the error is\n\tsee (@{file}).\nplease fix");
        let chat = ["chat", "--model", "openai/test"];
        for (words, input) in [
            (&[MODEL.as_slice(), &[&task]].concat()[..], ""),
            (&[chat.as_slice(), &[&task]].concat()[..], ""),
            (&chat[..], &format!("see (@{file}).\n")),
        ] {
            let (sent, told) = request_and_errors(&house, words, input);
            assert!(!sent.contains("TOP-SECRET") && sent.contains('@'), "{file}: {sent}");
            let line = format!("`@{file}` is not attached: {why}");
            assert!(told.contains(&line) && told.contains("--attach"), "{file}: {told}");
        }
    }
    // The user may still name them, and sees the attached files.
    let words = [MODEL.as_slice(), &["--attach", ".env", "see @notes.txt"]].concat();
    let (sent, told) = request_and_errors(&house, &words, "");
    assert!(sent.contains("TOP-SECRET") && sent.contains("buy milk"), "{sent}");
    for line in ["attached .env, 10 bytes", "attached notes.txt, 8 bytes"] {
        assert!(told.contains(line), "{told}");
    }
    house.assert_no_processes();
}

#[test]
fn file_denied_by_a_rule_is_never_attached() {
    let house = house!(ship_openai);
    house.write("workspace/secret/key.txt", "TOP-SECRET");
    house.write("workspace/deep/a.key", "TOP-SECRET");
    symlink("secret", house.workspace().join("link")).unwrap();
    let rules = ["path = \"link\"", "path = \"**/*.key\"\ntool = \"readFile\""];
    let rules = rules.map(|rule| format!("[[rules]]\ndecision = \"deny\"\n{rule}\n"));
    let file = "home/.config/jaato/permissions.toml";
    house.write(file, &format!("version = 1\n{}", rules.concat()));
    for file in ["secret/key.txt", "link/key.txt", "deep/../link/key.txt", "deep/a.key"] {
        let task = format!("see @{file}");
        let words = [MODEL.as_slice(), &[&task]].concat();
        let (sent, told) = request_and_errors(&house, &words, "");
        assert!(!sent.contains("TOP-SECRET"), "{file}: {sent}");
        let line = format!("`@{file}` is not attached: a rule denies");
        assert!(told.contains(&line), "{file}: {told}");
        let server = Server::start([]);
        let words = [MODEL.as_slice(), &["--attach", file, "look"]].concat();
        let output = openai_command(&house, &server, &words).run().code(2);
        let line = format!("cannot attach `{file}`: a rule denies");
        assert!(output.stderr.contains(&line), "{output}");
        let ignoring = [MODEL.as_slice(), &["--ignore-deny-rules", "--attach", file, "look"]];
        let (sent, _) = request_and_errors(&house, &ignoring.concat(), "");
        assert!(sent.contains("TOP-SECRET"), "{file}: {sent}");
    }
}

#[test]
fn invalid_attachment_is_refused_by_name_before_any_request() {
    let house = house!(ship_openai);
    put_file(&house, "noise.png", &[0, 159, 146, 150]);
    put_file(&house, "long.txt", &vec![b'a'; 1024 * 1024 + 1]);
    for (file, says) in [
        ("none.png", "cannot attach `none.png`: No such file"),
        (".", "cannot attach `.`: it is not a file"),
        ("noise.png", "cannot attach `noise.png`: models cannot read this kind of file"),
        ("long.txt", "cannot attach `long.txt`: it has 1048577 bytes"),
    ] {
        let server = Server::start([]);
        let words: Vec<&str> = MODEL.iter().copied().chain(["--attach", file, "look"]).collect();
        let output = openai_command(&house, &server, &words).run().code(2);
        assert!(output.stderr.contains(says), "{output}");
        assert_eq!(server.requests().len(), 0);
    }
}

#[test]
fn a_chat_takes_files_for_its_next_message() {
    let house = house!(ship_openai);
    put_file(&house, "moon.png", PNG);
    let server = Server::start([Answer::text(&["one"]), Answer::text(&["two"])]);
    let lines = "/attach moon.png\n/attach none.png\nwhat is this?\nand now?\n";
    let chat = ["chat", "--model", "openai/test"];
    let output = openai_command(&house, &server, &chat).input(lines).run();
    assert!(output.stderr.contains("your next message will include it"), "{output}");
    assert!(output.stderr.contains("cannot attach `none.png`"), "{output}");
    let messages = server.requests()[1].json()["messages"].clone();
    let images = messages.to_string().matches(PNG_URL).count();
    assert_eq!(images, 1, "{messages:#}");
    let last = messages.as_array().unwrap().last().unwrap();
    assert_eq!(last, &json!({ "role": "user", "content": "and now?" }));
}

#[test]
fn options_reach_the_server_and_the_command_line_wins() {
    let house = house!(ship_openai);
    house.configure_more("temperature = 0.5\nseed = 7\nstop = [\"END\"]\n");
    put_file(
        &house,
        "schema.json",
        br#"{"type": "object", "properties": {"a": {"type": "string"}}}"#,
    );
    let server = Server::start([Answer::text(&["{}"])]);
    let words = ["--temperature", "1", "--effort", "low", "--output-schema", "schema.json", "go"];
    let words: Vec<&str> = MODEL.iter().copied().chain(words).collect();
    openai_command(&house, &server, &words).run().code(0);
    let request = server.requests()[0].json();
    assert_eq!(request["temperature"], 1.0);
    assert_eq!((&request["seed"], &request["stop"]), (&json!(7), &json!(["END"])));
    assert_eq!(request["reasoning_effort"], "low");
    assert_eq!(request["response_format"]["type"], "json_schema");
}

#[test]
fn unsupported_or_invalid_request_options_are_refused_before_sending() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    let output = house.command(&["run", "--effort", "high", "go"]).run().code(3);
    let says = "the provider `scripted` does not accept the option `effort`";
    assert!(output.stderr.contains(says) && output.stderr.contains("--effort"), "{output}");
    for (option, value) in [("--temperature", "3"), ("--effort", "hard"), ("--stop", "")] {
        house.command(&["run", option, value, "go"]).run().code(2);
    }
    put_file(&house, "list.json", b"[]");
    for (file, says) in [("list.json", "it must be an object"), ("none.json", "cannot read")] {
        let output = house.command(&["run", "--output-schema", file, "go"]).run().code(2);
        assert!(output.stderr.contains(says), "{output}");
    }
}
