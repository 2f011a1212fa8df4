//! Tests a model that uses interactive programs through `jaato run`, by checking each result in a
//! recorded conversation.

use std::process::Command as Program;

use serde_json::{Value, json};

use super::{house_with_shells, is_installed};
use crate::support::House;
use crate::support::openai::{SECRET, ship_openai};
use crate::support::server::{Answer, Server};

/// Returns the installation, or skips the test.
fn set_up_house(program: &str) -> Option<House> {
    let house = house_with_shells()?;
    ship_openai(&house);
    is_installed(program).then_some(house)
}

fn spawn_call(command: &str) -> (&'static str, Value) {
    ("shell_spawn", json!({ "command": command, "timeout": 30 }))
}

fn type_call(text: &str) -> (&'static str, Value) {
    ("shell_input", json!({ "session_id": "session_0", "input": text, "timeout": 30 }))
}

fn key_call(key: &str) -> (&'static str, Value) {
    ("shell_control", json!({ "session_id": "session_0", "key": key, "timeout": 30 }))
}

fn close_call() -> (&'static str, Value) {
    ("shell_close", json!({ "session_id": "session_0" }))
}

/// Makes these calls for the model, one per step. Returns the result of each.
#[track_caller]
fn run_calls(house: &House, calls: &[(&str, Value)]) -> Vec<Value> {
    let steps = calls.iter().map(|call| Answer::calls(std::slice::from_ref(call)));
    let server = Server::start(steps.chain([Answer::text(&["It is done."])]));
    let words = ["run", "--model", "openai/test", "--yes", "Do it"];
    let output = house
        .command(&words)
        .variable("OPENAI_BASE_URL", server.base_url())
        .variable("OPENAI_API_KEY", SECRET)
        .variable("PS1", "$ ")
        .with_long_deadline()
        .run()
        .code(0);
    assert_eq!(output.stdout, "It is done.\n");
    house.assert_no_processes();
    let last = server.requests().pop().unwrap().json();
    let messages = last["messages"].as_array().unwrap();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results: Vec<Value> = results
        .map(|message| serde_json::from_str(message["content"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(results.len(), calls.len());
    results
}

/// Returns how each answer ends, and its reason.
fn call_ends(results: &[Value]) -> Vec<(String, &str)> {
    let told = results.iter().filter(|result| result.get("output").is_some());
    told.map(|result| {
        let output = result["output"].as_str().unwrap().trim_end();
        let line = output.lines().last().unwrap_or_default().to_owned();
        (line, result["reason"].as_str().unwrap())
    })
    .collect()
}

fn run_git(house: &House, words: &[&str]) {
    let status = Program::new("git")
        .args(["-c", "init.defaultBranch=main"])
        .args(words)
        .current_dir(house.workspace())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", house.home())
        .output()
        .unwrap();
    assert!(status.status.success(), "git {words:?}: {status:?}");
}

#[test]
fn model_uses_a_python_repl() {
    let Some(house) = set_up_house("python3") else { return };
    let results = run_calls(
        &house,
        &[
            spawn_call("python3 -q"),
            type_call("def area(r):\n    import math\n    return round(math.pi * r * r, 2)\n\n"),
            type_call("area(2)\n"),
            type_call("area('x')\n"),
            close_call(),
        ],
    );
    assert_eq!(results[0]["session_id"], "session_0");
    assert_eq!(results[1]["output"], ">>> ");
    assert_eq!(results[2]["output"], "12.57\n>>> ");
    assert!(results[3]["output"].as_str().unwrap().contains("TypeError: "), "{}", results[3]);
    assert!(results[..4].iter().all(|result| result["reason"] == "waiting"), "{results:?}");
    assert_eq!(results[4]["exit_status"], 0);
}

#[test]
fn model_answers_the_questions_of_npm_init() {
    let Some(house) = set_up_house("npm") else { return };
    let answers =
        ["moon\n", "\n", "a moon\n", "\n", "\n", "\n", "\n", "\n", "MIT\n", "\n", "yes\n"];
    // Versions of npm differ in the last questions, which the model reads.
    let calls =
        [spawn_call("npm init")].into_iter().chain(answers.map(type_call)).collect::<Vec<_>>();
    let results = run_calls(&house, &calls[..10]);
    let asked: Vec<_> = call_ends(&results).into_iter().map(|end| end.0).collect();
    let expected = [
        "package name: (workspace)",
        "version: (1.0.0)",
        "description:",
        "entry point: (index.js)",
        "test command:",
        "git repository:",
        "keywords:",
        "author:",
        "license: (ISC)",
    ];
    assert_eq!(asked[..9], expected, "{results:#?}");
    assert!(results[..9].iter().all(|result| result["reason"] == "waiting"), "{results:#?}");
}

#[test]
fn model_resolves_a_conflict_in_git_rebase() {
    let Some(house) = set_up_house("git") else { return };
    if !is_installed("vim") {
        return;
    }
    let moon = |text: &str| house.write("workspace/moon.txt", text);
    // The installation's marker is not a repository.
    std::fs::remove_dir_all(house.workspace().join(".git")).unwrap();
    run_git(&house, &["init", "-q"]);
    run_git(&house, &["config", "user.name", "moon"]);
    run_git(&house, &["config", "user.email", "moon@example.com"]);
    for (words, text) in [("full", "full\n"), ("half", "half\n"), ("new", "new\n")] {
        moon(text);
        run_git(&house, &["add", "moon.txt"]);
        run_git(&house, &["commit", "-q", "-m", words]);
    }
    let editor = "vim -u NONE --cmd \"set shortmess=aoOtTF\"";
    let rebase = format!("git -c core.editor='{editor}' rebase -i HEAD~2");
    let results = run_calls(
        &house,
        &[
            spawn_call("bash --norc --noprofile"),
            type_call(&format!("{rebase}\n")),
            // The first of the two commits is dropped.
            type_call("dd"),
            type_call(":wq\n"),
            type_call("cat moon.txt\n"),
            type_call(
                "echo new > moon.txt; git add moon.txt; GIT_EDITOR=true git rebase --continue\n",
            ),
            type_call("git log --format=%s; git status --short\n"),
            close_call(),
        ],
    );
    let screen = results[1]["output"].as_str().unwrap();
    assert!(screen.starts_with("pick ") && screen.contains("half"), "{screen}");
    assert_eq!(results[1]["full_screen"], true);
    assert!(results[2]["output"].as_str().unwrap().lines().next().unwrap().contains("new"));
    assert!(results[3]["output"].as_str().unwrap().contains("CONFLICT"), "{}", results[3]);
    assert!(results[4]["output"].as_str().unwrap().contains("<<<<<<< HEAD\nfull\n"));
    assert!(
        results[5]["output"].as_str().unwrap().contains("Successfully rebased"),
        "{}",
        results[5]
    );
    assert!(results[6]["output"].as_str().unwrap().starts_with("new\nfull\n"), "{}", results[6]);
    assert!(results[..7].iter().all(|result| result["reason"] == "waiting"), "{results:#?}");
}

#[test]
fn model_saves_and_quits_vim() {
    let Some(house) = set_up_house("vim") else { return };
    house.write("workspace/letter.txt", "Dear moon\n");
    let results = run_calls(
        &house,
        &[
            spawn_call("vim -u NONE letter.txt"),
            type_call("Goyours"),
            key_call("escape"),
            type_call(":q\n"),
            type_call("\n"),
            type_call(":wq\n"),
            close_call(),
        ],
    );
    assert!(results[0]["output"].as_str().unwrap().starts_with("Dear moon\n~\n"));
    assert!(results[1]["output"].as_str().unwrap().starts_with("Dear moon\nyours\n~\n"));
    assert!(results[3]["output"].as_str().unwrap().contains("E37: No write since last change"));
    assert_eq!((&results[5]["reason"], &results[5]["exit_status"]), (&json!("exit"), &json!(0)));
    assert_eq!(results[6]["exit_status"], 0);
    let letter = std::fs::read_to_string(house.workspace().join("letter.txt")).unwrap();
    assert_eq!(letter, "Dear moon\nyours\n");
}
