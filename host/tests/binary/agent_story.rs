//! Tests a whole task with agents: four of them, the cap of their tree, hooks, a killed process,
//! and how the tree continues.

use serde_json::{Value, json};

use crate::command_hooks::{HookHouse, hook_entry, script_command};
use crate::subagents::{
    add_model, calls_answer, create_repository, events_named, gated_call, main_answer, run_git,
    run_until_done, spawn_arguments,
};
use crate::support::answers::{call_answer, text_answer, with_expectation};
use crate::support::command::{Output, Running};
use crate::support::{fixtures, library_name};

/// Changes one command, and blocks another.
const GUARD: &str = r#"input=$(cat)
case $input in
*"echo moon"*)
    printf '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "echo sun"}}}'
    ;;
*"rm -rf"*)
    echo "this hook keeps the files" >&2
    exit 2
    ;;
esac
"#;

/// The requests of the first process: six of the main model, eight of four agents, and one that
/// either the main model or the fifth agent gets, which needs two.
const REQUESTS: &str = "15";

/// Returns an installation with the plugins, the hook, a repository, and the models.
fn set_up_house() -> Option<HookHouse> {
    let guard = hook_entry("PreToolUse", "Bash", &script_command("sh", "guard.sh"));
    let house = HookHouse::new(&guard, &[("guard.sh", GUARD)])?;
    let plugins = fixtures::test_house()?.join("plugins");
    for plugin in ["tool_subagent", "tool_clarification"] {
        house.house.ship(&plugins.join(library_name(plugin)));
    }
    create_repository(&house.house);
    house.house.set_script(&json!({ "answers": main_answers(&house) }));
    let run = |command: &str| call_answer("cli_based_tool", json!({ "command": command }));
    let add = |name: &str, answers: Value| add_model(&house.house, name, &answers);
    add("writer", json!([run("echo sun >> a.txt"), text_answer("It is changed.")]));
    add(
        "reader",
        json!([
            run("echo moon"),
            with_expectation("tool_result", "sun", run("rm -rf .")),
            with_expectation(
                "tool_result",
                "this hook keeps the files",
                text_answer("I read sun.")
            ),
        ]),
    );
    let begun = house.house.path().join("begun");
    add("endless", json!([run(&format!("touch {}; sleep 600", begun.display()))]));
    let question = json!({ "text": "Which colour?", "choices": ["red", "blue"] });
    let question = json!({ "context": "The colour is open.", "questions": [question] });
    let asks = call_answer("request_clarification", question);
    add(
        "asker",
        json!([asks, with_expectation("tool_result", "blue", text_answer("The user wants blue."))]),
    );
    add("fifth", json!([run("true"), text_answer("never")]));
    Some(house)
}

/// Returns the answers of the main model.
fn main_answers(house: &HookHouse) -> Value {
    let mut writer = spawn_arguments("writer", "Change a.txt");
    writer["inline_config"]["isolation"] = json!("worktree");
    let four = calls_answer(&[
        ("spawn_subagent", writer),
        ("spawn_subagent", spawn_arguments("reader", "Read the moon")),
        ("spawn_subagent", spawn_arguments("endless", "Never end")),
        ("spawn_subagent", spawn_arguments("asker", "Ask for the colour")),
    ]);
    let begun = house.house.path().join("begun").display().to_string();
    let wait = format!("until [ -e {begun} ]; do sleep 0.02; done");
    let message = json!({ "subagent_id": "reader", "message": "Read it again" });
    let again = call_answer("send_to_subagent", message);
    json!([
        four,
        call_answer("cli_based_tool", json!({ "command": wait })),
        call_answer("cancel_subagent", json!({ "subagent_id": "endless" })),
        with_expectation("tool_result", "Cancel", text_answer("waiting")),
        with_expectation(
            "data",
            "The user wants blue.",
            call_answer("accept_subagent_changes", json!({ "subagent_id": "writer" }))
        ),
        with_expectation(
            "tool_result",
            "applied",
            call_answer("spawn_subagent", spawn_arguments("fifth", "One more"))
        ),
        // The second process. The first one may have had one of these answers, and did nothing.
        again.clone(),
        again,
        with_expectation("tool_result", "success", text_answer("waiting")),
        // The third process.
        call_answer("list_active_subagents", json!({})),
        call_answer("send_to_subagent", json!({ "subagent_id": "reader", "message": "And now?" })),
        with_expectation("tool_result", "dispatched", text_answer("waiting")),
        with_expectation("data", "Still sun.", text_answer("all is done")),
    ])
}

fn start_agents(house: &HookHouse, words: &[&str]) -> Running {
    let words = [&["run", "--output", "json", "--answers", "--yes"], words].concat();
    house.house.command(&words).start()
}

/// Answers the question of an agent, once the main turn waits for it.
fn answer_question(running: &mut Running) {
    let read = |text: &str| -> Value { serde_json::from_str(&running.wait_for(text)).unwrap() };
    let agent = read("\"agent\":\"asker\"");
    let asked = read("\"event\":\"form_asked\"");
    assert_eq!(asked["session"], agent["session"], "{asked}");
    let field = asked["form"]["fields"][0]["name"].as_str().unwrap().to_owned();
    running.wait_for("waiting for ");
    let values = json!({ field: "2" });
    let answer = json!({ "form_id": asked["form_id"], "outcome": "answered", "values": values });
    running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
}

/// Returns the agents whose turns ended this way, sorted.
fn agents_with_outcome(output: &Output, outcome: &str) -> Vec<String> {
    let events = output.json_lines();
    let started = events_named(&events, "session_started");
    let turns = events_named(&events, "turn_finished").into_iter();
    let turns = turns.filter(|turn| turn["outcome"] == outcome);
    let agents = turns.filter_map(|turn| {
        let session = started.iter().find(|it| it["session"] == turn["session"])?;
        session["agent"].as_str().map(str::to_owned)
    });
    let mut names: Vec<_> = agents.collect();
    names.sort();
    names
}

#[test]
fn task_is_split_over_agents_capped_hooked_killed_and_continued() {
    let Some(house) = set_up_house() else { return };
    let mut running = start_agents(&house, &["--max-steps", REQUESTS, "Split it"]);
    answer_question(&mut running);
    let output = running.finish().code(6);
    assert_eq!(agents_with_outcome(&output, "done"), ["asker", "reader", "writer"], "{output}");
    assert!(agents_with_outcome(&output, "cancelled").contains(&"endless".to_owned()), "{output}");
    let events = output.json_lines();
    assert!(events.iter().any(|it| it["agent"] == "fifth"), "it was spawned: {output}");
    assert!(output.stderr.contains("it has made 15 of 15 requests"), "{output}");
    let changed = events_named(&events, "tool_call_changed");
    assert!(!changed.is_empty(), "{output}");
    assert_eq!(house.file_text("a.txt"), "moon\nsun\n");

    // An agent works again when the process dies.
    house.house.set_script(&json!({ "answers": main_answers(&house) }));
    add_model(&house.house, "reader", &json!([gated_call(&house.house, "true")]));
    let running = start_agents(&house, &["--continue", "Again"]);
    running.wait_for("waiting for ");
    running.send_signal("KILL");
    running.finish();
    house.house.assert_no_processes();

    let id = house.house.run(&["session", "list", "--output", "json"]).code(0).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    house.house.set_script(&json!({ "answers": main_answers(&house) }));
    let looks = with_expectation("prompt", "And now?", gated_call(&house.house, "true"));
    add_model(&house.house, "reader", &json!([looks, text_answer("Still sun.")]));
    let output = run_until_done(&house.house, &["--resume", &id, "Go on"]);
    assert_eq!(main_answer(&output), "all is done", "{output}");
    let tree = house.house.run(&["session", "list", "--tree", "--output", "json"]).code(0).json();
    let mut agents: Vec<&str> =
        tree.as_array().unwrap().iter().filter_map(|it| it["agent"].as_str()).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["asker", "endless", "fifth", "reader", "writer"]);
    let trace = house.house.run(&["session", "trace", &id]).code(0).stdout;
    for step in [": Read the moon", ": The user wants blue.", ": Still sun."] {
        assert!(trace.contains(step), "{step}: {trace}");
    }
    assert_eq!(run_git(&house.house, &["status", "--porcelain", "a.txt"]), " M a.txt\n");
    house.house.assert_no_processes();
}
