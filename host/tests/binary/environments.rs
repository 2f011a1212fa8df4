//! Tests execution environments for tools and users: files, programs that outlive a call, and their
//! end.

use std::time::Instant;

use serde_json::{Value, json};

use crate::cli::{house_with_cli, shell_arguments};
use crate::support::command::DEADLINE;
use crate::support::{
    House, NOBODY, can_start_as_nobody, fixture, fixtures, is_root, library_name, skip,
};

/// Returns an installation with the environment, and tools that use it.
fn set_up_house() -> Option<House> {
    let house = house_with_cli()?;
    house.ship(&fixture("asks"));
    Some(house)
}

/// Returns a batch line that calls a service.
fn service_call_line(operation: &str, request: Value) -> String {
    call_line("ask_service", json!({ "operation": operation, "request": request }))
}

fn call_line(tool: &str, arguments: Value) -> String {
    json!({ "tool": tool, "args": arguments }).to_string()
}

/// Runs calls in one session.
#[track_caller]
fn run_batch(house: &House, lines: &[String]) -> Vec<Value> {
    let input = lines.join("\n");
    house.command(&["call", "--batch"]).input(input).run().json_lines()
}

fn line_answer(line: &Value) -> &Value {
    assert!(line.get("error").is_none(), "{line}");
    &line["result"]["answer"]
}

#[test]
fn tools_read_write_edit_and_find_files() {
    let Some(house) = set_up_house() else { return };
    let write = json!({
        "operation": "files.write",
        "request": { "path": "src/a.txt", "parents": true },
        "bytes": "one\r\ntwo\r\n",
    });
    let told = run_batch(
        &house,
        &[
            call_line("ask_service", write),
            service_call_line(
                "files.edit",
                json!({ "path": "src/a.txt", "edits": [{ "old": "two", "new": "2" }] }),
            ),
            service_call_line("files.read_text", json!({ "path": "src/a.txt" })),
            call_line("walk_tree", json!({ "path": "src" })),
            call_line("read_pieces", json!({ "path": "src/a.txt" })),
        ],
    );
    assert_eq!(line_answer(&told[0])["size"], 10);
    assert_eq!(line_answer(&told[1])["replaced"], json!([1]));
    assert_eq!(line_answer(&told[2])["text"], "one\r\n2\r\n");
    assert_eq!(told[3]["result"]["paths"], json!(["a.txt"]));
    assert_eq!(told[4]["result"]["bytes"], 8);
    let written = std::fs::read(house.workspace().join("src/a.txt")).unwrap();
    assert_eq!(written, b"one\r\n2\r\n");
}

#[test]
fn stream_answer_contains_only_a_handle_and_no_open_file() {
    let Some(house) = set_up_house() else { return };
    house.write("workspace/a.txt", "moon");
    let path = json!({ "path": "a.txt" });
    let told = run_batch(
        &house,
        &[
            service_call_line("files.read_stream", path.clone()),
            service_call_line("files.write_stream", path),
        ],
    );
    for (line, expected) in told.iter().zip([["size", "handle"], ["file", "handle"]]) {
        let keys: Vec<_> = line_answer(line).as_object().unwrap().keys().collect();
        assert_eq!(keys, expected, "{line}");
    }
}

#[test]
fn path_outside_the_workspace_is_refused_with_the_allowed_folders() {
    let Some(house) = set_up_house() else { return };
    house.write("secret.txt", "hidden");
    std::os::unix::fs::symlink("../secret.txt", house.workspace().join("link")).unwrap();
    let told = run_batch(
        &house,
        &[
            service_call_line("files.read_text", json!({ "path": "../secret.txt" })),
            service_call_line("files.read_text", json!({ "path": "link" })),
            call_line("read_pieces", json!({ "path": "/etc/passwd" })),
            service_call_line("files.delete", json!({ "path": "../secret.txt" })),
        ],
    );
    let allowed = house.workspace().display().to_string();
    for line in &told {
        assert_eq!(line["error"]["kind"], "permission_denied", "{line}");
        let text = line["error"].to_string();
        assert!(text.contains(&allowed) && !text.contains("hidden"), "{line}");
    }
    assert!(house.workspace().join("../secret.txt").exists());
}

#[test]
fn large_file_is_streamed_and_unfinished_writes_leave_no_file() {
    let Some(house) = set_up_house() else { return };
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    std::fs::write(house.workspace().join("large"), &bytes).unwrap();
    let pieces = vec!["x".repeat(100_000); 3];
    let told = run_batch(
        &house,
        &[
            call_line("read_pieces", json!({ "path": "large" })),
            call_line("write_pieces", json!({ "path": "new", "pieces": pieces, "finish": true })),
            call_line("write_pieces", json!({ "path": "new", "pieces": ["y"], "finish": false })),
            call_line("write_pieces", json!({ "path": "other", "pieces": ["y"], "finish": false })),
            call_line("read_pieces", json!({ "path": "large", "whole": true })),
        ],
    );
    let read = &told[0]["result"];
    let sum = bytes.iter().fold(0_u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    assert_eq!((&read["bytes"], &read["sum"]), (&json!(bytes.len()), &json!(sum)), "{read}");
    assert!(read["largest"].as_u64().unwrap() <= 64 * 1024, "{read}");
    let whole = &told[4]["result"];
    assert_eq!((&whole["bytes"], &whole["sum"]), (&json!(bytes.len()), &json!(sum)), "{whole}");
    assert_eq!(whole["largest"], 1024 * 1024, "{whole}");
    assert_eq!(told[1]["result"]["size"], 300_000);
    let written = std::fs::read_to_string(house.workspace().join("new")).unwrap();
    assert_eq!(written, "x".repeat(300_000));
    let names = std::fs::read_dir(house.workspace()).unwrap();
    let names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
    assert!(
        names.iter().all(|name| name == "new" || name == "large" || name == ".git"),
        "{names:?}"
    );
}

#[test]
fn a_program_outlives_its_call_and_ends_with_the_session() {
    let Some(house) = set_up_house() else { return };
    let program = json!({ "program": "sh", "args": ["-c", "echo begun; read line; echo got $line; exec sleep 300"], "stdin": "piped" });
    let write =
        json!({ "operation": "process.write", "request": { "process": 1 }, "bytes": "moon\n" });
    let told = run_batch(
        &house,
        &[
            service_call_line("process.start", program),
            call_line("ask_service", write),
            service_call_line("process.wait", json!({ "process": 1, "timeout_ms": 50 })),
            service_call_line("process.list", Value::Null),
            service_call_line("process.signal", json!({ "process": 7, "signal": "kill" })),
        ],
    );
    assert_eq!(line_answer(&told[0])["process"], 1);
    assert_eq!(line_answer(&told[2]), &json!({}), "the process is still running");
    assert_eq!(line_answer(&told[3])[0]["process"], 1);
    assert_eq!(told[4]["error"]["kind"], "not_found");
    house.assert_no_processes();
}

#[test]
fn later_call_can_read_output_of_a_process_that_outlived_its_call() {
    let Some(house) = set_up_house() else { return };
    // One pipe for both lines, because of two pipes either may be read first.
    let begin = json!({ "line": "exec >&2; echo begun; read line; echo got $line; exit 3" });
    let look = json!({ "number": 1, "input": "moon\n", "from": 2 });
    let told =
        run_batch(&house, &[call_line("start_program", begin), call_line("read_program", look)]);
    assert_eq!(told[0]["result"]["number"], 1, "{told:?}");
    let expected = json!({
        "code": 3, "from": 2, "printed": 15, "text": "gun\ngot moon\n", "is_listed": true,
        "left": 0,
    });
    assert_eq!(told[1]["result"], expected);
    house.assert_no_processes();
}

#[test]
fn a_tool_that_needs_a_shell_is_not_offered_where_there_is_none() {
    let offered =
        |tools: &[&str]| json!({ "expect": { "tools": tools }, "steps": [{ "text": "done" }] });
    let cli = |house: &House| {
        house.ship(&fixtures::test_house().unwrap().join("plugins").join(library_name("tool_cli")));
    };
    let Some(bare) = House::new() else { return };
    cli(&bare);
    bare.set_script(&json!({ "answers": [offered(&["get_environment"])] }));
    bare.run(&["run", "--yes", "go"]).code(0);
    let Some(house) = house_with_cli() else { return };
    house.set_script(&json!({ "answers": [offered(&["cli_based_tool", "get_environment"])] }));
    house.run(&["run", "--yes", "go"]).code(0);
    // An environment without any optional parts.
    house.ship(&fixture("rooms"));
    house.set_script(&json!({ "answers": [offered(&["found_at_start", "get_environment"])] }));
    house.run(&["run", "--environment", "rooms", "--yes", "go"]).code(0);
}

#[test]
fn failed_environment_cleanup_is_reported_and_keeps_the_exit_code() {
    let Some(house) = set_up_house() else { return };
    house.ship(&fixture("rooms"));
    house.configure_more("[plugins.fixture-rooms]\nlocked = true\n");
    let told = house
        .command(&["call", "--environment", "rooms", "--batch"])
        .input(service_call_line("environment.describe", Value::Null))
        .run();
    let line = "note: the execution environment `rooms` could not be shut down: the room is locked";
    assert!(told.stderr.contains(line), "{told}");
    assert_eq!(told.code, 0, "the request succeeds: {told}");
    house.assert_no_processes();
}

#[test]
fn temporary_folder_that_cannot_be_removed_is_reported() {
    let Some(house) = set_up_house() else { return };
    let base = house.workspace().join("tmp");
    std::fs::create_dir(&base).unwrap();
    house.configure_more(&format!(
        "[plugins.environment-local]\ntmp_base_dir = {:?}\n",
        base.display().to_string()
    ));
    // Files in a read-only folder are kept, except for root.
    let lock = "cd tmp/jaato-environment-*; mkdir kept; touch kept/file; chmod 500 kept";
    let command = house.command(&["call", "cli_based_tool", &shell_arguments(lock)]);
    let command = if is_root() {
        if !can_start_as_nobody(&house) {
            return skip("an unprivileged user cannot start the test binary");
        }
        for folder in [house.home(), house.workspace(), base.clone()] {
            std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.without_variable("XDG_RUNTIME_DIR").user(NOBODY)
    } else {
        command
    };
    let told = command.run().code(0);
    let begin = "note: the execution environment `local` could not be shut down: ";
    let line = told.stderr.lines().find(|line| line.starts_with(begin));
    assert!(line.is_some_and(|line| line.contains("jaato-environment-")), "{told}");
}

#[test]
fn temporary_folder_is_removed_after_the_session_and_after_a_killed_host() {
    let Some(house) = set_up_house() else { return };
    let base = house.workspace().join("tmp");
    std::fs::create_dir(&base).unwrap();
    house.configure_more(&format!(
        "[plugins.environment-local]\ntmp_base_dir = {:?}\n",
        base.display().to_string()
    ));
    let left = || std::fs::read_dir(&base).unwrap().count();
    let facts = run_batch(&house, &[service_call_line("environment.describe", Value::Null)]);
    let folder = line_answer(&facts[0])["temporary_directory"].as_str().unwrap().to_owned();
    assert!(folder.starts_with(base.to_str().unwrap()), "{folder}");
    assert_eq!(left(), 0);
    let arguments = shell_arguments("echo begun; sleep 300");
    let running = house.command(&["call", "cli_based_tool", &arguments]).no_input().start();
    running.wait_for_error("begun");
    assert_eq!(left(), 1);
    running.send_signal("KILL");
    running.finish();
    let bound = Instant::now() + DEADLINE;
    loop {
        run_batch(&house, &[service_call_line("environment.describe", Value::Null)]);
        if left() == 0 {
            return;
        }
        assert!(Instant::now() < bound, "the environment is still there");
    }
}

#[test]
fn a_person_lists_shows_and_uses_environments() {
    let Some(house) = set_up_house() else { return };
    let listed = house.run(&["environment", "list", "--json"]).code(0).json();
    let expected = json!([{ "name": "local", "title": "this machine", "plugin": "environment-local", "default": true }]);
    assert_eq!(listed, expected);
    let list = house.run(&["environment", "list"]).code(0);
    assert!(
        list.stdout.contains("local")
            && list.stderr.contains("jaato does not confine commands yet")
    );
    let facts = house.run(&["environment", "show", "--json"]).code(0).json();
    assert_eq!(facts["working_directory"], json!(house.workspace()));
    let shown = house.run(&["environment", "show"]).code(0).stdout;
    assert!(shown.contains("commands can access other folders"), "{shown}");
    let line = "cat; echo error >&2; exit 7";
    let ran = house.command(&["environment", "exec", "--", line]).input(*b"in").run();
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (7, "in", "error\n"));
    let words = ["environment", "exec", "--directory", "/", "--", "echo", "$HOME", "a  b"];
    assert_eq!(house.run(&words).code(0).stdout, "$HOME a  b\n");
    let killed = house.run(&["environment", "exec", "--", "kill -9 $$"]);
    assert_eq!(killed.code, 128 + 9);
    let missing = house.run(&["environment", "exec", "--", "no-such-program", "x"]).code(1);
    assert!(missing.stderr.contains("no-such-program"), "{missing}");
}

#[test]
fn unknown_environment_is_an_error_that_lists_the_known_environments() {
    let Some(house) = set_up_house() else { return };
    let arguments = shell_arguments("true");
    let words = ["call", "--environment", "moon", "cli_based_tool", &arguments];
    let refused = house.run(&words).code(3);
    let expected = "error: no plugin offers the execution environment `moon`\n\
                    hint: known environments are: local; in a checkout, `cargo xtask build-plugins` \
                    builds all shipped ones\n";
    assert_eq!(refused.stderr, expected);
}

#[test]
fn options_of_the_command_line_win_over_the_configuration_for_one_session() {
    let Some(house) = set_up_house() else { return };
    house.configure_more("[plugins.environment-local]\nshell_timeout = 7.0\n");
    let timeout = |words: &[&str]| {
        let shown = house.run(&[&["environment", "show", "--json"], words].concat()).code(0).json();
        shown["shell_timeout_ms"].clone()
    };
    assert_eq!(timeout(&[]), 7000);
    assert_eq!(timeout(&["--environment-option", "shell_timeout=3"]), 3000);
    let options =
        ["--environment-option", "shell_timeout=3", "--environment-option", "enable_tmp_dir=false"];
    assert_eq!(timeout(&options), 3000);
    let words = [&["environment", "show", "--json"][..], &options].concat();
    let shown = house.run(&words).code(0).json();
    assert!(shown.get("temporary_directory").is_none_or(Value::is_null), "{shown}");
    // A setting that no workspace may set, for a user who calls a tool and for one who uses `run`.
    let path = house.workspace().join("sub");
    std::fs::create_dir(&path).unwrap();
    let arguments = shell_arguments("pwd");
    let option = "default_path=sub";
    let words = ["call", "--environment-option", option, "cli_based_tool", &arguments];
    let printed = house.run(&words).code(0).json()["stdout"].as_str().unwrap().to_owned();
    assert!(printed.ends_with("/sub\n"), "{printed}");
    let words = ["environment", "exec", "--environment-option", option, "--", "pwd"];
    assert_eq!(house.run(&words).code(0).stdout, printed);
}

#[test]
fn invalid_environment_options_are_refused_before_anything_runs() {
    let Some(house) = set_up_house() else { return };
    let arguments = shell_arguments("true");
    let refused = |option: &str, code| {
        let words = ["call", "--environment-option", option, "cli_based_tool", &arguments];
        house.run(&words).code(code).stderr
    };
    let expected = "error: the environment `local` has no option `shell_timeot`\n\
                    hint: did you mean `shell_timeout`?\n";
    assert_eq!(refused("shell_timeot=3", 3), expected);
    let wrong = "error: the option `shell_timeout` of the environment `local` is invalid: ";
    let told = refused("shell_timeout=soon", 3);
    assert_eq!(told, format!("{wrong}\"soon\" is not of type \"number\"\n"));
    assert!(refused("shell_timeout=0", 3).starts_with(wrong));
    assert!(refused("shell_timeout", 2).contains("write KEY=VALUE"));
    let words = ["run", "--environment-option", "q=1", "--yes", "go"];
    house.set_script(&json!({ "answers": [] }));
    let told = house.run(&words).code(3).stderr;
    assert!(told.contains("has no option `q`"), "{told}");
}

#[test]
fn without_an_environment_plugin_only_commands_are_refused() {
    let Some(house) = House::new() else { return };
    let plugins = fixtures::test_house().unwrap().join("plugins");
    house.ship(&plugins.join(library_name("tool_cli")));
    let refused = house.run(&["call", "cli_based_tool", &shell_arguments("true")]);
    assert!(refused.stderr.contains("there is no execution environment to run it in"), "{refused}");
    house.run(&["call", "get_environment", r#"{"aspect":"os"}"#]).code(0);
}
