//! Tests hook plugins in the real binary, well behaved and not.

use serde_json::{Value, json};

use crate::house;
use crate::support::answers::text_answer;
use crate::support::command::Output;
use crate::support::{Command, House, fixture, fixtures, library_name};
use crate::terminal::{run_on_terminal, run_shell_on_terminal};

fn keep_text_answer() -> Value {
    json!({ "steps": [{ "call": { "name": "keep_text", "arguments": { "text": "t" } } }] })
}

/// Returns the script of a model that makes one call and must get this result.
fn script_one_call(result: &str) -> Value {
    let told = json!({ "expect": { "tool_result": result }, "steps": [{ "text": "done" }] });
    json!({ "answers": [keep_text_answer(), told] })
}

/// Returns an installation with a plugin that has every hook, configured by settings.
fn house_with_hooks(settings: &str, script: &Value) -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("hooks"));
    house.set_script(script);
    house.configure_more(&format!("[plugins.fixture-hooks]\n{settings}\n"));
    Some(house)
}

#[track_caller]
fn check_call(settings: &str, result: &str) {
    let Some(house) = house_with_hooks(settings, &script_one_call(result)) else { return };
    check_house(&house);
}

#[track_caller]
fn check_house(house: &House) {
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
    house.assert_no_processes();
}

fn events_named(output: &Output, name: &str) -> Vec<Value> {
    let lines = output.json_lines().into_iter();
    lines.filter(|line| line["event"] == name).collect()
}

#[test]
fn guard_plugin_rewrites_denies_or_allows_a_call() {
    check_call("", r#"{"kept":"t"}"#);
    let ran = r#"{"kept":"rewritten","arguments_changed_by":["fixture-hooks"],"arguments_that_ran":{"text":"rewritten"}}"#;
    check_call("before_tool = \"rewrite\"", ran);
    check_call(
        "before_tool = \"deny\"",
        "plugin `fixture-hooks` denied the call to `keep_text`: not tonight",
    );
}

#[test]
fn failing_guard_plugin_denies_the_call_and_is_named() {
    let named = "is denied because the guard plugin `fixture-hooks` failed: ";
    let ways = [
        ("fail", "no moon tonight"),
        ("panic", ""),
        ("hang", "it did not answer within 1000 ms"),
        ("lie", "its arguments are invalid: the arguments of `keep_text` do not match its schema"),
        ("huge", ""),
        ("write", "`files.write` is not available in a hook"),
        ("fetch", "`http.request` is not available in a hook"),
    ];
    for (way, why) in ways {
        check_call(&format!("before_tool = \"{way}\""), &format!("{named}{why}"));
    }
    let Some(house) = house_with_hooks("before_tool = \"exit\"", &script_one_call(named)) else {
        return;
    };
    house.isolate_plugin("*");
    check_house(&house);
}

#[test]
fn a_guard_whose_worker_died_is_asked_again() {
    let script = json!({ "answers": [
        keep_text_answer(),
        { "expect": { "tool_result": "is denied because the guard plugin `fixture-hooks`" }, "steps": keep_text_answer()["steps"] },
        { "expect": { "tool_result": "is denied" }, "steps": [{ "text": "done" }] },
    ] });
    let Some(house) = house_with_hooks("before_tool = \"once-exit\"", &script) else { return };
    house.isolate_plugin("*");
    let output = house.run(&["run", "--yes", "go"]).code(0);
    // Each new worker has forgotten the earlier questions.
    assert_eq!(output.stderr.matches("denies the call, because it failed").count(), 2, "{output}");
    let script = json!({ "answers": [
        keep_text_answer(),
        { "expect": { "tool_result": "is denied" }, "steps": keep_text_answer()["steps"] },
        { "expect": { "tool_result": r#"{"kept":"t"}"# }, "steps": [{ "text": "done" }] },
    ] });
    let Some(house) = house_with_hooks("before_tool = \"once-panic\"", &script) else {
        return;
    };
    house.run(&["run", "--yes", "go"]).code(0);
}

#[test]
fn guard_that_cannot_be_described_denies_calls() {
    let house = house!(ships "broken_guard");
    house.ship(&fixture("hooks"));
    house.set_script(&script_one_call("the guard plugin `fixture-broken-guard` failed"));
    house.run(&["run", "--yes", "go"]).code(0);
    let called = house.run(&["call", "keep_text", r#"{"text": "t"}"#]).code(6);
    assert!(called.stderr.contains("jaato plugin disable fixture-broken-guard"), "{called}");
    house.run(&["plugin", "disable", "fixture-broken-guard"]).code(0);
    house.run(&["call", "keep_text", r#"{"text": "t"}"#]).code(0);
}

#[test]
fn a_guard_sees_a_call_that_a_person_types() {
    let script = json!({ "answers": [] });
    let Some(house) = house_with_hooks("before_tool = \"deny\"", &script) else { return };
    let output = house.run(&["call", "keep_text", r#"{"text": "t"}"#]);
    assert!(output.code != 0 && output.stderr.contains("not tonight"), "{output}");
}

#[test]
fn untrusted_hook_plugin_is_asked_only_while_its_hook_is_granted() {
    let house = house!(drops in "hooks");
    house.set_script(&script_one_call("kept"));
    house.configure_more("[plugins.fixture-hooks]\nbefore_tool = \"deny\"\n");
    let allowed = ["run", "--allow", "fixture-hooks:keep_text", "go"];
    house.run(&allowed).code(0);
    let shown = house.run(&["plugin", "show", "fixture-hooks"]).code(0);
    assert!(shown.stdout.contains("before_tool: see each tool call"), "{shown}");
    house.run(&["plugin", "grant", "fixture-hooks", "before_tool"]).code(0);
    let output = house.run(&allowed);
    assert!(output.stderr.contains("not tonight"), "{output}");
    house.run(&["plugin", "revoke", "fixture-hooks"]).code(0);
    house.run(&allowed).code(0);
}

#[test]
fn guard_can_require_a_prompt_that_shows_a_preview() {
    let settings = "before_tool = \"ask\"";
    let Some(house) = house_with_hooks(settings, &script_one_call("\"kept\":\"t\"")) else {
        return;
    };
    let Some(mut running) = run_on_terminal(&house, "run --yes go", unchanged_command) else {
        return;
    };
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    let rows =
        ["wants you to decide: it is night", "changes, says fixture-hooks", "+t", "files, says"];
    for row in rows {
        assert!(output.stdout.contains(row), "{row}: {output}");
    }
    assert!(!output.stdout.contains("don't ask again"), "{output}");
}

#[test]
fn failing_or_huge_preview_does_not_block_the_prompt() {
    for (settings, row) in [
        ("preview = \"hang\"", "cannot preview the call to `keep_text`"),
        ("preview = \"panic\"", "cannot preview the call to `keep_text`"),
        ("preview = \"write\"", "cannot preview the call to `keep_text`"),
        ("preview = \"huge\"", "more lines"),
    ] {
        let script = script_one_call("\"kept\":\"t\"");
        let Some(house) = house_with_hooks(settings, &script) else { return };
        let Some(mut running) = run_on_terminal(&house, "run go", unchanged_command) else {
            return;
        };
        running.wait_for_question();
        running.write(b"y\n");
        let output = running.wait_with_open_input().code(0);
        assert!(output.stdout.contains(row), "{settings}: {output}");
    }
}

/// Colours as a terminal gets them.
const GREEN: &str = "\u{1b}[32m";
const RED: &str = "\u{1b}[31m";

#[test]
fn previewed_file_changes_are_drawn_by_line_without_terminal_sequences() {
    let script = script_one_call("\"kept\":\"t\"");
    for variable in ["CLICOLOR_FORCE", "NO_COLOR"] {
        let change = |command: Command| command.variable(variable, "1");
        let has_colours = variable == "CLICOLOR_FORCE";
        let Some(house) = house_with_hooks("preview = \"changes\"", &script) else { return };
        let line =
            format!("stty -echo rows 24 cols 80; exec '{}' run go", house.binary().display());
        let Some(mut running) = run_shell_on_terminal(&house, &line, change) else { return };
        running.wait_for_text("Show all of it");
        running.wait_for_question();
        running.write(b"s\n");
        running.wait_for_text("row 20");
        running.wait_for_question();
        running.write(b"y\n");
        let output = running.wait_with_open_input().code(0);
        let rows = [
            "Edit 2 files? +41 −1",
            "changes notes/moon.txt (+1 -1):",
            " 9   before",
            "10 - <U+2551> old <U+001B>[2J<U+202E>",
            "10 + t",
            "creates notes/new.txt (+40 -0):",
            "more lines",
        ];
        for row in rows {
            assert!(output.stdout.contains(row), "{row}: {output}");
        }
        let has = |colour: &str, text: &str| output.stdout.contains(&format!("{colour}{text}"));
        assert_eq!(has(GREEN, "10 + t"), has_colours, "{output}");
        assert_eq!(has(RED, "10 - <U+2551> old"), has_colours, "{output}");
        // A change that was shown once is then summarized in one line.
        let (question, after) = output.stdout.rsplit_once("✓ allowed: ").unwrap();
        assert!(question.contains("row 40"), "{output}");
        assert!(after.contains("fixture-hooks: changed notes/moon.txt (+1 -1)"), "{output}");
        assert!(!after.contains("10 + t"), "{output}");
    }
}

#[test]
fn unprompted_file_change_is_shortened_for_users_and_whole_in_events() {
    let settings = "preview = \"changes\"";
    let script = script_one_call("\"kept\":\"t\"");
    let Some(house) = house_with_hooks(settings, &script) else { return };
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert!(output.stderr.contains("fixture-hooks: created notes/new.txt (+40 -0)\n"), "{output}");
    for line in
        ["│ 10 - <U+2551> old <U+001B>[2J<U+202E>\n", "│ 11 + row 11\n", "│ … 29 more lines\n"]
    {
        assert!(output.stderr.contains(line), "{line}: {output}");
    }
    assert!(!output.stderr.contains("row 12"), "{output}");
    let Some(house) = house_with_hooks(settings, &script) else { return };
    let output = house.run(&["run", "--yes", "--output", "json", "go"]).code(0);
    let changed = events_named(&output, "file_changed");
    assert_eq!(changed.len(), 2, "{output}");
    let change = &changed[0]["change"];
    assert_eq!(change["new"], "before\nt\n", "{change:#}");
    assert_eq!(change["hunks"][0]["lines"][2], json!({ "kind": "added", "text": "t" }));
    assert_eq!(changed[1]["change"]["kind"], "created");
}

#[test]
fn before_prompt_text_is_sent_reported_and_shown_by_show_prompt() {
    let script = json!({ "answers": [
        { "expect": { "data": "milk is on the list", "prompt": "milk" }, "steps": [{ "text": "done" }] },
    ] });
    let Some(house) = house_with_hooks("before_prompt = \"add\"", &script) else { return };
    let output = house.run(&["run", "--output", "json", "milk"]).code(0);
    let added = events_named(&output, "prompt_added");
    assert_eq!(added.len(), 1, "{output}");
    assert_eq!((&added[0]["source"], &added[0]["tokens"]), (&json!("fixture-hooks"), &json!(5)));
    let shown = house.run(&["run", "--show-prompt", "milk"]).code(0);
    let part = "--- before the task, by fixture-hooks (about 5 tokens)\nmilk is on the list\n";
    assert!(shown.stdout.contains(part), "{shown}");
    house.assert_no_processes();
}

#[test]
fn refused_prompt_ends_the_run_and_names_the_plugin() {
    let script = json!({ "answers": [] });
    let Some(house) = house_with_hooks("before_prompt = \"refuse\"", &script) else { return };
    let output = house.run(&["run", "milk"]).code(6);
    let told = "plugin `fixture-hooks` refused the prompt: it is night";
    assert!(output.stderr.contains(told), "{output}");
}

#[test]
fn hooks_of_a_session_add_text_and_continue_a_turn_after_a_program() {
    let script = json!({ "answers": [
        { "expect": { "data": "the moon is full", "prompt": "milk" }, "steps": [{ "text": "one" }] },
        { "expect": { "data": "two tests fail" }, "steps": [{ "text": "two" }] },
    ] });
    let settings = "session_start = \"add\"\nturn_end = \"run\"\nsession_end = \"home-run\"";
    let Some(house) = house_with_hooks(settings, &script) else { return };
    let Some(installed) = fixtures::test_house() else { return };
    house.ship(&installed.join("plugins").join(library_name("environment_local")));
    let output = house.run(&["run", "--output", "json", "milk"]).code(0);
    assert_eq!(output.stderr, "", "{output}");
    let continued = events_named(&output, "turn_continued");
    assert_eq!(continued.len(), 1, "{output}");
    assert_eq!(continued[0]["text"], "two tests fail");
    house.assert_no_processes();
}

#[test]
fn deadline_of_a_hook_is_paused_while_a_model_answers_it() {
    // Longer than the hook's deadline.
    let script = json!({ "answers": [
        { "steps": [{ "wait_ms": 1500 }, { "text": "full" }] },
        { "expect": { "prompt": "milk" }, "steps": [{ "text": "done" }] },
    ] });
    let Some(house) = house_with_hooks("session_start = \"model\"", &script) else { return };
    let output = house.run(&["run", "milk"]).code(0);
    assert!(output.stdout == "done\n" && !output.stderr.contains("skipped"), "{output}");
}

#[test]
fn hook_runs_programs_and_asks_models_only_with_a_grant() {
    for (way, grant) in [("run", "process"), ("home-run", "process"), ("model", "model.complete")] {
        let house = house!(drops in "hooks");
        house.set_script(&json!({ "answers": [text_answer("done")] }));
        house.configure_more(&format!("[plugins.fixture-hooks]\nsession_start = \"{way}\"\n"));
        house.run(&["plugin", "grant", "fixture-hooks", "session_start"]).code(0);
        let output = house.run(&["run", "go"]).code(0);
        let told = format!("plugin `fixture-hooks` was not granted `{grant}`");
        assert!(output.stderr.contains(&told), "{way}: {output}");
    }
}

#[test]
fn failing_hooks_are_skipped_and_reported() {
    for way in ["fail", "panic", "hang", "write"] {
        let settings = format!(
            "before_prompt = \"{way}\"\nbefore_request = \"{way}\"\nafter_tool = \"{way}\""
        );
        let script = script_one_call(r#"{"kept":"t"}"#);
        let Some(house) = house_with_hooks(&settings, &script) else { return };
        let output = house.run(&["run", "--yes", "go"]).code(0);
        assert_eq!(output.stdout, "done\n", "{way} {output}");
        for hook in ["before_prompt", "before_request", "after_tool"] {
            let told = format!("plugin `fixture-hooks` is skipped: `{hook}`: ");
            assert!(output.stderr.contains(&told), "{way} {hook}: {output}");
        }
    }
}

#[test]
fn huge_prompt_addition_is_truncated_and_only_some_options_may_change() {
    let script = json!({ "answers": [
        { "expect": { "data": "be brief" }, "steps": [{ "text": "done" }] },
    ] });
    let settings = "before_prompt = \"huge\"\nbefore_request = \"change\"";
    let Some(house) = house_with_hooks(settings, &script) else { return };
    let output = house.run(&["run", "--output", "json", "go"]).code(0);
    let added = events_named(&output, "prompt_added");
    assert_eq!((&added[0]["tokens"], &added[0]["cut"]), (&json!(2000), &json!(true)));
    let changed = events_named(&output, "request_changed");
    assert_eq!(changed[0]["options"], json!(["temperature"]));
    let Some(house) = house_with_hooks("before_request = \"lie\"", &script) else { return };
    let output = house.run(&["run", "go"]);
    assert!(output.stderr.contains("a hook cannot change the option `session_key`"), "{output}");
}

#[test]
fn hook_result_is_truncated_if_large_and_ignored_if_too_large() {
    check_call("after_tool = \"replace\"", r#"{"keys_before":1}"#);
    check_call("after_tool = \"large\"", "output_file");
    check_call("after_tool = \"huge\"", r#"{"kept":"t"}"#);
}

#[test]
fn event_hook_gets_or_counts_every_event_and_never_delays_the_turn() {
    let storm: Vec<Value> = (0..10_000).map(|_| json!({ "text": "x" })).collect();
    let script = json!({ "answers": [{ "steps": storm }] });
    for way in ["", "hang", "fail"] {
        let Some(house) = house_with_hooks("", &script) else { return };
        let heard = house.path().join("heard");
        house.configure_more(&format!("event = \"{way}\"\nheard = \"{}\"\n", heard.display()));
        let output = house.run(&["run", "--output", "json", "go"]).code(0);
        let all = output.json_lines().len();
        assert!(all > 10_000, "{all}");
        let counts = std::fs::read_to_string(heard).unwrap();
        let counts: Vec<usize> = counts.split(' ').map(|it| it.parse().unwrap()).collect();
        match way {
            // The notice about dropped events may come after the last event.
            "" => {
                let told = counts.iter().sum::<usize>();
                assert!(told == all || told == all + 1, "{all} {counts:?}");
            }
            _ => assert!(counts[0] <= 3 * 64, "{way} {counts:?}"),
        }
        house.assert_no_processes();
    }
}

#[test]
fn command_completions_come_from_its_schema_and_its_plugin() {
    let Some(house) = house_with_hooks("", &json!({ "answers": [] })) else { return };
    let complete = |words: &[&str]| {
        let output = house.run(&[&["command", "pick", "--complete"], words].concat());
        output.code(0).stdout
    };
    assert_eq!(complete(&[]), "shopping\ta list\nmoving\ta list\n");
    assert_eq!(complete(&["sh"]), "shopping\ta list\n");
    assert_eq!(complete(&["shopping", ""]), "milk\twhite\nmint\nshopping-list\tthe list itself\n");
    assert_eq!(complete(&["shopping", "mi"]), "milk\twhite\nmint\n");
    assert_eq!(complete(&["shopping", "milk", ""]), "");
}

#[test]
fn late_or_excess_completions_are_left_out() {
    for (way, lines) in [("hang", 0), ("panic", 0), ("write", 0), ("storm", 100)] {
        let settings = format!("words = \"{way}\"");
        let Some(house) = house_with_hooks(&settings, &json!({ "answers": [] })) else {
            return;
        };
        let output = house.run(&["command", "pick", "--complete", "shopping", ""]).code(0);
        assert_eq!(output.stdout.lines().count(), lines, "{way}: {output}");
    }
}

#[test]
fn tab_key_completes_command_names_and_words_in_a_chat() {
    let Some(house) = house_with_hooks("", &json!({ "answers": [text_answer("hello")] })) else {
        return;
    };
    let line = format!("exec '{}' chat hi", house.binary().display());
    let editing = |command: Command| command.variable("TERM", "xterm");
    let Some(mut running) = run_shell_on_terminal(&house, &line, editing) else { return };
    running.wait_for_text("hello");
    running.wait_for_text("> ");
    running.write(b"/pi\tsh\tmil\t\r");
    running.wait_for_text("item: milk");
    running.wait_for_text("> ");
    running.write(b"/pick shopping \t\t");
    running.wait_for_text("shopping-list");
    // Ctrl-U deletes the typed text.
    running.write(b"\x15/quit\r");
    running.wait_with_open_input();
    house.assert_no_processes();
}

fn unchanged_command(command: Command) -> Command {
    command
}
