//! Tests `cli_based_tool` in the real binary: the inputs of commands, and their reported results.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

pub(crate) use crate::support::cli::{cli_house, house_with_cli, script_of_one_call};
use crate::support::{Command, House, Output, fixture};

/// Maximum growth of the memory, however much is printed.
const GROWTH_KIB_MAX: u64 = 8 * 1024;

pub fn shell_arguments(command: &str) -> String {
    json!({ "command": command }).to_string()
}

/// Calls the tool like a user.
#[track_caller]
fn call_shell(house: &House, command: &str) -> Value {
    house.run(&["call", "cli_based_tool", &shell_arguments(command)]).code(0).json()
}

pub fn call_words(arguments: &str) -> [&str; 3] {
    ["call", "cli_based_tool", arguments]
}

/// Calls the tool once per line, in one session.
#[track_caller]
pub fn call_batch(command: Command, lines: &[Value]) -> (Vec<Value>, Output) {
    let lines: Vec<String> = lines
        .iter()
        .map(|args| json!({ "tool": "cli_based_tool", "args": args }).to_string())
        .collect();
    let output = command.input(lines.join("\n")).run();
    (output.json_lines(), output)
}

#[test]
fn shell_call_returns_output_and_exit_code() {
    let house = cli_house!();
    let arguments = shell_arguments("echo hi; echo no >&2; cd /usr && pwd; exit 3");
    let output = house.run(&call_words(&arguments)).code(0);
    let expected = json!({ "stdout": "hi\n/usr\n", "stderr": "no\n", "returncode": 3 });
    assert_eq!(output.json(), expected);
    assert!(output.stderr.contains("  cli │ hi\n"), "{output}");
    house.assert_no_processes();
}

#[test]
fn signal_that_ended_a_command_is_reported_by_name_and_number() {
    let house = cli_house!();
    let answer = call_shell(&house, "kill -KILL $$");
    assert_eq!(answer["returncode"], Value::Null);
    assert_eq!(answer["signal"], json!({ "name": "SIGKILL", "number": 9 }));
}

#[test]
fn command_cannot_read_the_standard_input_of_jaato() {
    let house = cli_house!();
    let lines = [json!({ "command": "cat; echo end" }), json!({ "command": "echo second" })];
    let (answers, _) = call_batch(house.command(&["call", "--batch"]), &lines);
    let told: Vec<_> = answers.iter().map(|answer| &answer["result"]["stdout"]).collect();
    assert_eq!(told, [&json!("end\n"), &json!("second\n")]);
}

#[test]
fn secrets_are_kept_from_commands_unless_a_person_passes_them() {
    let house = cli_house!();
    let arguments = shell_arguments("echo \"${MY_TOKEN-none} ${other_key-none} ${PLAIN-none}\"");
    let run = || {
        let command = house.command(&call_words(&arguments));
        let command = command.variable("MY_TOKEN", "t").variable("other_key", "k");
        command.variable("PLAIN", "p").run().code(0).json()["stdout"].clone()
    };
    assert_eq!(run(), "none none p\n");
    house.configure("[tools.cli]\npass = [\"MY_TOKEN\"]\n");
    assert_eq!(run(), "t none p\n");
}

#[test]
fn declared_credentials_are_hidden_from_commands_under_any_name() {
    let house = cli_house!();
    let arguments = shell_arguments("echo \"${MOON_ACCESS-none} ${PLAIN-none}\"");
    let run = || {
        let command = house.command(&call_words(&arguments));
        let command = command.variable("MOON_ACCESS", "m").variable("PLAIN", "p");
        command.run().code(0).json()["stdout"].clone()
    };
    assert_eq!(run(), "m p\n");
    house.ship(&fixture("describes"));
    assert_eq!(run(), "none p\n");
    house.configure("[tools.cli]\npass = [\"MOON_ACCESS\"]\n");
    assert_eq!(run(), "m p\n");
    house.configure("[plugins]\ndisabled = [\"fixture-describes\"]\n");
    assert_eq!(run(), "m p\n");
    // Even for an untrusted plugin, which gets no key itself.
    let house = cli_house!();
    house.ship_to_user(&fixture("describes"));
    let command = house.command(&call_words(&arguments)).variable("MOON_ACCESS", "m");
    assert_eq!(command.run().code(0).json()["stdout"], "none none\n");
}

#[test]
fn command_of_a_session_cannot_trust_the_workspace() {
    let house = cli_house!();
    house.write("workspace/AGENTS.md", "Obey.");
    let binary = house.binary();
    let binary = binary.display();
    for command in [
        format!("'{binary}' trust"),
        format!("env -u JAATO_SESSION_ID '{binary}' trust"),
        format!("env -i setsid -w '{binary}' trust"),
    ] {
        let answer = call_shell(&house, &command);
        assert_eq!(answer["returncode"], 3, "{answer}");
        let text = answer["stderr"].as_str().unwrap();
        assert!(text.contains("a session started this command"), "{answer}");
    }
    assert_ne!(call_shell(&house, "echo $JAATO_SESSION_ID")["stdout"], "\n");
}

#[test]
fn long_and_binary_output_is_saved_whole_and_truncated_in_results() {
    let workers = "[plugins]\nisolated = [\"environment-local\", \"tool-cli\"]\n";
    for (place, processes) in [("", 1), (workers, 3)] {
        let house = cli_house!();
        house.configure_more(place);
        let mut running = house.command(&["call", "--batch"]).with_long_deadline().start();
        let mut ask = |command: &str| {
            let line = json!({ "tool": "cli_based_tool", "args": { "command": command } });
            running.write(format!("{line}\n").as_bytes());
            let line = running.next_line();
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert!(answer["result"].to_string().len() <= 16 * 1024, "{}", answer["result"]);
            answer["result"].clone()
        };
        ask("seq 1 100000");
        let before = process_memories_kib(&house);
        assert_eq!(before.len(), processes, "{:?}", house.processes());
        for (command, bytes) in [
            ("yes 0123456789012345678901234567890123456789 | head -c 24000000", 24_000_000),
            ("head -c 12000000 /dev/urandom", 12_000_000),
        ] {
            let told = ask(command);
            assert_eq!(told["returncode"], 0);
            let file = told["output_file"].as_str().unwrap();
            let note = format!(" bytes left out; the whole output: {file} …]\n");
            assert!(told["stdout"].as_str().unwrap().contains(&note), "{told}");
            let counted = ask(&format!("wc -c < '{file}'"));
            assert_eq!(counted["stdout"].as_str().unwrap().trim(), bytes.to_string());
            let after = process_memories_kib(&house);
            for (pid, before) in &before {
                let after = after[pid];
                assert!(after <= before + GROWTH_KIB_MAX, "{before} KiB, then {after}: {command}");
            }
        }
        running.finish().code(0);
    }
}

/// Returns the peak memory of jaato and its workers, by process id.
fn process_memories_kib(house: &House) -> BTreeMap<u32, u64> {
    let processes = house.processes();
    // The guardian and its keepers hold no output.
    let of_plugins = processes.iter().filter(|it| {
        (it.contains("--batch") || it.contains("plugin-worker")) && !it.contains("keeper")
    });
    let ids = of_plugins.map(|it| it.split(':').next().unwrap().parse().unwrap());
    ids.map(|id| (id, memory_kib(id))).collect()
}

/// Returns a process's peak memory.
fn memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn eight_calls_of_one_answer_run_side_by_side() {
    let house = cli_house!();
    // Each waits for all others, so running them one after the other would never end.
    let command = |number: usize| {
        format!("touch here.{number}; until [ $(ls here.* | wc -l) -eq 8 ]; do sleep 0.01; done")
    };
    let calls: Vec<_> = (0..8)
        .map(|number| {
            let arguments = json!({ "command": command(number), "timeout_seconds": 30 });
            json!({ "call": { "name": "cli_based_tool", "arguments": arguments } })
        })
        .collect();
    house
        .set_script(&json!({ "answers": [{ "steps": calls }, { "steps": [{ "text": "done" }] }] }));
    let output = house.run(&["run", "--yes", "--output", "json", "hello"]).code(0);
    let events = output.json_lines();
    let finished = events.iter().filter(|event| event["event"] == "tool_call_finished");
    let codes: Vec<_> = finished.map(|event| event["result"]["returncode"].clone()).collect();
    assert_eq!(codes, vec![json!(0); 8]);
}

#[test]
fn model_cannot_run_a_command_without_permission() {
    let house = cli_house!();
    house.set_script(&script_of_one_call("touch made"));
    house.command(&["run", "hello"]).no_input().run().code(6);
    assert!(!house.workspace().join("made").exists());
    let output = house.command(&["run", "--allow", "cli_based_tool", "hello"]).no_input().run();
    assert_eq!(output.code(0).stdout, "done\n");
    assert!(house.workspace().join("made").exists());
}

#[test]
fn missing_program_and_missing_folder_are_reported() {
    let house = cli_house!();
    let missing = call_shell(&house, "no_such_program");
    assert_eq!(missing["returncode"], 127);
    assert!(missing["stderr"].as_str().unwrap().contains("no_such_program"), "{missing}");
    let folder: PathBuf = house.workspace().join("sub");
    std::fs::create_dir(&folder).unwrap();
    let lines = [json!({ "command": "rmdir \"$PWD\"" }), json!({ "command": "ls" })];
    let (answers, _) = call_batch(house.command(&["call", "--batch"]).directory(&folder), &lines);
    assert_eq!(answers[0]["result"]["returncode"], 0, "{answers:?}");
    let error = &answers[1]["error"];
    assert_eq!(error["kind"], "not_found", "{answers:?}");
    assert!(error["message"].as_str().unwrap().contains("sub"), "{answers:?}");
}

#[test]
fn odd_commands_are_run_as_they_are_or_refused() {
    let house = cli_house!();
    let text = "a 'b' \"c\"\n\t$x \\ möndchen 🌒";
    let lines = [
        json!({ "command": "printf", "args": ["%s", text] }),
        json!({ "command": "cat <<'END'\n$HOME `x` \"'\nEND\n" }),
        json!({ "command": "echo a\0b" }),
        json!({ "command": " " }),
        json!({ "command": "echo on" }),
    ];
    let (answers, _) = call_batch(house.command(&["call", "--batch"]), &lines);
    assert_eq!(answers[0]["result"]["stdout"], text);
    assert_eq!(answers[1]["result"]["stdout"], "$HOME `x` \"'\n");
    assert_eq!(answers[2]["error"]["kind"], "invalid_arguments", "{answers:?}");
    assert_eq!(answers[3]["error"]["kind"], "invalid_arguments", "{answers:?}");
    assert_eq!(answers[4]["result"]["stdout"], "on\n");
}
