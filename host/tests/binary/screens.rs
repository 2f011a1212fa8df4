//! Tests what a user sees: whole screens that a terminal emulator draws from jaato's output. The
//! snapshots are in `screens/`, to be reviewed when they change.

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::support::answers::says;
use crate::support::cli::with_cli;
use crate::support::screen::{Scene, Size};
use crate::support::{House, fixture};

const USUAL: Size = Size { rows: 30, columns: 80 };
const WIDE: Size = Size { rows: 30, columns: 100 };
const NARROW: Size = Size { rows: 40, columns: 40 };

fn call(command: &str) -> Value {
    json!({ "call": { "name": "cli_based_tool", "arguments": { "command": command } } })
}

fn script(house: &House, answers: &[Value]) {
    house.script(&json!({ "answers": answers }));
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
    let Some(house) = with_cli() else { return };
    house.write("workspace/src/parse.rs", "");
    script(&house, &[json!({ "steps": [call("ls src")] }), says(ANSWER)]);
    let Some(scene) = Scene::begin(&house, "run --yes 'why does it fail?'", USUAL, None) else {
        return;
    };
    expect_file!["screens/run.txt"].assert_eq(&scene.end());
}

#[test]
fn screen_of_symbols_and_of_a_paragraph_in_progress() {
    let Some(house) = with_cli() else { return };
    let words = "one two three four five six seven eight nine ten eleven twelve ".repeat(2);
    let hangs = json!({ "steps": [{ "text": words }, { "text": "and so on" }, "hang"] });
    script(&house, &[says(SIGNS), hangs]);
    let Some(mut scene) = Scene::begin(&house, "chat --yes go", USUAL, None) else { return };
    scene.until("not closed\n> ");
    scene.write(b"and then?\r");
    // Complete rows appear before the paragraph ends. The last row still changes.
    scene.until("one two three four five six seven eight nine ten eleven twelve one two");
    scene.until("and so on");
    // A draft is below the progress row.
    scene.write(b"a draft");
    scene.until("and so on · Ctrl-C stops\n> a draft");
    scene.write(b"\x1b[D\x1b[Dx");
    scene.until("and so on · Ctrl-C stops\n> a draxft");
    // A list of completions is above both.
    scene.write(b"\x05\x15/mo\t");
    scene.until("> /mode");
    scene.write(b"\t");
    scene.until("model  switches to another model; without a name, shows the current one\n");
    scene.write(b"l");
    scene.until("and so on · Ctrl-C stops\n> /model");
    scene.write(b"\x1b");
    scene.until("cancelled\n\n> /model");
    scene.write(b"\x15/quit\r");
    expect_file!["screens/signs.txt"].assert_eq(&scene.end());
}

#[test]
fn screen_of_a_chat() {
    let Some(house) = with_cli() else { return };
    let answers = [
        says("Hello. How can I help?"),
        json!({ "steps": [{ "text": "I look." }, call("echo 'one file'")] }),
        says("There is **one** file."),
    ];
    script(&house, &answers);
    let Some(mut scene) = Scene::begin(&house, "chat --yes", USUAL, None) else { return };
    scene.until("> ");
    scene.write(b"hello\r");
    scene.until("How can I help?\n> ");
    scene.write(b"count the files\r");
    scene.until("one file.\n> ");
    scene.write(b"/etc/hosts what is in it?\r");
    scene.until("line back\n> ");
    scene.write(b"/quit\r");
    expect_file!["screens/chat.txt"].assert_eq(&scene.end());
}

#[test]
fn screen_of_a_failure() {
    let Some(house) = with_cli() else { return };
    let command = "echo 'Compiling moon' >&2; echo 'error: no such phase' >&2; exit 101";
    let fails = json!({ "steps": [{ "fail": {
        "kind": "provider", "message": "the key was refused", "hint": "`OPENAI_API_KEY` holds it"
    } }] });
    script(&house, &[json!({ "steps": [call(command)] }), fails]);
    let Some(scene) = Scene::begin(&house, "run --yes go", USUAL, None) else { return };
    expect_file!["screens/failure.txt"].assert_eq(&scene.end());
}

#[test]
fn screen_of_a_retry() {
    let Some(house) = with_cli() else { return };
    house.configure_more("[session]\nretry_base_ms = 1\n");
    let busy = json!({ "steps": [{ "fail": { "kind": "provider", "message": "the server is overloaded", "retry": "temporary" } }] });
    script(&house, &[busy.clone(), busy, says("Now it works.")]);
    let Some(scene) = Scene::begin(&house, "run go", USUAL, None) else { return };
    expect_file!["screens/retry.txt"].assert_eq(&scene.end());
}

#[test]
fn screen_of_parallel_calls() {
    let Some(house) = with_cli() else { return };
    // The first waits until all are shown, and each other one for the previous one, so that their
    // order is always the same.
    let calls = json!({ "steps": [
        call("until test -e go; do sleep 0.01; done; echo 'the first'; : > one"),
        call("while [ ! -e one ]; do sleep 0.01; done; echo 'the second'; : > two; exit 3"),
        call("while [ ! -e two ]; do sleep 0.01; done; sleep 0.2; echo 'the third'"),
    ] });
    script(&house, &[calls, says("All three ran.")]);
    let Some(scene) = Scene::begin(&house, "run --yes go", USUAL, None) else { return };
    scene.until("[cli 3] cli_based_tool");
    house.write("workspace/go", "");
    // Which of two finished calls is reported first is random, but the lines of one call stay
    // together.
    let ended = scene.end();
    let mut lines: Vec<&str> = ended.lines().collect();
    let calls = lines.iter_mut().filter(|line| line.starts_with("  ")).collect::<Vec<_>>();
    let mut sorted: Vec<&str> = calls.iter().map(|line| **line).collect();
    sorted.sort_by_key(|line| line.split('│').next().map(str::to_owned));
    calls.into_iter().zip(sorted).for_each(|(line, other)| *line = other);
    expect_file!["screens/parallel.txt"].assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn screen_of_a_long_output() {
    let Some(house) = with_cli() else { return };
    script(&house, &[json!({ "steps": [call("seq 1 3000")] }), says("It counts to 3000.")]);
    let Some(scene) = Scene::begin(&house, "run --yes go", WIDE, None) else { return };
    let ended = scene.end();
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
    let Some(house) = with_cli() else { return };
    let frames = "for at in 10 45 100; do printf \"\\r Fetching $at %%\"; \
        until test -e go; do sleep 0.01; done; done; echo; echo there";
    script(&house, &[json!({ "steps": [call(frames)] }), says("It is there.")]);
    let Some(scene) = Scene::begin(&house, "run --yes go", USUAL, None) else { return };
    scene.until("running for at in 10 45 100");
    scene.until("Fetching 10 %");
    house.write("workspace/go", "");
    expect_file!["screens/progress.txt"].assert_eq(&scene.end());
    // The model gets the final state of the line, and so does an output that is not a terminal.
    let told = house.run(&["call", "cli_based_tool", &json!({ "command": frames }).to_string()]);
    assert_eq!(told.code(0).json()["stdout"], " Fetching 100 %\nthere\n");
    script(&house, &[json!({ "steps": [call(frames)] }), says("It is there.")]);
    let piped = house.run(&["run", "--yes", "go"]).code(0);
    assert!(piped.stderr.contains("cli │  Fetching 100 %\n  cli │ there\n"), "{piped}");
    assert!(!piped.stderr.contains("45 %"), "{piped}");
}

#[test]
fn screen_of_a_narrow_terminal() {
    let Some(house) = with_cli() else { return };
    script(
        &house,
        &[
            json!({ "steps": [call("echo 'a line that is longer than this terminal is wide'")] }),
            says(ANSWER),
        ],
    );
    let Some(scene) = Scene::begin(&house, "run --yes go", NARROW, None) else { return };
    expect_file!["screens/narrow.txt"].assert_eq(&scene.end());
}

#[test]
fn screen_without_colours() {
    let Some(house) = with_cli() else { return };
    house.ship(&fixture("probe"));
    script(&house, &[json!({ "steps": [call("echo ok; exit 1")] }), says(ANSWER)]);
    let variable = Some(("NO_COLOR", "1"));
    let Some(scene) = Scene::begin(&house, "run --yes go", USUAL, variable) else { return };
    expect_file!["screens/no_colour.txt"].assert_eq(&scene.end());
}
