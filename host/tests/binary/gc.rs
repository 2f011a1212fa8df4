//! Tests a context that fills up: what the gc removes, what is sent as head and tail, and gcs that
//! fail.

use serde_json::{Value, json};

use crate::cli::cli_house;
use crate::house;
use crate::support::openai::{openai_command, ship_openai};
use crate::support::server::{Answer, BodyStep, Server, choice_events};
use crate::support::{House, Output, fixtures, library_name};

/// A window that a few short messages fill.
const SMALL_WINDOW: &str = "[models.\"scripted/test\"]\ncontext_limit = 1000\n";

fn ship_gc(house: &House) {
    let built = fixtures::test_house().unwrap().join("plugins").join(library_name("gc_truncate"));
    house.ship(&built);
}

/// Returns an answer to a request with this many messages, reporting the tokens so far.
fn text_answer(text: &str, messages: usize, tokens: u64) -> Value {
    json!({
        "expect": { "messages": messages },
        "steps": [{ "text": text }],
        "usage": { "prompt_tokens": tokens, "output_tokens": 1 },
    })
}

fn overflow_answer() -> Value {
    let error = json!({ "kind": "context_overflow", "message": "too many tokens" });
    json!({ "steps": [{ "fail": error }] })
}

fn run_chat(house: &House, lines: &str) -> Output {
    house.command(&["chat"]).input(lines).run()
}

/// Returns the gc's lines on standard error.
fn gc_notices(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter(|line| line.starts_with("gc ")).collect()
}

#[test]
fn gc_drops_old_turns_at_the_threshold_with_one_line_of_output() {
    let house = house!(ship_gc);
    house.set_script(&json!({ "answers": [
        text_answer("one", 1, 100), text_answer("two", 3, 500), text_answer("three", 5, 850), text_answer("four", 3, 200),
    ] }));
    house.configure_more(SMALL_WINDOW);
    house.configure_more("[gc]\nplugin = \"truncate\"\npreserve_recent_turns = 1\n");
    let output = run_chat(&house, "a\nb\nc\nd\n").code(0);
    assert_eq!(output.stdout, "one\ntwo\nthree\nfour\n");
    let lines = gc_notices(&output);
    assert_eq!(lines.len(), 1, "{output}");
    assert!(lines[0].starts_with("gc truncate: old messages left out: 4, about 8"), "{output}");
    let note = "Context cleaned: removed 2 old turns, kept 1 recent turns.";
    assert!(lines[0].ends_with(note), "{output}");
    house.assert_no_processes();
}

#[test]
fn recent_turns_up_to_the_configured_number_are_kept() {
    let house = house!(ship_gc);
    house.set_script(&json!({ "answers": [
        text_answer("one", 1, 100), text_answer("two", 3, 500), text_answer("three", 5, 850), text_answer("four", 7, 900),
    ] }));
    house.configure_more(SMALL_WINDOW);
    let output = run_chat(&house, "a\nb\nc\nd\n").code(0);
    assert_eq!(gc_notices(&output), Vec::<&str>::new(), "three finished turns are fewer than five");
}

#[test]
fn request_with_a_context_overflow_is_sent_again_after_a_gc() {
    let house = house!(ship_gc);
    house.set_script(&json!({ "answers": [
        text_answer("one", 1, 100), text_answer("two", 3, 200), overflow_answer(), text_answer("three", 1, 50),
    ] }));
    let output = run_chat(&house, "a\nb\nc\n").code(0);
    assert_eq!(output.stdout, "one\ntwo\nthree\n");
    let [line] = gc_notices(&output)[..] else { panic!("{output}") };
    assert!(line.starts_with("gc truncate: old messages left out: 4, "), "{output}");
}

#[test]
fn permanent_context_overflow_fails_with_a_hint() {
    let house = house!(ship_gc);
    house.set_script(&json!({ "answers": [overflow_answer()], "repeat_last": true }));
    let output = house.run(&["run", "hello"]).code(5);
    assert!(
        output.stderr.contains("error: too many tokens\nhint: send less text, or use a model"),
        "{output}"
    );
}

#[test]
fn megabyte_prompt_is_sent_as_head_and_tail() {
    let house = house!();
    let gap = " bytes are left out here; the whole text is in the file `";
    house.set_script(&json!({ "answers": [
        { "expect": { "prompt": gap, "messages": 1 },
          "steps": [{ "call": { "name": "get_environment", "arguments": { "aspect": "os" } } }] },
        { "expect": { "prompt": gap, "messages": 3 }, "steps": [{ "text": "read" }] },
    ] }));
    house.configure_more("[models.\"scripted/test\"]\ncontext_limit = 8192\n");
    let text = format!("begin {} end", "0123456789 ".repeat(90_000));
    let output = house.command(&["run", "what is this?"]).input(text).run().code(0);
    assert_eq!(output.stdout, "read\n");
    let [line] = gc_notices(&output)[..] else { panic!("{output}") };
    assert!(line.starts_with("gc host: messages shortened: 1, about 2"), "{output}");
    assert!(line.contains("a text of 990"), "{output}");
    house.assert_no_processes();
}

/// Returns the file that a gc event names.
#[track_caller]
fn file_in_event(event: &str) -> String {
    let event: Value = serde_json::from_str(event).unwrap();
    let note = event["note"].as_str().unwrap_or_else(|| panic!("{event}"));
    let (_, file) = note.split_once("in the file `").unwrap_or_else(|| panic!("{note}"));
    file.split_once('`').unwrap().0.to_owned()
}

#[test]
fn file_of_a_truncated_prompt_is_complete_and_removed_with_an_unsaved_session() {
    let house = house!();
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": "reading" }, "hang"] }] }));
    house.configure_more("[models.\"scripted/test\"]\ncontext_limit = 8192\n");
    let text = format!("begin {} end", "0123456789 ü\n".repeat(80_000));
    let input = house.write("task.txt", &text);
    let words = ["run", "--no-save", "--output", "json", "what is this?"];
    let running = house.command(&words).input_file(&input).start();
    let event = running.wait_for("\"event\":\"gc\"");
    running.wait_for("reading");
    let file = file_in_event(&event);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept == format!("what is this?\n\n{text}"), "{} bytes", kept.len());
    running.send_signal("INT");
    running.finish().code(130);
    assert!(!std::path::Path::new(&file).exists(), "{file}");
    house.assert_no_processes();
}

#[test]
fn a_result_that_is_too_large_for_the_window_is_sent_as_head_and_tail() {
    let house = cli_house!();
    ship_openai(&house);
    house.configure_more("[models.\"openai/test\"]\ncontext_limit = 1000\n");
    let said = json!({ "delta": { "content": "read" } });
    let server = Server::start([
        Answer::calls(&[("cli_based_tool", json!({ "command": "seq 2000" }))]),
        Answer::stream(vec![BodyStep::Bytes(choice_events(&[said])), BodyStep::Hang]),
    ]);
    let words =
        ["run", "--no-save", "--yes", "--model", "openai/test", "--output", "json", "hello"];
    let running = openai_command(&house, &server, &words).no_input().start();
    let event: Value = serde_json::from_str(&running.wait_for("\"event\":\"gc\"")).unwrap();
    assert_eq!(event["note"], "the result of `cli_based_tool` is sent as head and tail");
    running.wait_for("\"text\":\"read\"");
    let asked = server.requests()[1].json();
    let sent = asked["messages"].as_array().unwrap().last().unwrap();
    let result: Value = serde_json::from_str(sent["content"].as_str().unwrap()).unwrap();
    let shown = result["stdout"].as_str().unwrap();
    assert_eq!(result["returncode"], 0, "short values stay");
    let file = std::path::Path::new(result["output_file"].as_str().unwrap());
    let whole = std::fs::read_to_string(file).unwrap();
    let numbers: String = (1..=2000).map(|number| format!("{number}\n")).collect();
    assert_eq!(whole, numbers);
    let (head, rest) = shown.split_once("\n[… ").unwrap();
    let (note, tail) = rest.split_once(" …]\n").unwrap();
    let left_out = numbers.len() - head.len() - tail.len();
    assert!(note.starts_with(&format!("{left_out} bytes left out; ")), "{note}");
    assert!(numbers.starts_with(head) && numbers.ends_with(tail), "{result:#}");
    running.send_signal("INT");
    running.finish().code(130);
    assert!(!file.exists(), "{}", file.display());
    house.assert_no_processes();
}

#[test]
fn missing_gc_plugin_is_reported_once_and_the_session_continues() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        text_answer("one", 1, 100), text_answer("two", 3, 900), text_answer("three", 5, 910), text_answer("four", 7, 920),
    ] }));
    house.configure_more(SMALL_WINDOW);
    let output = run_chat(&house, "a\nb\nc\nd\n").code(0);
    let line = "gc gc-truncate: no plugin `gc-truncate`, which `[gc] plugin` names, was found hint: \
                no gc plugin was found: `jaato doctor` shows the plugin folders";
    assert_eq!(gc_notices(&output), [line], "{output}");
}

#[test]
fn disabled_or_wrong_gc_plugin_is_reported_with_a_fix() {
    let house = house!(ship_gc);
    let script = json!({ "answers": [text_answer("one", 1, 900), text_answer("two", 3, 920)] });
    let check = |more: &str, expected: &str| {
        house.set_script(&script);
        house.configure_more(SMALL_WINDOW);
        house.configure_more(more);
        let output = run_chat(&house, "a\nb\n").code(0);
        assert_eq!(gc_notices(&output), [expected], "{output}");
    };
    check(
        "[plugins]\ndisabled = [\"gc-truncate\"]\n",
        "gc truncate: the gc `gc-truncate` cannot be used: it is disabled by \
         `[plugins] disabled` hint: jaato plugin enable gc-truncate",
    );
    check(
        "[gc]\nplugin = \"tool-environment\"\n",
        "gc environment: plugin `tool-environment`, which `[gc] plugin` names, is not a gc hint: \
         known gcs are: gc-truncate",
    );
}

#[test]
fn gc_plugin_that_panics_hangs_or_misbehaves_does_not_end_the_chat() {
    let house = house!(ships "probe");
    let check = |what: &str, expected: &str| {
        house.set_script(
            &json!({ "answers": [text_answer("one", 1, 900), text_answer("two", 3, 910)] }),
        );
        house.configure_more(SMALL_WINDOW);
        house.configure_more("[gc]\nplugin = \"fixture-probe\"\n");
        if expected.contains("longer than") {
            house.configure_more("deadline_ms = 200\n");
        }
        let output = run_chat(&house, &format!("{what}\nand on\n")).code(0);
        assert_eq!(output.stdout, "one\ntwo\n", "{output}");
        let [line] = gc_notices(&output)[..] else { panic!("{output}") };
        assert!(line.starts_with("gc fixture-probe: ") && line.contains(expected), "{output}");
        house.assert_no_processes();
    };
    check("gc: panic", "boom in a plan");
    check("gc: hang", "the gc took longer than 1 s for its plan");
    check("gc: block", "the gc took longer than 1 s for its plan");
    check(
        "gc: all",
        "the gc's plan is not valid: it drops message 2, which belongs to the last turn",
    );
    check("gc: fail", "the count is 1");
}

#[test]
fn gc_setting_out_of_range_is_an_error_that_names_the_key() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    house.configure_more("[gc]\nthreshold_percent = 101\n");
    let output = house.run(&["run", "hello"]).code(3);
    let wants = "`gc.threshold_percent` takes a number from 1 to 100, but is the number `101`";
    assert!(output.stderr.contains(wants) || output.stderr.contains("but is `101`"), "{output}");
}

#[test]
fn lists_say_that_a_plugin_is_a_gc() {
    let house = house!(ship_gc);
    let output = house.run(&["plugin", "list"]).code(0);
    let line = output.stdout.lines().find(|line| line.starts_with("gc-truncate ")).unwrap();
    assert!(line.ends_with("  gc truncate"), "{output}");
    let output = house.run(&["plugin", "show", "gc-truncate"]).code(0);
    assert!(output.stdout.contains("  gc          truncate\n"), "{output}");
}

#[test]
fn gc_settings_are_reported_only_if_a_usable_gc_exists() {
    let house = house!();
    let told = |more: &str| {
        let call =
            json!({ "call": { "name": "get_environment", "arguments": { "aspect": "context" } } });
        house.set_script(
            &json!({ "answers": [{ "steps": [call] }, { "steps": [{ "text": "done" }] }] }),
        );
        house.configure_more(more);
        let output = house.run(&["run", "--output", "json", "look"]).code(0);
        let events = output.json_lines();
        let is_result = |event: &&Value| event["event"] == "tool_call_finished";
        let result = events.iter().find(is_result).unwrap_or_else(|| panic!("{output}"));
        result["result"]["gc"].clone()
    };
    assert_eq!(told(""), Value::Null, "no gc is installed");
    ship_gc(&house);
    let there =
        json!({ "threshold_percent": 80.0, "auto_trigger": true, "preserve_recent_turns": 5 });
    assert_eq!(told(""), there);
    let off = "[plugins]\ndisabled = [\"gc-truncate\"]\n";
    assert_eq!(told(off), Value::Null, "the gc is disabled");
    let none = "[gc]\nplugin = \"tool-environment\"\n";
    assert_eq!(told(none), Value::Null, "the named plugin is not a gc");
}
