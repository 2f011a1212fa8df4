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
    let plugins = fixtures::test_house().unwrap().join("plugins");
    for name in ["tool_file_edit", "tool_filesystem_query", "tool_cli"] {
        house.ship(&plugins.join(library_name(name)));
    }
    house.write("workspace/test.sh", TEST);
    house.write("workspace/src/greet.sh", LIBRARY);
    house.write("workspace/src/main.sh", MAIN);
    house.write("workspace/README.md", README);
}

fn tool_call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

fn shell_call(command: &str) -> Value {
    tool_call("cli_based_tool", json!({ "command": command }))
}

/// Returns the model's actions until the host is killed.
fn first_half_answers() -> Value {
    let renamed = |path: &str, old: &str| json!({ "action": "edit", "path": path, "old": old, "new": old.replace("greting", "greeting") });
    json!({ "answers": [
        { "steps": [tool_call("grep_content", json!({ "pattern": "Hel+o|greting" }))] },
        {
            "expect": { "tool_result": "\"total_matches\":4" },
            "steps": [tool_call("readFile", json!({ "path": "src/greet.sh" }))],
        },
        {
            "expect": { "tool_result": "Helo, $1!" },
            "steps": [tool_call("updateFile", json!({
                "path": "src/greet.sh", "old": "Helo", "new": "Hello",
            }))],
        },
        {
            "expect": { "tool_result": "+  echo \\\"Hello, $1!\\\"" },
            "steps": [tool_call("multiFileEdit", json!({ "operations": [
                renamed("src/greet.sh", "greting() {"),
                renamed("src/main.sh", "greting \"$1\""),
            ] }))],
        },
        {
            "expect": { "tool_result": "\"operations_completed\":2" },
            "steps": [tool_call(
                "updateFile",
                json!({ "path": "README.md", "new_content": "lost\n" }),
            )],
        },
        {
            "expect": { "tool_result": "\"success\":true" },
            "steps": [shell_call("echo > begun; sleep 300")],
        },
    ] })
}

/// Returns its actions in a later session.
fn second_half_answers() -> Value {
    json!({ "answers": [
        { "steps": [shell_call("sh test.sh")] },
        {
            "expect": { "tool_result": "passed" },
            "steps": [tool_call("undoFileChange", json!({ "path": "README.md" }))],
        },
        { "expect": { "tool_result": "\"success\":true" }, "steps": [{ "text": "Mended." }] },
    ] })
}

#[track_caller]
fn check_repaired(house: &House, command: impl Fn(&[&str]) -> Command) {
    add_plugin(house);
    house.set_script(&first_half_answers());
    let running = command(&["run", "--yes", "mend it"]).no_input().with_long_deadline().start();
    house.wait_for_file(&house.workspace().join("begun"));
    running.send_signal("KILL");
    running.finish().code(128 + 9);
    house.set_script(&second_half_answers());
    let output =
        command(&["run", "--yes", "continue"]).no_input().with_long_deadline().run().code(0);
    assert_eq!(output.stdout, "Mended.\n", "{output}");

    let read = |path: &str| std::fs::read_to_string(house.workspace().join(path)).unwrap();
    assert_eq!(read("src/greet.sh"), "greeting() {\n  echo \"Hello, $1!\"\n}\n");
    assert_eq!(read("src/main.sh"), ". src/greet.sh\ngreeting \"$1\"\n");
    assert_eq!(read("README.md"), README);
}

#[test]
fn repository_is_repaired_although_the_host_is_killed_midway() {
    let Some(house) = crate::cli::house_with_cli() else { return };
    check_repaired(&house, |words| house.command(words));
    house.assert_no_processes();
}

#[test]
fn repository_is_repaired_in_a_container() {
    let Some(house) = docker::house_with_docker() else { return };
    check_repaired(&house, |words| docker::command_in_image(&house, words));
}
