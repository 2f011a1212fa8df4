//! Tests `--show-prompt`: the text that a model gets before the task.

use std::fs;
use std::os::unix::fs::symlink;

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::{elf, fixture, fixtures};

/// Maximum tokens before the embedded model's task, counted from its tool declarations. Its
/// provider writes them shorter.
const DEFAULT_PREFIX_TOKENS_MAX: usize = 750;
/// The same for other models.
const CLOUD_PREFIX_TOKENS_MAX: usize = 3000;

#[track_caller]
fn total_tokens(prompt: &str) -> usize {
    let line = prompt.lines().last().unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = words.iter().find_map(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no number in `{line}`"))
}

#[test]
fn show_prompt_prints_the_parts_in_order_and_sends_nothing() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    let file = house.write("prompt.md", "Be brief.").display().to_string();
    house.configure_more(&format!("[prompt]\nfile = \"{file}\"\n"));
    let output = house
        .run(&["run", "--show-prompt", "--system", "Name the moons.", "hello"])
        .expect_silent();
    expect![[r#"
        --- built-in (about 65 tokens)
        You are an agent on the user's computer. Call a tool when it is needed to get the answer or to do the task; otherwise just answer. If a call fails, read its error and correct the call. Never invent a result. When the task is done, say briefly what came of it.
        --- $HOUSE/prompt.md (about 3 tokens)
        Be brief.
        --- --system (about 4 tokens)
        Name the moons.
        --- tool get_environment (about 96 tokens)
        Get facts about this computer, its terminal and this session. Do not guess them.
        {"type":"object","properties":{"aspect":{"type":"string","enum":["os","shell","arch","cwd","terminal","context","session","datetime","network","all"],"description":"os: system and version; context: tokens used; datetime: date, time, zone.","default":"all"}},"additionalProperties":false}
        --- in all about 168 tokens before the task
    "#]].assert_eq(&house.normalize_output(&output.stdout));
}

/// Returns the labels of the output, and the texts of the system prompt in their order.
fn system_prompt_parts(shown: &str) -> (Vec<&str>, Vec<&str>) {
    let parts = shown.split("--- ").skip(1).filter(|part| !part.starts_with("in all "));
    let parts = parts.take_while(|part| !part.starts_with("tool "));
    parts
        .map(|part| {
            let (head, text) = part.split_once('\n').unwrap();
            (head.split_once(" (about ").unwrap().0, text.trim_end())
        })
        .unzip()
}

#[test]
fn agents_files_and_plugin_prompts_are_in_fixed_order() {
    let house = house!();
    let shipped = fs::read(house.ship(&fixture("describes"))).unwrap();
    let other = elf::patch_bytes(&shipped, "fixture-describes", "another-describes");
    let other = elf::patch_bytes(&other, "described_answer", "described_second");
    let other = elf::patch_bytes(&other, "Ask for the phase before", "Ask for the stars before");
    fs::write(house.shipped_folder().join("zz.so"), other).unwrap();
    for (place, text) in [
        ("AGENTS.md", "Always rhyme.\n"),
        ("docs/AGENTS.md", "\nWrite short lines.\n\n"),
        ("docs/moon/deep/AGENTS.md", "Count in moons."),
        // In a sibling folder, further down, further up, and under another name.
        ("src/AGENTS.md", "never"),
        ("docs/moon/deep/down/AGENTS.md", "never"),
        ("../AGENTS.md", "never"),
        ("docs/moon/agents.md", "never"),
    ] {
        house.write(&format!("workspace/{place}"), text);
    }
    let inside = house.workspace().join("docs/moon/deep");
    let expected = [
        "Always rhyme.",
        "Write short lines.",
        "Count in moons.",
        "Ask for the stars before the tide.",
        "Ask for the phase before the tide.",
        "Name the moons.",
    ];
    let run = |words: &[&str]| {
        let words = [&["run", "--system", "Name the moons."], words].concat();
        house.command(&words).directory(&inside).run()
    };
    house.set_script(&json!({ "answers": [
        { "expect": { "system": expected.join("\n\n") }, "steps": [{ "text": "ok" }] },
    ] }));
    house.command(&["trust"]).directory(&inside).run().expect_silent();
    let shown = run(&["--show-prompt"]).expect_silent().stdout;
    let (labels, texts) = system_prompt_parts(&shown);
    let order = [
        "built-in",
        "AGENTS.md",
        "docs/AGENTS.md",
        "docs/moon/deep/AGENTS.md",
        "another-describes",
        "fixture-describes",
        "--system",
    ];
    assert_eq!((&labels[..], &texts[1..]), (&order[..], &expected[..]), "{shown}");
    run(&["hello"]).expect_silent();
    // Instructions are included only with their tools.
    let shown = run(&["--show-prompt", "--tools", "described_answer"]).expect_silent().stdout;
    let (labels, _) = system_prompt_parts(&shown);
    assert_eq!(labels[4..], ["fixture-describes", "--system"], "{shown}");
}

#[test]
fn only_named_tools_are_in_the_prompt() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    house.ship(&fixture("echo"));
    let output =
        house.run(&["run", "--show-prompt", "--tools", "count_bytes_echo"]).expect_silent();
    assert!(output.stdout.contains("--- tool count_bytes_echo"), "{output}");
    assert!(!output.stdout.contains("--- tool get_environment"), "{output}");
}

#[test]
fn missing_or_too_large_prompt_file_is_refused() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    let missing = house.path().join("missing.md");
    house.configure_more(&format!("[prompt]\nfile = {missing:?}\n"));
    let output = house.run(&["run", "--show-prompt"]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        error: cannot use prompt file `$HOUSE/missing.md`: No such file or directory (os error 2)
    "#]]
    .assert_eq(&output.to_string());
    let file = house.write("prompt.md", &"x".repeat(64 * 1024 + 1)).display().to_string();
    house.set_script(&json!({ "answers": [] }));
    house.configure_more(&format!("[prompt]\nfile = \"{file}\"\n"));
    let output = house.run(&["run", "--show-prompt"]).code(3);
    expect![[r#"
        exit 3
        --- stderr
        error: cannot use prompt file `$HOUSE/prompt.md`: it has 65537 bytes, but the limit is 65536
    "#]]
    .assert_eq(&output.to_string());
}

/// With all shipped plugins, for a large model and for the embedded one.
#[test]
fn prompt_size_is_bounded_with_all_shipped_plugins() {
    let Some(house) = crate::support::House::without_plugins() else { return };
    let shipped = fixtures::test_house().unwrap().join("plugins");
    for file in fs::read_dir(shipped).unwrap().flatten() {
        if !file.file_name().to_string_lossy().starts_with('.') {
            house.ship(&file.path());
        }
    }
    house.set_script(&json!({ "answers": [] }));
    let large = house.run(&["run", "--show-prompt"]).expect_silent().stdout;
    let has = |prompt: &str, tool: &str| prompt.contains(&format!("--- tool {tool} "));
    for tool in [
        "cli_based_tool",
        "readFile",
        "get_environment",
        "updateFile",
        "writeNewFile",
        "grep_content",
        "glob_files",
        "createPlan",
        "completePlan",
        "list_tools",
    ] {
        assert!(has(&large, tool), "{tool}: {large}");
    }
    assert!(
        large.contains("Change files with `updateFile` and `writeNewFile`, not with"),
        "{large}"
    );
    let tokens = total_tokens(&large);
    assert!((500..=CLOUD_PREFIX_TOKENS_MAX).contains(&tokens), "{tokens} tokens: {large}");
    // Each family gets the edit form that it knows, and finds the other on demand.
    for (model, by_patch) in
        [("openai/gpt-5.1", true), ("openai/gpt-4o", false), ("anthropic/claude-opus-4-7", false)]
    {
        let shown = house.run(&["run", "--show-prompt", "--model", model]).expect_silent().stdout;
        assert_eq!(has(&shown, "apply_patch"), by_patch, "{model}: {shown}");
        for tool in ["updateFile", "writeNewFile"] {
            assert_eq!(has(&shown, tool), !by_patch, "{model}: {shown}");
        }
        assert!(has(&shown, "completePlan"), "{model}: {shown}");
        let tokens = total_tokens(&shown);
        assert!(tokens <= CLOUD_PREFIX_TOKENS_MAX, "{model}: {tokens} tokens");
    }

    let local = ["run", "--show-prompt", "--model", "local/qwen2.5-coder-1.5b"];
    let small = house.run(&local).expect_silent().stdout;
    for tool in ["cli_based_tool", "readFile", "updateFile", "writeNewFile", "list_tools"] {
        assert!(small.contains(&format!("--- tool {tool} ")), "{tool}: {small}");
    }
    for tool in ["createPlan", "get_environment", "apply_patch", "grep_content"] {
        assert!(!has(&small, tool), "{tool}: {small}");
    }
    let tokens = total_tokens(&small);
    assert!((100..=DEFAULT_PREFIX_TOKENS_MAX).contains(&tokens), "{tokens} tokens: {small}");

    // The user decides which tools come first, and how many.
    house.configure_more("[tools]\nfirst = [\"createPlan\"]\ncore_tokens_max = 350\n");
    let few = house.run(&["run", "--show-prompt"]).expect_silent().stdout;
    assert!(few.contains("--- tool createPlan ") && !few.contains("readFile"), "{few}");
}

#[test]
fn linked_agents_files_are_in_the_prompt_once_and_unusable_ones_are_reported() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    house.write("workspace/AGENTS.md", "Always rhyme.");
    house.write("workspace/docs/moon/deep/note.txt", "");
    let below = |name: &str| house.workspace().join("docs").join(name);
    symlink("../AGENTS.md", below("AGENTS.md")).unwrap();
    fs::hard_link(house.workspace().join("AGENTS.md"), below("moon/AGENTS.md")).unwrap();
    house.write("outside.md", "Never rhyme.");
    symlink("../../../../outside.md", below("moon/deep/AGENTS.md")).unwrap();
    let run = |words: &[&str]| house.command(words).directory(&below("moon/deep")).run().code(0);
    run(&["trust"]);
    let shown = run(&["run", "--show-prompt", "hello"]);
    assert_eq!(shown.stdout.matches("Always rhyme.").count(), 1, "{shown}");
    assert!(!shown.stdout.contains("Never rhyme."), "{shown}");
    let note =
        "`docs/moon/deep/AGENTS.md` is not read: it is not a regular file inside the workspace";
    assert!(shown.stderr.contains(note), "{shown}");
}

#[test]
fn large_agents_file_is_truncated_with_a_note() {
    let house = house!();
    // The limit is inside a letter of two bytes.
    let large = format!("Rhyme{}", "é".repeat(5_000_000));
    house.write("workspace/AGENTS.md", &format!("{large} The end."));
    house.run(&["trust"]).code(0);
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": "ok" }] }] }));
    let line = "`AGENTS.md` has 10000014 bytes; the model gets the first 65536";
    let ran = house.run(&["run", "hello"]).code(0);
    assert!(ran.stderr.contains(line), "{ran}");
    let shown = house.run(&["run", "--show-prompt", "hello"]).code(0).stdout;
    let note = "é\n\n[truncated: the first 65535 of 10000014 bytes of `AGENTS.md`]\n";
    assert!(shown.contains("Rhymeé") && shown.contains(note), "{}", shown.len());
    assert!(!shown.contains("The end."));
    // At the limit the file is complete.
    house.write("workspace/AGENTS.md", &"a".repeat(64 * 1024));
    house.run(&["trust"]).code(0);
    let shown = house.run(&["run", "--show-prompt", "hello"]).expect_silent().stdout;
    assert!(shown.contains(&"a".repeat(64 * 1024)) && !shown.contains("[truncated"));
}
