//! Tests the ledger of the real binary: its content, what it must not contain, and the output of
//! `jaato ledger show`.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use expect_test::expect;
use serde_json::{Value, json};

use crate::house;
use crate::support::command::{DEADLINE, LOOK_AGAIN};
use crate::support::{House, fixtures, library_name};

fn ledger_path(house: &House) -> PathBuf {
    house.home().join(".local/share/jaato/ledger.jsonl")
}

fn read_records(path: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "the last line is complete: {text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn record_stages(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["stage"].as_str().unwrap()).collect()
}

/// Scripts one tool call and the answer.
fn script_one_call(house: &House) {
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "id": "c1", "name": "get_environment", "arguments": { "aspect": "os" } } }],
          "usage": { "prompt_tokens": 20, "output_tokens": 5, "cached_tokens": 4 } },
        { "steps": [{ "text": "It is Linux." }],
          "usage": { "prompt_tokens": 40, "output_tokens": 6 } },
    ] }));
}

#[test]
fn run_records_its_requests_calls_and_decisions_in_the_ledger() {
    let house = house!(script_one_call);
    house.run(&["run", "What system is this?"]).code(0);
    let records = read_records(&ledger_path(&house));
    assert_eq!(
        record_stages(&records),
        ["response", "permission-check", "tool-call", "response", "turn"]
    );
    for (at, record) in records.iter().enumerate() {
        assert_eq!((&record["v"], &record["event_index"]), (&json!(1), &json!(at + 1)));
        assert_eq!((&record["session"], &record["turn"]), (&records[0]["session"], &json!(1)));
        let ts = record["ts"].as_str().unwrap();
        assert!(ts.len() == 24 && ts.ends_with('Z'), "{ts}");
    }
    let tokens = |record: &Value| {
        ["prompt_tokens", "output_tokens", "total_tokens", "cached_tokens"]
            .map(|key| record[key].as_u64().unwrap())
    };
    assert_eq!((tokens(&records[0]), tokens(&records[3])), ([20, 5, 25, 4], [40, 6, 46, 0]));
    assert_eq!(records[0]["model"], "scripted/test");
    assert_eq!(records[1]["allowed"], true);
    assert_eq!((&records[2]["tool"], &records[2]["ok"]), (&json!("get_environment"), &json!(true)));
    assert_eq!(records[4]["outcome"], "done");

    let shown = house.run(&["ledger", "show"]).expect_silent().stdout;
    let session = records[0]["session"].as_str().unwrap();
    let time = &records[0]["ts"].as_str().unwrap()[..19].replace('T', " ");
    let shown = shown.replace(session, "SESSION").replace(time, "TIME");
    expect![[r#"
        TIME (UTC)           SESSION                 TURN  MODEL          REQUESTS  IN  CACHED  OUT  COST  CALLS  DENIED  GC  OUTCOME
        TIME  SESSION  1     scripted/test  2         60  4       11   -     1      0       0   done

        in all: 1 turn, 2 requests, 60 tokens in (4 of them cached), 11 tokens out, $0 if a price is known, 1 tool call, 0 denied, 0 gc
    "#]]
    .assert_eq(&shown);
}

/// Returns the table's value for the first turn under this heading.
#[track_caller]
fn rows_under<'a>(shown: &'a str, head: &str) -> &'a str {
    let mut lines = shown.lines();
    let (heads, row) = (lines.next().unwrap(), lines.next().unwrap());
    let at = heads.find(head).unwrap_or_else(|| panic!("{shown}"));
    row[at..].split("  ").next().unwrap()
}

#[test]
fn a_denied_call_is_in_the_ledger_with_its_rule() {
    let house = house!(ships "probe");
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "count", "arguments": {} } }] },
        { "expect": { "tool_result": "permission_denied" }, "steps": [{ "text": "done" }] },
    ] }));
    house.run(&["run", "go"]).code(6);
    let records = read_records(&ledger_path(&house));
    assert_eq!(
        record_stages(&records),
        ["response", "permission-check", "tool-call", "response", "turn"]
    );
    let decided = &records[1];
    assert_eq!((&decided["allowed"], &decided["rule"]), (&json!(false), &json!("ask.silence")));
    assert_eq!(decided["tool"], "count");
    let call = &records[2];
    assert_eq!((&call["ok"], &call["error_kind"]), (&json!(false), &json!("permission_denied")));
    assert_eq!(records[4]["outcome"], "denied");
    let shown = house.run(&["ledger", "show"]).expect_silent().stdout;
    assert_eq!(rows_under(&shown, "DENIED"), "1", "{shown}");
    assert!(shown.contains(" 1 denied, 0 gc\n"), "{shown}");
    let json = house.run(&["ledger", "show", "--json"]).expect_silent().json();
    assert_eq!(json["turns"][0]["denied"], 1, "{json}");
}

#[test]
fn gc_is_in_the_ledger_with_the_number_of_removed_messages() {
    let house = house!();
    let built = fixtures::test_house().unwrap().join("plugins").join(library_name("gc_truncate"));
    house.ship(&built);
    let overflow = json!({ "kind": "context_overflow", "message": "too many tokens" });
    house.set_script(&json!({ "answers": [
        { "steps": [{ "text": "one" }] },
        { "steps": [{ "fail": overflow }] },
        { "expect": { "messages": 1 }, "steps": [{ "text": "two" }] },
    ] }));
    house.command(&["chat"]).input("a hunter2\nb\n").run().code(0);
    let records = read_records(&ledger_path(&house));
    let gcs: Vec<_> = records.iter().filter(|record| record["stage"] == "gc").collect();
    let [gc] = gcs[..] else { panic!("{records:#?}") };
    let shown = ["turn", "reason", "source", "messages_removed", "messages_cut"];
    let shown: Vec<_> = shown.iter().map(|key| gc[*key].clone()).collect();
    assert_eq!(json!(shown), json!([2, "context_limit", "truncate", 2, 0]));
    let tokens = |key: &str| gc[key].as_u64().unwrap();
    assert!(tokens("tokens_after") < tokens("tokens_before"), "{gc}");
    let text = fs::read_to_string(ledger_path(&house)).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let shown = house.run(&["ledger", "show", "--last", "1"]).expect_silent().stdout;
    assert_eq!(rows_under(&shown, "GC"), "1", "{shown}");
    assert!(shown.contains(" 0 denied, 1 gc\n"), "{shown}");
}

#[test]
fn no_secret_of_prompt_arguments_results_or_errors_is_in_the_ledger() {
    let house = house!(ships "probe");
    let arguments = json!({ "text": "hunter2", "line": 1 });
    house.set_script(&json!({ "answers": [
        { "steps": [{ "thought": "hunter2" }, { "call": { "name": "echo", "arguments": arguments } }] },
        { "steps": [{ "call": { "name": "echo", "arguments": { "hunter2": 1 } } }] },
        { "steps": [{ "fail": { "kind": "provider", "message": "hunter2", "retry": "temporary" } }] },
        { "steps": [{ "fail": { "kind": "provider", "message": "hunter2" } }] },
    ] }));
    house.configure_more("[session]\nretry_base_ms = 1\n");
    house.run(&["run", "my password is hunter2"]).code(5);
    let text = fs::read_to_string(ledger_path(&house)).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let records = read_records(&ledger_path(&house));
    assert_eq!(
        record_stages(&records),
        [
            "response",
            "permission-check",
            "tool-call",
            "response",
            "tool-call",
            "api-error",
            "api-error",
            "turn"
        ]
    );
    let kinds: Vec<_> = records.iter().map(|record| &record["error_kind"]).collect();
    assert_eq!(kinds[4..], ["invalid_arguments", "provider", "provider", "provider"]);
}

#[test]
fn ledger_is_private_to_the_user_and_its_path_can_be_configured() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = house!(script_one_call);
    house.run(&["run", "go"]).code(0);
    assert_eq!(fs::metadata(ledger_path(&house)).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(ledger_path(&house)).unwrap();
    let run =
        |path: &str| house.command(&["run", "go"]).variable("LEDGER_PATH", path).run().code(0);
    run("sums/mine.jsonl");
    assert_eq!(read_records(&house.workspace().join("sums/mine.jsonl")).len(), 5);
    assert!(!ledger_path(&house).exists());
    run("");
    assert_eq!(read_records(&ledger_path(&house)).len(), 5, "empty counts as not set");
    house.configure_more("[ledger]\nenabled = false\n");
    house.run(&["run", "go"]).code(0);
    assert_eq!(read_records(&ledger_path(&house)).len(), 5, "switched off");
}

#[test]
fn trusted_workspace_cannot_set_the_ledger_path() {
    let house = house!(script_one_call);
    house.write("workspace/.env", "LEDGER_PATH=evil.jsonl\n");
    house.run(&["trust"]).code(0);
    let output = house.run(&["run", "go"]).code(0);
    assert!(output.stderr.contains("`LEDGER_PATH` in `"), "{output}");
    assert!(!house.workspace().join("evil.jsonl").exists());
    assert_eq!(read_records(&ledger_path(&house)).len(), 5);
}

#[test]
fn unwritable_ledger_is_reported_once_and_the_run_continues() {
    let house = house!(script_one_call);
    let folder = house.workspace().display().to_string();
    let notes = house.write("notes.txt", "not yours").display().to_string();
    for (path, cause) in [
        ("/dev/full", "cannot write the ledger `/dev/full`: No space left on device"),
        (&folder, "Is a directory"),
        ("/proc/nothing/ledger.jsonl", "No such file or directory"),
        (&notes, "is not a ledger, so nothing is added to it"),
    ] {
        let output = house.command(&["run", "go"]).variable("LEDGER_PATH", path).run().code(0);
        assert_eq!(output.stdout, "It is Linux.\n");
        assert_eq!(output.stderr.matches(cause).count(), 1, "{output}");
        let count = "5 records of this run are not in the ledger\n";
        assert!(output.stderr.ends_with(count), "{output}");
        let output = house
            .command(&["run", "--output", "json", "go"])
            .variable("LEDGER_PATH", path)
            .run()
            .code(0);
        let told = format!("{}{}", output.stdout, output.stderr);
        assert_eq!(told.matches(cause).count(), 1, "{output}");
        for (at, line) in output.json_lines().iter().enumerate() {
            assert_eq!(line["seq"], at + 1, "without gaps");
        }
    }
    assert_eq!(fs::read_to_string(notes).unwrap(), "not yours");
}

#[test]
fn ledger_of_a_killed_run_is_continued_by_the_next_run() {
    let house = house!(ships "probe");
    let call = json!({ "call": { "name": "echo", "arguments": { "text": "t" } } });
    house.set_script(
        &json!({ "answers": [{ "steps": [call] }, { "steps": [{ "text": "so" }, "hang"] }] }),
    );
    let running = house.command(&["run", "--output", "json", "go"]).no_input().start();
    running.wait_for("\"text\":\"so\"");
    // Written during the turn, not at its end.
    let bound = Instant::now() + DEADLINE;
    while fs::read_to_string(ledger_path(&house)).unwrap_or_default().lines().count() < 3 {
        assert!(Instant::now() < bound, "three records are written");
        std::thread::sleep(LOOK_AGAIN);
    }
    running.send_signal("KILL");
    assert_eq!(running.finish().code, 128 + 9);
    let before = fs::read(ledger_path(&house)).unwrap();
    // A power failure would have torn the last record.
    fs::write(ledger_path(&house), [&before[..], b"{\"v\":1,\"ts\":\"20"].concat()).unwrap();
    script_one_call(&house);
    house.run(&["run", "go"]).code(0);
    let records = read_records(&ledger_path(&house));
    assert_eq!(record_stages(&records[..3]), ["response", "permission-check", "tool-call"]);
    assert_eq!((records.len(), &records[7]["outcome"]), (8, &json!("done")));
    let shown = house.run(&["ledger", "show", "--json"]).expect_silent().json();
    let outcomes: Vec<_> =
        shown["turns"].as_array().unwrap().iter().map(|it| &it["outcome"]).collect();
    assert_eq!(outcomes, [&Value::Null, &json!("done")]);
}

#[test]
fn calls_that_a_person_types_are_in_the_ledger_too() {
    let house = house!();
    house.run(&["call", "get_environment"]).expect_silent();
    house.run(&["call", "get_environment", r#"{"aspect": "moon"}"#]).code(2);
    let records = read_records(&ledger_path(&house));
    assert_eq!(record_stages(&records), ["permission-check", "tool-call", "tool-call"]);
    let turns: Vec<_> = records.iter().map(|record| record["turn"].as_u64().unwrap()).collect();
    assert_eq!(turns, [0, 0, 0]);
    let shown = house.run(&["ledger", "show"]).expect_silent().stdout;
    assert!(shown.contains("in all: 0 turns, 0 requests"), "{shown}");
    assert!(shown.contains("2 tool calls (1 failed)"), "{shown}");
}

#[test]
fn read_only_commands_do_not_create_a_ledger() {
    let house = house!(script_one_call);
    for words in
        [&["tool", "list"][..], &["run", "--show-prompt"], &["ledger", "show"], &["command"]]
    {
        house.run(words).expect_silent();
    }
    assert!(!ledger_path(&house).exists());
}

#[test]
fn missing_or_empty_ledger_is_not_an_error() {
    let house = house!();
    expect![[r#"
        no ledger yet (`$HOUSE/home/.local/share/jaato/ledger.jsonl`)
    "#]]
    .assert_eq(&house.normalize_output(&house.run(&["ledger", "show"]).expect_silent().stdout));
    let show = |path: &str| house.command(&["ledger", "show"]).variable("LEDGER_PATH", path).run();
    assert_eq!(show("/dev/null").expect_silent().stdout, "nothing in the ledger yet\n");
    let output = show(&house.workspace().display().to_string()).code(1);
    assert!(output.stderr.contains("cannot read the ledger `"), "{output}");
}

#[test]
fn bad_ledger_lines_are_skipped_and_sessions_are_selected_by_prefix() {
    let house = house!();
    let line = |session: &str, turn: u64| {
        json!({ "v": 1, "ts": "2026-11-21T19:40:03.123Z", "session": session, "turn": turn,
            "event_index": 1, "stage": "turn", "model": "m/m", "outcome": "limit",
            "error_kind": "limit_reached", "steps": 1, "duration_ms": 1 })
        .to_string()
    };
    let lines = [line("aa", 1), "junk".into(), line("ab", 1), line("ab", 2), "{}".into()];
    house.write("home/.local/share/jaato/ledger.jsonl", &(lines.join("\n") + "\n"));
    let output = house.run(&["ledger", "show", "--session", "ab", "--last", "1"]).code(0);
    expect![[r#"
        exit 0
        --- stdout
        TIME (UTC)           SESSION  TURN  MODEL  REQUESTS  IN  CACHED  OUT  COST  CALLS  DENIED  GC  OUTCOME
        2026-11-21 19:40:03  ab       2     m/m    0         0   0       0    -     0      0       0   limit (limit_reached)
        (and 1 turn earlier; `--last N` lists more)

        in all: 2 turns, 0 requests, 0 tokens in (0 of them cached), 0 tokens out, $0 if a price is known, 0 tool calls, 0 denied, 0 gc
        --- stderr
        note: skipped invalid records in the ledger `$HOUSE/home/.local/share/jaato/ledger.jsonl`: 2 lines, the first is line 2
    "#]]
    .assert_eq(&output.to_string());
    let output = house.run(&["ledger", "show", "--session", "x"]).code(0);
    assert_eq!(output.stdout, "no session `x` in the ledger\n");
}

#[test]
fn ledger_list_with_a_closed_output_ends_without_an_error_message() {
    let house = house!();
    let line = |turn: u64| {
        json!({ "v": 1, "ts": "2026-11-21T19:40:03.123Z", "session": "s", "turn": turn,
            "event_index": turn, "stage": "turn", "model": "m/m", "outcome": "done", "steps": 1,
            "duration_ms": 1 })
        .to_string()
            + "\n"
    };
    let lines: String = (1..=5000).map(line).collect();
    house.write("home/.local/share/jaato/ledger.jsonl", &lines);
    for words in
        [&["ledger", "show", "--last", "5000"][..], &["ledger", "show", "--last", "5000", "--json"]]
    {
        let output = house.command(words).run_into_closed_output(10);
        assert_eq!(output.stderr, "", "{output}");
    }
}
