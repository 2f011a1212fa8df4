//! Calls the tools as a host does.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::service::SessionFacts;
use jaato_plugin_sdk::types::{Error, ErrorKind};
use jaato_plugin_testkit::FakeHost;
use tempfile::TempDir;

fn folder_with_files(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn host_in_folder(folder: &Path) -> FakeHost {
    let working_directory = folder.canonicalize().unwrap().to_str().unwrap().to_owned();
    FakeHost::new(tool_filesystem_query::__jaato::MODULE)
        .with_session(SessionFacts { working_directory, ..SessionFacts::default() })
}

#[track_caller]
fn call_tool(host: &FakeHost, tool: &str, arguments: Value) -> Value {
    Value::Object(host.call(tool, arguments).unwrap().content)
}

#[track_caller]
fn call_error(host: &FakeHost, tool: &str, arguments: Value) -> Error {
    host.call(tool, arguments).unwrap_err()
}

fn listed_names<'a>(answer: &'a Value, of: &str, key: &str) -> Vec<&'a str> {
    answer[of].as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap()).collect()
}

const FILES: [(&str, &str); 6] = [
    ("src/a.py", "one\n  moon moon\nthree\n"),
    ("src/b.PY", "Moon\n"),
    ("node_modules/x.py", "moon\n"),
    (".jaato/secret.py", "moon\n"),
    (".hidden.py", "moon\n"),
    ("build/keep.py", "moon\n"),
];

#[test]
fn grep_groups_matches_by_file_with_exact_totals() {
    let folder = folder_with_files(&FILES);
    let host = host_in_folder(folder.path());
    let grep = |arguments: Value| call_tool(&host, "grep_content", arguments);
    let told = grep(json!({ "pattern": "moon", "context_lines": 1 }));
    let expected = json!({
        "matches": [{ "file": "src/a.py", "lines": "1-one\n2:  moon moon\n3-three" }],
        "total_matches": 2, "files_with_matches": 1, "files_searched": 2, "truncated": false,
        "left_out": {
            "hidden": 2, "excluded": 2,
            "to_include": "include_hidden; include_ignored, or name the folder",
        },
    });
    assert_eq!(told, expected);
    let all = json!({ "pattern": "o", "include_hidden": true, "include_ignored": true });
    let page = |more: Value| {
        let mut arguments = all.clone();
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let told = grep(arguments);
        let files = told["matches"].as_array().unwrap().iter().map(|entry| entry["file"].clone());
        (Value::Array(files.collect()), told["next_offset"].clone(), told["truncated"].clone())
    };
    assert_eq!(
        page(json!({ "max_results": 4 })),
        (json!([".hidden.py", ".jaato/secret.py"]), json!(4), json!(true))
    );
    let rest = ["build/keep.py", "node_modules/x.py", "src/a.py", "src/b.PY"];
    assert_eq!(page(json!({ "offset": 4 })), (json!(rest), Value::Null, json!(false)));
    assert_eq!(page(json!({ "offset": 99 })).0, json!([]));
}

#[test]
fn output_mode_lists_or_counts_matching_files() {
    let folder = folder_with_files(&FILES);
    let host = host_in_folder(folder.path());
    let grep = |mode: &str, offset: u64| {
        let arguments = json!({
            "pattern": "moon", "output_mode": mode, "case_sensitive": false, "offset": offset,
        });
        call_tool(&host, "grep_content", arguments)
    };
    let files = grep("files_with_matches", 0);
    assert_eq!(files["files"], json!(["src/a.py", "src/b.PY"]));
    assert_eq!((&files["total_matches"], &files["truncated"]), (&json!(3), &json!(false)));
    assert_eq!(grep("count", 0)["counts"], json!({ "src/a.py": 2, "src/b.PY": 1 }));
    assert_eq!(grep("count", 1)["counts"], json!({ "src/b.PY": 1 }));
}

#[test]
fn literal_text_and_multi_line_matches_are_found() {
    let folder = folder_with_files(&[
        ("a.py", "x += 1\ncall(x,\n     y)\nend\n"),
        ("b.py", "call(x,\r\n     y)\r\nend"),
    ]);
    let host = host_in_folder(folder.path());
    let grep = |arguments: Value| call_tool(&host, "grep_content", arguments);
    let lines = |told: &Value| listed_names(told, "matches", "lines").join(" | ");
    for (arguments, has_note) in [
        (json!({ "pattern": "x += 1" }), true),
        (json!({ "pattern": "x += 1", "literal": true }), false),
    ] {
        let told = grep(arguments);
        assert_eq!(lines(&told), "1:x += 1");
        assert_eq!(told["note"].is_string(), has_note, "{told}");
    }
    let told = grep(json!({ "pattern": "none (", "literal": true }));
    assert_eq!((lines(&told), &told["note"]), (String::new(), &Value::Null));
    let over = "2:call(x,\n3:     y) | 1:call(x,\n2:     y)";
    for arguments in [
        json!({ "pattern": r"call\(x,\n *y" }),
        json!({ "pattern": "call(x,\n     y)", "literal": true }),
        json!({ "pattern": r"call\(.*y\)", "multiline": true }),
    ] {
        let told = grep(arguments);
        assert_eq!((lines(&told).as_str(), &told["total_matches"]), (over, &json!(2)), "{told}");
    }
    let around = grep(json!({ "pattern": r"x,\n *y", "context_lines": 1, "path": "a.py" }));
    assert_eq!(lines(&around), "1-x += 1\n2:call(x,\n3:     y)\n4-end");
}

#[test]
fn glob_finds_names_in_subfolders_and_lists_folders() {
    let folder = folder_with_files(&[
        ("main.rs", ""),
        ("src/f1.rs", ""),
        ("src/deep/f1.rs", ""),
        ("src/[id]/page.tsx", ""),
    ]);
    let (host, host_folder) = (host_in_folder(folder.path()), folder.path().to_owned());
    let glob = |arguments: Value| {
        let told = call_tool(&host, "glob_files", arguments);
        let mut paths: Vec<String> =
            listed_names(&told, "files", "path").into_iter().map(str::to_owned).collect();
        paths.sort();
        (paths.join(" "), told["note"].as_str().unwrap_or_default().to_owned())
    };
    let (paths, note) = glob(json!({ "pattern": "f1.rs" }));
    assert_eq!(paths, "src/deep/f1.rs src/f1.rs");
    assert!(note.contains("`**/f1.rs`"), "{note}");
    let (paths, note) = glob(json!({ "pattern": "*.rs" }));
    assert_eq!(
        (paths.as_str(), note.as_str()),
        ("main.rs", "2 more in subfolders match `**/*.rs`")
    );
    for pattern in ["src", "src/", "./src/"] {
        assert_eq!(glob(json!({ "pattern": pattern })).0, "src/[id]/ src/deep/ src/f1.rs");
    }
    let here = ("main.rs src/".to_owned(), "`.` is a folder: these are its contents".to_owned());
    assert_eq!(glob(json!({ "pattern": "." })), here);
    assert_eq!(glob(json!({ "pattern": "**/", "root": "src" })).0, "[id]/ deep/");
    assert_eq!(glob(json!({ "pattern": "**/d*", "kind": "folders" })).0, "src/deep/");
    assert_eq!(glob(json!({ "pattern": "*", "kind": "all" })).0, "main.rs src/");
    assert_eq!(
        glob(json!({ "pattern": "src/[id]/page.tsx" })),
        ("src/[id]/page.tsx".into(), String::new())
    );
    assert_eq!(glob(json!({ "pattern": "./main.rs" })).0, "main.rs");
    use std::os::unix::ffi::OsStrExt as _;
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9.tx");
    fs::write(host_folder.join(odd), "odd").unwrap();
    let (paths, note) = glob(json!({ "pattern": "*.tx" }));
    assert!(paths == "caf\u{FFFD}.tx" && note.contains("not UTF-8"), "{paths} {note}");
    for output_mode in ["content", "files_with_matches", "count"] {
        let found = call_tool(
            &host,
            "grep_content",
            json!({ "pattern": "odd", "output_mode": output_mode }),
        );
        assert!(found["note"].as_str().unwrap().contains("not UTF-8"), "{found}");
    }
    let page = json!({ "pattern": "**/*.rs", "max_results": 1, "offset": 2 });
    let page = call_tool(&host, "glob_files", page);
    assert_eq!(
        (&page["returned"], &page["total"], &page["next_offset"]),
        (&json!(1), &json!(3), &Value::Null)
    );
}

#[test]
fn file_glob_accepts_several_patterns_and_hidden_files_are_opt_in() {
    let folder = folder_with_files(&FILES);
    let host = host_in_folder(folder.path());
    let files = |arguments: Value| {
        let told = call_tool(&host, "grep_content", arguments);
        listed_names(&told, "matches", "file").join(" ")
    };
    let any = json!({ "pattern": "MOON", "case_sensitive": false });
    let with = |key: &str, value: Value| {
        let mut arguments = any.clone();
        arguments[key] = value;
        arguments
    };
    assert_eq!(files(any.clone()), "src/a.py src/b.PY");
    assert_eq!(files(with("file_glob", json!("*.PY"))), "src/b.PY");
    assert_eq!(files(with("file_glob", json!(["*.PY", "x"]))), "src/b.PY");
    assert_eq!(files(with("include_hidden", json!(true))), ".hidden.py src/a.py src/b.PY");
    assert_eq!(files(with("path", json!("node_modules/x.py"))), "node_modules/x.py");
    assert_eq!(files(with("path", json!("src"))), "src/a.py src/b.PY");
}

#[test]
fn settings_control_exclusions_and_result_limits() {
    let folder = folder_with_files(&FILES);
    let host = host_in_folder(folder.path()).with_config(json!({
        "exclude_patterns": ["src"], "include_patterns": ["build"], "max_results": 1,
        "max_file_size_kb": 1,
    }));
    fs::write(folder.path().join("large.py"), "moon ".repeat(1000)).unwrap();
    let told = call_tool(&host, "grep_content", json!({ "pattern": "moon" }));
    assert_eq!(listed_names(&told, "matches", "file"), ["build/keep.py"]);
    assert_eq!(told["skipped_large"], 1);
    let found = call_tool(&host, "glob_files", json!({ "pattern": "**/*.py" }));
    assert_eq!((&found["total"], &found["returned"]), (&json!(2), &json!(1)));
    let way = "name the folder, or include_ignored unless the user's exclude_patterns name it";
    for (name, excluded) in [("include_hidden", 3), ("include_ignored", 1)] {
        let arguments = json!({ "pattern": "**/*.py", name: true });
        let left_out = call_tool(&host, "glob_files", arguments)["left_out"].clone();
        assert_eq!(left_out["excluded"], excluded, "{left_out}");
        assert!(left_out["to_include"].as_str().unwrap().ends_with(way), "{left_out}");
    }
}

#[test]
fn glob_lists_the_newest_files_first() {
    let folder = folder_with_files(&FILES);
    let at = |path: &str, seconds: u64| {
        let file = fs::File::options().write(true).open(folder.path().join(path)).unwrap();
        let moment = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        file.set_modified(moment).unwrap();
    };
    at("src/a.py", 1_000_000_000);
    at("src/b.PY", 1_100_000_000);
    at(".hidden.py", 1);
    let host = host_in_folder(folder.path());
    let told = call_tool(&host, "glob_files", json!({ "pattern": "*.{py,PY}", "root": "src" }));
    let expected = json!({
        "files": [{ "path": "b.PY" }, { "path": "a.py" }],
        "total": 2, "returned": 2, "truncated": false,
    });
    assert_eq!(told, expected);
    let hidden = json!({ "pattern": "**", "include_hidden": true, "max_results": 2 });
    let told = call_tool(&host, "glob_files", hidden);
    assert_eq!(listed_names(&told, "files", "path"), ["src/b.PY", "src/a.py"]);
    assert_eq!((&told["total"], &told["truncated"]), (&json!(3), &json!(true)));
    let none = call_tool(&host, "glob_files", json!({ "pattern": "*.rs" }));
    assert_eq!((&none["files"], &none["total"]), (&json!([]), &json!(0)));
}

#[test]
fn invalid_searches_are_refused_with_a_reason() {
    let folder = folder_with_files(&FILES);
    let host = host_in_folder(folder.path());
    for (tool, arguments, kind, text) in [
        (
            "glob_files",
            json!({ "pattern": "" }),
            ErrorKind::InvalidArguments,
            "Pattern is required",
        ),
        (
            "glob_files",
            json!({ "pattern": "/etc/*" }),
            ErrorKind::InvalidArguments,
            "Absolute patterns are not supported in glob_files.",
        ),
        (
            "glob_files",
            json!({ "pattern": "C:/x" }),
            ErrorKind::InvalidArguments,
            "Absolute patterns are not supported in glob_files.",
        ),
        (
            "glob_files",
            json!({ "pattern": "*", "root": "/etc" }),
            ErrorKind::PermissionDenied,
            "Path not allowed: /etc",
        ),
        (
            "glob_files",
            json!({ "pattern": "*", "root": "nope" }),
            ErrorKind::NotFound,
            "Root path does not exist: nope",
        ),
        (
            "glob_files",
            json!({ "pattern": "*", "root": "src/a.py" }),
            ErrorKind::InvalidArguments,
            "Root path is not a directory: src/a.py",
        ),
        (
            "grep_content",
            json!({ "pattern": "(a" }),
            ErrorKind::InvalidArguments,
            "Invalid regex pattern: unclosed group",
        ),
        (
            "grep_content",
            json!({ "pattern": "((a{1000}){1000}){1000}" }),
            ErrorKind::InvalidArguments,
            "Invalid regex pattern: it becomes too large",
        ),
        (
            "grep_content",
            json!({ "pattern": "a", "path": "nope" }),
            ErrorKind::NotFound,
            "Path does not exist: nope",
        ),
        (
            "grep_content",
            json!({ "pattern": "a", "file_glob": "/etc/*" }),
            ErrorKind::InvalidArguments,
            "file_glob patterns must be relative, not absolute paths.",
        ),
    ] {
        let error = call_error(&host, tool, arguments.clone());
        assert_eq!((error.kind, error.message.as_str()), (kind, text), "{arguments}");
    }
}

#[test]
fn excluded_files_are_counted_and_can_be_included() {
    let folder = folder_with_files(&FILES);
    let host = host_in_folder(folder.path());
    fs::write(folder.path().join(".gitignore"), "src\n").unwrap();
    let find = |more: Value| {
        let mut arguments = json!({ "pattern": "**/*.py" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let told = call_tool(&host, "glob_files", arguments);
        (told["total"].as_u64().unwrap(), told["left_out"].clone())
    };
    let left_out = json!({
        "ignored": 1, "hidden": 3, "excluded": 2,
        "to_include": "include_ignored; include_hidden; include_ignored, or name the folder",
    });
    assert_eq!(find(json!({})), (0, left_out));
    let left_out = json!({ "hidden": 3, "to_include": "include_hidden" });
    assert_eq!(find(json!({ "include_ignored": true })), (3, left_out));
    let all = json!({ "include_ignored": true, "include_hidden": true });
    assert_eq!(find(all), (5, Value::Null));
    fs::create_dir(folder.path().join(".git")).unwrap();
    let told = call_tool(&host, "grep_content", json!({ "pattern": "moon" }));
    assert_eq!(listed_names(&told, "matches", "file"), ["build/keep.py", "node_modules/x.py"]);
    assert_eq!(told["left_out"]["ignored"], 1);
}

jaato_plugin_testkit::conformance!(tool_filesystem_query: tool);
