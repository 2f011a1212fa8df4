//! Tests that untrusted text reaches the terminal without controlling it, hiding in it, or
//! imitating jaato's own lines.

use serde_json::{Value, json};

use crate::house;
use crate::support::{Command, Output, fixture};
use crate::terminal::{run_on_terminal, run_shell_on_terminal};

/// A title, a clipboard, a colour by C1, reversed text, and invisible text.
const EVIL: &str =
    "a\u{1b}]0;owned\u{7}\u{1b}]52;c;eA==\u{7}\u{9b}31mb\u{202e}c\u{200b}d\u{2028}e\u{e0041}";

/// The same as displayed.
const SHOWN: &str = "a<U+001B>]0;owned<U+0007><U+001B>]52;c;eA==<U+0007><U+009B>31mb<U+202E>c<U+200B>d<U+2028>e<U+E0041>";

fn unchanged_command(command: Command) -> Command {
    command
}

#[track_caller]
fn assert_clean(output: &Output) {
    for text in [&output.stdout, &output.stderr] {
        for driving in
            ["\u{1b}]", "\u{7}", "\u{9b}", "\u{202e}", "\u{200b}", "\u{2028}", "\u{e0041}"]
        {
            assert!(!text.contains(driving), "{driving:?} in {text:?}");
        }
    }
}

#[test]
fn retry_notice_and_error_texts_cannot_control_the_terminal() {
    let house = house!();
    house.configure_more("[session]\nretry_base_ms = 1\n");
    let fails = |retry: &str| json!({ "kind": "provider", "message": EVIL, "retry": retry });
    house.set_script(&json!({ "answers": [
        { "steps": [{ "fail": fails("temporary") }] },
        { "steps": [{ "notice": EVIL }, { "text": EVIL }, { "fail": fails("permanent") }] },
    ] }));
    // Wide enough that no row is wrapped.
    let line = format!("stty rows 24 cols 250; exec '{}' run go", house.binary().display());
    let Some(running) = run_shell_on_terminal(&house, &line, unchanged_command) else { return };
    let output = running.wait_with_open_input().code(5);
    assert_clean(&output);
    assert!(output.stdout.contains(&format!("{SHOWN}; trying again")), "{output}");
    assert!(output.stdout.contains(&format!("error: {SHOWN}")), "{output}");
    assert_eq!(output.stdout.matches("<U+202E>").count(), 4, "{output}");
}

#[test]
fn joined_emoji_and_combining_letters_are_preserved() {
    let house = house!();
    let honest = "👩\u{200d}👧 ❤\u{fe0f} می\u{200c}خواهم Việt";
    let pieces: Vec<Value> =
        honest.chars().map(|sign| json!({ "text": sign.to_string() })).collect();
    house.set_script(&json!({ "answers": [{ "steps": pieces }] }));
    let Some(running) = run_on_terminal(&house, "run go", unchanged_command) else { return };
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains(honest), "{output}");
}

#[test]
fn json_events_preserve_text_but_escape_control_characters() {
    let house = house!();
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": EVIL }] }] }));
    let output = house.run(&["run", "--output", "json", "go"]).code(0);
    assert_clean(&output);
    let lines = output.json_lines();
    let delta = lines.iter().find(|line| line["event"] == "text_delta").unwrap();
    assert_eq!(delta["text"], EVIL);
}

#[test]
fn piped_answer_is_the_models_text_unchanged() {
    let house = house!();
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": EVIL }] }] }));
    let output = house.run(&["run", "go"]).code(0);
    assert_eq!(output.stdout, format!("{EVIL}\n"));
}

#[test]
fn file_names_cannot_inject_lines_and_long_lists_are_shortened() {
    let house = house!();
    for number in 0..50 {
        house.write(&format!("workspace/.jaato/{number:02}\nhint: run: curl | sh\n\u{202e}"), "");
    }
    let plugin = std::fs::read(fixture("echo")).unwrap();
    let folder = house.workspace().join(".jaato/plugins");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("x\nhint: run: curl | sh\n.so"), &plugin[..4096]).unwrap();
    std::fs::write(folder.join("y\nnote: run: curl | sh\n.so"), &plugin).unwrap();
    house.set_script(
        &json!({ "answers": [{ "steps": [{ "text": "done" }] }], "repeat_last": true }),
    );
    for words in [&["run", "go"][..], &["plugin", "list"], &["doctor"], &["config", "show"]] {
        let output = house.run(words);
        assert_clean(&output);
        for line in output.stdout.lines().chain(output.stderr.lines()) {
            let begins = line.trim_start();
            let forged = begins.starts_with("hint: run:") || begins.starts_with("note: run:");
            assert!(!forged, "{line:?}: {output}");
        }
        assert!(output.stderr.len() < 8192, "{output}");
    }
    let output = house.run(&["run", "go"]);
    assert!(output.stderr.contains("<U+000A>hint: run: curl"), "{output}");
}

#[test]
fn command_line_error_cannot_control_the_terminal() {
    let house = house!();
    let output = house.run(&["run", "--no-such-option\u{1b}]0;owned\u{7}", "go"]).code(2);
    assert_clean(&output);
    assert!(output.stderr.starts_with("error: unexpected argument"), "{output}");
}
