//! Whole tasks in small git repositories, done by the real default model with every shipped plugin.
//! A task succeeds if its effect and the final answer are right.
//!
//! `whole_tasks.json` has two sets. The prompt was tuned on one, and the other was held out. A task
//! has `one` step, `two` steps, or is `talk` if it needs no tool.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::process::{self, Stdio};

use jaato_types::{Event, EventEnvelope};
use serde_json::Value;

use crate::house;
use crate::real_model::{link_weights, real_weights};
use crate::support::{House, fixtures, library_name, skip};

/// The minimum percentage of successful tasks by group. A little lower than the README's figures,
/// because another processor rounds differently and may choose another word.
const RIGHT_MIN: [(&str, usize); 2] = [("one", 75), ("two", 45)];

#[test]
fn whole_tasks_used_for_tuning_are_completed_by_a_real_model() {
    score_model("tuned");
}

#[test]
fn whole_tasks_held_out_are_completed_by_a_real_model() {
    score_model("held_out");
}

/// Runs the tasks of a set and prints a line for each. `WHOLE_TASKS` may select some by their ids.
fn score_model(name: &str) {
    let Some(weights) = real_weights() else {
        return skip("no weights are in this user's cache; `jaato model pull` fetches them");
    };
    for program in ["git", "python3", "node"] {
        if !process::Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|it| it.status.success())
        {
            return skip(&format!("the tasks need `{program}`"));
        }
    }
    let house = house!();
    let plugins = fixtures::test_house().unwrap().join("plugins");
    if !plugins.join(library_name("provider_local")).is_file() {
        return skip("the test house has no `provider-local`");
    }
    for file in fs::read_dir(plugins).unwrap().flatten() {
        house.ship(&file.path());
    }
    let model = link_weights(&house, &weights);
    let sets: Value = serde_json::from_str(include_str!("whole_tasks.json")).unwrap();
    let set = &sets[name];
    let setup: Vec<&str> = list_or_empty(&set["setup"]).iter().map(text_or_empty).collect();
    let only = std::env::var("WHOLE_TASKS").unwrap_or_default();
    let is_meant = |task: &&Value| only.is_empty() || only.split(',').any(|id| task["id"] == id);
    let mut scores: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for task in list_or_empty(&set["tasks"]).iter().filter(is_meant) {
        let is_right = is_task_done(&house, model, &setup.join("\n"), task);
        let (right, all) = scores.entry(text_or_empty(&task["group"])).or_default();
        *right += usize::from(is_right);
        *all += 1;
    }
    // Bypasses the harness, which captures a test's output, because these are the README's figures.
    let line = format!("whole tasks, {name}: {scores:?} (right, all)\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    for (group, least) in RIGHT_MIN {
        let (right, all) = scores.get(group).copied().unwrap_or_default();
        assert!(right * 100 >= all * least, "{name}, {group}: {right} of {all} are right");
    }
    house.assert_no_processes();
}

fn list_or_empty(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn text_or_empty(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Runs a task: `task` in the repository created by `setup` and the task's `more`. Its `check` is a
/// shell command that succeeds if the effect and `$ANSWER` are right.
fn is_task_done(house: &House, model: &str, setup: &str, task: &Value) -> bool {
    let workspace = house.workspace();
    fs::remove_dir_all(&workspace).unwrap();
    fs::create_dir(&workspace).unwrap();
    let id = text_or_empty(&task["id"]);
    let script = format!("{setup}\n{}\n", task["more"].as_str().unwrap_or_default());
    assert!(run_shell(house, &script, ""), "cannot create the repository of `{id}`");
    let words = [
        "run",
        "--yes",
        "--offline",
        "--model",
        model,
        "--output",
        "json",
        text_or_empty(&task["task"]),
    ];
    let output = house.command(&words).with_long_deadline().run();
    let mut calls = Vec::new();
    let mut answer = String::new();
    for line in output.stdout.lines() {
        match serde_json::from_str::<EventEnvelope>(line).unwrap().event {
            Event::ToolCallStarted { name, arguments, .. } => {
                calls.push(format!("{name} {arguments}"));
            }
            Event::TurnFinished { text, .. } => answer = text,
            _ => {}
        }
    }
    let is_right = run_shell(house, text_or_empty(&task["check"]), &answer);
    println!("{} {id}: {calls:?} = {answer:?}", if is_right { "right" } else { "WRONG" });
    is_right
}

fn run_shell(house: &House, script: &str, answer: &str) -> bool {
    let mut command = process::Command::new("sh");
    command.args(["-c", script]).current_dir(house.workspace()).env("ANSWER", answer);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap().success()
}
