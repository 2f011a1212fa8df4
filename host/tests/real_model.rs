//! Asks the real model the README's question, if its weights are on this machine. Nothing is
//! scripted.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::house;
use crate::support::screen::{RecordedTerminal, ScreenSize};
use crate::support::{Command, House, fixtures, library_name, no_network, skip};
use jaato_types::{Event, EventEnvelope, Outcome};

/// The default model first.
const MODELS: [(&str, &str); 2] = [
    ("local/qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    ("local/qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
];

const QUESTION: &str = "What operating system am I running on?";

/// The design's limit for the prefix with all default tools, plus space for the question.
const PROMPT_TOKENS_MAX: u64 = 700 + 40;

/// The same with every plugin: system prompt and four tools 390, the examples for a small model
/// 790, the skill and the question 45.
const EVERY_PLUGIN_TOKENS_MAX: u64 = 390 + 790 + 45;

#[test]
fn the_first_question_of_the_readme_is_answered_by_a_real_model() {
    let Some(weights) = real_weights() else {
        return skip("no weights are in this user's cache; `jaato model pull` fetches them");
    };
    let house = house!();
    let test_house = fixtures::test_house().unwrap();
    let provider = test_house.join("plugins").join(library_name("provider_local"));
    if !provider.is_file() {
        return skip("the test house has no `provider-local`");
    }
    house.ship(&provider);
    let model = link_weights(&house, &weights);
    // First, because the second run finds the prompt's state in a file.
    answers_on_a_terminal(&house, model);
    let words = ["run", "--model", model, "--output", "json", QUESTION];
    // Without a network at all if possible, otherwise with the option that promises the same.
    let command = match no_network(&house) {
        Some(way) => Command::wrapped_in(&house, "unshare", way, &words),
        None => house.command(&[&words[..], &["--offline"]].concat()),
    };
    let output = command.with_long_deadline().run().code(0);
    let events: Vec<Event> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<EventEnvelope>(line).unwrap().event)
        .collect();
    let called = events.iter().any(|event| {
        matches!(event, Event::ToolCallFinished { name, is_error: false, .. }
            if name.as_str() == "get_environment")
    });
    assert!(called, "the model called no tool: {output}");
    let usages = events.iter().filter_map(|event| match event {
        Event::Usage { usage } => Some(usage),
        _ => None,
    });
    let usages: Vec<_> = usages.collect();
    let [first, .., last] = &usages[..] else { panic!("the model was asked once: {output}") };
    assert!((1..=PROMPT_TOKENS_MAX).contains(&first.prompt_tokens), "{first:?}");
    assert!(last.cached_tokens >= first.prompt_tokens, "it reads the prompt once: {last:?}");
    let Some(Event::TurnFinished { outcome, text, .. }) = events.last() else {
        panic!("the turn does not end: {output}");
    };
    assert_eq!(*outcome, Outcome::Done);
    let expected = if cfg!(target_os = "macos") { "mac" } else { std::env::consts::OS };
    assert!(text.to_lowercase().contains(expected), "`{text}` names no {expected}");
    house.assert_no_processes();
}

/// Asks on a terminal.
fn answers_on_a_terminal(house: &House, model: &str) {
    let words = format!("run --offline --model {model} '{QUESTION}'");
    let size = ScreenSize { rows: 24, columns: 80 };
    let Some(scene) = RecordedTerminal::begin(house, &words, size, None) else { return };
    // It shows how much of the prompt it has read, and ends with a plain-text answer.
    scene.wait_until_written("tokens");
    let shown = scene.last_screen();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(shown.contains("get_environment"), "{shown}");
    assert!(shown.contains('✓') && shown.to_lowercase().contains("linux"), "{shown}");
    let left_over = ["tokens", "waiting", "…", "Ctrl-C"];
    assert!(left_over.iter().all(|it| !lines.last().unwrap().contains(it)), "{shown}");
}

/// Tests what the model can do with the tools for work, one step at a time.
#[test]
fn tools_for_work_are_used_by_a_real_model() {
    let Some(weights) = real_weights() else {
        return skip("no weights are in this user's cache; `jaato model pull` fetches them");
    };
    let house = house!();
    let skill = "---\nname: heron\ndescription: Use when a heron is seen.\n---\nSay: It flies.\n";
    house.write("workspace/.agents/skills/heron/SKILL.md", skill);
    house.write("workspace/notes.txt", "The secret word is heron.\n");
    house.run(&["trust"]).code(0);
    // The tasks with the same tools share a prompt, whose state is saved after the first. With few
    // tools, a prompt is short and so is the model's answer.
    let memory = "store_memory,retrieve_memories";
    for (tools, tool, task, said) in [
        (None, "readFile", "Read the file notes.txt. Which secret word stands in it?", "heron"),
        (
            Some(memory),
            "store_memory",
            "Store this in memory: releases are tagged before they are published.",
            "",
        ),
        (Some(memory), "retrieve_memories", "Retrieve the memories with the tag release.", ""),
        (Some("calculate"), "calculate", "What is 12.5 * 3.1?", "38.75"),
        (Some("createPlan"), "createPlan", "Make a plan with two steps to write a web page.", ""),
        // It flies or is flying, because the test's folder is part of the model's input.
        (Some("use_prompt"), "use_prompt", "Use the skill heron.", "fl"),
    ] {
        let Some(events) = ask_model(&house, &weights, tools, task) else { return };
        if tools.is_none() {
            check_prompt_size(&events);
        }
        let worked = events.iter().any(|event| {
            matches!(event, Event::ToolCallFinished { name, is_error: false, .. }
                if name.as_str() == tool)
        });
        assert!(worked, "`{task}` calls no {tool}: {events:?}");
        let Some(Event::TurnFinished { text, .. }) = events.last() else {
            panic!("the turn does not end: {events:?}");
        };
        assert!(text.contains(said), "`{task}` is answered `{text}`");
    }
    house.assert_no_processes();
}

/// Checks the prompt that the default tools of all plugins make.
fn check_prompt_size(events: &[Event]) {
    let tokens = events.iter().find_map(|event| match event {
        Event::Usage { usage } => Some(usage.prompt_tokens),
        _ => None,
    });
    assert!(
        tokens.is_some_and(|tokens| (300..=EVERY_PLUGIN_TOKENS_MAX).contains(&tokens)),
        "{tokens:?}"
    );
}

/// Asks the real model with every shipped plugin, and the default tools or some of them.
fn ask_model(house: &House, weights: &Path, tools: Option<&str>, task: &str) -> Option<Vec<Event>> {
    let plugins = fixtures::test_house().unwrap().join("plugins");
    if !plugins.join(library_name("provider_local")).is_file() {
        skip("the test house has no `provider-local`");
        return None;
    }
    for file in fs::read_dir(plugins).unwrap().flatten() {
        house.ship(&file.path());
    }
    let model = link_weights(house, weights);
    let mut words = vec!["run", "--yes", "--model", model, "--offline", "--output", "json"];
    words.extend(tools.map(|tools| ["--tools", tools]).into_iter().flatten());
    words.push(task);
    let output = house.command(&words).with_long_deadline().run().code(0);
    let lines = output.stdout.lines();
    Some(lines.map(|line| serde_json::from_str::<EventEnvelope>(line).unwrap().event).collect())
}

pub fn real_weights() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let folder = cache.join("jaato/models");
    MODELS.iter().any(|(_, file)| folder.join(file).is_file()).then_some(folder)
}

/// Links the weights into the installation, and returns their model.
pub fn link_weights(house: &House, weights: &Path) -> &'static str {
    let models = house.cache_folder().join("models");
    fs::create_dir_all(&models).unwrap();
    let found = MODELS.iter().find(|(_, file)| weights.join(file).is_file());
    let (model, file) = found.expect("looked for before");
    if models.join(file).exists() {
        return model;
    }
    // A symbolic link, because a hard link would change the file's own metadata. The record of its
    // check is copied, because hashing a gigabyte takes seconds.
    std::os::unix::fs::symlink(weights.join(file), models.join(file)).unwrap();
    let note = format!("{file}.verified");
    if weights.join(&note).is_file() {
        fs::copy(weights.join(&note), models.join(&note)).unwrap();
    }
    model
}
