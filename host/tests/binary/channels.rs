//! Tests permission prompts through files in a folder, on the real binary.

use std::fs;

use serde_json::{Value, json};

use crate::questions::wait_for_file;
use crate::support::answers::{call_answer, text_answer};
use crate::support::cli::house_with_cli;
use crate::support::{House, Output};

/// Runs a command with a prompt in a folder, and answers with `response`, completed with the
/// request's number.
fn run_with_response(house: &House, mut response: Value) -> Output {
    let gate = house.path().join("gate");
    let _ = fs::remove_dir_all(&gate);
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": "mkdir made" })),
        text_answer("done"),
    ] }));
    let running = house
        .command(&["run", "--output", "json", "go"])
        .variable("JAATO_PERMISSIONS_CHANNEL", "file")
        .variable("JAATO_PERMISSIONS_ENDPOINT", &gate)
        .no_input()
        .start();
    running.wait_for("\"event\":\"permission_asked\"");
    let requests = gate.join("requests");
    wait_for_file(&requests);
    let request = loop {
        let mut files = fs::read_dir(&requests).unwrap().map(|file| file.unwrap().path());
        if let Some(file) = files.find(|file| file.extension().is_some_and(|it| it == "json")) {
            break file;
        }
        std::thread::yield_now();
    };
    let asked: Value = serde_json::from_slice(&fs::read(&request).unwrap()).unwrap();
    response["request_id"] = asked["request_id"].clone();
    // Written under another name first, because half an answer is not an answer.
    let responses = gate.join("responses");
    let whole = responses.join("whole");
    fs::write(&whole, response.to_string()).unwrap();
    fs::rename(whole, responses.join(request.file_name().unwrap())).unwrap();
    running.wait_with_open_input()
}

#[test]
fn an_answer_in_a_folder_counts_until_it_expires() {
    let Some(house) = house_with_cli() else { return };
    let made = house.workspace().join("made");
    for expires_at in ["2001-01-01T00:00:00Z", "2001-01-01", "soon"] {
        let output =
            run_with_response(&house, json!({ "decision": "allow", "expires_at": expires_at }));
        // The answer denied the call, not its absence.
        let events = output.code(0).json_lines();
        let decided = events.iter().find(|event| event["event"] == "permission_decided").unwrap();
        assert_eq!(decided["allowed"], false, "{expires_at}: {decided}");
        assert!(!made.exists(), "{expires_at}");
    }
    let output =
        run_with_response(&house, json!({ "decision": "allow", "expires_at": "9999-01-01" }));
    output.code(0);
    assert!(made.exists());
}
