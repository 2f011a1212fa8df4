//! Tests one execution environment of several embedder sessions, plugins that are replaced while it
//! lives, and environments that keep and request resources themselves.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jaato_runtime::session_loop::{Cancel, EventSink, Session};
use jaato_runtime::types::{Error, ErrorKind, EventEnvelope, ToolName};
use jaato_runtime::{Runtime, SessionOptions, SharedEnvironment};
use serde_json::{Map, Value, json};

use crate::support::cli::house_with_cli;
use crate::support::embedded::read_setup;
use crate::support::{House, fixture, library_name};

/// Returns an installation with environments, a plugin that keeps resources, and one that calls
/// services.
fn set_up_house() -> Option<House> {
    let house = house_with_cli()?;
    for name in ["asks", "keeps", "rooms"] {
        house.ship(&fixture(name));
    }
    let file = house.path().join("notes").display().to_string();
    house.configure_more(&format!(
        "[plugins.fixture-keeps]\nfile = {file:?}\n[plugins.fixture-rooms]\nfile = {file:?}\n"
    ));
    Some(house)
}

fn read_notes(house: &House) -> Vec<String> {
    let text = fs::read_to_string(house.path().join("notes")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Ignores all events.
struct SilentEventSink;

impl EventSink for SilentEventSink {
    fn receive_event(&self, _envelope: EventEnvelope) {}
}

fn begin_session(runtime: &Runtime, environment: Option<&SharedEnvironment>) -> Session {
    let mut options = SessionOptions::unattended(Arc::new(SilentEventSink));
    options.allow_all = true;
    options.environment = environment.cloned();
    runtime.open_session_for_calls(options).unwrap()
}

async fn call_tool(session: &Session, tool: &str, arguments: Value) -> Result<Value, Error> {
    let output = session.run_user_call(&ToolName::from(tool), arguments, &Cancel::new()).await;
    output.map(|output| Value::Object(output.content))
}

async fn try_ask(session: &Session, operation: &str, request: Value) -> Result<Value, Error> {
    let arguments = json!({ "operation": operation, "request": request });
    call_tool(session, "ask_service", arguments).await.map(|answer| answer["answer"].clone())
}

async fn ask_environment(session: &Session, operation: &str, request: Value) -> Value {
    let answer = try_ask(session, operation, request).await;
    answer.unwrap_or_else(|error| panic!("{operation}: {error}"))
}

async fn temporary_folder(session: &Session) -> String {
    let facts = ask_environment(session, "environment.describe", Value::Null).await;
    facts["temporary_directory"].as_str().unwrap().to_owned()
}

async fn write_file(session: &Session, path: &str, text: &str) {
    let arguments =
        json!({ "operation": "files.write", "request": { "path": path }, "bytes": text });
    call_tool(session, "ask_service", arguments).await.unwrap();
}

async fn read_file(session: &Session, path: &str) -> Result<String, ErrorKind> {
    let read = try_ask(session, "files.read_text", json!({ "path": path })).await;
    read.map(|file| file["text"].as_str().unwrap().to_owned()).map_err(|error| error.kind)
}

/// Starts a program that outlives its call. Returns its number and its process id.
async fn start_program(session: &Session, line: &str) -> (u64, u64) {
    let request = json!({ "program": "sh", "args": ["-c", line] });
    let started = ask_environment(session, "process.start", request).await;
    (started["process"].as_u64().unwrap(), started["pid"].as_u64().unwrap())
}

fn is_running(pid: u64) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Runs a test with a host in each place. No process may live afterwards.
#[track_caller]
fn run_in_each_place(play: impl AsyncFn(&House, Runtime)) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let Some(house) = set_up_house() else { return };
    tokio.block_on(async {
        let runtime = Runtime::start(read_setup(&house)).await;
        play(&house, runtime).await;
    });
    house.assert_no_processes();
}

#[test]
fn sessions_sharing_an_environment_see_the_same_files() {
    run_in_each_place(async |_, runtime| {
        let shared = runtime.create_environment("local", Map::new()).unwrap();
        let (first, second) =
            (begin_session(&runtime, Some(&shared)), begin_session(&runtime, Some(&shared)));
        let alone = begin_session(&runtime, None);
        let folder = temporary_folder(&first).await;
        assert_eq!(temporary_folder(&second).await, folder);
        assert_ne!(temporary_folder(&alone).await, folder);
        let path = format!("{folder}/note");
        write_file(&first, &path, "moon").await;
        assert_eq!(read_file(&second, &path).await.as_deref(), Ok("moon"));
        write_file(&second, &path, "sun").await;
        assert_eq!(read_file(&first, &path).await.as_deref(), Ok("sun"));
        assert_eq!(read_file(&alone, &path).await, Err(ErrorKind::PermissionDenied));
        runtime.close_session(first.id()).await;
        assert_eq!(
            read_file(&second, &path).await.as_deref(),
            Ok("sun"),
            "the environment stays open"
        );
        runtime.close_session(second.id()).await;
        assert!(!Path::new(&folder).exists(), "the last session closes it");
        // A session that joins after that gets a new one.
        let third = begin_session(&runtime, Some(&shared));
        assert_ne!(temporary_folder(&third).await, folder);
        runtime.close().await;
    });
}

#[test]
fn processes_in_a_shared_environment_belong_to_one_session() {
    run_in_each_place(async |_, runtime| {
        let shared = runtime.create_environment("local", Map::new()).unwrap();
        let (first, second) =
            (begin_session(&runtime, Some(&shared)), begin_session(&runtime, Some(&shared)));
        let (own, own_pid) = start_program(&first, "exec sleep 300").await;
        let (other, other_pid) = start_program(&second, "exec sleep 300").await;
        assert_ne!(own, other, "one environment numbers all processes");
        let requests = [
            ("process.wait", json!({ "process": own, "timeout_ms": 1 })),
            ("process.output", json!({ "process": own })),
            ("process.signal", json!({ "process": own, "signal": "kill" })),
            ("process.end", json!({ "process": own })),
            ("process.forget", json!({ "process": own })),
        ];
        for (operation, request) in requests {
            let error = try_ask(&second, operation, request).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::NotFound, "{operation}");
            assert_eq!(error.message, format!("this session has no process {own}"));
        }
        for (session, number) in [(&first, own), (&second, other)] {
            let listed = ask_environment(session, "process.list", Value::Null).await;
            let numbers: Vec<_> =
                listed.as_array().unwrap().iter().map(|it| it["process"].clone()).collect();
            assert_eq!(numbers, [json!(number)]);
        }
        assert!(is_running(own_pid) && is_running(other_pid));
        runtime.close_session(first.id()).await;
        assert!(
            !is_running(own_pid) && is_running(other_pid),
            "a process ends only with its own session"
        );
        runtime.close_session(second.id()).await;
        assert!(!is_running(other_pid));
        runtime.close().await;
    });
}

/// Replaces the file of a plugin with another one.
fn replace_file(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes.push(0);
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(&new, path).unwrap();
}

#[test]
fn replaced_environment_serves_its_sessions_until_the_last_ends() {
    run_in_each_place(async |house, runtime| {
        runtime.watch_plugins().await;
        let session = begin_session(&runtime, None);
        let folder = temporary_folder(&session).await;
        let path = format!("{folder}/note");
        write_file(&session, &path, "moon").await;
        let (process, pid) = start_program(&session, "echo begun; exec sleep 300").await;
        replace_file(&house.path().join("plugins").join(library_name("environment_local")));
        assert_eq!(temporary_folder(&session).await, folder);
        runtime.reload_plugins(None).await.unwrap();
        assert_eq!(read_file(&session, &path).await.as_deref(), Ok("moon"));
        let waited = json!({ "process": process, "timeout_ms": 1 });
        assert_eq!(ask_environment(&session, "process.wait", waited).await, json!({}));
        assert!(is_running(pid));
        // A new session gets the other one.
        let next = begin_session(&runtime, None);
        assert_ne!(temporary_folder(&next).await, folder);
        runtime.close_session(session.id()).await;
        assert!(!is_running(pid) && !Path::new(&folder).exists());
        runtime.close().await;
    });
}

#[test]
fn resource_of_a_replaced_plugin_stays_open_until_removed() {
    run_in_each_place(async |house, runtime| {
        runtime.watch_plugins().await;
        let session = begin_session(&runtime, None);
        let made = json!({ "name": "made" });
        let count = json!({ "name": "made", "operation": "count" });
        ask_environment(&session, "resources.get_or_create", made.clone()).await;
        assert_eq!(ask_environment(&session, "resources.call", count.clone()).await, 1);
        replace_file(&house.path().join("plugins").join(library_name("fixture_keeps")));
        // Its file is checked before its next call.
        let read = call_tool(&session, "read_counter", made.clone()).await.unwrap();
        assert_eq!(read["count"], Value::Null, "it does not belong to the new instance");
        ask_environment(&session, "resources.get_or_create", made.clone()).await;
        assert_eq!(
            ask_environment(&session, "resources.call", count.clone()).await,
            2,
            "the same counter"
        );
        assert_eq!(read_notes(house), ["making made"]);
        ask_environment(&session, "resources.remove", made.clone()).await;
        assert_eq!(read_notes(house)[1], "closed made");
        ask_environment(&session, "resources.get_or_create", made.clone()).await;
        assert_eq!(ask_environment(&session, "resources.call", count).await, 1);
        let read = call_tool(&session, "read_counter", made).await.unwrap();
        assert_eq!(read["count"], 1, "the new instance has the counter");
        runtime.close_session(session.id()).await;
        runtime.close().await;
        let ends = read_notes(house).iter().filter(|note| *note == "instance closed").count();
        let resources: Vec<_> =
            read_notes(house).into_iter().filter(|note| note != "instance closed").collect();
        assert_eq!(resources, ["making made", "closed made", "making made", "closed made"]);
        assert_eq!((ends, read_notes(house).last().unwrap().as_str()), (2, "instance closed"));
    });
}

#[test]
fn environment_can_keep_resources_and_request_them_from_the_start() {
    run_in_each_place(async |house, runtime| {
        let shared = runtime.create_environment("rooms", Map::new()).unwrap();
        let session = begin_session(&runtime, Some(&shared));
        // A session's own instance of the plugin, before anything was set up.
        let found = call_tool(&session, "found_at_start", json!({})).await.unwrap();
        assert_eq!(found["found"], 1, "{found}");
        let facts = ask_environment(&session, "environment.describe", Value::Null).await;
        let expected = json!({ "found": 2, "resources": ["made", "room"] });
        assert_eq!(facts["details"], expected, "{facts}");
        let enter = json!({ "name": "room", "operation": "enter" });
        assert_eq!(ask_environment(&session, "resources.call", enter).await, "welcome");
        runtime.close_session(session.id()).await;
        assert_eq!(runtime.close().await.resources, Vec::<String>::new());
        let notes = read_notes(house);
        let at = |line: &str| notes.iter().position(|note| note == line).unwrap_or(usize::MAX);
        assert!(at("closed room") < at("taken down with 0 resources"), "{notes:?}");
        assert_eq!(at("taken down with 0 resources"), notes.len() - 1, "{notes:?}");
    });
}
