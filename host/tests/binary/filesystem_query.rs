//! Tests `glob_files` and `grep_content` in the real binary.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{House, fixtures, library_name};

/// Returns an installation with the tools and an environment with files.
pub fn house_with_query() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    house.ship(&plugins.join(library_name("tool_filesystem_query")));
    house.ship(&plugins.join(library_name("environment_local")));
    // Results with many matches must not be truncated.
    house.configure_more("[session]\noutput_bytes_max = 1048576\n");
    Some(house)
}

#[track_caller]
fn call_tool(house: &House, words: &[&str], tool: &str, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    let words = [&["call"], words, &[tool, &arguments]].concat();
    house.run(&words).code(0).json()
}

#[track_caller]
fn grep_content(house: &House, arguments: Value) -> Value {
    call_tool(house, &[], "grep_content", &arguments)
}

/// Returns `file:lines` for each file with matches.
fn match_lines(told: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let place = |it: &Value| format!("{}:{}", text(&it["file"]), text(&it["lines"]));
    told["matches"].as_array().unwrap().iter().map(place).collect()
}

fn write_files(house: &House) {
    house.write("workspace/src/a.rs", "one\nmoon and moon\nthree\nfour\nfive\nmoon\n");
    house.write("workspace/src/b.md", "Moon\n");
    house.write("workspace/.hidden", "moon\n");
    house.write("workspace/.gitignore", "*.log\ntarget\n");
    house.write("workspace/x.log", "moon\n");
    house.write("workspace/target/debug.rs", "moon\n");
    house.write("workspace/.jaato/notes", "moon\n");
}

#[test]
fn search_outside_the_workspace_is_refused_with_the_allowed_folders() {
    let Some(house) = house_with_query() else { return };
    house.write("secret/key", "moon\n");
    std::os::unix::fs::symlink("../secret", house.workspace().join("out")).unwrap();
    for (tool, arguments) in [
        ("grep_content", json!({ "pattern": "moon", "path": "../secret" })),
        ("grep_content", json!({ "pattern": "moon", "path": "/etc/passwd" })),
        ("grep_content", json!({ "pattern": "moon", "path": "out/key" })),
        ("glob_files", json!({ "pattern": "*", "root": "/etc" })),
        ("glob_files", json!({ "pattern": "*", "root": "out" })),
        ("glob_files", json!({ "pattern": "../secret/*" })),
    ] {
        let output = house.run(&["call", tool, &arguments.to_string()]);
        let text = format!("{output}");
        assert!(
            text.contains("Path not allowed: ") && text.contains("folders `$HOUSE/workspace`"),
            "{text}"
        );
        assert!(!text.contains("key:1"), "{text}");
    }
    assert_eq!(
        match_lines(&grep_content(&house, json!({ "pattern": "moon" }))),
        Vec::<String>::new()
    );
}

#[test]
fn search_from_a_subfolder_can_reach_the_whole_workspace() {
    let Some(house) = house_with_query() else { return };
    write_files(&house);
    house.write("workspace/.git/HEAD", "ref: refs/heads/main\n");
    house.write("workspace/docs/c.md", "moon in docs\n");
    house.write("other/d.md", "moon outside\n");
    let docs = house.workspace().join("docs");
    let call = |arguments: Value| {
        let arguments = arguments.to_string();
        house.command(&["call", "grep_content", &arguments]).directory(&docs).no_input().run()
    };
    let found = call(json!({ "pattern": "moon" })).code(0).json();
    assert_eq!(match_lines(&found), ["c.md:1:moon in docs"]);
    let found = call(json!({ "pattern": "moon", "path": "../src", "max_results": "1.0" })).code(0);
    assert_eq!(match_lines(&found.json()), ["../src/a.rs:2:moon and moon"]);
    let refused = call(json!({ "pattern": "moon", "path": "../../other" }));
    assert!(refused.to_string().contains("Path not allowed: ../../other"), "{refused}");
}

#[test]
fn interrupted_search_ends_at_once_after_showing_its_first_matches() {
    /// Read from a sparse file at the speed of memory. A search of it takes many seconds.
    const BYTES: u64 = 64 << 30;
    const LINE_BYTES: u64 = 8 << 20;

    let Some(house) = house_with_query() else { return };
    let path = house.write("workspace/large", &"moon\n".repeat(2000));
    let large = File::options().write(true).open(&path).unwrap();
    for at in 1..BYTES / LINE_BYTES {
        large.write_all_at(b"\n", at * LINE_BYTES).unwrap();
    }
    let arguments = json!({ "pattern": "moon", "path": "large" }).to_string();
    let running = house.command(&["call", "grep_content", &arguments]).no_input().start();
    running.wait_for_error("large:1: moon");
    running.send_signal("INT");
    let signalled = Instant::now();
    let output = running.finish();
    assert_eq!(output.code, 130, "{output}");
    assert!(signalled.elapsed() < Duration::from_secs(10), "{:?}", signalled.elapsed());
    house.assert_no_processes();
}

#[test]
fn model_runs_search_tools_without_a_prompt() {
    let Some(house) = house_with_query() else { return };
    write_files(&house);
    let call =
        |name: &str, arguments: Value| json!({ "call": { "name": name, "arguments": arguments } });
    house.set_script(&json!({ "answers": [
        { "steps": [call("grep_content", json!({ "pattern": "moon", "file_glob": "*.rs" }))] },
        {
            "expect": { "tool_result": "\"total_matches\":3" },
            "steps": [call("glob_files", json!({ "pattern": "src/*" }))],
        },
        { "expect": { "tool_result": "\"total\":2" }, "steps": [{ "text": "found" }] },
    ] }));
    let output = house.command(&["run", "where is the moon?"]).no_input().run().code(0);
    assert_eq!(output.stdout, "found\n", "{output}");
}
