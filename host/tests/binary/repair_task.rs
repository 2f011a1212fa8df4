//! Tests repairing a small repository with the file tools, locally and in a container: it is
//! searched, read, edited in three steps (one of several files), tested, and one step is undone.
//! The host is killed in the middle.

use serde_json::{Value, json};

use crate::docker;
use crate::support::{Command, House, fixtures, library_name};

const TEST: &str = "set -e\ntest \"$(sh src/main.sh Moon)\" = 'Hello, Moon!'\necho passed\n";
const LIBRARY: &str = "greting() {\n  echo \"Helo, $1!\"\n}\n";
const MAIN: &str = ". src/greet.sh\ngreting \"$1\"\n";
const README: &str = "# Greet\r\n\r\n`sh src/main.sh NAME`\r\n";

/// Ships the tools and writes the repository.
fn add_plugin(house: &House) {
    let plugins = fixtures::house().unwrap().join("plugins");
    for name in ["tool_file_edit", "tool_filesystem_query", "tool_cli"] {
        house.ship(&plugins.join(library_name(name)));
    }
    house.write("workspace/test.sh", TEST);
    house.write("workspace/src/greet.sh", LIBRARY);
    house.write("workspace/src/main.sh", MAIN);
    house.write("workspace/README.md", README);
}

fn call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

fn shell(command: &str) -> Value {
    call("cli_based_tool", json!({ "command": command }))
}

/// Returns the model's actions until the host is killed.
fn first_half() -> Value {
    let renamed = |path: &str, old: &str| json!({ "action": "edit", "path": path, "old": old, "new": old.replace("greting", "greeting") });
    json!({ "answers": [
        { "steps": [call("grep_content", json!({ "pattern": "Hel+o|greting" }))] },
        {
            "expect": { "tool_result": "\"total_matches\":4" },
            "steps": [call("readFile", json!({ "path": "src/greet.sh" }))],
        },
        {
            "expect": { "tool_result": "Helo, $1!" },
            "steps": [call("updateFile", json!({
                "path": "src/greet.sh", "old": "Helo", "new": "Hello",
            }))],
        },
        {
            "expect": { "tool_result": "+  echo \\\"Hello, $1!\\\"" },
            "steps": [call("multiFileEdit", json!({ "operations": [
                renamed("src/greet.sh", "greting() {"),
                renamed("src/main.sh", "greting \"$1\""),
            ] }))],
        },
        {
            "expect": { "tool_result": "\"operations_completed\":2" },
            "steps": [call("updateFile", json!({ "path": "README.md", "new_content": "lost\n" }))],
        },
        {
            "expect": { "tool_result": "\"success\":true" },
            "steps": [shell("echo > begun; sleep 300")],
        },
    ] })
}

/// Returns its actions in a later session.
fn second_half() -> Value {
    json!({ "answers": [
        { "steps": [shell("sh test.sh")] },
        {
            "expect": { "tool_result": "passed" },
            "steps": [call("undoFileChange", json!({ "path": "README.md" }))],
        },
        { "expect": { "tool_result": "\"success\":true" }, "steps": [{ "text": "Mended." }] },
    ] })
}

#[track_caller]
fn is_mended(house: &House, command: impl Fn(&[&str]) -> Command) {
    add_plugin(house);
    house.script(&first_half());
    let running = command(&["run", "--yes", "mend it"]).no_input().patient().start();
    house.wait_for_file(&house.workspace().join("begun"));
    running.signal("KILL");
    running.finish().code(128 + 9);
    house.script(&second_half());
    let output = command(&["run", "--yes", "continue"]).no_input().patient().run().code(0);
    assert_eq!(output.stdout, "Mended.\n", "{output}");

    let read = |path: &str| std::fs::read_to_string(house.workspace().join(path)).unwrap();
    assert_eq!(read("src/greet.sh"), "greeting() {\n  echo \"Hello, $1!\"\n}\n");
    assert_eq!(read("src/main.sh"), ". src/greet.sh\ngreeting \"$1\"\n");
    assert_eq!(read("README.md"), README);
}

#[test]
fn repository_is_repaired_although_the_host_is_killed_midway() {
    let Some(house) = crate::cli::with_cli() else { return };
    is_mended(&house, |words| house.command(words));
    house.nothing_lives();
}

#[test]
fn repository_is_repaired_in_a_container() {
    let Some(house) = docker::furnish() else { return };
    is_mended(&house, |words| docker::in_image(&house, words));
}
