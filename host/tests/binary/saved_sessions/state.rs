//! Tests that answers, model, usage, plugins and objects are as they were.

use std::fs;

use serde_json::{Value, json};

use super::{
    CONTINUE, RUN, assert_extends, only_id, request_messages, request_results, run_all, run_answer,
    session_file, session_ids, set_up_house, ship_plugins, text_answer,
};
use crate::support::cli::disable_shipped_rules;
use crate::support::openai::openai_command;
use crate::support::server::{Answer, Server};
use crate::support::{House, Output, fixture};

/// Runs a chat with these lines.
#[track_caller]
fn run_chat(house: &House, server: &Server, words: &[&str], lines: &[&str]) -> Output {
    let words = [&["chat", "--yes"], words].concat();
    openai_command(house, server, &words).input(lines.join("\n") + "\n").run().code(0)
}

/// The words of a chat that begins.
const NEW: [&str; 2] = ["--model", "openai/test"];

#[test]
fn answer_for_the_session_holds_after_it_continues() {
    let Some(house) = set_up_house() else { return };
    disable_shipped_rules(&house);
    let server =
        Server::start((0..3).flat_map(|_| [run_answer("echo one >> made"), text_answer("done")]));
    let words = ["run", "--model", "openai/test", "--output", "json", "--answers", "go"];
    let mut running = openai_command(&house, &server, &words).start();
    let line = running.wait_for("\"event\":\"permission_asked\"");
    let prompt: Value = serde_json::from_str(&line).unwrap();
    let answer =
        json!({ "call_id": prompt["call_id"], "decision": "allow_in_session", "pattern": 0 });
    running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
    running.finish().code(0);
    let id = only_id(&house);
    let made = || fs::read_to_string(house.workspace().join("made")).unwrap_or_default();
    assert_eq!(made(), "one\n");
    run_all(&house, &server, &[&["run", "--resume", &id, "again"]]).code(0);
    let first = request_results(&server.requests()[3]);
    assert_eq!(made(), "one\none\n", "{prompt:#}: {first:?}");
    // Another session asks, and no user is there to answer.
    run_all(&house, &server, &[&["run", "--model", "openai/test", "new"]]).code(6);
    assert_eq!(made(), "one\none\n");
}

#[test]
fn approval_mode_holds_unless_the_command_line_names_another() {
    let Some(house) = set_up_house() else { return };
    let tries = || [run_answer("touch made"), text_answer("done")];
    let server = Server::start((0..4).flat_map(|_| tries()));
    run_all(&house, &server, &[&RUN, &["--mode", "read-only", "go"]]).code(0);
    run_all(&house, &server, &[&CONTINUE, &["again"]]).code(0);
    assert!(!house.workspace().join("made").exists());
    run_all(&house, &server, &[&CONTINUE, &["--mode", "ask", "again"]]).code(0);
    assert!(house.workspace().join("made").exists());
    // The mode of the command line is the session's mode from then on.
    fs::remove_file(house.workspace().join("made")).unwrap();
    run_all(&house, &server, &[&CONTINUE, &["again"]]).code(0);
    assert!(house.workspace().join("made").exists());
}

#[test]
fn model_that_answered_last_continues_unless_the_command_line_names_another() {
    let Some(house) = set_up_house() else { return };
    house.configure("model = \"openai/configured\"\n");
    let server = Server::start((0..6).map(|_| text_answer("here")));
    run_all(&house, &server, &[&["run", "first"]]).code(0);
    run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
    run_all(&house, &server, &[&CONTINUE, &["--model", "openai/other", "third"]]).code(0);
    run_all(&house, &server, &[&CONTINUE, &["fourth"]]).code(0);
    let switched = ["/model openai/test", "fifth"];
    run_chat(&house, &server, &["--continue"], &switched);
    run_all(&house, &server, &[&CONTINUE, &["sixth"]]).code(0);
    let asked = server.requests();
    let models: Vec<Value> = asked.iter().map(|asked| asked.json()["model"].clone()).collect();
    assert_eq!(models, ["configured", "configured", "other", "other", "test", "test"]);
    for pair in asked.windows(2) {
        assert_extends(&pair[0], &pair[1]);
    }
}

/// Returns the models of all requests.
fn requested_models(server: &Server) -> Vec<Value> {
    server.requests().iter().map(|asked| asked.json()["model"].clone()).collect()
}

#[test]
fn mode_and_model_that_a_chat_changed_hold_in_a_copy_and_after_a_rewind() {
    let Some(house) = set_up_house() else { return };
    let makes = |name: &str| [run_answer(&format!("touch {name}")), text_answer("done")];
    let answers = [text_answer("one")].into_iter().chain(makes("copied")).chain(makes("rewound"));
    let server = Server::start(answers);
    let words = ["--mode", "read-only", "--model", "openai/test"];
    let changed = ["first", "/mode ask", "/model openai/other"];
    run_chat(
        &house,
        &server,
        &words,
        &[&changed[..], &["/fork", "second", "/rewind 2", "go"]].concat(),
    );
    assert_eq!(requested_models(&server), ["test", "other", "other", "other", "other"]);
    for name in ["copied", "rewound"] {
        assert!(house.workspace().join(name).exists(), "{name}");
    }
}

#[test]
fn another_session_has_its_own_mode_and_model_in_a_chat() {
    let Some(house) = set_up_house() else { return };
    let tries = || [run_answer("touch made"), text_answer("done")];
    let server = Server::start([text_answer("one"), text_answer("two")].into_iter().chain(tries()));
    let strict = ["run", "--mode", "read-only", "--model", "openai/strict", "first"];
    run_all(&house, &server, &[&strict]).code(0);
    let resume = format!("/resume {}", only_id(&house));
    let lines = ["hello", "/mode accept-edits", "/model openai/other", "/fork", &resume, "go"];
    run_chat(&house, &server, &["--mode", "ask", "--model", "openai/test"], &lines);
    assert_eq!(requested_models(&server), ["strict", "test", "strict", "strict"]);
    assert!(!house.workspace().join("made").exists());
}

#[test]
fn session_whose_model_is_gone_continues_with_another_one() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("one"), text_answer("two")]);
    let provider = "[providers.mine]\nplugin = \"provider-openai\"\n";
    house.configure_more(&format!("{provider}base_url = \"{}\"\n", server.base_url()));
    run_all(&house, &server, &[&["run", "--model", "mine/test", "first"]]).code(0);
    house.configure("model = \"openai/configured\"\n");
    let refused = run_all(&house, &server, &[&CONTINUE, &["second"]]).code(3);
    assert!(refused.stderr.contains("`mine`"), "{refused}");
    run_all(&house, &server, &[&CONTINUE, &["--model", "openai/test", "second"]]).code(0);
    assert_extends(&server.requests()[0], &server.requests()[1]);
}

#[test]
fn caps_count_the_usage_of_earlier_processes() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("one"), text_answer("two"), text_answer("three")]);
    run_all(&house, &server, &[&RUN, &["first"]]).code(0);
    for (cap, text) in [
        (["--max-tokens", "25"], "it has used 25 of 25 tokens"),
        (["--max-steps", "1"], "it has made 1 of 1 requests"),
    ] {
        let output = run_all(&house, &server, &[&CONTINUE, &cap, &["more"]]).code(6);
        assert!(output.stderr.contains(text), "{output}");
    }
    assert_eq!(server.requests().len(), 1);
    run_all(&house, &server, &[&CONTINUE, &["--max-steps", "2", "more"]]).code(0);
    let output = run_all(&house, &server, &[&CONTINUE, &["--max-steps", "2", "more"]]).code(6);
    assert!(output.stderr.contains("it has made 2 of 2 requests"), "{output}");
}

/// Returns answers that make and start a plan of two steps, and then complete the first one.
fn plan_answers() -> Vec<Answer> {
    let steps = json!({ "title": "Count", "steps": ["say one", "say two"] });
    let done = json!({ "step_id": "1", "status": "completed" });
    vec![
        Answer::calls(&[("createPlan", steps)]),
        Answer::calls(&[("startPlan", json!({}))]),
        text_answer("planned"),
        Answer::calls(&[("setStepStatus", done)]),
        text_answer("one"),
    ]
}

/// The plan before and after its first step.
const BEFORE: &str = "  1. pending: say one";
const AFTER: &str = "  1. completed: say one";

#[test]
fn plan_continues_and_is_taken_back_by_a_rewind() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["tool_todo"]);
    let server = Server::start(plan_answers().into_iter().chain([text_answer("instead")]));
    run_chat(&house, &server, &NEW, &["plan it", "do it"]);
    let shown = run_chat(&house, &server, &["--continue"], &["/plan", "/rewind"]);
    assert!(shown.stdout.contains(AFTER), "{shown}");
    assert!(shown.stdout.contains("   1  plan it\n   2  do it\n"), "{shown}");
    let shown = run_chat(&house, &server, &["--continue"], &["/rewind 2", "/plan", "do less"]);
    assert!(shown.stdout.contains(BEFORE) && !shown.stdout.contains(AFTER), "{shown}");
    let asked = server.requests();
    // The request is that of the second message with another text.
    assert_eq!(asked.len(), 6);
    assert_extends(&asked[2], &asked[5]);
    let (taken, instead) = (request_messages(&asked[3]), request_messages(&asked[5]));
    assert_eq!(taken.len(), instead.len());
    assert_eq!(instead.last().unwrap()["content"], "do less");
    assert_eq!(taken[..taken.len() - 1], instead[..instead.len() - 1]);
    let shown = run_chat(&house, &server, &["--continue"], &["/plan"]);
    assert!(shown.stdout.contains(BEFORE), "{shown}");
}

#[test]
fn first_message_can_be_taken_back() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["tool_todo"]);
    let server = Server::start(plan_answers().into_iter().chain([text_answer("instead")]));
    run_chat(&house, &server, &NEW, &["plan it", "do it"]);
    let shown = run_chat(&house, &server, &["--continue"], &["/rewind 1", "/plan", "do nothing"]);
    assert!(!shown.stdout.contains("say one"), "{shown}");
    let asked = server.requests();
    assert_eq!(request_messages(&asked[5]).len(), 2, "{:#?}", request_messages(&asked[5]));
    assert_eq!(request_messages(&asked[0])[0], request_messages(&asked[5])[0]);
    assert_eq!(session_ids(&house).len(), 1);
}

#[test]
fn rewind_to_a_missing_message_keeps_the_session() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("one"), text_answer("two")]);
    run_chat(&house, &server, &NEW, &["first"]);
    for number in ["0", "2", "99"] {
        let words = ["chat", "--continue"];
        let output =
            openai_command(&house, &server, &words).input(format!("/rewind {number}\n")).run();
        assert_ne!(output.code, 0, "{output}");
        assert!(output.stderr.contains(&format!("has no message {number}")), "{output}");
    }
    run_chat(&house, &server, &["--continue"], &["second"]);
    assert_extends(&server.requests()[0], &server.requests()[1]);
}

#[test]
fn fork_leaves_the_original_unchanged() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["tool_todo"]);
    let script = plan_answers().into_iter().chain([text_answer("instead"), text_answer("further")]);
    let server = Server::start(script);
    run_chat(&house, &server, &NEW, &["plan it", "do it"]);
    let original = only_id(&house);
    let before = fs::read(session_file(&house, &original)).unwrap();
    let shown = run_chat(&house, &server, &["--resume", &original], &["/fork 2", "/plan", "other"]);
    assert!(shown.stdout.contains(BEFORE) && !shown.stdout.contains(AFTER), "{shown}");
    let after = fs::read(session_file(&house, &original)).unwrap();
    assert!(
        before == after,
        "{}",
        String::from_utf8_lossy(&after[before.len().min(after.len())..])
    );
    let ids = session_ids(&house);
    assert_eq!(ids.len(), 2);
    let copy = ids.iter().find(|id| **id != original).unwrap();
    let asked = server.requests();
    assert_extends(&asked[2], &asked[5]);
    let shown = run_chat(&house, &server, &["--resume", &original], &["/plan"]);
    assert!(shown.stdout.contains(AFTER), "{shown}");
    let shown = run_chat(&house, &server, &["--resume", copy], &["/plan", "more"]);
    assert!(shown.stdout.contains(BEFORE), "{shown}");
    assert_extends(&server.requests()[5], &server.requests()[6]);
}

#[test]
fn rewind_of_a_copy_takes_back_the_edits_that_it_shares_with_the_original() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["tool_file_edit"]);
    for name in ["a.txt", "b.txt"] {
        house.write(&format!("workspace/{name}"), "one\n");
    }
    let edit = |path: &str, old: &str, new: &str| {
        let edit = json!({ "path": path, "old": old, "new": new });
        [Answer::calls(&[("updateFile", edit)]), text_answer("done")]
    };
    let edits = [edit("a.txt", "one", "two"), edit("b.txt", "one", "mine")];
    let server = Server::start(edits.into_iter().flatten());
    run_chat(&house, &server, &NEW, &["edit"]);
    let original = only_id(&house);
    let copy = house.run(&["session", "fork", &original]).code(0).stdout;
    // The copy has no part in this edit.
    run_chat(&house, &server, &["--resume", &original], &["edit more"]);
    let shown = run_chat(&house, &server, &["--resume", copy.trim()], &["/rewind 1 files"]);
    assert!(shown.stderr.contains("undid changes in: a.txt\n"), "{shown}");
    let text = |name: &str| fs::read_to_string(house.workspace().join(name)).unwrap();
    assert_eq!((text("a.txt"), text("b.txt")), ("one\n".to_owned(), "mine\n".to_owned()));
}

#[test]
fn whole_session_is_forked_without_a_number() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("one"), text_answer("two"), text_answer("three")]);
    run_chat(&house, &server, &NEW, &["first"]);
    let original = only_id(&house);
    run_chat(&house, &server, &["--resume", &original], &["/fork", "second"]);
    assert_eq!(session_ids(&house).len(), 2);
    assert_extends(&server.requests()[0], &server.requests()[1]);
    run_chat(&house, &server, &["--resume", &original], &["third"]);
    let last = request_messages(&server.requests()[2]);
    assert!(!last.iter().any(|message| message["content"] == "second"), "{last:#?}");
}

#[test]
fn chat_changes_to_another_session_and_back() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start((0..4).map(|_| text_answer("yes")));
    run_chat(&house, &server, &NEW, &["first"]);
    let first = only_id(&house);
    run_chat(&house, &server, &NEW, &["another"]);
    let another = session_ids(&house).into_iter().find(|id| *id != first).unwrap();
    let (there, back) = (format!("/resume {first}"), format!("/resume {another}"));
    let lines = [there.as_str(), "second", back.as_str(), "one more"];
    run_chat(&house, &server, &["--resume", &another], &lines);
    let asked = server.requests();
    assert_extends(&asked[0], &asked[2]);
    assert_extends(&asked[1], &asked[3]);
}

#[test]
fn objects_with_hidden_values_continue_and_are_taken_back_by_a_rewind() {
    let Some(house) = set_up_house() else { return };
    house.ship(&fixture("finds"));
    let find = json!({ "count": 1, "collection": "pond" });
    let change = |how: &str| Answer::calls(&[("change_animals", json!({ "how": how }))]);
    let server = Server::start([
        Answer::calls(&[("find_animals", find)]),
        text_answer("a frog"),
        change("replace"),
        text_answer("a toad"),
        change("look"),
        text_answer("looked"),
    ]);
    run_chat(&house, &server, &NEW, &["find", "change"]);
    let shown = run_chat(&house, &server, &["--continue"], &["/objects hidden", "look"]);
    let hidden = "\"hidden_environment\": {\n    \"raw\": {\n      \"bytes\": 3\n    }\n  }";
    assert!(shown.stdout.contains("toad") && shown.stdout.contains(hidden), "{shown}");
    assert!(!shown.stdout.contains("\"animal\": \"frog\""), "{shown}");
    let look = request_results(&server.requests()[5]).pop().unwrap();
    assert!(look.contains(r#"\"raw\":[1,2,3]"#) && look.contains("toad"), "{look}");
    let shown = run_chat(&house, &server, &["--continue"], &["/rewind 2", "/objects hidden"]);
    assert!(shown.stdout.contains("\"animal\": \"frog\""), "{shown}");
    assert!(shown.stdout.contains(hidden) && !shown.stdout.contains("toad"), "{shown}");
    let shown = run_chat(&house, &server, &["--continue"], &["/rewind 1", "/objects hidden"]);
    assert!(!shown.stdout.contains("frog") && !shown.stdout.contains("bytes"), "{shown}");
}

#[test]
fn name_of_a_session_survives_a_rewind() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("one"), text_answer("two")]);
    run_chat(&house, &server, &NEW, &["first", "/rename my moon", "second", "/rewind 2"]);
    let text = fs::read_to_string(session_file(&house, &only_id(&house))).unwrap();
    assert!(text.contains(r#""type":"name","data":{"name":"my moon"}"#), "{text}");
}

#[test]
fn plugin_state_with_a_key_is_restored() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["tool_todo"]);
    // The state of a plugin is a frame with a length. One of these lengths makes it valid UTF-8.
    for padding in [1, 129] {
        let steps = [crate::support::openai::SECRET.to_owned(), "x".repeat(padding)];
        let plan = json!({ "title": "Count", "steps": steps });
        let server =
            Server::start([Answer::calls(&[("createPlan", plan)]), text_answer("planned")]);
        run_chat(&house, &server, &NEW, &["plan it"]);
        let shown = run_chat(&house, &server, &["--continue"], &["/plan"]);
        assert!(shown.stdout.contains("Count"), "{padding}: {shown}");
        fs::remove_dir_all(super::sessions_folder(&house)).unwrap();
    }
}

#[test]
fn stricter_mode_than_the_configured_one_holds() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["tool_file_edit"]);
    house.write("workspace/a.txt", "one\n");
    house.configure_more("[permissions]\nmode = \"accept-edits\"\n");
    let edit = json!({ "path": "a.txt", "old": "one", "new": "two" });
    let tries = || [Answer::calls(&[("updateFile", edit.clone())]), text_answer("done")];
    let server = Server::start((0..3).flat_map(|_| tries()));
    let content = || fs::read_to_string(house.workspace().join("a.txt")).unwrap();
    let begin = ["run", "--model", "openai/test"];
    run_all(&house, &server, &[&begin, &["--mode", "ask", "go"]]).code(6);
    run_all(&house, &server, &[&["run", "--continue", "again"]]).code(6);
    assert_eq!(content(), "one\n");
    // Without the option, the configured mode lets the edit pass.
    run_all(&house, &server, &[&begin, &["go"]]).code(0);
    assert_eq!(content(), "two\n");
}
