//! Tests what a user sees: whole screens that a terminal emulator draws from jaato's output. The
//! snapshots are in `screens/`, to be reviewed when they change.

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::support::answers::text_answer;
use crate::support::cli::house_with_cli;
use crate::support::screen::{RecordedTerminal, ScreenSize};
use crate::support::{House, fixture};

const USUAL: ScreenSize = ScreenSize { rows: 30, columns: 80 };
const WIDE: ScreenSize = ScreenSize { rows: 30, columns: 100 };
const NARROW: ScreenSize = ScreenSize { rows: 40, columns: 40 };

fn shell_call(command: &str) -> Value {
    json!({ "call": { "name": "cli_based_tool", "arguments": { "command": command } } })
}

fn script_answers(house: &House, answers: &[Value]) {
    house.set_script(&json!({ "answers": answers }));
}

const ANSWER: &str = "\
## What I found

The build fails in **two** places; both are in `src/parse.rs`:

1. `next_token` returns `None` at the end of the input, and callers panic.
2. A test still expects the old name.

```rust
fn next_token(&mut self) -> Option<Token> {
    self.tokens.pop_front()
}
```

| file | line | what |
|---|---|---|
| src/parse.rs | 40 | the end of the input |
| tests/parse.rs | 7 | the old name |
";

/// Characters that are not markup, fences inside fences, and table cells with bars.
const SIGNS: &str = "\
The area is 2 * 3 * 4 = 24; *.rs, **kwargs, int **p, 5 ~~ 6 and AT&amp;T.
- [x] see [the docs](https://example.org), <b>bold</b>

| a \\| b | `c \\| d` |
|---|---|
| 1 | 2 |
````md
```rust
let a = 1;
```
````
```
not closed";

#[test]
fn screen_of_a_run() {
    let Some(house) = house_with_cli() else { return };
    house.write("workspace/src/parse.rs", "");
    script_answers(&house, &[json!({ "steps": [shell_call("ls src")] }), text_answer(ANSWER)]);
    let Some(scene) = RecordedTerminal::begin(&house, "run --yes 'why does it fail?'", USUAL, None)
    else {
        return;
    };
    expect_file!["screens/run.txt"].assert_eq(&scene.last_screen());
}

#[test]
fn screen_of_symbols_and_of_a_paragraph_in_progress() {
    let Some(house) = house_with_cli() else { return };
    let words = "one two three four five six seven eight nine ten eleven twelve ".repeat(2);
    let hangs = json!({ "steps": [{ "text": words }, { "text": "and so on" }, "hang"] });
    script_answers(&house, &[text_answer(SIGNS), hangs]);
    let Some(mut scene) = RecordedTerminal::begin(&house, "chat --yes go", USUAL, None) else {
        return;
    };
    scene.wait_until_shown("not closed\n> ");
    scene.write(b"and then?\r");
    // Complete rows appear before the paragraph ends. The last row still changes.
    scene
        .wait_until_shown("one two three four five six seven eight nine ten eleven twelve one two");
    scene.wait_until_shown("and so on");
    // A draft is below the progress row.
    scene.write(b"a draft");
    scene.wait_until_shown("and so on · Ctrl-C stops\n> a draft");
    scene.write(b"\x1b[D\x1b[Dx");
    scene.wait_until_shown("and so on · Ctrl-C stops\n> a draxft");
    // A list of completions is above both.
    scene.write(b"\x05\x15/mo\t");
    scene.wait_until_shown("> /mode");
    scene.write(b"\t");
    scene.wait_until_shown(
        "model  switches to another model; without a name, shows the current one\n",
    );
    scene.write(b"l");
    scene.wait_until_shown("and so on · Ctrl-C stops\n> /model");
    scene.write(b"\x1b");
    scene.wait_until_shown("cancelled\n\n> /model");
    scene.write(b"\x15/quit\r");
    expect_file!["screens/signs.txt"].assert_eq(&scene.last_screen());
}

#[test]
fn screen_of_a_chat() {
    let Some(house) = house_with_cli() else { return };
    let answers = [
        text_answer("Hello. How can I help?"),
        json!({ "steps": [{ "text": "I look." }, shell_call("echo 'one file'")] }),
        text_answer("There is **one** file."),
    ];
    script_answers(&house, &answers);
    let Some(mut scene) = RecordedTerminal::begin(&house, "chat --yes", USUAL, None) else {
        return;
    };
    scene.wait_until_shown("> ");
    scene.write(b"hello\r");
    scene.wait_until_shown("How can I help?\n> ");
    scene.write(b"count the files\r");
    scene.wait_until_shown("one file.\n> ");
    scene.write(b"/etc/hosts what is in it?\r");
    scene.wait_until_shown("line back\n> ");
    scene.write(b"/quit\r");
    expect_file!["screens/chat.txt"].assert_eq(&scene.last_screen());
}

#[test]
fn screen_of_a_failure() {
    let Some(house) = house_with_cli() else { return };
    let command = "echo 'Compiling moon' >&2; echo 'error: no such phase' >&2; exit 101";
    let fails = json!({ "steps": [{ "fail": {
        "kind": "provider", "message": "the key was refused", "hint": "`OPENAI_API_KEY` holds it"
    } }] });
    script_answers(&house, &[json!({ "steps": [shell_call(command)] }), fails]);
    let Some(scene) = RecordedTerminal::begin(&house, "run --yes go", USUAL, None) else { return };
    expect_file!["screens/failure.txt"].assert_eq(&scene.last_screen());
}

#[test]
fn screen_of_a_retry() {
    let Some(house) = house_with_cli() else { return };
    house.configure_more("[session]\nretry_base_ms = 1\n");
    let busy = json!({ "steps": [{ "fail": { "kind": "provider", "message": "the server is overloaded", "retry": "temporary" } }] });
    script_answers(&house, &[busy.clone(), busy, text_answer("Now it works.")]);
    let Some(scene) = RecordedTerminal::begin(&house, "run go", USUAL, None) else { return };
    expect_file!["screens/retry.txt"].assert_eq(&scene.last_screen());
}

#[test]
fn screen_of_parallel_calls() {
    let Some(house) = house_with_cli() else { return };
    // The first waits until all are shown, and each other one for the previous one, so that their
    // order is always the same.
    let calls = json!({ "steps": [
        shell_call("until test -e go; do sleep 0.01; done; echo 'the first'; : > one"),
        shell_call("while [ ! -e one ]; do sleep 0.01; done; echo 'the second'; : > two; exit 3"),
        shell_call("while [ ! -e two ]; do sleep 0.01; done; sleep 0.2; echo 'the third'"),
    ] });
    script_answers(&house, &[calls, text_answer("All three ran.")]);
    let Some(scene) = RecordedTerminal::begin(&house, "run --yes go", USUAL, None) else { return };
    scene.wait_until_shown("[cli 3] cli_based_tool");
    house.write("workspace/go", "");
    // Which of two finished calls is reported first is random, but the lines of one call stay
    // together.
    let ended = scene.last_screen();
    let mut lines: Vec<&str> = ended.lines().collect();
    let calls = lines.iter_mut().filter(|line| line.starts_with("  ")).collect::<Vec<_>>();
    let mut sorted: Vec<&str> = calls.iter().map(|line| **line).collect();
    sorted.sort_by_key(|line| line.split('│').next().map(str::to_owned));
    calls.into_iter().zip(sorted).for_each(|(line, other)| *line = other);
    expect_file!["screens/parallel.txt"].assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn screen_of_a_long_output() {
    let Some(house) = house_with_cli() else { return };
    script_answers(
        &house,
        &[json!({ "steps": [shell_call("seq 1 3000")] }), text_answer("It counts to 3000.")],
    );
    let Some(scene) = RecordedTerminal::begin(&house, "run --yes go", WIDE, None) else { return };
    let ended = scene.last_screen();
    // Where the path is wrapped depends on the length of the test's folder.
    let (before, path) = ended.split_once("full output: ").unwrap();
    let (path, after) = path.split_once("\nIt counts").unwrap();
    let path: String =
        path.replace("dim:", "").chars().filter(|it| !"‹›\n".contains(*it)).collect();
    assert!(path.contains("/attachments/"), "{path}");
    let shown = format!("{before}full output: PATH\nIt counts{after}");
    expect_file!["screens/long_output.txt"].assert_eq(&shown);
}

#[test]
fn screen_of_a_progress_bar() {
    let Some(house) = house_with_cli() else { return };
    let frames = "for at in 10 45 100; do printf \"\\r Fetching $at %%\"; \
        until test -e go; do sleep 0.01; done; done; echo; echo there";
    script_answers(
        &house,
        &[json!({ "steps": [shell_call(frames)] }), text_answer("It is there.")],
    );
    let Some(scene) = RecordedTerminal::begin(&house, "run --yes go", USUAL, None) else { return };
    scene.wait_until_shown("running for at in 10 45 100");
    scene.wait_until_shown("Fetching 10 %");
    house.write("workspace/go", "");
    expect_file!["screens/progress.txt"].assert_eq(&scene.last_screen());
    // The model gets the final state of the line, and so does an output that is not a terminal.
    let told = house.run(&["call", "cli_based_tool", &json!({ "command": frames }).to_string()]);
    assert_eq!(told.code(0).json()["stdout"], " Fetching 100 %\nthere\n");
    script_answers(
        &house,
        &[json!({ "steps": [shell_call(frames)] }), text_answer("It is there.")],
    );
    let piped = house.run(&["run", "--yes", "go"]).code(0);
    assert!(piped.stderr.contains("cli │  Fetching 100 %\n  cli │ there\n"), "{piped}");
    assert!(!piped.stderr.contains("45 %"), "{piped}");
}

#[test]
fn screen_of_a_narrow_terminal() {
    let Some(house) = house_with_cli() else { return };
    script_answers(
        &house,
        &[
            json!({ "steps": [
                shell_call("echo 'a line that is longer than this terminal is wide'"),
            ] }),
            text_answer(ANSWER),
        ],
    );
    let Some(scene) = RecordedTerminal::begin(&house, "run --yes go", NARROW, None) else { return };
    expect_file!["screens/narrow.txt"].assert_eq(&scene.last_screen());
}

#[test]
fn screen_without_colours() {
    let Some(house) = house_with_cli() else { return };
    house.ship(&fixture("probe"));
    script_answers(
        &house,
        &[json!({ "steps": [shell_call("echo ok; exit 1")] }), text_answer(ANSWER)],
    );
    let variable = Some(("NO_COLOR", "1"));
    let Some(scene) = RecordedTerminal::begin(&house, "run --yes go", USUAL, variable) else {
        return;
    };
    expect_file!["screens/no_colour.txt"].assert_eq(&scene.last_screen());
}
