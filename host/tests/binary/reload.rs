//! Tests plugin files that are replaced, broken, added and removed during a conversation.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::house;
use crate::support::command::Running;
use crate::support::{Command, House, fixture, library_name};

pub const NAME: &str = "fixture-editions";
/// Patches for the second edition, and for one that does not start.
pub const SECOND: (&str, &str) = ("this edition is: ONE", "this edition is: TWO");
const DOES_NOT_START: (&str, &str) = ("how it starts is: WELL", "how it starts is: NOT!");
/// The patch that renames one of its tools.
pub const OTHER_TOOL: (&str, &str) = ("tool_alpha", "tool_omega");

/// Creates another edition of the fixture, in a folder that is not searched for plugins.
#[track_caller]
pub fn create_edition(house: &House, name: &str, marks: &[(&str, &str)]) -> PathBuf {
    let mut bytes = fs::read(fixture("editions")).unwrap();
    for (from, to) in marks {
        assert_eq!(from.len(), to.len());
        let at: Vec<usize> =
            (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from.as_bytes())).collect();
        assert!(!at.is_empty(), "the fixture has no mark `{from}`");
        for at in at {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    }
    let folder = house.path().join("editions");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

pub fn tool_call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

pub fn edition_call() -> Value {
    tool_call("edition", json!({}))
}

fn put_plugin(from: &Path, to: &Path) -> Value {
    tool_call("put", json!({ "from": from, "to": to, "over": false }))
}

pub fn expect_edition(edition: &str, number: u32) -> Value {
    json!({ "tool_result": format!("\"edition\":\"{edition}\",\"call\":{number}") })
}

/// Returns the model's answers: each step with its expectation.
pub fn scripted_answers(steps: &[(Value, Value)]) -> Value {
    let answer = |(expect, step): &(Value, Value)| json!({ "expect": expect, "steps": [step] });
    json!({ "answers": steps.iter().map(answer).collect::<Vec<_>>() })
}

/// Returns answers that ask for the edition once per turn: the expected edition, the number of the
/// call, and the text.
pub fn count_answers(turns: &[(&str, u32, &str)]) -> Value {
    let steps = turns.iter().flat_map(|(edition, number, said)| {
        [(no_expectation(), edition_call()), (expect_edition(edition, *number), text_step(said))]
    });
    scripted_answers(&steps.collect::<Vec<_>>())
}

pub fn no_expectation() -> Value {
    json!({})
}

pub fn text_step(text: &str) -> Value {
    json!({ "text": text })
}

/// A conversation that lasts until the test ends it.
pub struct ReloadChat(pub Running);

impl ReloadChat {
    pub fn start(house: &House) -> Self {
        Self(house.command(&["chat", "--yes"]).start())
    }

    /// Sends a message and waits for a line of the answer with this text.
    #[track_caller]
    pub fn send_message(&mut self, message: &str, answer: &str) {
        self.0.write(format!("{message}\n").as_bytes());
        let waiting = AssertUnwindSafe(|| self.0.wait_for(answer));
        if catch_unwind(waiting).is_err() {
            panic!("{message:?} is not answered {answer:?}: {}", self.0.unread_errors());
        }
    }

    /// Ends the conversation and returns its standard error.
    #[track_caller]
    pub fn end(self, house: &House) -> String {
        let output = self.0.finish().code(0);
        house.assert_no_processes();
        output.stderr
    }
}

/// Replaces a file, as `cp` to a temporary name and `mv` do.
pub fn place_file(from: &Path, to: &Path) {
    let beside = to.with_extension("beside");
    fs::copy(from, &beside).unwrap();
    fs::rename(&beside, to).unwrap();
}

/// Runs one turn in which the plugin replaces its own file. The next call uses the new edition,
/// which continues the count.
#[track_caller]
fn run_replacing_itself(house: &House, file: &Path, over: bool) -> String {
    let two = create_edition(house, "two.so", &[SECOND]);
    house.set_script(&scripted_answers(&[
        (no_expectation(), edition_call()),
        (
            expect_edition("ONE", 1),
            tool_call("put", json!({ "from": two, "to": file, "over": over })),
        ),
        (no_expectation(), edition_call()),
        (expect_edition("TWO", 2), edition_call()),
        (expect_edition("TWO", 3), text_step("done")),
    ]));
    let mut chat = ReloadChat::start(house);
    chat.send_message("go", "done");
    let stderr = chat.end(house);
    assert!(stderr.contains("plugin `fixture-editions` 0.1.0 was replaced"), "{stderr}");
    stderr
}

#[test]
fn replaced_plugin_takes_over_the_saved_state_at_the_next_call() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    let stderr = run_replacing_itself(&house, &file, false);
    assert!(!stderr.contains("worker"), "{stderr}");
    assert_eq!(fs::read_dir(house.cache_folder().join("opened")).unwrap().count(), 0);
}

#[test]
fn replaced_plugin_in_a_worker_takes_over_the_saved_state() {
    let house = house!();
    let file = house.ship_to_user(&fixture("editions"));
    run_replacing_itself(&house, &file, false);
}

#[test]
fn overwriting_a_plugin_file_in_use_is_harmless() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    run_replacing_itself(&house, &file, true);
    let house = house!();
    let file = house.ship_to_user(&fixture("editions"));
    run_replacing_itself(&house, &file, true);
}

/// Trusts a file's current content by the user's command.
#[track_caller]
fn trust_file(house: &House, file: &Path) {
    let digest = jaato_runtime::file_sha256(file).unwrap();
    let file = file.display().to_string();
    let words = ["plugin", "trust", file.as_str(), "--sha256", digest.as_str()];
    Command::new(house, &words).run().code(0);
}

#[test]
fn replacement_of_a_trusted_file_runs_in_a_worker_until_trusted() {
    let house = house!();
    let file = house.ship_to_user(&fixture("editions"));
    trust_file(&house, &file);
    let two = create_edition(&house, "two.so", &[SECOND]);
    house.set_script(&count_answers(&[
        ("ONE", 1, "first"),
        ("TWO", 2, "second"),
        ("TWO", 3, "third"),
        ("TWO", 4, "fourth"),
    ]));
    let mut chat = ReloadChat::start(&house);
    let show = format!("/plugin show {NAME}");
    chat.send_message("a", "first");
    chat.send_message(&show, "inside jaato, from a private copy");
    place_file(&two, &file);
    chat.send_message("b", "second");
    chat.send_message(&show, "in a worker, because it is not trusted");
    trust_file(&house, &file);
    chat.send_message("c", "third");
    chat.send_message(&show, "inside jaato, from a private copy");
    house.run(&["plugin", "untrust", NAME]).code(0);
    chat.send_message("d", "fourth");
    chat.send_message(&show, "in a worker, because it is not trusted");
    let stderr = chat.end(&house);
    let lines = [
        "plugin `fixture-editions` 0.1.0 was replaced: it is not trusted, so it runs in a worker",
        "it runs in a worker without keys (a worker is not a sandbox)",
        "plugin `fixture-editions` 0.1.0 restarts: it is trusted",
        "plugin `fixture-editions` 0.1.0 restarts: it is not trusted, so it runs in a worker",
    ];
    let mut rest = stderr.as_str();
    for line in lines {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line:?} is missing: {stderr}"));
        rest = &rest[at..];
    }
}

#[test]
fn running_call_finishes_on_the_edition_that_started_it() {
    for shipped in [true, false] {
        let house = house!();
        let built = fixture("editions");
        let file = if shipped { house.ship(&built) } else { house.ship_to_user(&built) };
        let two = create_edition(&house, "two.so", &[SECOND]);
        let go = house.path().join("go");
        let mut script = scripted_answers(&[
            (no_expectation(), tool_call("job", json!({ "until": go }))),
            (json!({ "tool_result": "task_1" }), put_plugin(&two, &file)),
            (no_expectation(), edition_call()),
            (expect_edition("TWO", 1), put_plugin(&two, &go)),
            (no_expectation(), text_step("done")),
        ]);
        // The outcome arrives with the last result or in its own message.
        script["repeat_last"] = true.into();
        house.set_script(&script);
        let chat = house.command(&["chat", "--yes"]);
        let chat = chat.variable("JAATO_SESSION_AUTO_BACKGROUND_THRESHOLD_MS", "20");
        let mut chat = ReloadChat(chat.start());
        chat.send_message("go", "done");
        let stderr = chat.end(&house);
        assert!(stderr.contains("✓ ended_on ONE"), "{stderr}");
    }
}

#[test]
fn replaced_provider_continues_the_conversation() {
    let house = house!();
    house.set_script(&scripted_answers(&[
        (no_expectation(), text_step("first")),
        (json!({ "messages": 3 }), text_step("second")),
        (json!({ "messages": 5 }), text_step("third")),
    ]));
    let file = house.shipped_folder().join(library_name("provider_scripted"));
    let mut bytes = fs::read(&file).unwrap();
    let mut chat = ReloadChat::start(&house);
    for answer in ["first", "second", "third"] {
        chat.send_message("continue", answer);
        // Bytes after the end of a library change only the file.
        bytes.push(0);
        fs::write(&file, &bytes).unwrap();
    }
    let stderr = chat.end(&house);
    assert_eq!(
        stderr.matches("plugin `provider-scripted` 0.1.0 was replaced").count(),
        2,
        "{stderr}"
    );
}

#[test]
fn broken_plugin_file_keeps_the_old_edition_and_is_reported_once() {
    for shipped in [true, false] {
        let house = house!();
        let built = fixture("editions");
        let file = if shipped { house.ship(&built) } else { house.ship_to_user(&built) };
        let two = create_edition(&house, "two.so", &[SECOND]);
        let torn = house.path().join("torn.so");
        fs::write(&torn, &fs::read(&two).unwrap()[..100_000]).unwrap();
        house.set_script(&count_answers(&[
            ("ONE", 1, "first"),
            ("ONE", 2, "second"),
            ("TWO", 3, "third"),
        ]));
        let mut chat = ReloadChat::start(&house);
        chat.send_message("a", "first");
        place_file(&torn, &file);
        chat.send_message("b", "second");
        chat.send_message("/plugin show fixture-editions", "it is truncated or damaged");
        chat.send_message("/plugin", "stays as it was, its file can no longer be used");
        place_file(&two, &file);
        chat.send_message("c", "third");
        let stderr = chat.end(&house);
        let kept =
            "plugin `fixture-editions` stays as it was because its new file cannot be used: ";
        assert_eq!(stderr.matches(kept).count(), 1, "{stderr}");
        house.wait_for_log(kept);
    }
}

#[test]
fn cancelled_wait_kills_a_plugin_file_that_hangs_in_description() {
    let house = house!();
    house.set_script(&scripted_answers(&[(no_expectation(), text_step("first"))]));
    let mut chat = ReloadChat::start(&house);
    chat.send_message("a", "first");
    let hangs = house.ship_to_user(&fixture("hangs"));
    chat.0.write(b"b\n");
    house.wait_for_process(&hangs.display().to_string());
    chat.0.send_signal("INT");
    chat.0.wait_for_error("cancelled");
    house.wait_for_no_process(&hangs.display().to_string());
    chat.0.finish().code(130);
    house.assert_no_processes();
}

#[test]
fn edition_that_fails_to_start_keeps_the_previous_one() {
    for shipped in [true, false] {
        let house = house!();
        let built = fixture("editions");
        let file = if shipped { house.ship(&built) } else { house.ship_to_user(&built) };
        let bad = create_edition(&house, "bad.so", &[SECOND, DOES_NOT_START]);
        let two = create_edition(&house, "two.so", &[SECOND]);
        house.set_script(&scripted_answers(&[
            (no_expectation(), edition_call()),
            (expect_edition("ONE", 1), put_plugin(&bad, &file)),
            (no_expectation(), edition_call()),
            (expect_edition("ONE", 2), edition_call()),
            (expect_edition("ONE", 3), text_step("first")),
            (no_expectation(), edition_call()),
            (expect_edition("TWO", 4), text_step("second")),
        ]));
        let mut chat = ReloadChat::start(&house);
        chat.send_message("a", "first");
        chat.send_message("/plugin show fixture-editions", "this edition does not start");
        place_file(&two, &file);
        chat.send_message("b", "second");
        let stderr = chat.end(&house);
        let kept =
            "stays as it was because its new version does not start: this edition does not start";
        assert_eq!(stderr.matches(kept).count(), 1, "{stderr}");
    }
}

#[test]
fn tools_that_changed_are_offered_with_the_next_turn() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    let two = create_edition(&house, "two.so", &[SECOND, OTHER_TOOL]);
    let before = ["edition", "get_environment", "job", "leave", "put", "tool_alpha"];
    let after = ["edition", "get_environment", "job", "leave", "put", "tool_omega"];
    house.set_script(&scripted_answers(&[
        (json!({ "tools": before }), edition_call()),
        (expect_edition("ONE", 1), put_plugin(&two, &file)),
        // In the same turn, a call uses the tools that were offered.
        (json!({ "tools": before }), tool_call("tool_alpha", json!({}))),
        (json!({ "tools": before, "tool_result": "\"edition\":\"ONE\"" }), text_step("first")),
        (json!({ "tools": after }), tool_call("tool_omega", json!({}))),
        (json!({ "tool_result": "\"edition\":\"TWO\"" }), edition_call()),
        (expect_edition("TWO", 2), text_step("second")),
    ]));
    let mut chat = ReloadChat::start(&house);
    chat.send_message("a", "first");
    chat.send_message("b", "second");
    let stderr = chat.end(&house);
    let changed = "the tools of this conversation changed: new `tool_omega`; gone `tool_alpha`";
    assert_eq!(stderr.matches(changed).count(), 1, "{stderr}");
}

#[test]
fn added_plugin_is_offered_last_and_removed_plugin_stays_if_in_use() {
    let house = house!();
    let before = ["get_environment"];
    let more = ["edition", "job", "leave", "put", "tool_alpha"];
    let after: Vec<&str> = before.iter().chain(&more).copied().collect();
    house.set_script(&scripted_answers(&[
        (json!({ "tools": before }), text_step("first")),
        (json!({ "tools": after }), edition_call()),
        (expect_edition("ONE", 1), text_step("second")),
        // Tools in earlier requests stay listed until the next cut.
        (json!({ "tools": after }), edition_call()),
        (expect_edition("ONE", 2), text_step("third")),
    ]));
    let mut chat = ReloadChat::start(&house);
    chat.send_message("a", "first");
    let file = house.ship_to_user(&fixture("editions"));
    chat.send_message("b", "second");
    // Only one of the two removed tools was called.
    fs::remove_file(file).unwrap();
    fs::remove_file(house.shipped_folder().join(library_name("tool_environment"))).unwrap();
    chat.send_message("c", "third");
    let stderr = chat.end(&house);
    for line in [
        "plugin `fixture-editions` 0.1.0 can now be used",
        "new `edition`, `job`, `leave`, `put`, `tool_alpha`",
        "the file of plugin `fixture-editions` was removed: ",
        "the file of plugin `tool-environment` was removed: ",
        "the tools of this conversation changed: gone `get_environment`",
    ] {
        assert_eq!(stderr.matches(line).count(), 1, "{line:?}: {stderr}");
    }
}

#[test]
fn changed_workspace_plugin_is_not_used_before_it_is_trusted_again() {
    let house = house!();
    let folder = house.workspace().join(".jaato/plugins");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("editions.so");
    fs::copy(fixture("editions"), &file).unwrap();
    house.run(&["trust"]).code(0);
    let two = create_edition(&house, "two.so", &[SECOND]);
    house.set_script(&count_answers(&[
        ("ONE", 1, "first"),
        ("ONE", 2, "second"),
        ("TWO", 3, "third"),
    ]));
    let mut chat = ReloadChat::start(&house);
    chat.send_message("a", "first");
    place_file(&two, &file);
    chat.send_message("b", "second");
    chat.send_message(
        "/plugin show fixture-editions",
        "its workspace changed, so it is no longer trusted",
    );
    house.run(&["trust"]).code(0);
    chat.send_message("c", "third");
    chat.end(&house);
}

#[test]
fn plugin_files_that_cannot_be_copied_are_opened_in_place() {
    for shipped in [true, false] {
        let house = house!();
        let built = fixture("editions");
        let file = if shipped { house.ship(&built) } else { house.ship_to_user(&built) };
        let two = create_edition(&house, "two.so", &[SECOND]);
        // Inside jaato, a linker loads a file name once. In a worker, each load is the first.
        let second = if shipped { "ONE" } else { "TWO" };
        house.set_script(&count_answers(&[("ONE", 1, "first"), (second, 2, "second")]));
        // As with a full disk or an unwritable home.
        let cache = house.home().join(".cache/jaato");
        fs::create_dir_all(&cache).unwrap();
        fs::write(cache.join("opened"), "no folder").unwrap();
        let mut chat = ReloadChat::start(&house);
        chat.send_message("a", "first");
        place_file(&two, &file);
        chat.send_message("b", "second");
        let stderr = chat.end(&house);
        let why = "plugins are opened in place, because they cannot be copied: ";
        assert_eq!(stderr.matches(why).count(), 1, "{stderr}");
        let kept =
            "stays as it was because its new version does not start: cannot make a private copy";
        assert_eq!(stderr.contains(kept), shipped, "{stderr}");
    }
}
