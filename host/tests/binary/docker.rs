//! Tests a session in a container: a repository is repaired there, and the death of the container
//! in mid-turn is reported.

use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::support::cli::house_with_cli;
use crate::support::shells::{ShellCalls, output_text, return_reason};
use crate::support::{Command, House, fixture, fixtures, library_name, skip};

/// The image of these tests, with only this machine's busybox.
const IMAGE: &str = "jaato-test:host";

/// The workspace path, by which a session's containers are found.
const WORKSPACE: &str = "/workspace";

/// Returns an installation whose sessions can work in containers, or prints why there is none.
pub fn house_with_docker() -> Option<House> {
    let house = house_with_cli()?;
    // Once, because each import of the same name leaves an unnamed image in the engine.
    static IMPORTED: OnceLock<Result<(), String>> = OnceLock::new();
    if let Err(reason) = IMPORTED.get_or_init(|| import_image(&house)) {
        skip(reason);
        return None;
    }
    house.ship(&fixtures::test_house()?.join("plugins").join(library_name("environment_docker")));
    Some(house)
}

fn run_docker(words: &[&str]) -> Result<String, String> {
    let ran = Program::new("docker").args(words).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("no client of an engine: `docker`: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if ran.status.success() { Ok(text(&ran.stdout)) } else { Err(text(&ran.stderr)) }
}

/// Creates the image from busybox, without any registry.
fn import_image(house: &House) -> Result<(), String> {
    run_docker(&["info", "--format", "{{.ID}}"]).map_err(|error| format!("no engine: {error}"))?;
    let busybox =
        ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|it| Path::new(it).exists());
    let busybox = busybox.ok_or("no static busybox: `apt-get install busybox-static`")?;
    let tree = house.workspace().join("../image");
    let bin = tree.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::copy(busybox, bin.join("busybox")).unwrap();
    for name in ["sh", "cat", "sed", "sleep", "test", "uname"] {
        std::os::unix::fs::symlink("busybox", bin.join(name)).unwrap();
    }
    let tar = house.workspace().join("../image.tar");
    let (tar, tree) = (tar.display().to_string(), tree.display().to_string());
    let packed = Program::new("tar").args(["-C", &tree, "-cf", &tar, "."]).status().unwrap();
    assert!(packed.success());
    run_docker(&["import", &tar, IMAGE]).map(drop)
}

fn command_with_docker(house: &House, words: &[&str]) -> Command {
    let command = house.command(words);
    match std::env::var("DOCKER_HOST") {
        Ok(host) => command.variable("DOCKER_HOST", host),
        Err(_) => command,
    }
}

/// Runs the words `run --yes …` in a container of the test image.
pub fn command_in_image(house: &House, words: &[&str]) -> Command {
    command_with_docker(house, &[words, &["--image", IMAGE]].concat())
}

fn shell_call(command: &str) -> Value {
    json!({ "call": { "name": "cli_based_tool", "arguments": { "command": command } } })
}

/// Returns the containers with this workspace.
fn list_containers(house: &House) -> Vec<String> {
    let filter = format!("volume={}", house.workspace().display());
    let listed = run_docker(&["ps", "--all", "--quiet", "--filter", &filter]).unwrap();
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn container_that_dies_in_mid_turn_is_replaced_and_reported() {
    let Some(house) = house_with_docker() else { return };
    house.write("workspace/greet.sh", "echo 'Helo, world'\n");
    house.write("workspace/test.sh", "test \"$(sh greet.sh)\" = 'Hello, world'\n");
    house.set_script(&json!({ "answers": [
        { "steps": [shell_call("pwd; sh test.sh; echo $?; cat greet.sh")] },
        {
            "expect": { "tool_result": "/workspace\\n1\\necho 'Helo, world'" },
            "steps": [shell_call("sed -i s/Helo/Hello/ greet.sh && sh test.sh")],
        },
        {
            "expect": { "tool_result": "\"returncode\":0" },
            "steps": [shell_call("echo > begun; sleep 300; echo late > late")],
        },
        { "expect": { "tool_result": "container" }, "steps": [shell_call("cat greet.sh")] },
        {
            "expect": { "tool_result": "the next command makes a new one" },
            "steps": [shell_call("cat greet.sh")],
        },
        {
            "expect": { "tool_result": "echo 'Hello, world'" },
            "steps": [{ "text": "The container died." }],
        },
    ] }));
    let words = ["run", "--yes", "--image", IMAGE, "mend it"];
    let running = command_with_docker(&house, &words).no_input().with_long_deadline().start();
    house.wait_for_file(&house.workspace().join("begun"));
    let living = list_containers(&house);
    assert_eq!(living.len(), 1, "{living:?}");
    run_docker(&["kill", &living[0]]).unwrap();
    let output = running.finish().code(0);
    assert_eq!(output.stdout, "The container died.\n", "{output}");
    assert!(output.stderr.contains("it was made again as `jaato-"), "{output}");
    let mended = std::fs::read_to_string(house.workspace().join("greet.sh")).unwrap();
    assert_eq!(mended, "echo 'Hello, world'\n");
    assert!(!house.workspace().join("late").exists());
    assert_eq!(list_containers(&house), Vec::<String>::new());
    house.assert_no_processes();
}

#[test]
fn truncated_output_is_saved_inside_the_container() {
    let Some(house) = house_with_docker() else { return };
    house.ship(&fixture("asks"));
    let long: String = (0..5000).map(|number| format!("line {number}\n")).collect();
    house.write("workspace/long.txt", &long);
    let read = json!({ "call": { "name": "ask_service", "arguments": {
        "operation": "files.read_text", "request": { "path": "long.txt" },
    } } });
    house.set_script(&json!({ "answers": [
        { "steps": [shell_call("cat long.txt")] },
        {
            "expect": { "tool_result": "\"output_file\":\"/tmp/jaato/" },
            "steps": [shell_call("busybox cmp long.txt /tmp/jaato/*-output.txt && echo whole && busybox rm /tmp/jaato/*-output.txt")],
        },
        { "expect": { "tool_result": "whole" }, "steps": [read] },
        {
            "expect": { "tool_result": "\"output_file\":\"/tmp/jaato/" },
            "steps": [shell_call("sed 's/.*line 4998/line 4998/' /tmp/jaato/*-result-*.txt")],
        },
        { "expect": { "tool_result": "line 4998\\\\nline 4999" }, "steps": [{ "text": "done" }] },
    ] }));
    let words = ["run", "--yes", "--image", IMAGE, "read it"];
    let output = command_with_docker(&house, &words).no_input().with_long_deadline().run().code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
    assert_eq!(list_containers(&house), Vec::<String>::new());
    house.assert_no_processes();
}

#[test]
fn environment_report_describes_the_container() {
    let Some(house) = house_with_docker() else { return };
    let ask = |aspect: &str| {
        let arguments = json!({ "aspect": aspect }).to_string();
        let words = ["call", "--image", IMAGE, "get_environment", &arguments];
        command_with_docker(&house, &words).no_input().with_long_deadline().run().code(0).json()
    };
    assert_eq!(ask("cwd")["cwd"], WORKSPACE);
    let shell = ask("shell");
    assert!(shell["path"].as_str().unwrap().ends_with("/sh"), "{shell}");
    assert_eq!(ask("os")["type"], "linux");
    assert_eq!(list_containers(&house), Vec::<String>::new());
}

#[test]
fn file_search_uses_container_paths_without_a_program_in_the_container() {
    let Some(house) = house_with_docker() else { return };
    let plugins = fixtures::test_house().unwrap().join("plugins");
    house.ship(&plugins.join(library_name("tool_filesystem_query")));
    house.write("workspace/src/a.rs", "one\nmoon moon\n");
    let call = |tool: &str, arguments: Value| {
        let words = ["call", "--image", IMAGE, tool, &arguments.to_string()];
        command_with_docker(&house, &words).no_input().with_long_deadline().run().code(0).json()
    };
    let told = call("grep_content", json!({ "pattern": "moon" }));
    let expected = json!([{ "file": "src/a.rs", "lines": "2:moon moon" }]);
    assert_eq!((&told["total_matches"], &told["matches"]), (&json!(2), &expected), "{told}");
    let told = call("glob_files", json!({ "pattern": "**/*.rs", "root": "/workspace" }));
    assert_eq!(told["files"], json!([{ "path": "src/a.rs" }]), "{told}");
    let refused = json!({ "pattern": "root", "path": "/etc/passwd" }).to_string();
    let words = ["call", "--image", IMAGE, "grep_content", &refused];
    let output = command_with_docker(&house, &words).no_input().with_long_deadline().run();
    assert!(output.stderr.contains("Path not allowed: /etc/passwd"), "{output}");
    assert_eq!(list_containers(&house), Vec::<String>::new());
    house.assert_no_processes();
}

/// A user's own container, which is removed when the test ends.
struct UserContainer(String);

impl Drop for UserContainer {
    fn drop(&mut self) {
        // No one could act on an error.
        let _ = run_docker(&["rm", "--force", &self.0]);
    }
}

#[test]
fn existing_container_is_used_and_keeps_running_afterwards() {
    let Some(house) = house_with_docker() else { return };
    let mount = format!("{}:/src", house.workspace().display());
    let words = ["run", "--detach", "--network=none", "--volume", &mount];
    let id =
        run_docker(&[&words[..], &["--workdir=/src", IMAGE, "sleep", "300"]].concat()).unwrap();
    let brought = UserContainer(id);
    let arguments = json!({ "command": "pwd; echo moon > made; cat made" }).to_string();
    let words = ["call", "--container", &brought.0, "cli_based_tool", &arguments];
    let told =
        command_with_docker(&house, &words).no_input().with_long_deadline().run().code(0).json();
    assert_eq!(told["stdout"], "/src\nmoon\n", "{told}");
    assert_eq!(std::fs::read_to_string(house.workspace().join("made")).unwrap(), "moon\n");
    let state = run_docker(&["inspect", "--format", "{{.State.Running}}", &brought.0]);
    assert_eq!(state.as_deref(), Ok("true"), "the user owns the container");
    // The same by configuration instead of the command line.
    house
        .configure_more(&format!("[plugins.environment-docker]\ncontainer_id = {:?}\n", brought.0));
    let words = ["environment", "exec", "--environment", "docker", "--", "cat", "/src/made"];
    let told = command_with_docker(&house, &words).no_input().with_long_deadline().run().code(0);
    assert_eq!(told.stdout, "moon\n");
    drop(brought);
    house.assert_no_processes();
}

#[test]
fn session_returns_to_the_container_of_the_user_and_says_that_its_own_is_new() {
    let Some(house) = house_with_docker() else { return };
    let mount = format!("{}:/src", house.workspace().display());
    let words = ["run", "--detach", "--network=none", "--volume", &mount];
    let id =
        run_docker(&[&words[..], &["--workdir=/src", IMAGE, "sleep", "300"]].concat()).unwrap();
    let brought = UserContainer(id);
    let new = "the session continues in a new container, because its own is gone\n";
    for (option, value, mark, is_new) in
        [("--container", brought.0.as_str(), "moon", false), ("--image", IMAGE, "none", true)]
    {
        let command = shell_call("cat /mark || echo none; echo moon > /mark");
        let done = |mark: &str| json!({ "expect": { "tool_result": mark }, "steps": [{ "text": "done" }] });
        let asks = json!({ "steps": [command] });
        house.set_script(&json!({ "answers": [asks, done("none"), asks, done(mark)] }));
        let words = ["run", "--yes", option, value, "go"];
        let output =
            command_with_docker(&house, &words).no_input().with_long_deadline().run().code(0);
        assert!(!output.stderr.contains(new), "{output}");
        let words = ["run", "--yes", "--continue", "again"];
        let output =
            command_with_docker(&house, &words).no_input().with_long_deadline().run().code(0);
        assert_eq!(output.stderr.contains(new), is_new, "{output}");
        let place = "the session continues in environment `docker`, where it ran\n";
        assert!(output.stderr.contains(place), "{output}");
    }
    drop(brought);
    house.assert_no_processes();
}

#[test]
fn missing_docker_image_is_reported_with_a_hint() {
    let Some(house) = house_with_docker() else { return };
    let words = ["environment", "exec", "--image", "jaato-test:no-such", "--", "true"];
    let refused = command_with_docker(&house, &words).no_input().with_long_deadline().run();
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("no image `jaato-test:no-such`"), "{refused}");
    assert!(refused.stderr.contains("docker pull"), "{refused}");
}

#[test]
fn interactive_programs_run_in_a_container_and_prompts_are_detected() {
    let Some(house) = house_with_docker() else { return };
    let plugin = fixtures::test_house().unwrap().join("plugins");
    house.ship(&plugin.join(library_name("tool_interactive_shell")));
    let mut calls = ShellCalls::start(
        command_with_docker(&house, &["call", "--batch", "--image", IMAGE]).with_long_deadline(),
    );
    let (session, spawned) = calls.spawn("sh");
    assert_eq!(return_reason(&spawned), "prompt", "{spawned}");
    assert!(output_text(&spawned).ends_with("\n$ "), "{spawned}");
    assert!(spawned.get("command_exit_code").is_none(), "{spawned}");
    for (line, shown) in [("pwd\n", "/workspace\n$ "), ("sleep 0.8; echo sle''pt\n", "slept\n$ ")] {
        let answer = calls.type_text(&session, line);
        assert_eq!((output_text(&answer), return_reason(&answer)), (shown, "prompt"), "{answer}");
    }
    assert_eq!(calls.type_text(&session, "test a = b\n")["command_exit_code"], 1);
    // Programs started by the shell emit no marks, so the onlooker detects the wait.
    let cat = calls.type_text(&session, "cat\n");
    assert_eq!((return_reason(&cat), &cat["expects"]), ("waiting", &json!("line")), "{cat}");
    assert_eq!(output_text(&calls.type_text(&session, "moon\n")), "moon\n");
    let ended = calls.press_key(&session, "c-d");
    assert_eq!(return_reason(&ended), "prompt", "{ended}");
    let failed = calls.type_text(&session, "exit 7\n");
    assert_eq!((return_reason(&failed), &failed["exit_status"]), ("exit", &json!(7)));
    calls.end(&house);
    assert_eq!(list_containers(&house), Vec::<String>::new());
}

#[test]
fn long_output_in_a_container_is_saved_to_a_file_readable_there() {
    let Some(house) = house_with_docker() else { return };
    let plugin = fixtures::test_house().unwrap().join("plugins");
    house.ship(&plugin.join(library_name("tool_interactive_shell")));
    let mut calls = ShellCalls::start(
        command_with_docker(&house, &["call", "--batch", "--image", IMAGE]).with_long_deadline(),
    );
    let (session, _) = calls.spawn("sh");
    let count = "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo $i; done\n";
    let told = calls.type_text(&session, count);
    assert!(
        output_text(&told).starts_with("1\n2\n") && output_text(&told).ends_with("\n5000\n$ "),
        "{told}"
    );
    let file = told["output_file"].as_str().unwrap();
    let find = calls.type_text(&session, &format!("sed -n '/^2345$/p' {file}\n"));
    // The typed line is longer than a row of the terminal, so its echo may be part of the output.
    assert!(output_text(&find).ends_with("2345\n$ "), "{find}");
    // Background processes are reported, and ended with the session.
    calls.type_text(&session, "sleep 300 &\n");
    let exit = calls.type_text(&session, "exit\n");
    assert_eq!(exit["left_running"][0]["name"], "sleep", "{exit}");
    let closed = calls.close(&session);
    assert_eq!(closed["ended"][0]["name"], "sleep", "{closed}");
    let pid = closed["ended"][0]["pid"].as_u64().unwrap();
    let (second, _) = calls.spawn("sh");
    let gone =
        calls.type_text(&second, &format!("while kill -0 {pid} 2>&-; do :; done; echo go''ne\n"));
    assert!(output_text(&gone).contains("gone"), "{gone}");
    calls.end(&house);
    assert_eq!(list_containers(&house), Vec::<String>::new());
}
