//! Tests the user's input at the terminal while the model works, across lines, stops and
//! conversations.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::house;
use crate::questions::wait_for_file;
use crate::support::answers::{call_answer, text_answer, with_expectation};
use crate::support::cli::house_with_cli;
use crate::support::command::Running;
use crate::support::{Command, House, fixture};
use crate::terminal::{run_on_terminal, run_shell_on_terminal};

fn with_xterm(command: Command) -> Command {
    command.variable("TERM", "xterm")
}

/// Returns a command that reports its start, and continues once the file `go` exists.
fn waiting_call() -> Value {
    let command = ": > runs; while [ ! -e go ]; do sleep 0.01; done; echo SHOWN";
    call_answer("cli_based_tool", json!({ "command": command }))
}

/// Starts a conversation in which such a command runs, and then the model gives these answers.
fn start_working(house: &House, answers: &[Value]) -> Option<Running> {
    let mut all = vec![waiting_call()];
    all.extend_from_slice(answers);
    house.set_script(&json!({ "answers": all }));
    let running = run_on_terminal(house, "chat --allow cli_based_tool go", with_xterm)?;
    wait_for_file(&house.workspace().join("runs"));
    running.wait_for_text("> ");
    Some(running)
}

fn let_command_finish(house: &House) {
    house.write("workspace/go", "");
}

fn history_file(house: &House) -> std::path::PathBuf {
    house.home().join(".local/share/jaato/chat-history")
}

/// Ends the conversation, and returns the terminal's output.
fn quit_chat(mut running: Running, house: &House) -> String {
    running.write(b"/quit\r");
    let output = running.wait_with_open_input();
    house.assert_no_processes();
    output.stdout
}

#[test]
fn a_message_that_is_typed_while_a_tool_runs_goes_with_the_next_step() {
    let Some(house) = house_with_cli() else { return };
    let answers = [with_expectation("tool_result", "and hurry", text_answer("hurried"))];
    let Some(mut running) = start_working(&house, &answers) else { return };
    running.write(b"and hurry\r");
    running.wait_for_text("queued, goes with the next step: and hurry");
    let_command_finish(&house);
    running.wait_for_text("you: and hurry");
    running.wait_for_text("hurried");
    quit_chat(running, &house);
}

#[test]
fn lines_typed_at_once_are_queued_in_order() {
    let Some(house) = house_with_cli() else { return };
    let answers = [with_expectation("tool_result", "three", text_answer("counted"))];
    let Some(mut running) = start_working(&house, &answers) else { return };
    running.write(b"one\rtwo\rthree\r");
    for line in ["one", "two", "three"] {
        running.wait_for_text(&format!("queued, goes with the next step: {line}"));
    }
    let_command_finish(&house);
    for line in ["one", "two", "three"] {
        running.wait_for_text(&format!("you: {line}"));
    }
    running.wait_for_text("counted");
    quit_chat(running, &house);
}

#[test]
fn read_only_commands_run_during_a_turn_and_others_wait_for_its_end() {
    let Some(house) = house_with_cli() else { return };
    let answers =
        [text_answer("done"), with_expectation("prompt", "after it", text_answer("as you like"))];
    let Some(mut running) = start_working(&house, &answers) else { return };
    for (line, answer) in [
        ("/mode", "Mode: ask before anything"),
        ("/tasks", "nothing runs in the background"),
        ("/permissions", "No remembered answers."),
        ("/help", "/attach"),
        ("/model", "queued, waits for the end of this turn: /model"),
        // A later command does not overtake it.
        ("after it", "queued, waits for the end of this turn: after it"),
    ] {
        running.write(format!("{line}\r").as_bytes());
        running.wait_for_text(answer);
    }
    let_command_finish(&house);
    running.wait_for_text("done");
    running.wait_for_text("`/model NAME` changes it");
    running.wait_for_text("as you like");
    quit_chat(running, &house);
}

#[test]
fn output_during_a_turn_appears_above_the_draft() {
    let Some(house) = house_with_cli() else { return };
    let answers =
        [text_answer("first"), with_expectation("prompt", "half and whole", text_answer("second"))];
    let Some(mut running) = start_working(&house, &answers) else { return };
    running.write(b"half");
    running.wait_for_text("> half");
    let_command_finish(&house);
    running.wait_for_text("SHOWN");
    running.wait_for_text("first");
    running.wait_for_text("> half");
    running.write(b" and whole\r");
    running.wait_for_text("second");
    let shown = quit_chat(running, &house);
    assert_eq!(shown.matches("SHOWN\r\n").count(), 1, "{shown:?}");
}

#[test]
fn prompt_waits_for_the_draft_and_is_not_answered_by_it() {
    let Some(house) = house_with_cli() else { return };
    house.ship(&fixture("probe"));
    let answers = [
        call_answer("count", json!({})),
        with_expectation("tool_result", "the user denied the call", text_answer("so be it")),
    ];
    let Some(mut running) = start_working(&house, &answers) else { return };
    running.write(b"yes, a");
    running.wait_for_text("> yes, a");
    let_command_finish(&house);
    running.wait_for_text("jaato has a question. Enter sends your draft first");
    running.write(b"ll\r");
    running.wait_for_text("queued, goes with the next step: yes, all");
    running.wait_for_question();
    running.write(b"n\n");
    running.wait_for_text("so be it");
    let shown = quit_chat(running, &house);
    assert_eq!(shown.matches("✗ denied: ").count(), 1, "{shown}");
}

/// Checks that these keys discard the draft, and that the waiting prompt then appears.
#[track_caller]
fn check_draft_gives_way(keys: &[u8]) {
    let Some(house) = house_with_cli() else { return };
    house.ship(&fixture("probe"));
    let answers = [
        call_answer("count", json!({})),
        with_expectation("tool_result", "the user denied the call", text_answer("so be it")),
    ];
    let Some(mut running) = start_working(&house, &answers) else { return };
    running.write(b"abc");
    running.wait_for_text("> abc");
    let_command_finish(&house);
    running.wait_for_text("jaato has a question. Enter sends your draft first, Ctrl-C drops it.");
    running.write(keys);
    running.wait_for_question();
    running.write(b"n\n");
    running.wait_for_text("so be it");
    let shown = quit_chat(running, &house);
    assert!(!shown.contains("cancelled") && !shown.contains("queued"), "{shown}");
}

#[test]
fn ctrl_c_drops_the_draft_that_a_prompt_waits_for() {
    check_draft_gives_way(b"\x03");
}

#[test]
fn prompt_is_shown_once_the_draft_is_erased() {
    check_draft_gives_way(b"\x7f\x7f\x7f");
    check_draft_gives_way(b"\x15");
}

/// Stops a turn with a key while a message is queued and a draft is typed.
#[track_caller]
fn check_stop_returns_queued_lines(key: &[u8]) {
    let house = house!();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "text": "half said" }, "hang"] },
        with_expectation("prompt", "one\ntwo", text_answer("both")),
    ] }));
    let Some(mut running) = run_on_terminal(&house, "chat go", with_xterm) else { return };
    running.wait_for_text("half said");
    running.wait_for_text("> ");
    running.write(b"one\r");
    running.wait_for_text("queued, goes with the next step: one");
    running.write(b"two");
    running.wait_for_text("> two");
    running.write(key);
    running.wait_for_text("cancelled");
    running.wait_for_text("> one");
    running.write(b"\r");
    running.wait_for_text("both");
    quit_chat(running, &house);
}

#[test]
fn ctrl_c_and_esc_stop_the_turn_and_return_queued_lines_before_the_draft() {
    check_stop_returns_queued_lines(b"\x03");
    check_stop_returns_queued_lines(b"\x1b");
}

#[test]
fn enter_after_a_failed_turn_puts_queued_lines_before_the_draft() {
    let Some(house) = house_with_cli() else { return };
    let fails = json!({ "steps": [{ "fail": { "kind": "provider", "message": "overloaded" } }] });
    let answers = [fails, with_expectation("prompt", "after it\nhalf", text_answer("both"))];
    let Some(mut running) = start_working(&house, &answers) else { return };
    for line in ["/model", "after it"] {
        running.write(format!("{line}\r").as_bytes());
        running.wait_for_text(&format!("queued, waits for the end of this turn: {line}"));
    }
    running.write(b"half");
    running.wait_for_text("> half");
    let_command_finish(&house);
    running.wait_for_text("Enter puts them before your draft");
    running.write(b"\r");
    running.wait_for_text("> after it");
    running.write(b"\r");
    running.wait_for_text("both");
    quit_chat(running, &house);
}

#[test]
fn esc_stops_the_turn_and_arrow_keys_do_not() {
    let house = house!();
    let hangs = |text: &str| json!({ "steps": [{ "text": text }, "hang"] });
    let answers = [
        hangs("half said"),
        hangs("half again"),
        with_expectation("prompt", "and half", text_answer("well")),
    ];
    house.set_script(&json!({ "answers": answers }));
    let Some(mut running) = run_on_terminal(&house, "chat go", with_xterm) else { return };
    running.wait_for_text("half said");
    running.wait_for_text("> ");
    running.write(b"\x1b");
    running.wait_for_text("cancelled");
    running.wait_for_text("> ");
    running.write(b"next\r");
    running.wait_for_text("half again");
    running.wait_for_text("> ");
    // The arrow moves to the beginning of the draft, which remains after the stop.
    running.write(b"half\x1b[D\x1b[D\x1b[D\x1b[Dand ");
    running.wait_for_text("> and half");
    running.write(b"\x1b");
    running.wait_for_text("cancelled");
    running.write(b"\r");
    running.wait_for_text("well");
    quit_chat(running, &house);
}

#[test]
fn background_call_frees_the_input_line_and_its_end_wakes_the_model() {
    let Some(house) = house_with_cli() else { return };
    house.configure_more("[session]\nauto_background_threshold_ms = 100\n");
    let answers = [
        text_answer("it runs"),
        with_expectation("prompt", "how is it", text_answer("still running")),
        with_expectation("data", "SHOWN", text_answer("it has ended")),
    ];
    let Some(mut running) = start_working(&house, &answers) else { return };
    running.wait_for_text("it runs");
    running.wait_for_text("in the background: task_1");
    running.write(b"how is it\r");
    running.wait_for_text("still running");
    running.write(b"/tasks\r");
    running.wait_for_text("cli_based_tool  : > runs; while");
    let_command_finish(&house);
    running.wait_for_text("SHOWN");
    running.wait_for_text("woken by task_1");
    running.wait_for_text("it has ended");
    quit_chat(running, &house);
}

#[test]
fn a_task_is_ended_by_its_number() {
    let Some(house) = house_with_cli() else { return };
    house.configure_more("[session]\nauto_background_threshold_ms = 100\n");
    let Some(mut running) = start_working(&house, &[text_answer("it runs")]) else { return };
    running.wait_for_text("in the background: task_1");
    running.write(b"/tasks stop 7\r");
    running.wait_for_text("no task `7` runs in the background");
    running.write(b"/tasks stop 1\r");
    running.wait_for_text("task_1 is ended");
    running.wait_for_text("before it finished");
    running.write(b"/tasks\r");
    running.wait_for_text("nothing runs in the background");
    quit_chat(running, &house);
}

#[test]
fn ctrl_z_preserves_the_draft_and_the_editor() {
    let house = house!();
    house.set_script(
        &json!({ "answers": [with_expectation("prompt", "half and whole", text_answer("well"))] }),
    );
    let binary = house.binary().display().to_string();
    let line = format!(
        "set -m; '{binary}' chat; stty -a > stopped; echo has stopped; fg; stty -a > ended"
    );
    let Some(mut running) = run_shell_on_terminal(&house, &line, with_xterm) else { return };
    running.wait_for_text("> ");
    running.write(b"half");
    running.wait_for_text("> half");
    running.write(b"\x1a");
    running.wait_for_text("has stopped");
    running.wait_for_text("> half");
    running.write(b" and whole\r");
    running.wait_for_text("well");
    quit_chat(running, &house);
    for file in ["stopped", "ended"] {
        let settings = fs::read_to_string(house.workspace().join(file)).unwrap();
        assert!(settings.contains(" icanon ") && settings.contains(" echo "), "{settings}");
    }
}

#[test]
fn input_history_is_kept_except_for_lines_starting_with_a_blank() {
    let house = house!();
    house.set_script(&json!({ "answers": [text_answer("one"), text_answer("two")] }));
    let Some(mut running) = run_on_terminal(&house, "chat", with_xterm) else { return };
    running.wait_for_text("> ");
    // Two rows, and a row that must not be found.
    running.write(b"the moon\x1b\ris full\r");
    running.wait_for_text("one");
    running.write(b" hidden\r");
    running.wait_for_text("two");
    quit_chat(running, &house);
    let answer = with_expectation("prompt", "the moon\nis full", text_answer("again"));
    house.set_script(&json!({ "answers": [answer] }));
    let mut running = run_on_terminal(&house, "chat", with_xterm).unwrap();
    running.wait_for_text("> ");
    // After `/quit`.
    running.write(b"\x1b[A\x1b[A");
    running.wait_for_text("is full");
    running.write(b"\r");
    running.wait_for_text("again");
    quit_chat(running, &house);
    let file = history_file(&house);
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.contains("the moon\\nis full") && !kept.contains("hidden"), "{kept}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn concurrent_conversations_keep_each_others_history() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    let begin = || run_on_terminal(&house, "chat", with_xterm);
    let (Some(mut one), Some(mut other)) = (begin(), begin()) else { return };
    one.wait_for_text("> ");
    other.wait_for_text("> ");
    let mut expected = Vec::new();
    for number in 0..10 {
        // Unknown commands are answered locally and stored like any line, in both at the same time.
        let both = [(&mut one, "one"), (&mut other, "other")].map(|(running, name)| {
            let line = format!("/no-{name}-{number}");
            running.write(format!("{line}\r").as_bytes());
            (running, line)
        });
        for (running, line) in both {
            running.wait_for_text(&format!("no command `{}`", &line[1..]));
            expected.push(line);
        }
    }
    one.write(b"/quit\r");
    one.wait_with_open_input();
    other.write(b"/quit\r");
    other.wait_with_open_input();
    house.assert_no_processes();
    let kept = fs::read_to_string(history_file(&house)).unwrap();
    for line in &expected {
        assert_eq!(kept.lines().filter(|kept| kept == line).count(), 1, "{line}: {kept}");
    }
}

#[test]
fn unwritable_history_is_reported_once_and_otherwise_harmless() {
    let house = house!();
    house.set_script(&json!({ "answers": [text_answer("one"), text_answer("two")] }));
    fs::create_dir_all(house.home().join(".local/share/jaato/chat-history")).unwrap();
    let Some(mut running) = run_on_terminal(&house, "chat", with_xterm) else { return };
    for (line, answer) in [("a\r", "one"), ("b\r", "two")] {
        running.wait_for_text("> ");
        running.write(line.as_bytes());
        running.wait_for_text(answer);
    }
    let shown = quit_chat(running, &house);
    assert_eq!(shown.matches("cannot save the lines that you type").count(), 1, "{shown}");
}

#[test]
fn alt_enter_ctrl_j_and_a_backslash_make_a_new_line() {
    let house = house!();
    let all = "one\ntwo\nthree\nfour";
    house.set_script(
        &json!({ "answers": [with_expectation("prompt", all, text_answer("counted"))] }),
    );
    let Some(mut running) = run_on_terminal(&house, "chat", with_xterm) else { return };
    running.wait_for_text("> ");
    running.write(b"one");
    running.wait_for_text("one");
    running.write(b"\x1b\rtwo\\\rthree");
    running.wait_for_text("three");
    running.write(b"\n");
    running.write(b"four");
    running.wait_for_text("four");
    running.write(b"\r");
    running.wait_for_text("counted");
    quit_chat(running, &house);
}

#[test]
fn a_long_paste_is_a_label_in_the_draft_and_is_sent_whole() {
    let house = house!();
    let answers = [
        with_expectation("prompt", "see line 0\nline 1\n", text_answer("seen")),
        text_answer("well"),
    ];
    house.set_script(&json!({ "answers": answers }));
    let Some(mut running) = run_on_terminal(&house, "chat", with_xterm) else { return };
    running.wait_for_text("> ");
    let lines: Vec<String> = (0..200).map(|number| format!("line {number}")).collect();
    let paste = format!("\x1b[200~{}\x1b[201~", lines.join("\r"));
    running.write(paste.as_bytes());
    running.wait_for_text("> [pasted 200 lines]");
    // Backspace deletes the whole label.
    running.write(b"\x7fsee ");
    running.write(paste.as_bytes());
    running.wait_for_text("> see [pasted 200 lines]");
    running.write(b", please\r");
    running.wait_for_text("seen");
    // A short paste stays unchanged.
    running.write(b"\x1b[200~two\rlines\x1b[201~");
    running.wait_for_text("lines");
    running.write(b"\r");
    running.wait_for_text("well");
    let shown = quit_chat(running, &house);
    assert!(!shown.contains("line 57"), "{shown}");
    assert!(!fs::read_to_string(history_file(&house)).unwrap().contains("pasted"), "{shown}");
}

#[test]
fn tab_completes_paths_in_a_message_and_commands() {
    let house = house!();
    house.write("workspace/notes/today.txt", "buy milk");
    let wanted = "what is in ./notes/today.txt of notes/";
    house.set_script(
        &json!({ "answers": [with_expectation("prompt", wanted, text_answer("milk"))] }),
    );
    let Some(mut running) = run_on_terminal(&house, "chat", with_xterm) else { return };
    running.wait_for_text("> ");
    running.write(b"what is in ./no\t");
    running.wait_for_text("./notes/");
    running.write(b"to\tof notes/\r");
    running.wait_for_text("milk");
    running.write(b"/perm\t");
    running.wait_for_text("/permissions ");
    running.write(b"\r");
    running.wait_for_text("No remembered answers.");
    quit_chat(running, &house);
}

#[test]
fn message_starting_with_a_path_gets_a_hint_and_can_be_recalled() {
    let house = house!();
    let wanted = "/etc/hosts what is in it?";
    house.set_script(
        &json!({ "answers": [with_expectation("prompt", wanted, text_answer("names"))] }),
    );
    let Some(mut running) = run_on_terminal(&house, "chat", with_xterm) else { return };
    running.wait_for_text("> ");
    running.write(format!("{wanted}\r").as_bytes());
    running.wait_for_text("there is no command `etc/hosts`");
    running.wait_for_text("`//` sends a line that begins with a slash");
    running.wait_for_text("> ");
    // Up, then to the beginning, and one more slash.
    running.write(b"\x1b[A\x01/\r");
    running.wait_for_text("names");
    quit_chat(running, &house);
}

#[test]
fn failed_request_suggests_the_again_command_once() {
    let house = house!();
    let fails = json!({ "steps": [{ "fail": { "kind": "provider", "message": "overloaded" } }] });
    house.set_script(&json!({ "answers": [fails, text_answer("well")] }));
    let Some(mut running) = run_on_terminal(&house, "chat hello", with_xterm) else { return };
    running.wait_for_text("`/again` sends it again");
    running.write(b"/again\r");
    running.wait_for_text("well");
    let shown = quit_chat(running, &house);
    let [error, hint] = ["overloaded", "`/again`"].map(|it| shown.find(it).unwrap());
    assert!(error < hint, "{shown}");
    assert_eq!(shown.matches("sends it again").count(), 1, "{shown}");
}

#[test]
fn spinner_shows_the_retry_count() {
    let house = house!();
    let busy = json!({ "kind": "provider", "message": "busy", "retry": "temporary" });
    house.set_script(&json!({ "answers": [{ "steps": [{ "fail": busy }] }, text_answer("well")] }));
    house.configure_more("[session]\nretry_base_ms = 1000\nattempts_max = 4\n");
    let Some(running) = run_on_terminal(&house, "chat go", with_xterm) else { return };
    running.wait_for_text("busy; trying again in");
    running.wait_for_text("for the provider, try 2 of 4 · Ctrl-C stops");
    running.wait_for_text("well");
    quit_chat(running, &house);
}
