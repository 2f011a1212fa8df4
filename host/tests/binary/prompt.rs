//! `--show-prompt`: what a model would be sent, before the task.

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::{fixture, fixtures};

/// The promise of the design for all default tools.
const DEFAULT_PREFIX_TOKENS_MAX: usize = 700;

#[track_caller]
fn total(prompt: &str) -> usize {
    let line = prompt.lines().last().unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = words.iter().find_map(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no number in `{line}`"))
}

#[test]
fn the_prompt_is_shown_in_its_order_and_nothing_is_sent() {
    let house = house!();
    house.script(&json!({ "answers": [] }));
    let file = house.write("prompt.md", "Be brief.").display().to_string();
    house.configure_more(&format!("[prompt]\nfile = \"{file}\"\n"));
    let output =
        house.run(&["run", "--show-prompt", "--system", "Speak of moons.", "hello"]).silent();
    expect![[r#"
        --- built-in (about 65 tokens)
        You are an agent on the user's computer. Call a tool when it is needed to get the answer or to do the task; otherwise just answer. If a call fails, read its error and correct the call. Never invent a result. When the task is done, say briefly what came of it.
        --- $HOUSE/prompt.md (about 3 tokens)
        Be brief.
        --- --system (about 4 tokens)
        Speak of moons.
        --- tool get_environment (about 124 tokens)
        Get facts about this computer, its terminal and this session. Do not guess them. Returns JSON.
        {"type":"object","properties":{"aspect":{"type":"string","enum":["os","shell","arch","cwd","terminal","context","session","datetime","network","all"],"description":"os: system and version; shell; arch: processor; cwd: working directory; terminal: colours;\ncontext: tokens used; session: ids; datetime: date, time, zone; network: proxy.","default":"all"}},"additionalProperties":false}
        --- in all about 196 tokens before the task
    "#]].assert_eq(&house.clean(&output.stdout));
}

#[test]
fn only_named_tools_are_in_the_prompt() {
    let house = house!();
    house.script(&json!({ "answers": [] }));
    house.ship(&fixture("echo"));
    let output = house.run(&["run", "--show-prompt", "--tools", "count_bytes_echo"]).silent();
    assert!(output.stdout.contains("--- tool count_bytes_echo"), "{output}");
    assert!(!output.stdout.contains("--- tool get_environment"), "{output}");
}

#[test]
fn a_prompt_file_that_is_not_there_or_too_big_is_refused() {
    let house = house!();
    house.script(&json!({ "answers": [] }));
    house.configure_more("[prompt]\nfile = \"/nonexistent.md\"\n");
    let output = house.run(&["run", "--show-prompt"]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        error: cannot use prompt file `/nonexistent.md`: No such file or directory (os error 2)
    "#]]
    .assert_eq(&output.to_string());
    let file = house.write("prompt.md", &"x".repeat(64 * 1024 + 1)).display().to_string();
    house.script(&json!({ "answers": [] }));
    house.configure_more(&format!("[prompt]\nfile = \"{file}\"\n"));
    let output = house.run(&["run", "--show-prompt"]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        error: cannot use prompt file `$HOUSE/prompt.md`: it has 65537 bytes, at most 65536 are allowed
    "#]].assert_eq(&output.to_string());
}

/// All plugins that are shipped, with the default model's own.
#[test]
fn the_prefix_with_all_default_tools_is_short() {
    let Some(house) = crate::support::House::without_plugins() else { return };
    let shipped = fixtures::house().unwrap().join("plugins");
    for file in std::fs::read_dir(shipped).unwrap().flatten() {
        if !file.file_name().to_string_lossy().starts_with('.') {
            house.ship(&file.path());
        }
    }
    house.script(&json!({ "answers": [] }));
    let output = house.run(&["run", "--show-prompt"]).silent();
    assert!(output.stdout.contains("--- tool get_environment"), "{output}");
    let tokens = total(&output.stdout);
    assert!((100..=DEFAULT_PREFIX_TOKENS_MAX).contains(&tokens), "{tokens} tokens: {output}");
}
