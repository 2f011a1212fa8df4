//! `glob_files` and `grep_content` in the real binary.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{House, fixtures, library_name};

/// Where plugins run: inside jaato, and in workers.
const PLACES: [&str; 2] = ["", "[plugins]\nisolated = [\"*\"]\n"];

/// A house with the tools and an environment with files.
pub fn with_query() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::house()?.join("plugins");
    house.ship(&plugins.join(library_name("tool_filesystem_query")));
    house.ship(&plugins.join(library_name("environment_local")));
    // A result of many matches shall be seen whole.
    house.configure_more("[session]\noutput_bytes_max = 1048576\n");
    Some(house)
}

#[track_caller]
fn call(house: &House, words: &[&str], tool: &str, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    let words = [&["call"], words, &[tool, &arguments]].concat();
    house.run(&words).code(0).json()
}

#[track_caller]
fn grep(house: &House, arguments: Value) -> Value {
    call(house, &[], "grep_content", &arguments)
}

/// `file:line:column` of each match.
fn matches(told: &Value) -> Vec<String> {
    let place = |it: &Value| {
        format!("{}:{}:{}", it["file"].as_str().unwrap_or_default(), it["line"], it["column"])
    };
    told["matches"].as_array().unwrap().iter().map(place).collect()
}

fn fill(house: &House) {
    house.write("workspace/src/a.rs", "one\nmoon and moon\nthree\nfour\nfive\nmoon\n");
    house.write("workspace/src/b.md", "Moon\n");
    house.write("workspace/.hidden", "moon\n");
    house.write("workspace/.gitignore", "*.log\n");
    house.write("workspace/x.log", "moon\n");
    house.write("workspace/target/debug.rs", "moon\n");
    house.write("workspace/.jaato/notes", "moon\n");
}

#[test]
fn content_is_found_with_true_totals_several_a_line_and_the_lines_around() {
    for place in PLACES {
        let Some(house) = with_query() else { return };
        house.configure_more(place);
        fill(&house);
        let told = grep(&house, json!({ "pattern": "moon", "context_lines": 1 }));
        let expected = ["src/a.rs:2:1", "src/a.rs:2:10", "src/a.rs:6:1"];
        assert_eq!(matches(&told), expected, "{told}");
        let first = &told["matches"][0];
        assert_eq!(first["context_before"], json!(["one"]));
        assert_eq!((&first["context_after"], &first["match"]), (&json!(["three"]), &json!("moon")));
        assert_eq!(told["matches"][2]["context_before"], json!(["five"]));
        let totals = ["total_matches", "files_with_matches", "files_searched", "truncated"];
        assert_eq!(totals.map(|key| &told[key]), [&json!(3), &json!(1), &json!(2), &json!(false)]);
        let cut = grep(&house, json!({ "pattern": "moon", "max_results": 1 }));
        assert_eq!(matches(&cut), ["src/a.rs:2:1"]);
        assert_eq!((&cut["total_matches"], &cut["truncated"]), (&json!(3), &json!(true)));
        let any = json!({ "pattern": "MOON", "case_sensitive": false, "file_glob": ["*.md"] });
        assert_eq!(matches(&grep(&house, any)), ["src/b.md:1:1"]);
        let hidden = json!({ "pattern": "moon", "include_hidden": true, "file_glob": ".*" });
        assert_eq!(matches(&grep(&house, hidden)), [".hidden:1:1"]);
        // What a call names is searched, whatever is left out.
        let named = grep(&house, json!({ "pattern": "moon", "path": "x.log" }));
        assert_eq!(matches(&named), ["x.log:1:1"]);
        let below = grep(&house, json!({ "pattern": "moon", "path": "target" }));
        assert_eq!(matches(&below), ["target/debug.rs:1:1"]);
        house.nothing_lives();
    }
}

#[test]
fn files_are_found_the_newest_first_before_anything_is_cut() {
    for place in PLACES {
        let Some(house) = with_query() else { return };
        house.configure_more(place);
        fill(&house);
        for (path, seconds) in [("src/a.rs", 1_000_000_000), ("src/b.md", 1_100_000_000)] {
            let path = house.workspace().join(path);
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        }
        let told = call(&house, &[], "glob_files", &json!({ "pattern": "**", "max_results": 1 }));
        let workspace = house.workspace().display().to_string();
        let expected = json!({
            "files": [{
                "path": "src/b.md",
                "absolute_path": format!("{workspace}/src/b.md"),
                "size": 5,
                "modified": "2004-11-09T11:33:20Z",
            }],
            "total": 2, "returned": 1, "truncated": true, "root": workspace, "pattern": "**",
        });
        assert_eq!(told, expected);
        let hidden = json!({ "pattern": ".*", "include_hidden": true });
        let told = call(&house, &[], "glob_files", &hidden);
        assert_eq!(told["total"], 2, "`.hidden` and `.gitignore`: {told}");
        house.nothing_lives();
    }
}

#[test]
fn what_lies_outside_is_refused_with_the_folders_that_are_allowed() {
    let Some(house) = with_query() else { return };
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
    assert_eq!(matches(&grep(&house, json!({ "pattern": "moon" }))), Vec::<String>::new());
}

#[test]
fn odd_files_are_passed_over_and_what_is_named_is_answered_at_once() {
    let Some(house) = with_query() else { return };
    let workspace = house.workspace();
    house.write("workspace/a", "moon\n");
    let pipe = std::process::Command::new("mkfifo").arg(workspace.join("pipe")).status();
    assert!(pipe.unwrap().success());
    std::os::unix::fs::symlink(".", workspace.join("loop")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", workspace.join("zero")).unwrap();
    fs::write(workspace.join(OsStr::from_bytes(b"\xe4\xff")), b"moon \xff\n").unwrap();
    fs::write(workspace.join("utf16"), b"\xff\xfem\0o\0o\0n\0\n\0").unwrap();
    File::create(workspace.join("sparse")).unwrap().set_len(1 << 30).unwrap();
    fs::write(workspace.join("wide"), vec![b'm'; 40 << 20]).unwrap();
    let told = grep(&house, json!({ "pattern": "moon" }));
    assert_eq!(matches(&told), ["a:1:1", "utf16:1:1", "\u{fffd}\u{fffd}:1:1"], "{told}");
    assert_eq!(told["matches"][2]["text"], "moon \u{fffd}");
    assert_eq!(told["skipped_large"], 2, "{told}");
    let named = grep(&house, json!({ "pattern": "moon", "path": "sparse" }));
    assert_eq!((&named["skipped_binary"], &named["total_matches"]), (&json!(1), &json!(0)));
    let wide = grep(&house, json!({ "pattern": "moon", "path": "wide" }));
    assert!(wide["unreadable"][0].as_str().unwrap().contains("too long"), "{wide}");
    for (path, text) in [
        ("pipe", "it is a pipe, a socket or a device"),
        ("zero", "Path not allowed: zero"),
        ("gone", "Path does not exist: gone"),
    ] {
        let arguments = json!({ "pattern": "moon", "path": path }).to_string();
        let output = house.run(&["call", "grep_content", &arguments]);
        assert!(format!("{output}").contains(text), "{path}: {output}");
    }
}

#[test]
fn a_file_that_grows_is_searched_as_far_as_it_was() {
    let Some(house) = with_query() else { return };
    let path = house.write("workspace/log", "moon\n");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = File::options().append(true).open(&path).unwrap();
            let lines = "moon\n".repeat(1000);
            // As fast as it can, to a bound that a search does not reach.
            for _ in 0..20_000 {
                if is_over.load(Relaxed) {
                    break;
                }
                log.write_all(lines.as_bytes()).unwrap();
            }
        });
        let told = grep(&house, json!({ "pattern": "moon", "path": "log", "max_results": 1 }));
        is_over.store(true, Relaxed);
        assert!(told["total_matches"].as_u64().unwrap() >= 1, "{told}");
    });
}

#[test]
fn a_pattern_that_is_none_or_explodes_is_refused() {
    let Some(house) = with_query() else { return };
    for (pattern, reason) in [
        ("(a", "unclosed group"),
        ("((a{1000}){1000}){1000}", "it becomes too large"),
        (r"(a)\1", "backreferences are not supported"),
    ] {
        let arguments = json!({ "pattern": pattern }).to_string();
        let output = house.run(&["call", "grep_content", &arguments]);
        let text = format!("Invalid regex pattern: {reason}");
        assert!(format!("{output}").contains(&text), "{output}");
    }
}

#[test]
fn a_search_that_is_interrupted_ends_at_once_and_was_seen_so_far() {
    /// Read from a hole in the disk, at the speed of memory: a search of it takes many seconds.
    const BYTES: u64 = 64 << 30;
    const LINE_BYTES: u64 = 8 << 20;

    for place in PLACES {
        let Some(house) = with_query() else { return };
        house.configure_more(place);
        let path = house.write("workspace/large", &"moon\n".repeat(2000));
        let large = File::options().write(true).open(&path).unwrap();
        for at in 1..BYTES / LINE_BYTES {
            large.write_all_at(b"\n", at * LINE_BYTES).unwrap();
        }
        let arguments = json!({ "pattern": "moon", "path": "large" }).to_string();
        let running = house.command(&["call", "grep_content", &arguments]).no_input().start();
        running.wait_for_error("large:1: moon");
        running.signal("INT");
        let signalled = Instant::now();
        let output = running.finish();
        assert_eq!(output.code, 130, "{output}");
        assert!(signalled.elapsed() < Duration::from_secs(5), "{:?}", signalled.elapsed());
        house.nothing_lives();
    }
}

#[test]
fn a_model_finds_the_tools_and_runs_them_unasked() {
    let Some(house) = with_query() else { return };
    fill(&house);
    let call =
        |name: &str, arguments: Value| json!({ "call": { "name": name, "arguments": arguments } });
    house.script(&json!({ "answers": [
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
