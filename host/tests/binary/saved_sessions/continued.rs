//! Tests that a conversation continues as it was.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{
    CONTINUE, RUN, assert_extends, only_id, request_messages, request_results, run_all, run_answer,
    session_file, session_ids, sessions_folder, set_up_house, ship_plugins, text_answer,
    wait_for_record, wait_for_requests,
};
use crate::support::openai::{SECRET, openai_command};
use crate::support::server::{Answer, AnswerGate, BodyStep, Server};
use crate::support::{Command, fixture, set_mode};
use crate::terminal::run_on_terminal;
use crate::vendors::PNG;

#[test]
fn continued_run_sends_the_whole_earlier_conversation_unchanged() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([
        run_answer("echo one"),
        Answer::calls(&[
            ("get_environment", json!({ "aspect": "os" })),
            ("cli_based_tool", json!({ "command": "echo two" })),
        ]),
        text_answer("first done"),
        run_answer("echo three"),
        text_answer("second done"),
        text_answer("third done"),
    ]);
    run_all(&house, &server, &[&RUN, &["first"]]).code(0);
    let id = only_id(&house);
    let second = run_all(&house, &server, &[&CONTINUE, &["second"]]).code(0);
    assert_eq!(second.stdout, "second done\n");
    run_all(&house, &server, &[&["run", "--yes", "--resume", &id, "third"]]).code(0);
    let asked = server.requests();
    assert_eq!(asked.len(), 6);
    for pair in asked.windows(2) {
        assert_extends(&pair[0], &pair[1]);
    }
    let all = request_messages(&asked[5]);
    let roles: Vec<&str> = all.iter().map(|message| message["role"].as_str().unwrap()).collect();
    let first = ["system", "user", "assistant", "tool", "assistant", "tool", "tool", "assistant"];
    let rest = ["user", "assistant", "tool", "assistant", "user"];
    assert_eq!(roles, [first.as_slice(), &rest].concat());
    assert_eq!(session_ids(&house), [id], "it is still the same session");
    house.assert_no_processes();
}

#[test]
fn session_is_found_by_a_part_of_its_id_and_a_missing_one_is_an_error() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("one"), text_answer("two"), text_answer("three")]);
    let refused = run_all(&house, &server, &[&CONTINUE, &["go"]]).code(1);
    assert!(refused.stderr.contains("this workspace has no saved session"), "{refused}");
    run_all(&house, &server, &[&RUN, &["first"]]).code(0);
    let id = only_id(&house);
    run_all(&house, &server, &[&RUN, &["another"]]).code(0);
    let (_, end) = id.rsplit_once('-').unwrap();
    run_all(&house, &server, &[&["run", "--resume", end, "second"]]).code(0);
    assert_extends(&server.requests()[0], &server.requests()[2]);
    let refused = run_all(&house, &server, &[&["run", "--resume", "nothing-here", "go"]]);
    assert!(refused.stderr.contains("there is no session `nothing-here`"), "{refused}");
    assert_ne!(refused.code, 0);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn newest_session_is_that_of_the_same_workspace() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("one"), text_answer("two"), text_answer("three")]);
    run_all(&house, &server, &[&RUN, &["here"]]).code(0);
    let elsewhere = house.path().join("elsewhere");
    fs::create_dir_all(elsewhere.join(".git")).unwrap();
    let words = [RUN.as_slice(), &["there"]].concat();
    openai_command(&house, &server, &words).directory(&elsewhere).run().code(0);
    run_all(&house, &server, &[&CONTINUE, &["again"]]).code(0);
    assert_extends(&server.requests()[0], &server.requests()[2]);
}

#[test]
fn nothing_is_saved_on_request_or_without_a_message() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("one"), text_answer("two")]);
    run_all(&house, &server, &[&RUN, &["--no-save", "secretly"]]).code(0);
    assert!(!sessions_folder(&house).exists());
    let chat = |words: &[&str], input: &str| {
        let words = [&["chat", "--model", "openai/test"], words].concat();
        openai_command(&house, &server, &words).input(input).run().code(0)
    };
    chat(&["--no-save"], "secretly\n");
    chat(&[], "/help\n\n/quit\n");
    assert!(!sessions_folder(&house).exists());
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn session_that_is_not_saved_has_no_commands_for_it() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("one")]);
    for command in ["/rewind 1", "/fork", "/rename a name"] {
        let words = ["chat", "--model", "openai/test", "--no-save"];
        let output =
            openai_command(&house, &server, &words).input(format!("{command}\n")).run().code(2);
        assert!(output.stderr.contains("this session is not saved"), "{command}: {output}");
    }
    assert!(!sessions_folder(&house).exists());
}

#[test]
fn attached_image_is_sent_again_by_a_later_process() {
    let Some(house) = set_up_house() else { return };
    fs::write(house.workspace().join("moon.png"), PNG).unwrap();
    let server = Server::start([text_answer("a moon"), text_answer("still a moon")]);
    run_all(&house, &server, &[&RUN, &["--attach", "moon.png", "what is this?"]]).code(0);
    fs::remove_file(house.workspace().join("moon.png")).unwrap();
    run_all(&house, &server, &[&CONTINUE, &["and now?"]]).code(0);
    let asked = server.requests();
    assert_extends(&asked[0], &asked[1]);
    let url = request_messages(&asked[1])[1]["content"][0]["image_url"]["url"].clone();
    assert!(url.as_str().unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"), "{url}");
}

#[test]
fn chat_on_a_terminal_says_how_to_come_back_and_shows_where_it_stopped() {
    let Some(house) = set_up_house() else { return };
    house.configure("model = \"openai/test\"\n");
    let server = Server::start([text_answer("The moon is far."), text_answer("It still is.")]);
    let with_server = |command: Command| {
        let command = command.variable("OPENAI_BASE_URL", server.base_url());
        command.variable("OPENAI_API_KEY", SECRET)
    };
    let begin = "chat 'how far is it?'";
    let Some(mut running) = run_on_terminal(&house, begin, with_server) else { return };
    running.wait_for_text("The moon is far.");
    running.wait_for_text("> ");
    running.write(b"/quit\n");
    let output = running.wait_with_open_input().code(0);
    let id = only_id(&house);
    let way = format!("`jaato chat --resume {id}` continues this session");
    assert!(output.stdout.contains(&way), "{output}");
    let words = format!("chat --resume {id}");
    let Some(mut running) = run_on_terminal(&house, &words, with_server) else { return };
    running.wait_for_text("how far is it?");
    running.wait_for_text("The moon is far.");
    running.wait_for_text("> ");
    running.write(b"and now?\n");
    running.wait_for_text("It still is.");
    running.wait_for_text("> ");
    running.write(b"/quit\n");
    running.wait_with_open_input().code(0);
    assert_extends(&server.requests()[0], &server.requests()[1]);
    house.assert_no_processes();
}

#[test]
fn hangup_during_a_turn_saves_the_partial_answer() {
    let Some(house) = set_up_house() else { return };
    let delta = json!({ "delta": { "content": "half a thought" } });
    let half =
        Answer::stream(vec![BodyStep::Bytes(crate::support::server::choice_events(&[delta]))]);
    let server =
        Server::start([run_answer("echo one"), half.then(BodyStep::Hang), text_answer("whole")]);
    let words = [RUN.as_slice(), &["--output", "json", "think"]].concat();
    let running = openai_command(&house, &server, &words).no_input().start();
    running.wait_for("half a thought");
    running.send_signal("HUP");
    running.wait_with_open_input().code(130);
    server.wait_until_disconnected();
    run_all(&house, &server, &[&CONTINUE, &["please continue"]]).code(0);
    let asked = server.requests();
    assert_extends(&asked[1], &asked[2]);
    let all = request_messages(&asked[2]);
    let partial = all[all.len() - 2].to_string();
    assert!(partial.contains("half a thought"), "{partial}");
    house.assert_no_processes();
}

#[test]
fn hangup_during_a_call_ends_the_call_and_saves_that() {
    let Some(house) = set_up_house() else { return };
    let waits = "echo begun >> begun; until test -e never; do sleep 0.01; done";
    let server = Server::start([run_answer(waits), text_answer("whole")]);
    let words = [RUN.as_slice(), &["wait"]].concat();
    let running = openai_command(&house, &server, &words).no_input().start();
    house.wait_for_file(&house.workspace().join("begun"));
    running.send_signal("HUP");
    running.wait_with_open_input().code(130);
    house.assert_no_processes();
    run_all(&house, &server, &[&CONTINUE, &["please continue"]]).code(0);
    let asked = server.requests();
    assert_extends(&asked[0], &asked[1]);
    let results = request_results(&asked[1]);
    assert_eq!(results.len(), 1);
    assert!(results[0].contains("cancelled"), "{results:?}");
    let begun = fs::read_to_string(house.workspace().join("begun")).unwrap();
    assert_eq!(begun, "begun\n");
}

#[test]
fn conversation_is_saved_while_an_answer_comes() {
    let Some(house) = set_up_house() else { return };
    let gate = AnswerGate::closed();
    let server =
        Server::start([Answer::stream(vec![BodyStep::Wait(gate.clone())]), text_answer("whole")]);
    let words = [RUN.as_slice(), &["think"]].concat();
    let running = openai_command(&house, &server, &words).no_input().start();
    wait_for_record(&house, |record| record["type"] == "message");
    wait_for_requests(&server, 1);
    running.send_signal("KILL");
    running.wait_with_open_input().code(137);
    gate.open();
    let text = fs::read_to_string(session_file(&house, &only_id(&house))).unwrap();
    assert!(text.contains("think"), "{text}");
    run_all(&house, &server, &[&CONTINUE, &["please continue"]]).code(0);
    let all = request_messages(&server.requests()[1]);
    assert_eq!(all[1]["content"], "think");
    assert_eq!(all.last().unwrap()["content"], "please continue");
}

#[test]
fn session_of_format_1_continues() {
    const ID: &str = "20261128-121314-k3f9qz";
    let Some(house) = set_up_house() else { return };
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions/tests/fixtures/version-1");
    let (from, to) = (fixture.join(ID), sessions_folder(&house).join(ID));
    for folder in ["", "attachments"] {
        fs::create_dir_all(to.join(folder)).unwrap();
        set_mode(&to.join(folder), 0o700);
        for entry in fs::read_dir(from.join(folder)).unwrap().flatten() {
            if entry.file_type().unwrap().is_file() {
                let copy = to.join(folder).join(entry.file_name());
                fs::copy(entry.path(), &copy).unwrap();
                set_mode(&copy, 0o600);
            }
        }
    }
    set_mode(&sessions_folder(&house), 0o700);
    let server = Server::start([text_answer("Venus is bright."), text_answer("It is.")]);
    let first = ["run", "--model", "openai/test", "--resume", "k3f9qz", "And Venus?"];
    run_all(&house, &server, &[&first]).code(0);
    run_all(&house, &server, &[&["run", "--resume", ID, "Is it?"]]).code(0);
    let asked = server.requests();
    assert_extends(&asked[0], &asked[1]);
    let sent = request_messages(&asked[1]);
    let texts: Vec<&Value> = sent.iter().rev().map(|message| &message["content"]).collect();
    let expected = ["Is it?", "Venus is bright.", "And Venus?", "Mars is red.", "And Mars?"];
    assert_eq!(texts[..5], expected);
    // The turn before was forgotten.
    assert_eq!(sent[texts.len() - 6]["role"], "system");
}

#[test]
fn collected_turns_stay_collected() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["gc_truncate"]);
    house.configure_more("[gc]\npreserve_recent_turns = 1\n");
    let server = Server::start(["one", "two", "three", "four"].map(text_answer));
    let words = ["chat", "--model", "openai/test"];
    openai_command(&house, &server, &words).input("a\nb\n/gc\nc\n").run().code(0);
    run_all(&house, &server, &[&CONTINUE, &["d"]]).code(0);
    let asked = server.requests();
    assert_eq!(request_messages(&asked[2]).len(), 4, "{:#?}", request_messages(&asked[2]));
    assert_extends(&asked[2], &asked[3]);
}

#[test]
fn model_learns_what_ended_with_the_process_before() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["tool_background", "tool_interactive_shell"]);
    let arguments = json!({ "command": "echo begun >> begun; cat >/dev/null; sleep 600" });
    let task = json!({ "tool_name": "cli_based_tool", "arguments": arguments });
    let server = Server::start([
        Answer::calls(&[("startBackgroundTask", task)]),
        Answer::calls(&[("shell_spawn", json!({ "command": "cat", "session_name": "cats" }))]),
        Answer::stream(vec![BodyStep::Hang]),
        text_answer("well"),
        text_answer("better"),
    ]);
    let words = [RUN.as_slice(), &["begin"]].concat();
    let running = openai_command(&house, &server, &words).no_input().start();
    wait_for_requests(&server, 3);
    wait_for_record(&house, |record| {
        let background = record["data"]["background"].to_string();
        background.contains("cats") && background.contains("cli_based_tool")
    });
    running.send_signal("KILL");
    running.wait_with_open_input().code(137);
    house.assert_no_processes();
    run_all(&house, &server, &[&CONTINUE, &["please continue"]]).code(0);
    let asked = server.requests();
    let told = request_messages(&asked[3]).pop().unwrap().to_string();
    for part in ["please continue", "What ran in the background ended", "cats", "cli_based_tool"] {
        assert!(told.contains(part), "{told}");
    }
    run_all(&house, &server, &[&CONTINUE, &["once more"]]).code(0);
    let told = request_messages(&server.requests()[4]).pop().unwrap().to_string();
    assert!(!told.contains("What ran in the background"), "it is reported only once: {told}");
}

#[test]
fn user_chooses_a_session_if_none_is_named() {
    let Some(house) = set_up_house() else { return };
    house.configure("model = \"openai/test\"\n");
    let server = Server::start([text_answer("one"), text_answer("two")]);
    run_all(&house, &server, &[&["run", "tell me of the moon"]]).code(0);
    let refused = run_all(&house, &server, &[&["run", "go", "--resume"]]).code(2);
    assert!(refused.stderr.contains("needs the id of a session"), "{refused}");
    let with_server = |command: Command| {
        let command = command.variable("OPENAI_BASE_URL", server.base_url());
        command.variable("OPENAI_API_KEY", SECRET)
    };
    let Some(mut running) = run_on_terminal(&house, "chat --resume", with_server) else { return };
    running.wait_for_text("Which session should continue?");
    running.wait_for_text("tell me of the moon");
    running.wait_for_question();
    running.write(b"1\n");
    running.wait_for_text("> ");
    running.write(b"and the sun\n");
    running.wait_for_text("two");
    running.wait_for_text("> ");
    running.write(b"/quit\n");
    running.wait_with_open_input().code(0);
    assert_extends(&server.requests()[0], &server.requests()[1]);
}

#[test]
fn hangup_of_a_chat_saves_its_turn() {
    let Some(house) = set_up_house() else { return };
    house.configure("model = \"openai/test\"\n");
    let server = Server::start([
        text_answer("one"),
        Answer::stream(vec![BodyStep::Hang]),
        text_answer("three"),
    ]);
    let mut running = openai_command(&house, &server, &["chat", "first"]).start();
    running.wait_for_text("one");
    running.write(b"second\n");
    wait_for_requests(&server, 2);
    running.send_signal("HUP");
    running.wait_with_open_input().code(130);
    house.assert_no_processes();
    run_all(&house, &server, &[&CONTINUE, &["third"]]).code(0);
    let asked = server.requests();
    assert_extends(&asked[0], &asked[2]);
    let sent = request_messages(&asked[2]);
    assert_eq!((&sent[3]["content"], &sent[5]["content"]), (&json!("second"), &json!("third")));
    assert_eq!(sent[4]["role"], "assistant");
}

#[test]
fn chat_that_continues_does_not_ask_for_a_model() {
    let Some(house) = set_up_house() else { return };
    let server = Server::start([text_answer("one"), text_answer("two")]);
    run_all(&house, &server, &[&RUN, &["first"]]).code(0);
    let with_server = |command: Command| {
        let command = command.variable("OPENAI_BASE_URL", server.base_url());
        command.variable("OPENAI_API_KEY", SECRET)
    };
    let Some(mut running) = run_on_terminal(&house, "chat --continue", with_server) else { return };
    running.wait_for_text("> ");
    running.write(b"second\n");
    running.wait_for_text("two");
    running.wait_for_text("> ");
    running.write(b"/quit\n");
    let output = running.wait_with_open_input().code(0);
    assert!(!output.stdout.contains("Which model"), "{output}");
}

#[test]
fn session_continues_in_its_folder_with_its_options_of_the_environment() {
    let Some(house) = set_up_house() else { return };
    fs::create_dir_all(house.workspace().join("docs/inner")).unwrap();
    let turn = || [run_answer("pwd"), text_answer("there")];
    let server = Server::start((0..4).flat_map(|_| turn()));
    let docs = house.workspace().join("docs");
    let words = [&RUN[..], &["--environment-option", "default_path=inner", "where?"]].concat();
    openai_command(&house, &server, &words).directory(&docs).run().code(0);
    let output = run_all(&house, &server, &[&CONTINUE, &["and now?"]]).code(0);
    let told = "the session works in folder `docs` of the workspace\n";
    assert!(output.stderr.contains(told), "{output}");
    // An option of the command line replaces the saved ones.
    let words = ["--environment-option", "default_path=.", "and here?"];
    run_all(&house, &server, &[&CONTINUE, &words]).code(0);
    run_all(&house, &server, &[&CONTINUE, &["and last?"]]).code(0);
    let asked = server.requests();
    for (request, folder) in [(1, "docs/inner"), (3, "docs/inner"), (5, "docs"), (7, "docs")] {
        let result = request_results(&asked[request]).pop().unwrap();
        assert!(result.contains(&format!("/{folder}\\\\n")), "{request}: {result}");
    }
}

#[test]
fn paths_of_the_command_line_start_where_the_user_typed_them() {
    let Some(house) = set_up_house() else { return };
    let docs = house.workspace().join("docs");
    for folder in [&docs, &house.workspace().join("more")] {
        fs::create_dir(folder).unwrap();
    }
    house.write("workspace/my.toml", "model = \"openai/mine\"\n");
    house.write("workspace/my.env", "");
    let server = Server::start([text_answer("one"), text_answer("two")]);
    openai_command(&house, &server, &[&RUN[..], &["first"]].concat())
        .directory(&docs)
        .run()
        .code(0);
    let files = ["--config", "my.toml", "--env-file", "my.env", "--plugin-dir", "more"];
    let output = run_all(&house, &server, &[&CONTINUE, &files, &["second"]]).code(0);
    let told = "the session works in folder `docs` of the workspace\n";
    assert_eq!((output.stdout.as_str(), output.stderr.contains(told)), ("two\n", true));
    assert!(!output.stderr.contains("more"), "{output}");
}

#[test]
fn session_keeps_the_folder_of_its_own_workspace_while_it_works_in_another() {
    let Some(house) = set_up_house() else { return };
    let turn = || [run_answer("pwd"), text_answer("there")];
    let server = Server::start((0..3).flat_map(|_| turn()));
    let (docs, elsewhere) = (house.workspace().join("docs"), house.path().join("elsewhere"));
    for folder in [&docs, &elsewhere.join(".git"), &elsewhere.join("inner")] {
        fs::create_dir_all(folder).unwrap();
    }
    openai_command(&house, &server, &[&RUN[..], &["where?"]].concat())
        .directory(&docs)
        .run()
        .code(0);
    let id = only_id(&house);
    let words = ["run", "--yes", "--resume", &id, "and now?"];
    openai_command(&house, &server, &words).directory(&elsewhere.join("inner")).run().code(0);
    run_all(&house, &server, &[&CONTINUE, &["and back?"]]).code(0);
    let asked = server.requests();
    for (request, folder) in [(1, "docs"), (3, "elsewhere/inner"), (5, "workspace/docs")] {
        let result = request_results(&asked[request]).pop().unwrap();
        assert!(result.contains(&format!("/{folder}\\\\n")), "{request}: {result}");
    }
}

#[test]
fn image_or_container_leaves_the_environment_and_only_a_lost_container_is_reported() {
    let Some(house) = set_up_house() else { return };
    ship_plugins(&house, &["environment_docker"]);
    let server = Server::start((0..5).map(|_| text_answer("yes")));
    let lost = "the session continues in a new container, because its own is gone\n";
    run_all(&house, &server, &[&RUN, &["here"]]).code(0);
    // The engine is asked with the first command.
    for (options, is_lost) in [
        (&["--container", "web"][..], false),
        (&["--image", "a"], false),
        (&["--image", "b"], false),
        (&[], true),
    ] {
        let output = run_all(&house, &server, &[&CONTINUE, options, &["go"]]).code(0);
        assert_eq!(output.stderr.contains(lost), is_lost, "{options:?}: {output}");
    }
}

#[test]
fn session_of_another_environment_is_refused_before_the_chat_leaves_its_own() {
    let Some(house) = set_up_house() else { return };
    house.ship(&fixture("rooms"));
    let server = Server::start(["one", "two", "three", "four"].map(text_answer));
    run_all(&house, &server, &[&RUN, &["here"]]).code(0);
    let here = only_id(&house);
    let lines = format!("there\n/resume {here}\nstill there\n");
    let words = ["chat", "--environment", "rooms", "--model", "openai/test"];
    let output = openai_command(&house, &server, &words).input(lines).run();
    assert_ne!(output.code, 0, "{output}");
    let text = format!("session {here} last ran in environment `local`, but jaato uses `rooms`");
    assert!(output.stderr.contains(&text), "{output}");
    assert!(output.stderr.contains(&format!("`jaato chat --resume {here}`")), "{output}");
    assert_eq!(session_ids(&house).len(), 2);
    assert_extends(&server.requests()[1], &server.requests()[2]);
    // A later process returns to the environment of each session.
    let output = run_all(&house, &server, &[&CONTINUE, &["and back"]]).code(0);
    let told = "the session continues in environment `rooms`, where it ran\n";
    assert!(output.stderr.contains(told), "{output}");
    assert_extends(&server.requests()[2], &server.requests()[3]);
}
