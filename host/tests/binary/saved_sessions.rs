//! Tests saved sessions with the real binary: a later process continues what an earlier one began.
//!
//! A server on loopback records the requests, so a test can compare the conversation before and
//! after.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::cli::house_with_cli;
use crate::support::command::{DEADLINE, Output};
use crate::support::server::{Answer, ReceivedRequest, Server};
use crate::support::{House, fixtures, library_name, openai};

mod contents;
mod continued;
mod damage;
mod kills;
mod owners;
mod state;
mod whole_life;

/// The words of a first run.
const RUN: [&str; 4] = ["run", "--yes", "--model", "openai/test"];

/// The words of a run that continues the newest session.
const CONTINUE: [&str; 3] = ["run", "--yes", "--continue"];

/// Returns an installation whose model is behind a server and runs commands.
fn set_up_house() -> Option<House> {
    let house = house_with_cli()?;
    openai::ship_openai(&house);
    Some(house)
}

/// Ships further plugins.
fn ship_plugins(house: &House, libraries: &[&str]) {
    let plugins = fixtures::test_house().expect("the test house exists").join("plugins");
    for library in libraries {
        house.ship(&plugins.join(library_name(library)));
    }
}

/// Runs jaato with a server to the end.
#[track_caller]
fn run_all(house: &House, server: &Server, words: &[&[&str]]) -> Output {
    openai::openai_command(house, server, &words.concat()).run()
}

/// Returns an answer that runs a command.
fn run_answer(command: &str) -> Answer {
    Answer::calls(&[("cli_based_tool", json!({ "command": command }))])
}

fn text_answer(text: &str) -> Answer {
    Answer::text(&[text])
}

/// Returns the folder with all sessions.
fn sessions_folder(house: &House) -> PathBuf {
    house.home().join(".local/share/jaato/sessions")
}

/// Lists the ids of all sessions, the oldest first.
fn session_ids(house: &House) -> Vec<String> {
    let entries = fs::read_dir(sessions_folder(house)).into_iter().flatten().flatten();
    let is_session = |entry: &fs::DirEntry| entry.path().join("session.jsonl").exists();
    let names = entries.filter(is_session).map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns the id of the only session.
#[track_caller]
fn only_id(house: &House) -> String {
    let ids = session_ids(house);
    assert_eq!(ids.len(), 1, "{ids:?}");
    ids.into_iter().next().unwrap()
}

/// Returns the path of a session's file.
fn session_file(house: &House, id: &str) -> PathBuf {
    sessions_folder(house).join(id).join("session.jsonl")
}

/// Reads the records of the only session. A torn last line is left out.
fn read_records(house: &House) -> Vec<Value> {
    let path = session_ids(house).first().map(|id| session_file(house, id));
    let bytes = path.and_then(|path| fs::read(path).ok()).unwrap_or_default();
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Waits until the only session's file has a matching record.
#[track_caller]
fn wait_for_record(house: &House, is_it: impl Fn(&Value) -> bool) {
    let begun = Instant::now();
    while !read_records(house).iter().any(&is_it) {
        assert!(begun.elapsed() < DEADLINE, "the record is missing: {:#?}", read_records(house));
        std::thread::yield_now();
    }
}

/// Waits until a server has received this many requests.
#[track_caller]
fn wait_for_requests(server: &Server, count: usize) {
    let begun = Instant::now();
    while server.requests().len() < count {
        assert!(begun.elapsed() < DEADLINE, "only {} requests arrived", server.requests().len());
        std::thread::yield_now();
    }
}

/// Returns the conversation of a request.
#[track_caller]
fn request_messages(asked: &ReceivedRequest) -> Vec<Value> {
    asked.json()["messages"].as_array().unwrap().clone()
}

/// Returns the text of a request's messages, without the bracket that closes the list.
#[track_caller]
fn messages_text(asked: &ReceivedRequest) -> String {
    const KEY: &str = "\"messages\":";
    let body = String::from_utf8(asked.body.clone()).unwrap();
    let from = body.find(KEY).unwrap() + KEY.len();
    let mut values = serde_json::Deserializer::from_str(&body[from..]).into_iter::<Value>();
    values.next().unwrap().unwrap();
    let list = &body[from..from + values.byte_offset()];
    list.strip_suffix(']').unwrap().to_owned()
}

/// Fails unless a request repeats an earlier one, byte for byte, before its own new messages.
#[track_caller]
fn assert_extends(earlier: &ReceivedRequest, later: &ReceivedRequest) {
    let (earlier, later) = (messages_text(earlier), messages_text(later));
    assert!(later.starts_with(&earlier), "before:\n{earlier}\nafter:\n{later}");
    assert!(later.len() > earlier.len());
}

/// Returns the texts of a request's tool results.
fn request_results(asked: &ReceivedRequest) -> Vec<String> {
    let messages = request_messages(asked);
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].to_string()).collect()
}
