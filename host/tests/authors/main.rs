//! The example plugins of `docs/examples`: built, tested, installed and used as a new user would.
//!
//! They form one workspace with the test fixtures and share its lock file, and nothing is
//! downloaded. An example in C has no manifest and is compiled alone.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod every;
mod example_services;
mod example_sessions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::support::server::{Answer, Server};
use crate::support::{House, fixtures, library_name, moon, skip};

fn examples_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples").canonicalize().unwrap()
}

/// Lists every example plugin by name. Programs that embed jaato have a test of their own, in
/// `host/library`.
fn example_names() -> Vec<String> {
    let entries = fs::read_dir(examples_folder()).unwrap().map(Result::unwrap);
    let is_program = |path: &Path| {
        let manifest = fs::read_to_string(path.join("Cargo.toml"));
        manifest.is_ok_and(|text| text.contains("jaato-library"))
    };
    let folders = entries
        .filter(|entry| entry.path().join("README.md").is_file() && !is_program(&entry.path()));
    let mut names: Vec<String> =
        folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn run_cargo(words: &[&str]) -> Result<String, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(words).args(["--locked", "--offline", "--quiet"]).current_dir(examples_folder());
    cargo.env("CARGO_TARGET_DIR", fixtures::target_folder().join("fixtures"));
    let output = cargo.env_remove("RUSTFLAGS").env_remove("RUSTC_BOOTSTRAP").output().unwrap();
    let [out, err] =
        [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    if err.contains("--locked was passed") {
        let remedy = "`cp Cargo.lock docs/examples`, then `cargo update --workspace` there";
        return Err(format!("{remedy}: {err}"));
    }
    let is_clean = output.status.success() && !err.contains("warning");
    if is_clean { Ok(out) } else { Err(format!("{words:?}: {out}{err}")) }
}

/// Tests all of them once, in one run.
#[track_caller]
fn check_all_examples() {
    static CHECKED: OnceLock<Result<(), String>> = OnceLock::new();
    let checked = CHECKED.get_or_init(|| {
        let names = example_names();
        let in_rust: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| has_manifest(name)).collect();
        let packages = in_rust.iter().flat_map(|name| ["--package", name]);
        let words: Vec<&str> = ["test", "--all-targets"].into_iter().chain(packages).collect();
        // Captured and not passed on, because programs that count tests must not count these.
        let tested = run_cargo(&words)?;
        let passed = tested.lines().filter(|line| line.starts_with("test result: ok.")).count();
        if passed < 2 * in_rust.len() {
            return Err(format!("{in_rust:?} have only these tests: {tested}"));
        }
        Ok(())
    });
    if let Err(what) = checked {
        panic!("{what}");
    }
}

fn has_manifest(example: &str) -> bool {
    examples_folder().join(example).join("Cargo.toml").is_file()
}

/// Returns the built plugin, or `None` after printing the reason if its C compiler is missing.
#[track_caller]
fn built_example(example: &str) -> Option<PathBuf> {
    let name = example.replace('-', "_");
    if has_manifest(example) {
        check_all_examples();
        return Some(fixtures::built_library(&name));
    }
    let source = examples_folder().join(example).join(format!("{name}.c"));
    moon::compile_plugin(env!("CARGO_MANIFEST_DIR"), &source, None)
}

/// Returns an installation with the example, after its own tests and the check have passed.
#[track_caller]
fn house_with_example(example: &str) -> Option<House> {
    let house = House::new()?;
    let built = fs::read(built_example(example)?).unwrap();
    let file = house.write_given_file(&library_name(&example.replace('-', "_")), &built);
    let file = file.to_str().unwrap();
    let checked = house.run(&["plugin", "check", file]).code(0);
    assert!(checked.stdout.starts_with(&format!("manifest     ok: {example} 0.1.0")), "{checked}");
    let installed = house.run(&["plugin", "install", file]).expect_silent();
    assert!(installed.stdout.starts_with(&format!("installed `{example}` 0.1.0")), "{installed}");
    Some(house)
}

#[test]
fn checklist_is_kept_for_a_session_within_its_configured_limit() {
    let Some(house) = house_with_example("tool-checklist") else { return };
    house.configure("[plugins.tool-checklist]\nitems_max = 2\n");
    let calls = [
        json!({ "tool": "todo_add", "args": { "text": "build" } }),
        json!({ "tool": "todo_add", "args": { "text": "test" } }),
        json!({ "tool": "todo_add", "args": { "text": "rest" } }),
        json!({ "tool": "todo_done", "args": { "number": 1 } }),
        json!({ "tool": "todo_list" }),
    ];
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let output = house.command(&["call", "--batch"]).input(lines).run().code(1);
    let answers = output.json_lines();
    assert_eq!(answers[1]["result"], json!({ "number": 2, "open": 2 }));
    assert_eq!(answers[2]["error"]["message"], "the list is full: 2 items");
    assert_eq!(
        answers[4]["result"],
        json!({ "open": 1, "items": [
            { "number": 1, "text": "build", "done": true },
            { "number": 2, "text": "test", "done": false },
        ] })
    );
    // Each session has its own list.
    let shown = house.run(&["command", "todo"]).code(0);
    assert_eq!(shown.json(), json!({ "result": "nothing is on the list" }));
    house.configure("[plugins.tool-checklist]\nitem_max = 2\n");
    let wrong = house.run(&["call", "todo_list"]);
    assert!(wrong.code != 0 && wrong.stderr.contains("item_max"), "{wrong}");
    house.assert_no_processes();
}

#[test]
fn gc_results_plugin_drops_large_results_but_keeps_the_turns() {
    let Some(house) = house_with_example("gc-results") else { return };
    let call = json!({ "call": { "name": "get_environment", "arguments": { "aspect": "os" } } });
    let says = |text: &str, messages: usize, tokens: u64| {
        json!({
            "expect": { "messages": messages },
            "steps": [{ "text": text }],
            "usage": { "prompt_tokens": tokens, "output_tokens": 1 },
        })
    };
    house.set_script(&json!({ "answers": [
        { "steps": [call] }, says("one", 3, 300), says("two", 5, 850), says("three", 5, 300),
    ] }));
    house.configure_more("[models.\"scripted/test\"]\ncontext_limit = 1000\n");
    house.configure_more(
        "[gc]\nplugin = \"results\"\npreserve_recent_turns = 1\ntarget_percent = 84\n",
    );
    house.configure_more("[plugins.gc-results]\nlarge_bytes = 50\n");
    let output = house.command(&["chat"]).input("a\nb\nc\n").run().code(0);
    assert_eq!(output.stdout, "one\ntwo\nthree\n", "{output}");
    let told: Vec<&str> = output.stderr.lines().filter(|line| line.starts_with("gc ")).collect();
    let [line] = told[..] else { panic!("{output}") };
    assert!(line.starts_with("gc gc-results: old messages left out: 2, "), "{output}");
    assert!(line.ends_with("left out 1 large results of tools, and 0 whole turns"), "{output}");
    house.assert_no_processes();
}

/// Returns a streamed answer with these lines.
fn streamed_answer(lines: &[Value]) -> Answer {
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Answer::status(200).header("content-type", "application/x-ndjson").body(&body).in_single_bytes()
}

#[test]
fn provider_lines_plugin_answers_a_run_from_a_json_lines_server() {
    let Some(house) = house_with_example("provider-lines") else { return };
    let function = json!({ "name": "get_environment", "arguments": { "aspect": "os" } });
    let server = Server::start([
        streamed_answer(&[
            json!({ "message": { "content": "", "tool_calls": [{ "function": function }] } }),
            json!({ "done": true, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 2 }),
        ]),
        streamed_answer(&[
            json!({ "message": { "content": "It is " } }),
            json!({ "message": { "content": "Linux." } }),
            json!({ "done": true, "done_reason": "stop", "prompt_eval_count": 20, "eval_count": 3 }),
        ]),
    ]);
    server.set_models(Answer::status(200).body(r#"{"models":[{"name":"small:1b"}]}"#));
    house.configure(&format!(
        "[plugins.provider-lines]\nbase_url = \"{}\"\ncontext_tokens = 4096\n",
        server.root_url()
    ));
    let output = house.run(&["run", "--model", "lines/small:1b", "what system is this?"]).code(0);
    assert_eq!(output.stdout, "It is Linux.\n", "{output}");
    let asked = server.requests();
    let chats: Vec<Value> =
        asked.iter().filter(|asked| asked.path == "/api/chat").map(|asked| asked.json()).collect();
    assert_eq!(chats.len(), 2);
    assert_eq!(chats[0]["options"]["num_ctx"], 4096);
    let result = chats[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&result["role"], &result["tool_name"]),
        (&json!("tool"), &json!("get_environment"))
    );
    assert!(result["content"].as_str().unwrap().contains("\"type\":\"linux\""), "{result}");
    let listed = house.run(&["model", "list"]).code(0);
    assert!(listed.stdout.contains("lines/small:1b"), "{listed}");
    house.assert_no_processes();
}

/// Returns true if sandboxes can be created here.
fn has_sandbox() -> bool {
    let mut bwrap = Command::new("bwrap");
    bwrap.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    let tried = bwrap.args(["--unshare-pid", "--unshare-ipc", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}

#[test]
fn bubblewrap_session_writes_nothing_outside_its_folders() {
    if !has_sandbox() {
        return skip("`bwrap` is missing or cannot create a sandbox");
    }
    let Some(house) = house_with_example("environment-bubblewrap") else { return };
    let plugins = fixtures::test_house().unwrap().join("plugins");
    house.ship(&plugins.join(library_name("tool_cli")));
    house.configure("[plugins.environment-bubblewrap]\nshell_timeout = 1\n");
    let inside = ["--environment", "bubblewrap"];
    let shown = house.run(&["environment", "show", inside[0], inside[1]]).code(0);
    assert!(shown.stdout.contains("commands can access only these folders"), "{shown}");
    let call = |command: &str| json!({ "tool": "cli_based_tool", "args": { "command": command } });
    let outside = house.path().join("outside");
    let calls = [
        call("echo moon > a.txt; pwd; cat a.txt"),
        call(&format!("echo moon > '{}'", outside.display())),
        call("echo begun; sleep 300"),
    ];
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let output = house.command(&["call", "--batch", inside[0], inside[1]]).input(lines).run();
    let answers = output.code(0).json_lines();
    let workspace = house.workspace();
    let expected = format!("{}\nmoon\n", workspace.display());
    assert_eq!(answers[0]["result"]["stdout"], expected);
    assert_eq!(fs::read_to_string(workspace.join("a.txt")).unwrap(), "moon\n");
    let refused = answers[1]["result"]["stderr"].as_str().unwrap();
    assert!(refused.contains("Read-only file system"), "{refused}");
    assert!(!outside.exists());
    let late = &answers[2]["result"];
    assert_eq!((&late["stdout"], &late["timeout_seconds"]), (&json!("begun\n"), &json!(1)));
    house.assert_no_processes();
}
