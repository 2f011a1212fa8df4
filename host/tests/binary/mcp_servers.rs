//! Tests third-party servers, each in a recorded session: a model calls their tools and gets their
//! answers.
//!
//! Part of the full tier. `cargo xtask setup --outside` downloads them.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::openai::{openai_program, ship_openai};
use crate::support::server::{Answer, Server};
use crate::support::{House, fixtures, library_name, skip};

/// Returns the folder of a package manager's servers, or `None` if they are missing.
fn fetched_server(name: &str) -> Option<PathBuf> {
    let folder = fixtures::target_folder().join("outside").join(name);
    if !folder.is_dir() {
        skip("no MCP servers of others: `cargo xtask setup --outside` fetches them");
        return None;
    }
    Some(folder)
}

/// Returns the entry of a server from npm.
fn node_entry(name: &str, args: &[&str]) -> Option<Value> {
    let program = fetched_server("mcp-node")?.join("node_modules/.bin").join(name);
    Some(json!({ "command": program, "args": args }))
}

/// Returns the entry of a server from PyPI in this folder.
fn python_entry(folder: &str, module: &str, args: &[&str]) -> Option<Value> {
    let path = fetched_server(folder)?;
    let start = format!("import {module}; {module}.main()");
    let args = [&["-B", "-c", &start], args].concat();
    Some(json!({ "command": "python3", "args": args, "env": { "PYTHONPATH": path } }))
}

fn set_up_house(name: &str, entry: Value) -> Option<House> {
    let house = House::new()?;
    house.ship(&fixtures::test_house()?.join("plugins").join(library_name("tool_mcp")));
    house.write("home/.mcp.json", &json!({ "mcpServers": { name: entry } }).to_string());
    Some(house)
}

/// Checks a session in which a model makes these calls and gets these texts, and the server's
/// description of itself.
#[track_caller]
fn check_server(house: &House, name: &str, calls: &[(&str, Value, &str)], tools: &Expect) {
    check_server_run(house, name, calls, tools, 0);
}

/// The same for a run that ends with this exit code, which is 1 if every call fails.
fn check_server_run(
    house: &House,
    name: &str,
    calls: &[(&str, Value, &str)],
    tools: &Expect,
    code: i32,
) {
    let connected = house.run(&["mcp", "connect", name]).code(0).stdout;
    assert!(connected.contains("connected") || connected.contains("Connected"), "{connected}");
    let shown = house.run(&["mcp", "show", name]).code(0).stdout;
    let rows = shown.lines().filter_map(|line| line.strip_prefix("    "));
    let rows = rows.filter(|row| !row.starts_with(' '));
    let names = rows.filter_map(|row| row.split(':').next());
    tools.assert_eq(&names.map(|name| format!("{name}\n")).collect::<String>());
    let mut answers = Vec::new();
    let mut before: Option<&str> = None;
    for (tool, arguments, result) in calls {
        let call = json!({ "name": format!("mcp__{name}__{tool}"), "arguments": arguments });
        answers.push(json!({ "steps": [{ "call": call }] }));
        if let (Some(before), Some(last)) = (before, answers.last_mut()) {
            last["expect"] = json!({ "tool_result": before });
        }
        before = Some(result);
    }
    answers.push(json!({ "expect": { "tool_result": before }, "steps": [{ "text": "done" }] }));
    house.set_script(&json!({ "answers": answers }));
    let only = format!("mcp__{name}__*");
    let output = house
        .command(&["run", "--yes", "--tools", &only, "go"])
        .with_long_deadline()
        .run()
        .code(code);
    assert_eq!(output.stdout, "done\n", "{output}");
    house.assert_no_processes();
}

fn create_repository(house: &House) -> String {
    let place = house.workspace().join("moon");
    house.write("workspace/moon/phase.txt", "full\n");
    for words in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &["add", "."],
        &["commit", "--quiet", "--message", "The moon is full"],
    ] {
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@moon.example"];
        let mut git = std::process::Command::new("git");
        let done = git.arg("-C").arg(&place).args(who).args(words).output().unwrap();
        assert!(done.status.success(), "{words:?}");
    }
    place.display().to_string()
}

fn workspace_path(house: &House, name: &str) -> String {
    Path::new(&house.workspace()).join(name).display().to_string()
}

#[test]
fn real_mcp_server_everything() {
    let Some(entry) = node_entry("mcp-server-everything", &[]) else { return };
    let Some(house) = set_up_house("everything", entry) else { return };
    let calls = [
        ("echo", json!({ "message": "hi" }), "Echo: hi"),
        ("get-sum", json!({ "a": 40, "b": 2 }), "The sum of 40 and 2 is 42."),
        ("get-structured-content", json!({ "location": "New York" }), "structured"),
        ("get-tiny-image", json!({}), "image/png"),
        ("trigger-long-running-operation", json!({ "duration": 0.2, "steps": 2 }), "completed"),
    ];
    check_server(
        &house,
        "everything",
        &calls,
        &expect![[r#"
        echo
        get-annotated-message
        get-env
        get-resource-links
        get-resource-reference
        get-structured-content
        get-sum
        get-tiny-image
        gzip-file-as-resource
        toggle-simulated-logging
        toggle-subscriber-updates
        trigger-long-running-operation
        get-roots-list
        trigger-elicitation-request
        trigger-url-elicitation
        trigger-sampling-request
        simulate-research-query
    "#]],
    );
    let listed = house.run(&["call", "mcp_list_resources", "{\"server\":\"everything\"}"]).code(0);
    assert!(listed.stdout.contains("uri"), "{listed}");
}

#[test]
fn real_mcp_server_filesystem() {
    let Some(house) = set_up_house("files", json!({})) else { return };
    let root = house.workspace().display().to_string();
    let Some(entry) = node_entry("mcp-server-filesystem", &[&root]) else { return };
    house.write("home/.mcp.json", &json!({ "mcpServers": { "files": entry } }).to_string());
    let file = workspace_path(&house, "moon.txt");
    let calls = [
        ("write_file", json!({ "path": file, "content": "full" }), "Successfully wrote"),
        ("read_text_file", json!({ "path": file }), "full"),
        ("read_text_file", json!({ "path": "/etc/passwd" }), "Access denied"),
    ];
    check_server(
        &house,
        "files",
        &calls,
        &expect![[r#"
        read_file
        read_text_file
        read_media_file
        read_multiple_files
        write_file
        edit_file
        create_directory
        list_directory
        list_directory_with_sizes
        directory_tree
        move_file
        search_files
        get_file_info
        list_allowed_directories
    "#]],
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), "full");
}

#[test]
fn real_mcp_server_memory() {
    let Some(mut entry) = node_entry("mcp-server-memory", &[]) else { return };
    entry["env"] = json!({ "MEMORY_FILE_PATH": "${HOME}/memory.jsonl" });
    let Some(house) = set_up_house("memory", entry) else { return };
    let moon = json!({ "name": "moon", "entityType": "satellite", "observations": ["far"] });
    let calls = [
        ("create_entities", json!({ "entities": [moon] }), "satellite"),
        ("search_nodes", json!({ "query": "moon" }), "far"),
    ];
    check_server(
        &house,
        "memory",
        &calls,
        &expect![[r#"
        create_entities
        create_relations
        add_observations
        delete_entities
        delete_observations
        delete_relations
        read_graph
        search_nodes
        open_nodes
    "#]],
    );
}

#[test]
fn real_mcp_server_sequential_thinking() {
    let Some(entry) = node_entry("mcp-server-sequential-thinking", &[]) else { return };
    let Some(house) = set_up_house("thinking", entry) else { return };
    let thought = json!({
        "thought": "x", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1,
    });
    let calls = [("sequentialthinking", thought, "thoughtHistoryLength")];
    check_server(
        &house,
        "thinking",
        &calls,
        &expect![[r#"
        sequentialthinking
    "#]],
    );
}

#[test]
fn real_mcp_server_git() {
    let Some(entry) = python_entry("mcp-python", "mcp_server_git", &[]) else { return };
    let Some(house) = set_up_house("git", entry) else { return };
    let path = create_repository(&house);
    let calls = [
        ("git_log", json!({ "repo_path": path, "max_count": 1 }), "The moon is full"),
        ("git_show", json!({ "repo_path": path, "revision": "HEAD" }), "phase.txt"),
    ];
    check_server(
        &house,
        "git",
        &calls,
        &expect![[r#"
        git_status
        git_diff_unstaged
        git_diff_staged
        git_diff
        git_commit
        git_add
        git_reset
        git_log
        git_create_branch
        git_checkout
        git_show
        git_branch
    "#]],
    );
}

#[test]
fn real_mcp_server_time() {
    let Some(entry) = python_entry("mcp-python", "mcp_server_time", &[]) else { return };
    let Some(house) = set_up_house("time", entry) else { return };
    let noon =
        json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    check_server(
        &house,
        "time",
        &[("convert_time", noon, "21:00:00")],
        &expect![[r#"
        get_current_time
        convert_time
    "#]],
    );
}

#[test]
fn real_mcp_server_fetch() {
    let Some(entry) = python_entry("mcp-python", "mcp_server_fetch", &[]) else { return };
    let Some(house) = set_up_house("fetch", entry) else { return };
    // The server itself refuses addresses of this machine.
    let calls = [("fetch", json!({ "url": "http://127.0.0.1:9/" }), "not a public address")];
    check_server_run(
        &house,
        "fetch",
        &calls,
        &expect![[r#"
        fetch
    "#]],
        1,
    );
}

#[test]
fn real_mcp_server_sqlite() {
    let Some(house) = set_up_house("sqlite", json!({})) else { return };
    let file = workspace_path(&house, "moon.db");
    let Some(entry) = python_entry("mcp-python-1", "mcp_server_sqlite", &["--db-path", &file])
    else {
        return;
    };
    house.write("home/.mcp.json", &json!({ "mcpServers": { "sqlite": entry } }).to_string());
    let calls = [
        ("create_table", json!({ "query": "CREATE TABLE moon (phase TEXT)" }), "created"),
        ("write_query", json!({ "query": "INSERT INTO moon VALUES ('full')" }), "affected_rows"),
        ("read_query", json!({ "query": "SELECT phase FROM moon" }), "full"),
    ];
    check_server(
        &house,
        "sqlite",
        &calls,
        &expect![[r#"
        read_query
        write_query
        create_table
        list_tables
        describe_table
        append_insight
    "#]],
    );
}

#[test]
fn real_mcp_server_git_in_the_harness() {
    let Some(entry) = python_entry("mcp-python", "mcp_server_git", &[]) else { return };
    let Some(house) = set_up_house("git", entry) else { return };
    let Some(program) = fixtures::embedder_program("cli-vs-mcp") else { return };
    for library in ["environment_local", "tool_cli"] {
        house.ship(&fixtures::test_house().unwrap().join("plugins").join(library_name(library)));
    }
    ship_openai(&house);
    let path = create_repository(&house);
    let log = format!("git -C {path} log -5 --oneline");
    let server = Server::start([
        Answer::calls(&[("cli_based_tool", json!({ "command": log }))]),
        Answer::text(&["The moon."]),
        Answer::calls(&[("mcp__git__git_log", json!({ "repo_path": path, "max_count": 5 }))]),
        Answer::text(&["The moon."]),
    ]);
    let params = json!({ "REPO_PATH": path }).to_string();
    let words = ["--model-name", "openai/test", "--scenarios"];
    let words = [&words[..], &["recent_commits", "--domain-params", &params, "--verbose"]].concat();
    let output =
        openai_program(&house, &server, &program, &words).with_long_deadline().run().code(0);
    assert!(output.stdout.contains("server `git`: 12 tools"), "{output}");
    assert!(output.stdout.contains("Overall: TIE"), "{output}");
    for at in [1, 3] {
        let body = String::from_utf8_lossy(&server.requests()[at].body).into_owned();
        assert!(body.contains("The moon is full"), "{body}");
    }
    house.assert_no_processes();
}
