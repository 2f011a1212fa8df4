//! Tests of `findAndReplace`.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::ErrorKind;
use jaato_plugin_testkit::{FakeServiceReply, FakeStream};

use crate::support::EditFixture;

fn replace_fixture() -> EditFixture {
    EditFixture::new()
        .with_file("src/a.py", "foo = 1\r\nfoo(foo)\r\n")
        .with_file("src/b.py", "bar\n")
        .with_file("src/c.bin", b"foo\0foo")
        .with_file("node_modules/d.py", "foo\n")
        .with_file("ignored.py", "foo\n")
        .with_file(".gitignore", "ignored.py\n")
}

fn run_replace(desk: &EditFixture, mut arguments: Value) -> Value {
    arguments["paths"] = json!("**/*");
    desk.call_tool("findAndReplace", arguments)
}

#[test]
fn matches_are_replaced_counted_and_shown() {
    let desk = replace_fixture();
    let arguments = json!({ "pattern": r"foo(\(?)", "replacement": r"moon\1" });
    let mut dry = arguments.clone();
    dry["dry_run"] = json!(true);
    let told = run_replace(&desk, dry);
    assert_eq!(desk.file_text("src/a.py"), "foo = 1\r\nfoo(foo)\r\n");
    let result = run_replace(&desk, arguments);
    assert_eq!(desk.file_text("src/a.py"), "moon = 1\r\nmoon(moon)\r\n");
    assert_eq!(
        (desk.file_text("ignored.py"), desk.file_text("node_modules/d.py")),
        ("foo\n".into(), "foo\n".into())
    );
    let expected = json!([{
        "path": "src/a.py", "match_count": 3, "preview": [
            { "line": 1, "before": "foo = 1", "after": "moon = 1" },
            { "line": 2, "before": "foo(foo)", "after": "moon(moon)" },
        ],
    }]);
    assert_eq!((&told["matches_by_file"], &result["matches_by_file"]), (&expected, &expected));
    assert_eq!((&result["total_matches"], &result["lines_matched"]), (&json!(3), &json!(2)));
    assert_eq!((&result["files_affected"], &result["dry_run"]), (&json!(1), &json!(false)));
    desk.call_tool("undoFileChange", json!({ "path": "src/a.py" }));
    assert_eq!(desk.file_text("src/a.py"), "foo = 1\r\nfoo(foo)\r\n");
}

#[test]
fn literal_patterns_and_several_globs_are_accepted() {
    let desk = replace_fixture();
    let arguments =
        json!({ "pattern": "foo(foo)", "replacement": "$1", "paths": ["**/*.py", "src/a.*"] });
    let result = desk.call_tool("findAndReplace", arguments.clone());
    assert_eq!((&result["total_matches"], &result["files_searched"]), (&json!(0), &json!(2)));
    let hint = "the expression matches nothing, but 1 files contain it as plain text: use \
                `literal` to replace that";
    assert_eq!(result["hint"], hint);
    let mut literal = arguments;
    literal["literal"] = json!(true);
    assert_eq!(desk.call_tool("findAndReplace", literal)["total_matches"], 1);
    assert_eq!(desk.file_text("src/a.py"), "foo = 1\r\n$1\r\n");
    let wrong = json!({ "pattern": "foo(", "replacement": "", "paths": "**/*" });
    let error = desk.call_refused_tool("findAndReplace", wrong);
    assert_eq!(error.hint.as_deref(), Some("`literal` takes both as plain text"));
}

#[test]
fn ignored_files_are_changed_only_on_request() {
    let desk = replace_fixture();
    run_replace(&desk, json!({ "pattern": "foo", "replacement": "x", "include_ignored": true }));
    assert_eq!(
        (desk.file_text("ignored.py"), desk.file_text("node_modules/d.py")),
        ("x\n".into(), "foo\n".into())
    );
}

#[test]
fn protected_file_is_left_out_and_reported() {
    let desk =
        EditFixture::new().with_file("AGENTS.md", "foo\n").with_service("files.find", || {
            let pages = FakeStream::open();
            let file = json!({ "path": "AGENTS.md", "size": 4, "protected": true });
            pages.push_frame(&json!({ "files": [file], "count": 1 }), b"");
            pages.finish();
            FakeServiceReply::StreamWith(json!({}), pages)
        });
    let arguments = json!({ "pattern": "foo", "replacement": "x", "paths": "AGENTS.md" });
    let result = desk.call_tool("findAndReplace", arguments);
    assert_eq!(result["left_out_protected"], json!(["AGENTS.md"]), "{result}");
    assert!(result["left_out_hint"].as_str().unwrap().contains("a separate call"), "{result}");
    assert_eq!(desk.file_text("AGENTS.md"), "foo\n");
}

#[test]
fn gitignore_decides_which_files_change_in_a_repository() {
    let desk = replace_fixture().with_file(".git/HEAD", "foo\n").with_file("venv/e.py", "foo\n");
    let desk = desk.with_file(".gitignore", "venv\n").with_file(".jaato/f.py", "foo\n");
    run_replace(&desk, json!({ "pattern": "foo", "replacement": "x" }));
    let told = |name: &str| desk.file_text(name);
    assert_eq!((told("node_modules/d.py"), told("venv/e.py")), ("x\n".into(), "foo\n".into()));
    run_replace(&desk, json!({ "pattern": "foo", "replacement": "x", "include_ignored": true }));
    for name in ["venv/e.py", ".git/HEAD", ".jaato/f.py"] {
        assert_eq!(told(name), "foo\n", "{name}");
    }
}

#[test]
fn replace_without_matches_changes_nothing() {
    let desk = replace_fixture();
    let result = run_replace(&desk, json!({ "pattern": "nothing", "replacement": "" }));
    assert_eq!((&result["success"], &result["total_matches"]), (&json!(true), &json!(0)));
    assert_eq!(desk.call_tool("listBackups", json!({}))["count"], 0);
    let bad = json!({ "pattern": "(", "replacement": "", "paths": "*" });
    let error = desk.call_refused_tool("findAndReplace", bad.clone());
    assert!(error.message.starts_with("Invalid regex pattern: "), "{error:?}");
    assert_eq!(
        desk.preview_call("findAndReplace", bad).refusal.unwrap().kind,
        ErrorKind::InvalidArguments
    );
}

#[test]
fn preview_shows_the_replacements() {
    let desk = replace_fixture();
    let preview = desk.preview_call(
        "findAndReplace",
        json!({ "pattern": "foo", "replacement": "x", "paths": "src/*" }),
    );
    assert_eq!(preview.text, "Find and replace: 3 matches in 1 files (+2, -2 lines)");
    assert_eq!(preview.changes[0].new.as_deref(), Some("x = 1\r\nx(x)\r\n"));
}

#[test]
fn hard_links_and_linked_folders_are_changed_once() {
    let desk = EditFixture::new()
        .with_file("a.txt", "foo\n")
        .with_file("one.txt", "foo 1\n")
        .with_file("real/n", "foo");
    std::fs::hard_link(desk.path("one.txt"), desk.path("two.txt")).unwrap();
    std::os::unix::fs::symlink("real", desk.path("lnd")).unwrap();
    let arguments = json!({ "pattern": "foo", "replacement": "foofoo", "paths": "*.txt" });
    desk.call_tool("findAndReplace", arguments);
    let texts = || ["a.txt", "one.txt", "two.txt"].map(|name| desk.file_text(name));
    assert_eq!(texts(), ["foofoo\n", "foofoo 1\n", "foofoo 1\n"]);
    desk.call_tool("undoFileChange", json!({ "path": "two.txt" }));
    assert_eq!(texts(), ["foo\n", "foo 1\n", "foo 1\n"]);
    let both = json!({ "pattern": "foo", "replacement": "x", "paths": ["lnd/*", "real/*"] });
    assert_eq!(desk.call_tool("findAndReplace", both)["files_affected"], 1);
    assert_eq!(desk.file_text("real/n"), "x");
}

#[test]
fn result_reports_files_that_were_not_searched() {
    use std::os::unix::ffi::OsStrExt as _;
    let desk = EditFixture::new().with_file("c.bin", b"foo\0foo").with_file("a.txt", "foo\n");
    let odd = desk.path("").join(std::ffi::OsStr::from_bytes(b"zo\xE8.txt"));
    std::fs::write(&odd, "foo\n").unwrap();
    let result = run_replace(&desk, json!({ "pattern": "foo", "replacement": "x" }));
    assert_eq!((&result["files_searched"], &result["files_binary"]), (&json!(1), &json!(1)));
    let text = "cannot read `zo\u{FFFD}.txt`: its name is not UTF-8";
    assert_eq!(result["files_unreadable"], json!([text]));
    assert_eq!(
        (std::fs::read_to_string(&odd).unwrap().as_str(), &result["hint"]),
        ("foo\n", &Value::Null)
    );
    let exact = json!({ "pattern": "foo", "replacement": "x", "paths": "c.bin" });
    let result = desk.call_tool("findAndReplace", exact);
    assert_eq!((&result["files_binary"], &result["hint"]), (&json!(1), &Value::Null));
    let none = json!({ "pattern": "foo", "replacement": "x", "paths": ["*.rs", "b/*"] });
    let result = desk.call_tool("findAndReplace", none);
    assert_eq!(
        (&result["files_searched"], &result["hint"]),
        (&json!(0), &json!("no file matches `paths`"))
    );
}
