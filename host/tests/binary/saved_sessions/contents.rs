//! Tests what the files of a session hold, and who can read them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    CONTINUE, RUN, only_id, request_results, run_all, run_answer, session_file, sessions_folder,
    set_up_house, ship_plugins, text_answer,
};
use crate::support::openai::{SECRET, assert_key_not_saved, openai_command};
use crate::support::server::{Answer, ReceivedRequest, Server};
use crate::support::{Command, fixture};
use crate::vendors::PNG;

/// Lists everything below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()));
        }
    }
    found
}

#[test]
fn files_and_folders_of_sessions_are_private() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["tool_todo"]);
    house.ship(&fixture("finds"));
    fs::write(house.workspace().join("moon.png"), PNG).unwrap();
    let find = json!({ "count": 1, "collection": "pond" });
    let plan = json!({ "title": "Count", "steps": ["say one"] });
    let server = Server::start([
        Answer::calls(&[("find_animals", find), ("createPlan", plan)]),
        // The whole output is stored as a file.
        run_answer("seq 100000"),
        text_answer("done"),
        text_answer("again"),
        text_answer("other"),
    ]);
    let open = |words: &str, input: &str| {
        // The modes must not depend on the user's umask.
        let line = format!("umask 0; exec \"$JAATO\" {words}");
        let command = Command::program(&house, "sh", &["-c", &line]);
        let command = command.variable("JAATO", house.binary()).input(input);
        let command = command.variable("OPENAI_BASE_URL", server.base_url());
        command.variable("OPENAI_API_KEY", SECRET).run().code(0)
    };
    open("run --yes --model openai/test --attach moon.png look", "");
    open("run --yes --continue again", "");
    open("chat --continue", "/rename moon\n/fork\nother\n");
    let all = files_below(&sessions_folder(&house));
    for name in ["session.jsonl", "attachments", "index.sqlite", "lock"] {
        assert!(all.iter().any(|path| path.ends_with(name)), "{name}: {all:#?}");
    }
    for path in all.iter().chain([&sessions_folder(&house)]) {
        let found = fs::symlink_metadata(path).unwrap();
        let expected = if found.is_dir() { 0o700 } else { 0o600 };
        let mode = found.permissions().mode() & 0o7777;
        assert_eq!(mode, expected, "{:o}: {}", mode, path.display());
    }
}

#[test]
fn key_in_messages_calls_and_results_is_not_saved() {
    let Some(house) = set_up_house() else { return };
    let (first, rest) = SECRET.split_at(9);
    let server = Server::start([
        run_answer(&format!("echo '{first}''{rest}'; echo '{first}''{rest}' >&2")),
        run_answer(&format!("echo {SECRET}")),
        Answer::text(&["it is ", first, rest]),
        text_answer("again"),
    ]);
    let task = format!("tell me {SECRET}");
    run_all(&house, &server, &[&RUN, &[&task]]).code(0);
    let text = fs::read_to_string(session_file(&house, &only_id(&house))).unwrap();
    for part in ["tell me ", "it is ", "stderr"] {
        assert!(text.contains(part), "{text}");
    }
    assert_key_not_saved(&house);
    run_all(&house, &server, &[&CONTINUE, &["again"]]).code(0);
    assert_key_not_saved(&house);
}

#[test]
fn key_in_an_attached_file_is_not_saved() {
    let Some(house) = set_up_house() else { return };
    let notes = house.path().join("notes.txt");
    fs::write(&notes, format!("the key is {SECRET}")).unwrap();
    let server = Server::start([text_answer("done")]);
    let file = notes.to_str().unwrap();
    run_all(&house, &server, &[&RUN, &["--attach", file, "read"]]).code(0);
    let text = fs::read_to_string(session_file(&house, &only_id(&house))).unwrap();
    assert!(text.contains("the key is "), "{text}");
    assert_key_not_saved(&house);
}

#[test]
fn key_in_the_name_of_a_session_is_not_saved() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("done")]);
    let input = format!("first\n/rename {SECRET}\n");
    openai_command(&house, &server, &["chat", "--model", "openai/test"]).input(input).run().code(0);
    openai_command(&house, &server, &["chat", "--continue"]).input("/quit\n").run().code(0);
    assert_key_not_saved(&house);
}

#[test]
fn key_that_a_model_or_a_tool_repeats_is_not_saved() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["tool_todo"]);
    let key_in_objects = json!({ "title": SECRET, "steps": [format!("use {SECRET}")] });
    let (first, rest) = SECRET.split_at(9);
    let server = Server::start([
        run_answer(&format!("echo '{first}''{rest}'; echo '{first}''{rest}' >&2")),
        Answer::calls(&[("createPlan", key_in_objects)]),
        Answer::text(&["it is ", first, rest]),
        text_answer("again"),
    ]);
    let task = format!("tell me {SECRET}");
    run_all(&house, &server, &[&RUN, &[&task]]).code(0);
    let text = fs::read_to_string(session_file(&house, &only_id(&house))).unwrap();
    for part in ["tell me ", "it is ", "createPlan"] {
        assert!(text.contains(part), "{text}");
    }
    assert_key_not_saved(&house);
    run_all(&house, &server, &[&CONTINUE, &["again"]]).code(0);
    assert_key_not_saved(&house);
}

#[test]
fn key_as_the_name_of_a_field_is_not_saved() {
    let Some(house) = set_up_house() else { return };
    let arguments = json!({ "command": "echo one", SECRET: 1 });
    let server =
        Server::start([Answer::calls(&[("cli_based_tool", arguments)]), text_answer("done")]);
    run_all(&house, &server, &[&RUN, &["go"]]).code(0);
    assert_key_not_saved(&house);
}

#[test]
fn key_in_a_long_output_is_not_saved() {
    let Some(house) = set_up_house() else { return };
    let (first, rest) = SECRET.split_at(9);
    let command = format!("seq 50000; echo '{first}''{rest}'; seq 50000");
    let server = Server::start([run_answer(&command), text_answer("done")]);
    run_all(&house, &server, &[&RUN, &["go"]]).code(0);
    assert_key_not_saved(&house);
}

/// Returns the path of the whole output that the first result of a request names.
#[track_caller]
fn output_file(asked: &ReceivedRequest) -> PathBuf {
    let result: Value = serde_json::from_str(&request_results(asked)[0]).unwrap();
    let result: Value = serde_json::from_str(result.as_str().unwrap()).unwrap();
    PathBuf::from(result["output_file"].as_str().unwrap())
}

#[test]
fn whole_output_stays_readable_in_a_copy_and_in_an_import_without_the_original() {
    let Some(house) = set_up_house() else { return };
    let Some(other) = set_up_house() else { return };
    let said = [text_answer("done"), text_answer("in the copy"), text_answer("in another home")];
    let server = Server::start([run_answer("seq 100000")].into_iter().chain(said));
    run_all(&house, &server, &[&RUN, &["count"]]).code(0);
    let id = only_id(&house);
    let path = output_file(&server.requests()[1]);
    let whole = fs::read(&path).unwrap();
    assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 100_000);
    assert!(path.starts_with(sessions_folder(&house).join(&id).join("attachments")), "{path:?}");

    let copy = house.run(&["session", "fork", &id]).code(0).stdout.trim().to_owned();
    house.run(&["session", "delete", &id, "--yes"]).code(0);
    run_all(&house, &server, &[&["run", "--resume", &copy, "again"]]).code(0);
    let copied = output_file(&server.requests()[2]);
    assert!(
        !path.exists() && copied.starts_with(sessions_folder(&house).join(&copy)),
        "{copied:?}"
    );
    assert!(fs::read(&copied).unwrap() == whole);

    let exported = house.path().join("talk.jsonl");
    let words = ["session", "export", &copy, exported.to_str().unwrap()];
    house.run(&words).code(0);
    let imported = other.run(&["session", "import", exported.to_str().unwrap()]).code(0);
    assert!(!imported.stderr.contains("missing"), "{imported}");
    let words = [&RUN, &["--resume", &copy, "and here"][..]];
    run_all(&other, &server, &words).code(0);
    let there = output_file(&server.requests()[3]);
    assert!(there.starts_with(sessions_folder(&other)), "{there:?}");
    assert!(fs::read(&there).unwrap() == whole);
}

#[test]
fn key_in_an_imported_conversation_is_not_saved() {
    let Some(house) = set_up_house() else { return };
    let header =
        json!({ "format": "jaato-transcript", "version": 1, "id": "20261128-150330-say3dk" });
    let text = format!("the key is {SECRET}");
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": text }] });
    let file = house.path().join("talk.jsonl");
    fs::write(&file, format!("{header}\n{message}\n")).unwrap();
    let words = ["session", "import", file.to_str().unwrap()];
    house.command(&words).variable("OPENAI_API_KEY", SECRET).run().code(0);
    fs::remove_file(&file).unwrap();
    let text = fs::read_to_string(session_file(&house, &only_id(&house))).unwrap();
    assert!(text.contains("the key is "), "{text}");
    assert_key_not_saved(&house);
}
