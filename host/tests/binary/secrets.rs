//! Tests that the user types the secrets that programs ask for, and that they are stored nowhere.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::shell::{house_with_terminals, play_arguments};
use crate::support::command::Running;
use crate::support::{Command, House};
use crate::terminal::run_on_terminal;

/// A text that no one may see.
pub const SECRET: &str = "correct-horse-battery";

/// Asks for a password without showing it, and prints its length.
const LOGIN: &str =
    "stty -echo; printf 'Password: '; read -r word; stty echo; echo; echo \"${#word} letters\"";

fn unchanged_command(command: Command) -> Command {
    command
}

/// Returns a call that asks the user, on a terminal.
fn start_asking(house: &House, line: &str, steps: Value) -> Option<Running> {
    let played = play_arguments(line, steps).replace('\'', "'\\''");
    run_on_terminal(house, &format!("call play_terminals '{played}'"), unchanged_command)
}

fn login_steps(steps: &[Value]) -> Value {
    let mut all = vec![json!({ "shown": "Password: " }), json!({ "ask": "Password:" })];
    all.extend_from_slice(steps);
    json!(all)
}

/// Searches every file in a folder for the secret.
fn find_secret_files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            find_secret_files(&path, found);
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
}

/// Fails if a file of the installation contains the secret.
#[track_caller]
pub fn assert_secret_nowhere(house: &House) {
    let mut found = Vec::new();
    find_secret_files(&house.home(), &mut found);
    find_secret_files(&house.workspace(), &mut found);
    find_secret_files(&house.path().join("run"), &mut found);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn secret_typed_by_the_user_reaches_only_the_program() {
    let Some(house) = house_with_terminals() else { return };
    let steps = login_steps(&[
        json!({ "shown": "letters" }),
        json!({ "show": "session_0" }),
        json!("exit"),
    ]);
    let arguments: Value = serde_json::from_str(&play_arguments(LOGIN, steps)).unwrap();
    for output in ["json", "text"] {
        house.set_script(&json!({ "answers": [
            { "steps": [{ "call": { "name": "play_terminals", "arguments": arguments } }] },
            { "expect": { "tool_result": "21 letters" }, "steps": [{ "text": "done" }] },
        ] }));
        let words = format!("run --yes --output {output} go");
        let Some(mut running) = run_on_terminal(&house, &words, unchanged_command) else { return };
        running.wait_for_text("Ctrl-C declines");
        running.wait_for_text("Password:");
        running.write(format!("wrong\u{15}{SECRET}x\u{7f}\r").as_bytes());
        let output = running.wait_with_open_input().code(0);
        assert!(output.stdout.contains("done"), "{output}");
        assert!(!output.stdout.contains(SECRET) && !output.stdout.contains("wrong"), "{output}");
        assert_secret_nowhere(&house);
        house.assert_no_processes();
    }
}

#[test]
fn too_long_secret_is_rejected_completely() {
    let Some(house) = house_with_terminals() else { return };
    let steps = login_steps(&[json!({ "shown": "letters" }), json!("exit")]);
    let Some(mut running) = start_asking(&house, LOGIN, steps) else { return };
    running.wait_for_text("Ctrl-C declines");
    running.write("x".repeat(4096).as_bytes());
    running.write(b"\r");
    running.wait_for_text("longer than 4095 bytes");
    running.wait_for_text("Password:");
    // One byte less is the maximum that fits.
    let longest = format!("{SECRET}{}\r", "y".repeat(4095 - SECRET.len()));
    running.write(longest.as_bytes());
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("4095 letters"), "{output}");
    assert!(!output.stdout.contains("xx") && !output.stdout.contains("yy"), "{output}");
    assert_secret_nowhere(&house);
    house.assert_no_processes();
}

#[test]
fn events_report_the_secret_prompt_and_its_outcome() {
    let Some(house) = house_with_terminals() else { return };
    let arguments: Value =
        serde_json::from_str(&play_arguments(LOGIN, login_steps(&[json!("exit")]))).unwrap();
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "play_terminals", "arguments": arguments } }] },
        { "expect": { "tool_result": "typed" }, "steps": [{ "text": "done" }] },
    ] }));
    let words = "run --yes --output json go";
    let Some(mut running) = run_on_terminal(&house, words, unchanged_command) else { return };
    running.wait_for_text("Ctrl-C declines");
    running.write(format!("{SECRET}\r").as_bytes());
    let output = running.wait_with_open_input().code(0);
    let events: Vec<Value> = output
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["event"] == "terminal_asked" || event["event"] == "terminal_answered")
        .map(|mut event| {
            let event = event.as_object_mut().unwrap();
            ["v", "seq", "session", "source", "name"].iter().for_each(|key| {
                event.remove(*key);
            });
            json!(event)
        })
        .collect();
    let asked = json!({ "event": "terminal_asked", "command": "a program", "prompt": "Password:" });
    let answered = json!({ "event": "terminal_answered", "outcome": "typed" });
    assert_eq!(events, [asked, answered]);
}

#[test]
fn user_can_decline_a_secret_prompt() {
    let Some(house) = house_with_terminals() else { return };
    for key in ["\u{3}", "\u{4}", "half\u{3}"] {
        let steps = login_steps(&[json!("state"), json!("end"), json!("exit")]);
        let Some(mut running) = start_asking(&house, LOGIN, steps) else { return };
        running.wait_for_text("Ctrl-C declines");
        running.write(key.as_bytes());
        let output = running.wait_with_open_input().code(0);
        assert!(output.stdout.contains("\"outcome\": \"declined\""), "{output}");
        assert!(!output.stdout.contains("half"), "{output}");
    }
    house.assert_no_processes();
}

#[test]
fn secret_prompt_without_a_user_explains_how_to_attach() {
    let Some(house) = house_with_terminals() else { return };
    let steps = json!([
        { "shown": "Password: " }, { "show": "session_0" }, { "ask": "Password:" }, "end", "exit",
    ]);
    let played = play_arguments(LOGIN, steps);
    let answer = house.run(&["call", "play_terminals", &played]).code(0).json();
    let asked = &answer["terminals"][0]["answers"][1];
    assert_eq!(asked["outcome"], "nobody", "{answer}");
    let reason = asked["reason"].as_str().unwrap();
    assert!(reason.starts_with("standard input is not a terminal"), "{reason}");
    assert!(
        reason.contains("`jaato shell attach ") && reason.contains("/session_0 --type`"),
        "{reason}"
    );
    house.configure_more("[terminals]\njoin = false\n");
    let answer = house.run(&["call", "play_terminals", &played]).code(0).json();
    let reason = answer["terminals"][0]["answers"][1]["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason, "standard input is not a terminal");
}

#[test]
fn secret_is_not_sent_to_a_terminal_that_echoes() {
    let Some(house) = house_with_terminals() else { return };
    // Visible from the start, and a program that stops hiding while the user types.
    let shows = "printf 'Password: '; read -r word";
    let Some(running) = start_asking(&house, shows, login_steps(&[json!("end"), json!("exit")]))
    else {
        return;
    };
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("the terminal shows typed text"), "{output}");
    assert!(!output.stdout.contains("Ctrl-C declines"), "{output}");
    let go = house.workspace().join("go");
    let stops = format!(
        "stty -echo; printf 'Password: '; while [ ! -e {0} ]; do sleep 0.01; done; stty echo; : > {0}.done; cat",
        go.display()
    );
    let steps = login_steps(&[json!("end"), json!("exit")]);
    let mut running = start_asking(&house, &stops, steps).unwrap();
    running.wait_for_text("Ctrl-C declines");
    fs::write(&go, "").unwrap();
    let done = go.with_extension("done");
    let begin = std::time::Instant::now();
    while !done.exists() && begin.elapsed() < crate::support::command::DEADLINE {
        std::thread::sleep(crate::support::command::LOOK_AGAIN);
    }
    running.write(format!("{SECRET}\r").as_bytes());
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("the terminal shows typed text"), "{output}");
    assert!(!output.stdout.contains(SECRET), "{output}");
    assert_secret_nowhere(&house);
}

#[test]
fn secret_is_not_sent_to_a_line_editor() {
    let Some(house) = house_with_terminals() else { return };
    // Its prompt can contain any text. It disables the echo, and shows the input itself.
    let shell = "PS1='[sudo] password for root: ' exec bash --norc --noprofile -i";
    let steps = json!([{ "shown": "password for root: " }, { "ask": "password:" }, "end", "exit"]);
    let Some(running) = start_asking(&house, shell, steps) else { return };
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("reads key by key and may show what is typed"), "{output}");
    assert!(!output.stdout.contains("Ctrl-C declines"), "{output}");
    house.assert_no_processes();
}

#[test]
fn secret_prompt_is_withdrawn_when_its_call_gives_up() {
    let Some(house) = house_with_terminals() else { return };
    let given_up = json!([{ "shown": "Password: " }, { "ask_for": 100 }, "end", "exit"]);
    let Some(running) = start_asking(&house, LOGIN, given_up) else { return };
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("given up"), "{output}");
    house.assert_no_processes();
}

#[test]
fn terminal_echoes_input_again_after_a_secret_prompt() {
    let Some(house) = house_with_terminals() else { return };
    let played = play_arguments(LOGIN, login_steps(&[json!("exit")])).replace('\'', "'\\''");
    let line = format!(
        "'{}' call play_terminals '{played}'; stty -a | tr ' ' '\\n' | grep -x -e '-\\?echo' -e '-\\?icanon;\\?' -e '-\\?isig;\\?'; echo back",
        house.binary().display()
    );
    let Some(mut running) =
        crate::terminal::run_shell_on_terminal(&house, &line, unchanged_command)
    else {
        return;
    };
    running.wait_for_text("Ctrl-C declines");
    running.write(format!("{SECRET}\r").as_bytes());
    running.wait_for_text("back");
    let output = running.wait_with_open_input();
    let after = output.stdout.rsplit('}').next().unwrap();
    for flag in ["-echo", "-icanon", "-isig"] {
        assert!(!after.contains(flag), "{output}");
    }
    assert!(after.contains("echo") && !output.stdout.contains(SECRET), "{output}");
}
