//! Plugin files that are replaced, broken, added and removed while a conversation goes on.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_runtime::session_loop::{Cancel, EventSink, Session};
use jaato_runtime::types::{Envelope, Error, ErrorKind};
use jaato_runtime::{Runtime, SessionOptions};
use serde_json::{Value, json};

use crate::embedded::setup;
use crate::house;
use crate::support::command::Running;
use crate::support::{Command, House, fixture, library_name};

const NAME: &str = "fixture-editions";
/// What becomes the second edition, and one that does not start.
const SECOND: (&str, &str) = ("this edition is: ONE", "this edition is: TWO");
const DOES_NOT_START: (&str, &str) = ("how it starts is: WELL", "how it starts is: NOT!");
/// What gives one of its tools another name.
const OTHER_TOOL: (&str, &str) = ("tool_alpha", "tool_omega");

/// Makes another edition of the fixture, in a folder where no plugin is looked for.
#[track_caller]
fn edition(house: &House, name: &str, marks: &[(&str, &str)]) -> PathBuf {
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

fn call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

fn which() -> Value {
    call("edition", json!({}))
}

fn put(from: &Path, to: &Path) -> Value {
    call("put", json!({ "from": from, "to": to, "over": false }))
}

fn told(edition: &str, number: u32) -> Value {
    json!({ "tool_result": format!("\"edition\":\"{edition}\",\"call\":{number}") })
}

/// What the model does: each step with what it expects before.
fn answers(steps: &[(Value, Value)]) -> Value {
    let answer = |(expect, step): &(Value, Value)| json!({ "expect": expect, "steps": [step] });
    json!({ "answers": steps.iter().map(answer).collect::<Vec<_>>() })
}

fn nothing() -> Value {
    json!({})
}

fn text(text: &str) -> Value {
    json!({ "text": text })
}

/// A conversation that goes on until the test ends it.
struct Chat(Running);

impl Chat {
    fn start(house: &House) -> Self {
        Self(house.command(&["chat", "--yes"]).start())
    }

    /// Says something and waits for a line of the answer that holds this.
    #[track_caller]
    fn say(&mut self, message: &str, answer: &str) {
        self.0.write(format!("{message}\n").as_bytes());
        let waiting = AssertUnwindSafe(|| self.0.wait_for(answer));
        if catch_unwind(waiting).is_err() {
            panic!("{message:?} is not answered {answer:?}: {}", self.0.errors());
        }
    }

    /// Ends it; returns what it said on standard error.
    #[track_caller]
    fn end(self, house: &House) -> String {
        let output = self.0.finish().code(0);
        house.nothing_lives();
        output.stderr
    }
}

/// Puts a file in the place of another, as `cp` beside and `mv` do.
fn place(from: &Path, to: &Path) {
    let beside = to.with_extension("beside");
    fs::copy(from, &beside).unwrap();
    fs::rename(&beside, to).unwrap();
}

/// One turn in which the plugin replaces its own file: the next call is the new edition's, which goes on
/// counting.
#[track_caller]
fn replaces_itself(house: &House, file: &Path, over: bool) -> String {
    let two = edition(house, "two.so", &[SECOND]);
    house.script(&answers(&[
        (nothing(), which()),
        (told("ONE", 1), call("put", json!({ "from": two, "to": file, "over": over }))),
        (nothing(), which()),
        (told("TWO", 2), which()),
        (told("TWO", 3), text("done")),
    ]));
    let mut chat = Chat::start(house);
    chat.say("go", "done");
    let stderr = chat.end(house);
    assert!(stderr.contains("plugin `fixture-editions` 0.1.0 was replaced"), "{stderr}");
    stderr
}

#[test]
fn the_next_call_is_the_new_editions_with_what_the_old_one_saved() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    let stderr = replaces_itself(&house, &file, false);
    assert!(!stderr.contains("worker"), "{stderr}");
    assert_eq!(fs::read_dir(house.cache().join("opened")).unwrap().count(), 0);
}

#[test]
fn so_it_is_in_a_worker() {
    let house = house!();
    let file = house.drop_in(&fixture("editions"));
    replaces_itself(&house, &file, false);
}

#[test]
fn a_file_that_is_written_over_while_it_is_in_use_does_no_harm() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    replaces_itself(&house, &file, true);
    let house = house!();
    let file = house.drop_in(&fixture("editions"));
    replaces_itself(&house, &file, true);
}

/// Watches no events.
struct Nobody;

impl EventSink for Nobody {
    fn event(&self, _envelope: Envelope) {}
}

/// The command by which a person trusts a file as it is.
#[track_caller]
fn trust(house: &House, file: &Path) {
    let digest = jaato_runtime::sha256_of(file).unwrap();
    let file = file.display().to_string();
    let words = ["plugin", "trust", file.as_str(), "--sha256", digest.as_str()];
    Command::new(house, &words).run().code(0);
}

#[test]
fn what_replaces_a_trusted_file_runs_in_a_worker_until_it_is_trusted_too() {
    let house = house!();
    let file = house.drop_in(&fixture("editions"));
    trust(&house, &file);
    let two = edition(&house, "two.so", &[SECOND]);
    house.script(&answers(&[
        (nothing(), which()),
        (told("ONE", 1), text("first")),
        (nothing(), which()),
        (told("TWO", 2), text("second")),
        (nothing(), which()),
        (told("TWO", 3), text("third")),
    ]));
    let mut chat = Chat::start(&house);
    let show = format!("/plugin show {NAME}");
    chat.say("a", "first");
    chat.say(&show, "inside jaato, from a private copy");
    place(&two, &file);
    chat.say("b", "second");
    chat.say(&show, "in a worker, because it is not trusted");
    trust(&house, &file);
    chat.say("c", "third");
    chat.say(&show, "inside jaato, from a private copy");
    let stderr = chat.end(&house);
    let lines = [
        "plugin `fixture-editions` 0.1.0 was replaced: it is not trusted, so it runs in a worker",
        "it runs in a worker, which is no sandbox, and is given no key",
        "plugin `fixture-editions` 0.1.0 begins anew: it is trusted",
    ];
    let mut rest = stderr.as_str();
    for line in lines {
        let at =
            rest.find(line).unwrap_or_else(|| panic!("no {line:?} where it should be: {stderr}"));
        rest = &rest[at..];
    }
}

#[test]
fn a_call_in_flight_ends_on_the_edition_on_which_it_began() {
    for shipped in [true, false] {
        let house = house!();
        let built = fixture("editions");
        let file = if shipped { house.ship(&built) } else { house.drop_in(&built) };
        let two = edition(&house, "two.so", &[SECOND]);
        let go = house.path().join("go");
        let mut script = answers(&[
            (nothing(), call("job", json!({ "until": go }))),
            (json!({ "tool_result": "task_1" }), put(&two, &file)),
            (nothing(), which()),
            (told("TWO", 1), put(&two, &go)),
            (nothing(), text("done")),
        ]);
        // The outcome comes with the last result or with a message of its own.
        script["repeat_last"] = true.into();
        house.script(&script);
        let chat = house.command(&["chat", "--yes"]);
        let chat = chat.variable("JAATO_SESSION_AUTO_BACKGROUND_THRESHOLD_MS", "20");
        let mut chat = Chat(chat.start());
        chat.say("go", "done");
        let stderr = chat.end(&house);
        assert!(stderr.contains("{\"ended_on\":\"ONE\"}"), "{stderr}");
    }
}

#[test]
fn a_provider_that_is_replaced_goes_on_where_it_was() {
    let house = house!();
    house.script(&answers(&[
        (nothing(), text("first")),
        (json!({ "messages": 3 }), text("second")),
        (json!({ "messages": 5 }), text("third")),
    ]));
    let file = house.shipped().join(library_name("provider_scripted"));
    let mut bytes = fs::read(&file).unwrap();
    let mut chat = Chat::start(&house);
    for answer in ["first", "second", "third"] {
        chat.say("go on", answer);
        // What stands behind the end of a library changes nothing but the file.
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
fn a_broken_file_keeps_what_was_there_and_says_why_until_it_is_mended() {
    for shipped in [true, false] {
        let house = house!();
        let built = fixture("editions");
        let file = if shipped { house.ship(&built) } else { house.drop_in(&built) };
        let two = edition(&house, "two.so", &[SECOND]);
        let torn = house.path().join("torn.so");
        fs::write(&torn, &fs::read(&two).unwrap()[..100_000]).unwrap();
        house.script(&answers(&[
            (nothing(), which()),
            (told("ONE", 1), text("first")),
            (nothing(), which()),
            (told("ONE", 2), text("second")),
            (nothing(), which()),
            (told("TWO", 3), text("third")),
        ]));
        let mut chat = Chat::start(&house);
        chat.say("a", "first");
        place(&torn, &file);
        chat.say("b", "second");
        chat.say("/plugin show fixture-editions", "it is truncated or damaged");
        chat.say("/plugin", "stays as it was, its file cannot be used any more");
        place(&two, &file);
        chat.say("c", "third");
        let stderr = chat.end(&house);
        let kept = "plugin `fixture-editions` stays as it was, its file was replaced by one that cannot be used: ";
        assert_eq!(stderr.matches(kept).count(), 1, "{stderr}");
        house.wait_for_log(kept);
    }
}

#[test]
fn an_edition_that_does_not_start_keeps_the_one_before() {
    for shipped in [true, false] {
        let house = house!();
        let built = fixture("editions");
        let file = if shipped { house.ship(&built) } else { house.drop_in(&built) };
        let bad = edition(&house, "bad.so", &[SECOND, DOES_NOT_START]);
        let two = edition(&house, "two.so", &[SECOND]);
        house.script(&answers(&[
            (nothing(), which()),
            (told("ONE", 1), put(&bad, &file)),
            (nothing(), which()),
            (told("ONE", 2), which()),
            (told("ONE", 3), text("first")),
            (nothing(), which()),
            (told("TWO", 4), text("second")),
        ]));
        let mut chat = Chat::start(&house);
        chat.say("a", "first");
        chat.say("/plugin show fixture-editions", "this edition does not start");
        place(&two, &file);
        chat.say("b", "second");
        let stderr = chat.end(&house);
        let kept = "stays as it was, what replaced it does not start: this edition does not start";
        assert_eq!(stderr.matches(kept).count(), 1, "{stderr}");
    }
}

#[test]
fn tools_that_changed_are_offered_with_the_next_turn() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    let two = edition(&house, "two.so", &[SECOND, OTHER_TOOL]);
    let before = ["edition", "get_environment", "job", "leave", "put", "tool_alpha"];
    let after = ["edition", "get_environment", "job", "leave", "put", "tool_omega"];
    house.script(&answers(&[
        (json!({ "tools": before }), which()),
        (told("ONE", 1), put(&two, &file)),
        // Still in the same turn: what was offered is what is called.
        (json!({ "tools": before }), call("tool_alpha", json!({}))),
        (json!({ "tools": before, "tool_result": "\"edition\":\"ONE\"" }), text("first")),
        (json!({ "tools": after }), call("tool_omega", json!({}))),
        (json!({ "tool_result": "\"edition\":\"TWO\"" }), which()),
        (told("TWO", 2), text("second")),
    ]));
    let mut chat = Chat::start(&house);
    chat.say("a", "first");
    chat.say("b", "second");
    let stderr = chat.end(&house);
    let changed = "the tools of this conversation changed: new `tool_omega`; gone `tool_alpha`";
    assert_eq!(stderr.matches(changed).count(), 1, "{stderr}");
}

#[test]
fn a_file_that_appears_is_offered_at_the_end_of_the_list_and_one_that_goes_stays_where_it_is_in_use()
 {
    let house = house!();
    let before = ["get_environment"];
    let more = ["edition", "job", "leave", "put", "tool_alpha"];
    let after: Vec<&str> = before.iter().chain(&more).copied().collect();
    house.script(&answers(&[
        (json!({ "tools": before }), text("first")),
        (json!({ "tools": after }), which()),
        (told("ONE", 1), text("second")),
        (json!({ "tools": &after[1..] }), which()),
        (told("ONE", 2), text("third")),
    ]));
    let mut chat = Chat::start(&house);
    chat.say("a", "first");
    let file = house.drop_in(&fixture("editions"));
    chat.say("b", "second");
    // Of the two that go only one was called.
    fs::remove_file(file).unwrap();
    fs::remove_file(house.shipped().join(library_name("tool_environment"))).unwrap();
    chat.say("c", "third");
    let stderr = chat.end(&house);
    for line in [
        "plugin `fixture-editions` 0.1.0 can be used from here on",
        "new `edition`, `job`, `leave`, `put`, `tool_alpha`",
        "the file of plugin `fixture-editions` was removed: ",
        "the file of plugin `tool-environment` was removed: ",
        "the tools of this conversation changed: gone `get_environment`",
    ] {
        assert_eq!(stderr.matches(line).count(), 1, "{line:?}: {stderr}");
    }
}

#[test]
fn what_changes_in_a_workspace_is_not_used_before_the_workspace_is_trusted_again() {
    let house = house!();
    let folder = house.workspace().join(".jaato/plugins");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("editions.so");
    fs::copy(fixture("editions"), &file).unwrap();
    house.run(&["trust"]).code(0);
    let two = edition(&house, "two.so", &[SECOND]);
    house.script(&answers(&[
        (nothing(), which()),
        (told("ONE", 1), text("first")),
        (nothing(), which()),
        (told("ONE", 2), text("second")),
        (nothing(), which()),
        (told("TWO", 3), text("third")),
    ]));
    let mut chat = Chat::start(&house);
    chat.say("a", "first");
    place(&two, &file);
    chat.say("b", "second");
    chat.say(
        "/plugin show fixture-editions",
        "its workspace changed, so it is not trusted any more",
    );
    house.run(&["trust"]).code(0);
    chat.say("c", "third");
    chat.end(&house);
}

#[test]
fn a_plugin_that_is_not_run_any_more_can_be_had_back() {
    let house = house!();
    house.drop_in(&fixture("editions"));
    let dies = || (nothing(), call("leave", json!({})));
    let mut steps = vec![(nothing(), which()), (told("ONE", 1), call("leave", json!({})))];
    steps.extend((0..4).map(|_| dies()));
    steps.push((nothing(), which()));
    steps.push((json!({ "tool_result": "is not run any more" }), text("first")));
    steps.push((nothing(), which()));
    steps.push((told("ONE", 2), text("second")));
    house.script(&answers(&steps));
    let mut chat = Chat::start(&house);
    chat.say("a", "first");
    chat.say("/plugin reload fixture-editions\nb", "second");
    let stderr = chat.end(&house);
    assert!(stderr.contains("plugin `fixture-editions` 0.1.0 begins anew"), "{stderr}");
}

#[test]
fn a_reload_in_a_conversation_says_what_came_of_it() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    house.script(&json!({ "answers": [] }));
    let mut chat = Chat::start(&house);
    chat.say("/plugin reload", "no plugin changed");
    place(&edition(&house, "two.so", &[OTHER_TOOL]), &file);
    chat.say("/plugin reload\n/plugin show fixture-editions", "tool_omega");
    chat.0.write(b"/plugin reload moon\n/plugin reload fixture-edition\n/plugin moon\n");
    let output = chat.0.finish().code(2);
    for line in [
        "plugin `fixture-editions` 0.1.0 was replaced",
        "new `tool_omega`; gone `tool_alpha`",
        "error: there is no plugin `moon`",
        "hint: did you mean `fixture-editions`?",
        "error: `/plugin` was not understood",
    ] {
        assert!(output.stderr.contains(line), "{line:?}: {output}");
    }
}

/// Calls `edition` in a session of this process; returns which it was and the number of the call.
async fn edition_in(session: &Session) -> Result<(String, u64), Error> {
    let output = session.call(&"edition".into(), json!({}), &Cancel::new()).await?;
    let (edition, number) = (&output.content["edition"], &output.content["call"]);
    Ok((edition.as_str().unwrap().to_owned(), number.as_u64().unwrap()))
}

#[test]
fn in_another_program_each_session_goes_over_by_itself() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    let two = edition(&house, "two.so", &[SECOND]);
    let other = edition(&house, "other.so", &[OTHER_TOOL]);
    house.configure("");
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let runtime = Runtime::start(setup(&house)).await;
        assert!(runtime.reload_plugins(None).await.is_err(), "it is not watched");
        let start =
            || runtime.session_for_calls(SessionOptions::unattended(Arc::new(Nobody))).unwrap();
        let first = start();
        runtime.watch_plugins().await;
        let saw = |edition: &str, number| Ok((edition.to_owned(), number));
        assert_eq!(edition_in(&first).await, saw("ONE", 1));
        place(&two, &file);
        let mut second = start();
        assert_eq!(edition_in(&second).await, saw("TWO", 1));
        assert_eq!(edition_in(&first).await, saw("TWO", 2));
        // Other tools: both stay where they are until they say that they are between turns.
        place(&other, &file);
        assert_eq!(edition_in(&first).await, saw("TWO", 3));
        second.renew_tools(&Cancel::new()).await;
        assert_eq!(edition_in(&second).await, saw("ONE", 2));
        fs::remove_file(&file).unwrap();
        assert_eq!(edition_in(&first).await, saw("TWO", 4));
        second.renew_tools(&Cancel::new()).await;
        assert_eq!(edition_in(&second).await, saw("ONE", 3));
        let third = start();
        assert_eq!(edition_in(&third).await.unwrap_err().kind, ErrorKind::UnknownTool);
        for session in [&first, &second, &third] {
            runtime.close_session(session.id()).await;
        }
        runtime.close().await;
    });
    house.nothing_lives();
}

#[test]
fn outside_of_a_conversation_plugins_are_described_again() {
    let house = house!();
    let file = house.ship(&fixture("editions"));
    let reload = |code| house.run(&["plugin", "reload", NAME]).code(code);
    let output = reload(0);
    assert!(output.stdout.starts_with("fixture-editions 0.1.0: described\n"), "{output}");
    let output = reload(0);
    assert!(output.stdout.starts_with("fixture-editions 0.1.0: as before\n"), "{output}");
    assert!(output.stdout.contains("a `jaato chat` that runs takes what is there by itself"));
    place(&edition(&house, "two.so", &[OTHER_TOOL]), &file);
    let output = reload(0);
    let changed = "fixture-editions 0.1.0: new tool `tool_omega`; no tool `tool_alpha` any more\n";
    assert!(output.stdout.starts_with(changed), "{output}");
    let all = house.run(&["plugin", "reload"]).code(0);
    assert!(all.stdout.contains("tool-environment 0.1.0: "), "{all}");
    house.run(&["plugin", "disable", NAME]).code(0);
    let left_out = "fixture-editions 0.1.0: left out, `[plugins] disabled` names it\n";
    assert_eq!(reload(0).stdout, left_out);
    house.run(&["plugin", "enable", NAME]).code(0);
    fs::write(&file, b"\x7fELF and no more").unwrap();
    let output = reload(4);
    assert!(output.stderr.contains("it is truncated or damaged"), "{output}");
    let output = house.run(&["plugin", "reload", "moon"]).code(2);
    assert!(output.stderr.contains("there is no plugin `moon`"), "{output}");
}
