//! Tests the whole life of a session: killed, resumed, forked, rewound, exported, imported and
//! followed.

use std::fs;

use serde_json::{Value, json};

use super::{
    RUN, assert_extends, only_id, request_messages, request_results, run_all, run_answer,
    session_file, session_ids, set_up_house, ship_plugins, text_answer, wait_for_record,
    wait_for_requests,
};
use crate::support::openai::openai_command;
use crate::support::server::{
    Answer, AnswerGate, BodyStep, ReceivedRequest, Server, choice_events, stream_end,
};
use crate::support::{House, Output, fixture};

/// The command that the user allows for the session.
const ALLOWED: &str = "echo one >> made";

/// The part of a message that lists the tasks that ended with the previous process.
const ENDED: &str = "What ran in the background ended";

/// The hidden value in the list of objects.
const HIDDEN: &str = "\"hidden_environment\": {\n    \"raw\": {\n      \"bytes\": 3\n    }\n  }";

/// The plan before and after its first step.
const PENDING: &str = "  1. pending: say one";
const COMPLETED: &str = "  1. completed: say one";

/// A session with its model.
struct SavedChat {
    house: House,
    server: Server,
    id: String,
}

impl SavedChat {
    /// Runs a chat that continues a session, with these lines.
    #[track_caller]
    fn continue_chat(&self, id: &str, lines: &[&str]) -> Output {
        let words = ["chat", "--yes", "--resume", id];
        let input = lines.join("\n") + "\n";
        openai_command(&self.house, &self.server, &words).input(input).run().code(0)
    }

    fn request_at(&self, at: usize) -> ReceivedRequest {
        self.server.requests().swap_remove(at)
    }

    /// Returns the text of a file of the workspace.
    fn file_text(&self, name: &str) -> String {
        fs::read_to_string(self.house.workspace().join(name)).unwrap_or_default()
    }
}

fn edit_call(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("updateFile", json!({ "path": path, "old": old, "new": new }))
}

/// Returns the answers of the model, one per request.
fn scripted_answers() -> Vec<Answer> {
    let find = ("find_animals", json!({ "count": 1, "collection": "pond" }));
    let look = ("change_animals", json!({ "how": "look" }));
    let allowed = ("cli_based_tool", json!({ "command": ALLOWED }));
    let plan = ("createPlan", json!({ "title": "Count", "steps": ["say one", "say two"] }));
    let start = ("startPlan", json!({}));
    let complete = ("setStepStatus", json!({ "step_id": "1", "status": "completed" }));
    let waits = json!({ "command": "cat >/dev/null; sleep 600" });
    let task = json!({ "tool_name": "cli_based_tool", "arguments": waits });
    let terminal = json!({ "command": "cat", "session_name": "cats" });
    vec![
        // 0: "begin"
        Answer::calls(&[find, allowed.clone()]),
        text_answer("begun"),
        // 2: "edit"
        Answer::calls(&[plan]),
        Answer::calls(&[start, edit_call("a.txt", "one", "two"), edit_call("b.txt", "one", "two")]),
        text_answer("edited"),
        // 5: "start both"
        Answer::calls(&[("startBackgroundTask", task)]),
        Answer::calls(&[("shell_spawn", terminal)]),
        Answer::stream(vec![BodyStep::Hang]),
        // 8: "please continue"
        Answer::calls(&[allowed, look.clone()]),
        text_answer("well"),
        // 10: "edit again"
        Answer::calls(&[edit_call("a.txt", "two", "three"), complete]),
        text_answer("edited again"),
        // 12: "edit in the copy"
        Answer::calls(&[edit_call("a.txt", "three", "four")]),
        text_answer("edited in the copy"),
        // 14: "instead"
        text_answer("done instead"),
        // 15: "start over"
        Answer::calls(&[look]),
        text_answer("started over"),
    ]
}

/// Begins a session. The user allows a command for the session.
#[track_caller]
fn begin_life() -> Option<SavedChat> {
    let house = set_up_house()?;
    ship_plugins(
        &house,
        &["tool_background", "tool_interactive_shell", "tool_file_edit", "tool_todo"],
    );
    house.ship(&fixture("finds"));
    house.write("workspace/a.txt", "one\n");
    house.write("workspace/b.txt", "one\n");
    let server = Server::start(scripted_answers());
    let words = ["run", "--model", "openai/test", "--allow", "find_animals"];
    let words = [&words[..], &["--output", "json", "--answers", "begin"]].concat();
    let mut running = openai_command(&house, &server, &words).start();
    let line = running.wait_for("\"event\":\"permission_asked\"");
    let asked: Value = serde_json::from_str(&line).unwrap();
    let answer =
        json!({ "call_id": asked["call_id"], "decision": "allow_in_session", "pattern": 0 });
    running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
    running.finish().code(0);
    let id = only_id(&house);
    Some(SavedChat { house, server, id })
}

/// Continues in a chat that edits files and starts a task and a terminal, and kills it.
#[track_caller]
fn check_killed_chat(life: &SavedChat) {
    let words = ["chat", "--yes", "--resume", &life.id];
    let mut running = openai_command(&life.house, &life.server, &words).start();
    running.write(b"edit\nstart both\n");
    wait_for_requests(&life.server, 8);
    wait_for_record(&life.house, |record| {
        let background = record["data"]["background"].to_string();
        background.contains("cats") && background.contains("cli_based_tool")
    });
    running.send_signal("KILL");
    running.wait_with_open_input().code(137);
    life.house.assert_no_processes();
    assert_eq!(life.file_text("a.txt") + &life.file_text("b.txt"), "two\ntwo\n");
}

/// Resumes the session. It has its objects, its plan and the user's answer.
#[track_caller]
fn check_resumed(life: &SavedChat) {
    let SavedChat { house, server, id } = life;
    let words = ["run", "--allow", "change_animals", "--resume", id, "please continue"];
    run_all(house, server, &[&words]).code(0);
    let told = request_messages(&life.request_at(8)).pop().unwrap().to_string();
    for part in ["please continue", ENDED, "cats", "cli_based_tool"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(life.file_text("made"), "one\none\n", "the user's answer still applies");
    let look = request_results(&life.request_at(9)).pop().unwrap();
    assert!(look.contains(r#"\"raw\":[1,2,3]"#) && look.contains("frog"), "{look}");

    let lines = ["/plan", "/objects hidden", "edit again", "/plan", "/rewind"];
    let shown = life.continue_chat(id, &lines);
    let (earlier, last) = ("   1  begin\n   2  edit\n   3  start both\n", "   5  edit again\n");
    for part in [PENDING, COMPLETED, HIDDEN, earlier, last] {
        assert!(shown.stdout.contains(part), "{part}: {shown}");
    }
    let told = request_messages(&life.request_at(10)).pop().unwrap().to_string();
    assert!(!told.contains(ENDED), "it is reported only once: {told}");
    assert_eq!(life.file_text("a.txt"), "three\n");
}

/// Forks the session, undoes an edit in the copy, and exports the copy to `talk.jsonl`. Returns the
/// id of the copy.
#[track_caller]
fn check_fork(life: &SavedChat) -> String {
    let SavedChat { house, id, .. } = life;
    let before = fs::read(session_file(house, id)).unwrap();
    let lines = ["/fork", "edit in the copy", "/rewind 6 files", "instead", "/plan"];
    let shown = life.continue_chat(id, &[&lines[..], &["/export talk.jsonl"]].concat());
    assert!(before == fs::read(session_file(house, id)).unwrap(), "the original is unchanged");
    assert!(shown.stderr.contains("undid changes in: a.txt\n"), "{shown}");
    assert!(shown.stdout.contains(COMPLETED), "{shown}");
    assert_eq!(life.file_text("a.txt"), "three\n");
    let asked = life.server.requests();
    for pair in asked[..14].windows(2) {
        assert_extends(&pair[0], &pair[1]);
    }
    assert_extends(&asked[11], &asked[14]);
    assert_eq!(request_messages(&asked[12]).len(), request_messages(&asked[14]).len());
    let ids = session_ids(house);
    assert_eq!(ids.len(), 2);
    ids.into_iter().find(|copy| copy != id).unwrap()
}

/// Takes back messages and files of the original. A file that the user changed is kept.
#[track_caller]
fn check_rewind(life: &SavedChat) {
    let SavedChat { house, id, .. } = life;
    house.write("workspace/b.txt", "mine\n");
    let rewound = house.run(&["session", "rewind", id, "--to", "2", "--files"]).code(0);
    assert_eq!(rewound.stdout, "took back message 2 and everything after it\n");
    assert!(rewound.stderr.contains("undid changes in: a.txt\n"), "{rewound}");
    assert!(rewound.stderr.contains("b.txt has changed since"), "{rewound}");
    assert_eq!(life.file_text("a.txt") + &life.file_text("b.txt"), "one\nmine\n");

    let shown = life.continue_chat(id, &["/plan", "/objects hidden", "start over"]);
    assert!(shown.stdout.contains(HIDDEN) && shown.stdout.contains("frog"), "{shown}");
    assert!(!shown.stdout.contains("say one"), "{shown}");
    assert_extends(&life.request_at(1), &life.request_at(15));
    let sent = request_messages(&life.request_at(15));
    assert_eq!(sent.len(), request_messages(&life.request_at(2)).len());
    let before = request_messages(&life.request_at(2)).pop().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned();
    // The model sees the same objects as with the message that was taken back.
    assert_eq!(sent.last().unwrap()["content"], before.replace("\nedit", "\nstart over"));
    let look = request_results(&life.request_at(16)).pop().unwrap();
    assert!(look.contains(r#"\"raw\":[1,2,3]"#) && look.contains("frog"), "{look}");
}

/// Imports the copy into another home, where it continues.
#[track_caller]
fn check_import(life: &SavedChat, copy: &str, other: &House) {
    let exported = life.house.workspace().join("talk.jsonl");
    let printed =
        life.house.run(&["session", "export", copy, "--format", "json"]).expect_silent().stdout;
    assert_eq!(printed, fs::read_to_string(&exported).unwrap());
    let imported = other.run(&["session", "import", exported.to_str().unwrap()]).code(0);
    assert!(imported.stdout.starts_with(&format!("imported session {copy} (")), "{imported}");
    let server = Server::start([text_answer("here too"), text_answer("still here")]);
    let output = run_all(other, &server, &[&RUN, &["--resume", copy, "and here"]]).code(0);
    assert_eq!(output.stdout, "here too\n");
    run_all(other, &server, &[&["run", "--resume", copy, "and now"]]).code(0);
    let asked = server.requests();
    assert_extends(&asked[0], &asked[1]);
    // Each home has its own system prompt.
    let (before, after) = (request_messages(&life.request_at(14)), request_messages(&asked[0]));
    assert_eq!(before[1..], after[1..before.len()]);
    let new: Vec<&Value> =
        after[before.len()..].iter().map(|message| &message["content"]).collect();
    assert_eq!(new, ["done instead", "and here"]);
}

#[test]
fn killed_chat_is_resumed_forked_rewound_exported_and_imported() {
    let Some(life) = begin_life() else { return };
    let Some(other) = set_up_house() else { return };
    check_killed_chat(&life);
    check_resumed(&life);
    let copy = check_fork(&life);
    check_rewind(&life);
    check_import(&life, &copy, &other);
    assert_eq!(life.file_text("made"), "one\none\n", "no call was repeated");
    life.house.assert_no_processes();
    other.assert_no_processes();
}

#[test]
fn follow_prints_the_messages_of_a_turn_that_another_process_runs() {
    let Some(house) = set_up_house() else { return };
    let gate = AnswerGate::closed();
    let said = choice_events(&[json!({ "delta": { "content": "two" }, "finish_reason": "stop" })]);
    let held =
        vec![BodyStep::Wait(gate.clone()), BodyStep::Bytes(said), BodyStep::Bytes(stream_end())];
    let server = Server::start([text_answer("one"), run_answer("echo moon"), Answer::stream(held)]);
    let words = ["chat", "--yes", "--model", "openai/test", "first"];
    let mut running = openai_command(&house, &server, &words).start();
    running.wait_for_text("one");
    wait_for_record(&house, |record| record["data"]["role"] == "model");
    let id = only_id(&house);
    let following = house.command(&["session", "follow", &id, "--output", "json"]).start();
    following.wait_for_error("Ctrl-C ends");
    running.write(b"second\n");
    for (role, part) in [("user", "second"), ("model", "echo moon"), ("tool", "moon")] {
        let line = following.next_line();
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["role"], role, "{line}");
        assert!(message["parts"].to_string().contains(part), "{line}");
    }
    following.send_signal("INT");
    following.wait_with_open_input().code(0);
    gate.open();
    running.wait_for_text("two");
    running.finish().code(0);
    house.assert_no_processes();
}
