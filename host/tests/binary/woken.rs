//! Tests notifications to an idle conversation, and tasks that no one waits for.

use serde_json::{Value, json};

use crate::forms::{house_with_talks, house_with_talks_in_worker};
use crate::house;
use crate::questions::wait_for_file;
use crate::support::answers::{call_answer, text_answer, with_expectation};
use crate::support::command::Running;
use crate::support::{Command, House, fixture};
use crate::terminal::{run_on_terminal, run_shell_on_terminal};

/// Returns a call that starts a task. The task sends a notification once the file `go` exists,
/// writes the file `told`, and ends once the file `end` exists.
fn start_answer(house: &House) -> Value {
    let [after, marks, until] =
        ["go", "told", "end"].map(|file| house.path().join(file).display().to_string());
    let (text, shows) = ("the tea is ready", "the tea draws\n");
    let arguments =
        json!({ "text": text, "shows": shows, "after": after, "marks": marks, "until": until });
    call_answer(
        "call_other",
        json!({ "name": "tell_model", "arguments": arguments, "detached": true }),
    )
}

/// Returns the answers of a model that starts the task, gets its result, and then hears of the tea.
fn script_tea(house: &House, more: &[Value]) {
    let mut answers = vec![
        start_answer(house),
        with_expectation("tool_result", "\"task_id\":\"task_1\"", text_answer("I will tell you")),
    ];
    answers.extend_from_slice(more);
    house.set_script(&json!({ "answers": answers }));
}

fn with_xterm(command: Command) -> Command {
    command.variable("TERM", "xterm")
}

fn end_input(mut running: Running, house: &House) -> String {
    running.wait_for_text("> ");
    running.write(b"\x04");
    let output = running.wait_with_open_input().code(0);
    house.assert_no_processes();
    output.stdout
}

#[test]
fn idle_conversation_is_woken_and_the_input_line_returns() {
    for house in [house_with_talks(), house_with_talks_in_worker()] {
        let Some(house) = house else { return };
        script_tea(
            &house,
            &[
                with_expectation("data", "the tea is ready", text_answer("drink it")),
                text_answer("enjoy it"),
            ],
        );
        let Some(mut running) = run_on_terminal(&house, "chat --yes make tea", with_xterm) else {
            return;
        };
        running.wait_for_text("I will tell you");
        running.wait_for_text("> ");
        house.write("go", "");
        running.wait_for_text("says: the tea is ready");
        running.wait_for_text("woken by");
        running.wait_for_text("drink it");
        running.wait_for_text("> ");
        house.write("end", "");
        running.wait_for_text("woken by task_1");
        running.wait_for_text("enjoy it");
        running.wait_for_text("> ");
        running.write(b"/help\r");
        running.wait_for_text("/again");
        let shown = end_input(running, &house);
        for what in ["runs in the background as task_1", "the tea draws"] {
            assert!(shown.contains(what), "{shown}");
        }
    }
}

#[test]
fn notification_during_typing_joins_the_users_next_message() {
    let Some(house) = house_with_talks() else { return };
    house.ship(&fixture("probe"));
    script_tea(
        &house,
        &[with_expectation(
            "prompt",
            "is it ready",
            with_expectation("data", "the tea is ready", text_answer("drink it")),
        )],
    );
    let Some(mut running) = run_on_terminal(&house, "chat --yes make tea", with_xterm) else {
        return;
    };
    running.wait_for_text("I will tell you");
    running.wait_for_text("> ");
    running.write(b"is it re");
    running.wait_for_text("is it re");
    house.write("go", "");
    wait_for_file(&house.path().join("told"));
    // The notification is above the input line, which is drawn again.
    running.wait_for_text("the tea is ready");
    running.wait_for_text("> is it re");
    running.write(b"ady?\r");
    running.wait_for_text("drink it");
    let shown = end_input(running, &house);
    assert!(!shown.contains("woken by"), "{shown}");
}

#[test]
fn turn_started_by_a_wake_can_show_prompts() {
    let Some(house) = house_with_talks() else { return };
    house.ship(&fixture("probe"));
    script_tea(
        &house,
        &[
            with_expectation("data", "the tea is ready", call_answer("count", json!({}))),
            with_expectation("tool_result", "\"count\":1", text_answer("counted")),
        ],
    );
    let words = "chat --allow call_other --allow tell_model make tea";
    let Some(mut running) = run_on_terminal(&house, words, with_xterm) else { return };
    running.wait_for_text("I will tell you");
    running.wait_for_text("> ");
    house.write("go", "");
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_for_text("counted");
    end_input(running, &house);
}

#[test]
fn background_task_can_ask_the_user_while_the_conversation_is_idle() {
    let Some(house) = house_with_talks() else { return };
    house.ship(&fixture("probe"));
    // The task calls a tool that needs a prompt, while no user types.
    let count = json!({ "name": "count", "arguments": {} });
    let inner = json!({ "name": "call_other", "arguments": count, "detached": true });
    house.set_script(&json!({ "answers": [
        call_answer("call_other", inner),
        with_expectation("tool_result", "\"task_id\":\"task_1\"", text_answer("started")),
        with_expectation("data", "\"count\":1", text_answer("counted")),
    ] }));
    let Some(mut running) = run_on_terminal(&house, "chat --allow call_other go", with_xterm)
    else {
        return;
    };
    running.wait_for_text("called by fixture-talks");
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_for_text("counted");
    end_input(running, &house);
}

#[test]
fn output_of_a_background_task_appears_above_the_input_line() {
    let Some(house) = house_with_talks() else { return };
    let [go, end] = ["go", "end"].map(|file| house.path().join(file).display().to_string());
    let arguments = json!({
        "text": "x", "quiet": true, "after": go, "then_shows": "half a line", "until": end,
    });
    house.set_script(&json!({ "answers": [
        call_answer("call_other", json!({ "name": "tell_model", "arguments": arguments, "detached": true })),
        text_answer("started"),
    ] }));
    let Some(mut running) = run_on_terminal(&house, "chat --yes go", with_xterm) else { return };
    // The end of the turn, because the progress row has a prompt too.
    running.wait_for_text("/tasks lists and stops");
    house.write("go", "");
    running.wait_for_text("half a line");
    running.write(b"/quit\r");
    let output = running.wait_with_open_input().code(0);
    let shown = output.stdout;
    let line = shown.rfind("half a line").unwrap();
    // The prompt begins on its own row.
    assert!(shown[line..].contains("\n\u{1b}[?2004h> "), "{shown:?}");
    house.assert_no_processes();
}

#[test]
fn ctrl_z_at_an_idle_input_line_suspends_and_resumes_jaato() {
    let house = house!();
    house.set_script(&json!({ "answers": [text_answer("hello again")] }));
    let binary = house.binary().display().to_string();
    let line = format!("set -m; '{binary}' chat; echo has stopped; fg; echo ended");
    let Some(mut running) = run_shell_on_terminal(&house, &line, with_xterm) else { return };
    running.wait_for_text("> ");
    running.write(b"\x1a");
    running.wait_for_text("has stopped");
    // The editor may have drawn its prompt again before the process stopped.
    running.write(b"hi\r");
    running.wait_for_text("hello again");
    running.wait_for_text("> ");
    running.write(b"\x04");
    running.wait_for_text("ended");
    running.wait_with_open_input().code(0);
    house.assert_no_processes();
}

#[test]
fn multi_line_paste_is_one_message_until_it_is_sent() {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "expect": { "prompt": "one\ntwo\nthree and four" }, "steps": [{ "text": "counted" }] },
    ] }));
    let Some(mut running) = run_on_terminal(&house, "chat", with_xterm) else { return };
    running.wait_for_text("> ");
    // As terminals do if bracketed paste is enabled.
    running.write(b"\x1b[200~one\rtwo\rthree\x1b[201~");
    running.wait_for_text("three");
    running.write(b" and four\r");
    running.wait_for_text("counted");
    let shown = end_input(running, &house);
    let (marked, prompt) = (shown.find("\u{1b}[?2004h").unwrap(), shown.find("> ").unwrap());
    assert!(marked < prompt, "{shown:?}");
}

#[test]
fn wake_works_on_a_terminal_without_a_line_editor() {
    let Some(house) = house_with_talks() else { return };
    script_tea(
        &house,
        &[
            with_expectation("data", "the tea is ready", text_answer("drink it")),
            text_answer("enjoy it"),
            with_expectation("prompt", "and now?", text_answer("nothing")),
        ],
    );
    let as_it_is = |command: Command| command;
    let Some(mut running) = run_on_terminal(&house, "chat --yes make tea", as_it_is) else {
        return;
    };
    running.wait_for_text("I will tell you");
    running.wait_for_text("> ");
    house.write("go", "");
    running.wait_for_text("drink it");
    running.wait_for_text("> ");
    house.write("end", "");
    running.wait_for_text("enjoy it");
    running.wait_for_text("> ");
    running.write(b"and now?\n");
    running.wait_for_text("nothing");
    end_input(running, &house);
}

#[test]
fn wake_is_handled_before_the_next_line_of_piped_input() {
    for house in [house_with_talks(), house_with_talks_in_worker()] {
        let Some(house) = house else { return };
        script_tea(
            &house,
            &[
                with_expectation("data", "the tea is ready", text_answer("drink it")),
                text_answer("enjoy it"),
                with_expectation("prompt", "next", text_answer("bye")),
            ],
        );
        let mut running = house.command(&["chat", "--yes", "make tea"]).start();
        running.wait_for("I will tell you");
        house.write("go", "");
        running.wait_for("drink it");
        house.write("end", "");
        running.wait_for("enjoy it");
        running.write(b"next\n");
        running.wait_for("bye");
        running.finish().code(0);
        house.assert_no_processes();
    }
}

#[test]
fn tasks_end_with_the_conversation_and_are_named() {
    let ended =
        "note: ended with the session, background task: task_1 (tell_model started by talks)";
    for house in [house_with_talks(), house_with_talks_in_worker()] {
        let Some(house) = house else { return };
        script_tea(&house, &[]);
        let output = house.command(&["chat", "--yes"]).input("make tea\n").run().code(0);
        let by_its_name = ended.replace("by talks", "by fixture-talks");
        assert!(output.stderr.contains(ended) || output.stderr.contains(&by_its_name), "{output}");
        let output = house.run(&["run", "--yes", "make tea"]).code(0);
        assert_eq!(output.stderr.matches("ended with the session").count(), 1, "{output}");
        assert_eq!(output.stdout, "I will tell you\n");
        let output = house.run(&["run", "--yes", "--output", "json", "make tea"]).code(0);
        let events = output.json_lines();
        let finished = events.iter().find(|event| event["event"] == "task_finished").unwrap();
        assert_eq!((&finished["task_id"], &finished["is_error"]), (&json!("task_1"), &json!(true)));
        house.assert_no_processes();
    }
}

#[test]
fn background_tasks_end_with_their_call_command() {
    let Some(house) = house_with_talks() else { return };
    let file = house.path().join("never").display().to_string();
    let inner = json!({ "text": "x", "after": file });
    let arguments = json!({ "name": "tell_model", "arguments": inner, "detached": true });
    // The call's own inner call needs a prompt.
    let words = format!("call call_other '{arguments}'");
    let Some(mut running) = run_on_terminal(&house, &words, with_xterm) else { return };
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("background task: task_1 (tell_model"), "{output}");
    house.assert_no_processes();
}

#[test]
fn excess_notifications_are_refused_with_limit_reached() {
    for house in [house_with_talks(), house_with_talks_in_worker()] {
        let Some(house) = house else { return };
        let storm = json!({ "text": "again", "times": 1000 });
        house.set_script(&json!({ "answers": [
            call_answer("tell_model", storm),
            with_expectation(
                "tool_result",
                "\"told\":6,\"then\":\"limit_reached\"",
                text_answer("six"),
            ),
        ] }));
        let output = house.command(&["chat", "--yes"]).input("go\n").run().code(0);
        assert_eq!(output.stderr.matches("says: again").count(), 6, "{output}");
    }
}

#[test]
fn calls_of_a_plugin_are_shown_with_the_plugins_name() {
    let Some(house) = house_with_talks() else { return };
    house.ship(&fixture("probe"));
    house.set_script(&json!({ "answers": [
        call_answer("call_other", json!({ "name": "count", "arguments": {} })),
        text_answer("done"),
    ] }));
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert!(output.stderr.contains("talks calls [fixture-probe] count\n"), "{output}");
}
