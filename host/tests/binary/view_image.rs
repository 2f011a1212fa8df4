//! Tests `viewImage`: offered if the model accepts images, and its results.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::house;
use crate::support::openai::{openai_command, ship_openai};
use crate::support::server::{Answer, Server};
use crate::support::{House, fixtures, library_name};
use crate::vendors::PNG;

const RUN: [&str; 5] = ["run", "--model", "openai/test", "--output", "json"];

/// Adds the tool and the environment with its files.
fn ship_all(house: &House) {
    ship_openai(house);
    let Some(built) = fixtures::test_house() else { return };
    for plugin in ["environment_local", "tool_multimodal"] {
        house.ship(&built.join("plugins").join(library_name(plugin)));
    }
    fs::write(house.workspace().join("moon.txt"), PNG).unwrap();
}

fn view_answer(path: &str) -> Answer {
    Answer::calls(&[("viewImage", json!({ "path": path }))])
}

fn look_up_answer() -> Answer {
    Answer::calls(&[("get_tool_schemas", json!({ "names": ["viewImage"] }))])
}

/// Runs a task. Returns the requests and the results of the calls.
#[track_caller]
fn run_task(house: &House, server: &Server) -> (Vec<Value>, Vec<Value>) {
    let words: Vec<&str> = RUN.iter().copied().chain(["look"]).collect();
    let output = openai_command(house, server, &words).run().code(0);
    let requests = server.requests().iter().map(|request| request.json()).collect();
    let events = output.json_lines();
    let finished = events.iter().filter(|event| event["event"] == "tool_call_finished");
    (requests, finished.cloned().collect())
}

#[test]
fn vision_model_gets_the_image_that_it_requests() {
    let house = house!(ship_all);
    let server =
        Server::start([look_up_answer(), view_answer("moon.txt"), Answer::text(&["A moon."])]);
    let (requests, results) = run_task(&house, &server);
    assert_eq!(results[0]["result"]["activated"], json!(["viewImage"]), "{results:#?}");
    assert_eq!(results[1]["result"]["type"], "image/png", "{results:#?}");
    let sent = requests[2]["messages"].to_string();
    assert!(sent.contains("data:image/png;base64,iVBORw0KGgo"), "{sent}");
    house.assert_no_processes();
}

#[test]
fn model_without_vision_is_not_offered_view_image() {
    let house = house!(ship_all);
    let server = Server::start([look_up_answer(), view_answer("moon.txt"), Answer::text(&["no"])]);
    server.set_models(
        Answer::status(200).body(
            r#"{"data":[{"id":"test","max_model_len":9000,"capabilities":{"vision":false}}]}"#,
        ),
    );
    let (requests, results) = run_task(&house, &server);
    let error = &results[1]["result"]["error"];
    let why = "the tool `viewImage` is not available: with a model that accepts images";
    assert_eq!(error["message"], why, "{results:#?}");
    let tools = requests[2]["tools"].to_string();
    assert!(!tools.contains("viewImage"), "{tools}");
    assert!(!requests[2].to_string().contains("base64"), "{}", requests[2]);
    house.assert_no_processes();
}

#[test]
fn view_image_refuses_files_that_are_not_images() {
    let house = house!(ship_all);
    let workspace = house.workspace();
    fs::write(workspace.join("words.png"), "hello").unwrap();
    fs::File::create(workspace.join("huge.png")).unwrap().set_len(1 << 30).unwrap();
    std::os::unix::fs::symlink("loop.png", workspace.join("loop.png")).unwrap();
    let made = Command::new("mkfifo").arg(workspace.join("pipe.png")).status().unwrap();
    assert!(made.success());
    let paths = [
        ("words.png", "invalid_arguments", "its content is not PNG, JPEG, GIF or WebP"),
        ("huge.png", "limit_reached", "1024.0 MB > 10 MB"),
        ("pipe.png", "invalid_arguments", "neither a file nor a folder"),
        (".", "invalid_arguments", "it is a folder"),
        ("none.png", "not_found", "none.png"),
        ("loop.png", "", "loop.png"),
        ("/etc/passwd", "permission_denied", "/etc/passwd"),
        ("../home", "permission_denied", "../home"),
        ("/dev/zero", "permission_denied", "/dev/zero"),
    ];
    let lines = paths.map(|(path, ..)| json!({ "tool": "viewImage", "args": { "path": path } }));
    let lines = lines.map(|line| line.to_string()).join("\n");
    let output = house.command(&["call", "--batch"]).input(lines).run();
    let answers = output.json_lines();
    assert_eq!(answers.len(), paths.len(), "{output}");
    for ((path, kind, text), answer) in paths.iter().zip(&answers) {
        let error = &answer["error"];
        assert!(kind.is_empty() || error["kind"] == *kind, "{path}: {answer}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(text) && !message.contains('\n'), "{path}: {answer}");
    }
    house.assert_no_processes();
}
