//! Tests subagents with the real binary: children in parallel, their answers, their sessions, and
//! how they end and continue.

use serde_json::{Value, json};

use crate::support::answers::{call_answer, text_answer, with_expectation};
use crate::support::cli::house_with_cli;
use crate::support::command::Output;
use crate::support::{House, fixtures, library_name};

/// Returns an installation with the plugin, and a model with these answers.
fn set_up_house(answers: &Value) -> Option<House> {
    let house = house_with_cli()?;
    let plugins = fixtures::test_house()?.join("plugins");
    house.ship(&plugins.join(library_name("tool_subagent")));
    house.set_script(&json!({ "answers": answers }));
    Some(house)
}

/// Adds a model for subagents.
pub fn add_model(house: &House, name: &str, answers: &Value) {
    let script = house.write(&format!("{name}.json"), &json!({ "answers": answers }).to_string());
    house.configure_more(&format!(
        "[providers.{name}]\nplugin = \"provider-scripted\"\nscript = \"{}\"\n",
        script.display()
    ));
}

pub fn spawn_arguments(name: &str, task: &str) -> Value {
    let model = format!("{name}/m");
    json!({ "name": name, "task": task, "inline_config": { "model": model } })
}

/// Returns an answer with several calls.
pub fn calls_answer(calls: &[(&str, Value)]) -> Value {
    let step = |(name, arguments): &(&str, Value)| json!({ "call": { "name": name, "arguments": arguments } });
    json!({ "steps": calls.iter().map(step).collect::<Vec<_>>() })
}

/// Returns a call that waits until [`run_until_done`] lets the agents go on, and then runs a
/// command.
pub fn gated_call(house: &House, command: &str) -> Value {
    let go = house.path().join("go");
    let command = format!("until [ -e {} ]; do sleep 0.02; done; {command}", go.display());
    call_answer("cli_based_tool", json!({ "command": command }))
}

/// Runs jaato, and lets the agents go on once the turn waits for them.
pub fn run_until_done(house: &House, words: &[&str]) -> Output {
    let go = house.path().join("go");
    // An earlier run may have made it.
    let _ = std::fs::remove_file(&go);
    let words = [&["run", "--output", "json", "--yes"], words].concat();
    let running = house.command(&words).no_input().start();
    running.wait_for("waiting for ");
    std::fs::write(go, "").unwrap();
    running.finish().code(0)
}

/// Returns the text of the last turn of the first session.
pub fn main_answer(output: &Output) -> String {
    let events = output.json_lines();
    let main = &events[0]["session"];
    let mut turns = events_named(&events, "turn_finished").into_iter().rev();
    turns.find(|it| it["session"] == *main).unwrap()["text"].as_str().unwrap().to_owned()
}

/// Returns the result of a tool's first call.
fn first_result(output: &Output, tool: &str) -> Value {
    let events = output.json_lines();
    let calls = events_named(&events, "tool_call_finished");
    calls.iter().find(|it| it["name"] == tool).unwrap()["result"].clone()
}

pub fn events_named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|it| it["event"] == name).collect()
}

#[test]
fn answers_of_parallel_agents_arrive_in_the_next_step_of_the_same_turn() {
    let both = calls_answer(&[
        ("spawn_subagent", spawn_arguments("moon", "What does echo say?")),
        ("spawn_subagent", spawn_arguments("sun", "Say hot.")),
    ]);
    let answers = json!([
        both,
        with_expectation("tool_result", "\"subagent_id\":\"moon\"", text_answer("waiting")),
        with_expectation(
            "data",
            "It says moon.",
            with_expectation("data", "It is hot.", text_answer("moon and hot"))
        ),
    ]);
    let Some(house) = set_up_house(&answers) else { return };
    let task = with_expectation("prompt", "What does echo say?", gated_call(&house, "echo moon"));
    add_model(
        &house,
        "moon",
        &json!([task, with_expectation("tool_result", "moon", text_answer("It says moon."))]),
    );
    add_model(&house, "sun", &json!([gated_call(&house, "true"), text_answer("It is hot.")]));

    let output = run_until_done(&house, &["go"]);
    let events = output.json_lines();
    let agents: Vec<&Value> = events.iter().filter(|it| it["agent"].is_string()).collect();
    assert_eq!(agents.len(), 2, "{output}");
    let main = &events.iter().find(|it| it["event"] == "session_started").unwrap()["session"];
    assert!(agents.iter().all(|it| it["opener"] == *main), "{agents:#?}");
    let started = events_named(&events, "session_started");
    assert!(started.iter().all(|it| it["tools"] == started[0]["tools"]), "{started:#?}");
    assert_eq!(events_named(&events, "task_finished").len(), 2, "{output}");
    let turns: Vec<&Value> = events_named(&events, "turn_finished")
        .into_iter()
        .filter(|it| it["session"] == *main)
        .collect();
    assert_eq!(turns.len(), 1, "{turns:#?}");
    assert_eq!(turns[0]["text"], "moon and hot");

    let list = house.run(&["session", "list"]).code(0).stdout;
    assert_eq!(list.lines().count(), 2, "agents are not in the plain list: {list}");
    let tree = house.run(&["session", "list", "--tree"]).code(0).stdout;
    assert!(tree.contains("moon: What does echo say?"), "{tree}");
    assert!(tree.contains("sun: Say hot."), "{tree}");
    let json = house.run(&["session", "list", "--tree", "--output", "json"]).code(0).json();
    let agents: Vec<&Value> = json.as_array().unwrap().iter().map(|it| &it["agent"]).collect();
    assert_eq!(agents, [&Value::Null, &json!("moon"), &json!("sun")]);

    let id = json[0]["id"].as_str().unwrap();
    let trace = house.run(&["session", "trace", id]).expect_silent().stdout;
    for step in ["agent moon", "agent sun", ": What does echo say?", ": It says moon."] {
        assert!(trace.contains(step), "{step}: {trace}");
    }
    let trace = house.run(&["session", "trace", id, "--format", "json"]).expect_silent().json();
    assert_eq!(trace["agents"][1]["name"], "agent sun", "{trace}");
    house.run(&["session", "delete", "--yes", id]).code(0);
    let left = house.run(&["session", "list", "--tree", "--output", "json"]).code(0).json();
    assert_eq!(left, json!([]), "agents go with their session");
    house.assert_no_processes();
}

#[test]
fn agent_has_at_most_the_tools_of_its_opener() {
    let answers = json!([
        call_answer(
            "spawn_subagent",
            json!({
                "task": "x", "inline_config": { "tools": ["cli_based_tool"] },
            })
        ),
        text_answer("waiting"),
    ]);
    let Some(house) = set_up_house(&answers) else { return };
    let output =
        house.run(&["run", "--output", "json", "--yes", "--tools", "spawn_subagent", "go"]);
    let events = output.json_lines();
    let child = events.iter().find(|it| it["agent"].is_string()).unwrap();
    assert_eq!(child["tools"], json!([]), "{output}");
    let result = first_result(&output, "spawn_subagent");
    assert_eq!(result["missing_tools"], json!(["cli_based_tool"]), "{output}");
}

#[test]
fn ending_the_run_ends_its_agents() {
    let answers = json!([
        call_answer("spawn_subagent", spawn_arguments("endless", "Never end")),
        text_answer("waiting")
    ]);
    let Some(house) = set_up_house(&answers) else { return };
    add_model(&house, "endless", &json!([{ "steps": [{ "text": "so far" }, "hang"] }]));
    let running = house.command(&["run", "--output", "json", "--yes", "go"]).no_input().start();
    running.wait_for("so far");
    running.send_signal("INT");
    let output = running.finish().code(130);
    let events = output.json_lines();
    let ended = events_named(&events, "task_finished");
    assert_eq!(ended.len(), 1, "{output}");
    assert_eq!(ended[0]["result"]["outcome"], "cancelled", "{output}");
    house.assert_no_processes();
}

#[test]
fn agents_of_a_killed_process_continue_with_their_conversation() {
    let answers = json!([
        call_answer("spawn_subagent", spawn_arguments("reader", "Read it")),
        text_answer("waiting")
    ]);
    let Some(house) = set_up_house(&answers) else { return };
    let hang = json!({ "steps": [{ "text": "so far" }, "hang"] });
    add_model(&house, "reader", &json!([hang]));
    let running = house.command(&["run", "--output", "json", "--yes", "go"]).no_input().start();
    running.wait_for("waiting for ");
    running.send_signal("KILL");
    running.finish();

    // The answers of the first process count, too.
    house.set_script(&json!({ "answers": [
        text_answer("spawned"),
        text_answer("waiting"),
        call_answer("list_active_subagents", json!({})),
        call_answer("send_to_subagent", json!({ "subagent_id": "reader", "message": "Continue" })),
        text_answer("waiting"),
        with_expectation("data", "I have read it.", text_answer("it is read")),
    ] }));
    let continued = with_expectation("prompt", "Continue", gated_call(&house, "true"));
    add_model(&house, "reader", &json!([continued, text_answer("I have read it.")]));
    let output = run_until_done(&house, &["--continue", "and now?"]);
    assert_eq!(main_answer(&output), "it is read", "{output}");
    let listed = first_result(&output, "list_active_subagents");
    assert_eq!(listed["active_sessions"][0]["status"], "saved", "{output}");
    assert_eq!(first_result(&output, "send_to_subagent")["status"], "dispatched", "{output}");
    let tree = house.run(&["session", "list", "--tree", "--output", "json"]).code(0).json();
    assert_eq!(tree.as_array().unwrap().len(), 2, "the agent has one session: {tree}");
    assert_eq!(tree[1]["messages"], 2, "{tree}");
}

/// Creates a repository with one commit.
pub fn create_repository(house: &House) {
    house.write("workspace/a.txt", "moon\n");
    run_git(house, &["init", "-q"]);
    run_git(house, &["add", "a.txt"]);
    run_git(house, &["commit", "-q", "-m", "first"]);
}

/// Runs git in a repository with one commit.
pub fn run_git(house: &House, words: &[&str]) -> String {
    let mut git = std::process::Command::new("git");
    git.current_dir(house.workspace()).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    let output = git.args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn agent_in_a_worktree_changes_the_files_only_when_its_changes_are_accepted() {
    for has_git in [true, false] {
        let mut isolated = spawn_arguments("writer", "Change it");
        isolated["inline_config"]["isolation"] = json!("worktree");
        let id = json!({ "subagent_id": "writer" });
        let answers = json!([
            call_answer("spawn_subagent", isolated),
            with_expectation("tool_result", "spawned", text_answer("waiting")),
            with_expectation(
                "data",
                "It is changed.",
                call_answer("show_subagent_changes", id.clone())
            ),
            with_expectation(
                "tool_result",
                "+sun",
                call_answer("cli_based_tool", json!({ "command": "cat a.txt" }))
            ),
            with_expectation(
                "tool_result",
                "moon",
                call_answer("accept_subagent_changes", id.clone())
            ),
            with_expectation("tool_result", "applied", call_answer("close_subagent", id)),
            with_expectation("tool_result", "closed successfully", text_answer("accepted")),
        ]);
        let Some(house) = set_up_house(&answers) else { return };
        house.write("workspace/a.txt", "moon\n");
        if has_git {
            create_repository(&house);
        }
        let change = "echo sun >> a.txt; echo new > b.txt";
        add_model(
            &house,
            "writer",
            &json!([gated_call(&house, change), text_answer("It is changed.")]),
        );
        let output = run_until_done(&house, &["go"]);
        assert_eq!(main_answer(&output), "accepted", "{has_git}: {output}");
        let read = |name: &str| std::fs::read_to_string(house.workspace().join(name)).unwrap();
        assert_eq!((read("a.txt").as_str(), read("b.txt").as_str()), ("moon\nsun\n", "new\n"));
        assert!(!house.workspace().join(".worktrees/writer").exists());
        if has_git {
            let status = run_git(&house, &["status", "--porcelain"]);
            assert_eq!(status, " M a.txt\n?? b.txt\n", "git ignores the worktrees");
        }
    }
}

#[test]
fn conversation_in_a_worktree_changes_the_files_only_when_the_user_accepts() {
    for has_git in [true, false] {
        let change = json!({ "command": "echo sun >> a.txt; cat AGENTS.md" });
        let answers = json!([
            call_answer("cli_based_tool", change),
            with_expectation("tool_result", "Be brief.", text_answer("changed")),
            text_answer("and again"),
        ]);
        let Some(house) = set_up_house(&answers) else { return };
        house.write("workspace/AGENTS.md", "Be brief.\n");
        house.write("workspace/a.txt", "moon\n");
        if has_git {
            create_repository(&house);
            run_git(&house, &["add", "AGENTS.md"]);
            run_git(&house, &["commit", "-q", "-m", "second"]);
        }
        house.run(&["trust"]).code(0);
        let run = house.run(&["run", "--yes", "--worktree", "fix", "go"]).code(0);
        assert_eq!(run.stdout, "changed\n", "{run}");
        assert!(run.stderr.contains("`jaato worktree accept fix` applies them"), "{run}");
        assert!(!run.stderr.contains("trusted"), "{run}");
        let read = || std::fs::read_to_string(house.workspace().join("a.txt")).unwrap();
        assert_eq!(read(), "moon\n");
        let worktree = |words: &[&str]| house.run(&[&["worktree"], words].concat());
        assert_eq!(worktree(&[]).expect_silent().stdout, "fix: 1 changed files\n");
        let diff = worktree(&["diff", "fix"]).expect_silent().stdout;
        assert!(diff.contains("+sun") && !diff.contains("AGENTS.md"), "{diff}");

        // The session continues in its folder, where a command of the user finds the files, too.
        let place = house.workspace().join(".worktrees/fix");
        let inside = house.command(&["worktree", "diff", "fix"]).directory(&place).run();
        assert_eq!(inside.code(0).stdout, diff);
        let other = ["run", "--yes", "--worktree", "other", "--show-prompt", "x"];
        house.command(&other).directory(&place).run().code(0);
        assert!(house.workspace().join(".worktrees/other/a.txt").is_file());
        worktree(&["remove", "other"]).code(0);
        let continued = house.run(&["run", "--yes", "--continue", "more"]).code(0);
        assert!(continued.stderr.contains("`.worktrees/fix"), "{continued}");

        worktree(&["accept", "fix"]).code(0);
        assert_eq!(read(), "moon\nsun\n");
        assert_eq!(worktree(&["diff", "fix"]).code(0).stdout, "`fix` has no changes\n");
        worktree(&["remove", "fix"]).code(0);
        assert_eq!(worktree(&[]).expect_silent().stdout, "no worktrees\n");
        assert!(!place.exists());
    }
}

#[test]
fn invalid_worktree_is_refused_and_nothing_is_created() {
    let Some(house) = set_up_house(&json!([text_answer("never")])) else { return };
    for name in ["../up", "a/b", "", "a.base", &"x".repeat(65)] {
        let run = house.run(&["run", "--yes", "--worktree", name, "go"]).code(2);
        assert!(run.stderr.contains("a worktree needs a name"), "{name}: {run}");
        let shown = house.run(&["worktree", "diff", name]).code(2);
        assert!(shown.stderr.contains("a worktree needs a name"), "{name}: {shown}");
    }
    let unknown = house.run(&["worktree", "accept", "none"]).code(1);
    assert!(unknown.stderr.contains("`none` is unknown"), "{unknown}");
    house.run(&["run", "--worktree", "fix", "--continue", "go"]).code(2);
    assert!(!house.workspace().join(".worktrees").exists());
    // A folder of the user is not listed, and cannot be removed.
    let mine = house.write("workspace/.worktrees/mine/a.txt", "moon\n");
    assert_eq!(house.run(&["worktree"]).expect_silent().stdout, "no worktrees\n");
    house.run(&["worktree", "remove", "mine"]).code(1);
    assert!(mine.is_file());
}
