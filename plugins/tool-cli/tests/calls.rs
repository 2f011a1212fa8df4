//! Calls the tool as a host does, with real programs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::time::{Duration, Instant};

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::service::SessionFacts;
use jaato_plugin_sdk::types::{Delta, Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeServiceReply};

/// Much shorter than the sleeps in the commands below.
const SOON: Duration = Duration::from_secs(15);

fn cli_host() -> FakeHost {
    FakeHost::new(tool_cli::__jaato::MODULE)
}

/// Returns a host whose session uses this folder.
fn host_in_folder(folder: &Path) -> FakeHost {
    let working_directory = folder.to_str().unwrap().to_owned();
    cli_host().with_session(SessionFacts { working_directory, ..SessionFacts::default() })
}

#[track_caller]
fn call_tool(host: &FakeHost, arguments: Value) -> Value {
    Value::Object(host.call("cli_based_tool", arguments).unwrap().content)
}

#[track_caller]
fn run_command(command: &str) -> Value {
    call_tool(&cli_host(), json!({ "command": command }))
}

fn call_error(arguments: Value) -> Error {
    cli_host().call("cli_based_tool", arguments).unwrap_err()
}

fn printed_result(stdout: &str) -> Value {
    json!({ "stdout": stdout, "stderr": "", "returncode": 0 })
}

#[test]
fn a_real_shell_runs_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_in_folder(folder.path());
    let shell = |command: &str| call_tool(&host, json!({ "command": command }));
    assert_eq!(shell("mkdir sub && cd sub && touch b a && ls"), printed_result("a\nb\n"));
    assert_eq!(shell("cd sub; echo *"), printed_result("a b\n"));
    assert_eq!(shell("X='a  b'; echo \"$X\" | tr a-z A-Z"), printed_result("A  B\n"));
    assert_eq!(shell("cat <<END\nmönd 'x' \"y\"\nEND"), printed_result("mönd 'x' \"y\"\n"));
    assert_eq!(
        shell("echo \"$HOME\""),
        printed_result(&format!("{}\n", std::env::var("HOME").unwrap()))
    );
    assert_eq!(shell("basename \"$PWD\"")["stdout"], {
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        json!(format!("{name}\n"))
    });
}

#[test]
fn arguments_are_passed_unchanged_and_never_run_as_a_script() {
    let words = json!({
        "command": "printf",
        "args": ["%s\n", "$HOME", "a b; rm -rf x", "*", "'\"", "", "möndchen", "a\nb"],
    });
    let expected = "$HOME\na b; rm -rf x\n*\n'\"\n\nmöndchen\na\nb\n";
    assert_eq!(call_tool(&cli_host(), words), printed_result(expected));
    // The program's name is a word too.
    let odd = call_tool(&cli_host(), json!({ "command": "echo a; echo b", "args": ["c"] }));
    assert_eq!((&odd["stdout"], &odd["returncode"]), (&json!(""), &json!(127)));
    assert_eq!(
        call_tool(&cli_host(), json!({ "command": "echo a", "args": [] })),
        printed_result("a\n")
    );
}

#[test]
fn exit_codes_and_signals_are_reported_separately() {
    let failed = run_command("echo no >&2; exit 3");
    assert_eq!(failed, json!({ "stdout": "", "stderr": "no\n", "returncode": 3 }));
    let signalled = run_command("kill -SEGV $$");
    let signal = json!({ "name": "SIGSEGV", "number": 11 });
    assert_eq!((&signalled["returncode"], &signalled["signal"]), (&Value::Null, &signal));
    let missing = run_command("no_such_program_anywhere");
    assert_eq!(missing["returncode"], 127);
    let text = missing["stderr"].as_str().unwrap();
    assert!(text.contains("no_such_program_anywhere") && text.contains("not found"), "{text}");
}

#[test]
fn standard_input_of_a_command_is_empty() {
    assert_eq!(run_command("cat; read x; echo \"$?\""), printed_result("1\n"));
}

#[test]
fn bad_commands_are_refused() {
    for command in ["", "  \n"] {
        let error = call_error(json!({ "command": command }));
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
        assert!(error.hint.is_some());
    }
    assert_eq!(call_error(json!({ "command": "echo a\0b" })).kind, ErrorKind::InvalidArguments);
    assert_eq!(call_error(json!({ "args": ["x"] })).kind, ErrorKind::InvalidArguments);
    let bound = call_error(json!({ "command": "ls", "timeout_seconds": 3601 }));
    assert_eq!(bound.kind, ErrorKind::InvalidArguments);
}

#[test]
fn missing_working_directory_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let facts = json!({ "name": "here", "is_host": true });
    let host = host_in_folder(&folder.path().join("gone"))
        .with_service("environment.describe", move |_| Ok(FakeServiceReply::Json(facts.clone())));
    let error = host.call("cli_based_tool", json!({ "command": "ls" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.message.contains("gone"), "{error}");
}

#[test]
fn timed_out_command_ends_and_its_output_is_returned() {
    let begin = Instant::now();
    let late = call_tool(
        &cli_host(),
        json!({ "command": "echo so far; sleep 300", "timeout_seconds": 1 }),
    );
    assert!(begin.elapsed() < SOON);
    assert_eq!((&late["stdout"], &late["timed_out"]), (&json!("so far\n"), &json!(true)));
    assert_eq!((&late["returncode"], &late["timeout_seconds"]), (&Value::Null, &json!(1)));
}

/// Returns a host whose environment limits commands to half a second.
fn host_with_short_limit() -> FakeHost {
    let facts = json!({ "name": "hurried", "is_host": true, "shell_timeout_ms": 500 });
    cli_host()
        .with_service("environment.describe", move |_| Ok(FakeServiceReply::Json(facts.clone())))
}

#[test]
fn environment_timeout_applies_if_call_and_config_have_none() {
    let late = call_tool(&host_with_short_limit(), json!({ "command": "echo so far; sleep 300" }));
    assert_eq!((&late["stdout"], &late["timed_out"]), (&json!("so far\n"), &json!(true)));
    assert_eq!(late["timeout_seconds"], 0.5);
    let asked = call_tool(
        &host_with_short_limit(),
        json!({ "command": "sleep 300", "timeout_seconds": 1 }),
    );
    assert_eq!(asked["timeout_seconds"], 1);
    let configured = host_with_short_limit().with_config(json!({ "timeout_seconds": 1 }));
    let configured = call_tool(&configured, json!({ "command": "sleep 300" }));
    assert_eq!(configured["timeout_seconds"], 1);
}

#[test]
fn the_configuration_names_shell_paths_and_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("moon_phase");
    std::fs::write(&program, "#!/bin/sh\necho half\n").unwrap();
    set_executable(&program);
    let config = json!({
        "extra_paths": [folder.path()],
        "shell": "/bin/sh",
        "timeout_seconds": 1,
    });
    let host = cli_host().with_config(config);
    assert_eq!(call_tool(&host, json!({ "command": "moon_phase" })), printed_result("half\n"));
    assert_eq!(call_tool(&host, json!({ "command": "echo $0" })), printed_result("/bin/sh\n"));
    assert_eq!(call_tool(&host, json!({ "command": "sleep 300" }))["timed_out"], true);
    let missing = folder.path().join("sh").display().to_string();
    let wrong = FakeHost::new(tool_cli::__jaato::MODULE).with_config(json!({ "shell": missing }));
    let error = wrong.call("cli_based_tool", json!({ "command": "ls" })).unwrap_err();
    assert!(error.message.contains(&missing), "{error}");
}

fn set_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn all_output_bytes_reach_the_host_as_stdout_or_stderr() {
    let command = "seq -f 'line %.0f' 1 200000; seq 1 5000 >&2; printf '\\377'; exit 7";
    let finished =
        cli_host().instance().unwrap().run("cli_based_tool", json!({ "command": command }));
    let told = Value::Object(finished.result.unwrap().content);
    let stdout: String = (1..=200_000).map(|n: u32| format!("line {n}\n")).collect();
    let stderr: String = (1..=5000).map(|n: u32| format!("{n}\n")).collect();
    assert_eq!(told["stdout"], stdout.clone() + "\u{fffd}");
    assert_eq!((&told["stderr"], &told["returncode"]), (&json!(stderr), &json!(7)));
    assert_eq!(finished.output.len(), stdout.len() + 1 + stderr.len());
    assert_eq!(told.as_object().unwrap().len(), 3, "{:.200}", told.to_string());
}

#[test]
fn output_is_shown_while_the_command_runs() {
    let host = cli_host();
    let command = "printf 'one\\n'; while [ ! -e go ]; do sleep 0.01; done; echo ö";
    let mut call = host.start("cli_based_tool", json!({ "command": command })).unwrap();
    assert_eq!(call.next_delta().unwrap(), Some(Delta::output("one\n")));
    // Another call runs at the same time, in the same folder.
    assert_eq!(call_tool(&host, json!({ "command": "touch go" })), printed_result(""));
    let finished = call.wait();
    assert_eq!(finished.result.unwrap().content["stdout"], "one\nö\n");
    let shown: String = finished.deltas.iter().map(output_text).collect();
    assert_eq!(shown, "one\nö\n");
}

fn output_text(delta: &Delta) -> &str {
    match delta {
        Delta::Output { text, .. } => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn background_process_left_running_does_not_hang_the_call() {
    let begin = Instant::now();
    let left = run_command("sleep 300 & echo started");
    assert!(begin.elapsed() < SOON);
    assert_eq!((&left["stdout"], &left["returncode"]), (&json!("started\n"), &json!(0)));
    if cfg!(target_os = "linux") {
        assert_eq!(left["left_running"][0]["name"], "sleep");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn no_process_outlives_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_in_folder(folder.path());
    call_tool(&host, json!({ "command": "sleep 300 & echo $! > left" }));
    let command = "echo $$ > running; echo on; exec sleep 300";
    let mut running = host.start("cli_based_tool", json!({ "command": command })).unwrap();
    assert!(running.next_delta().unwrap().is_some());
    let lives = |name: &str| {
        let pid = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        let stat = std::fs::read_to_string(stat).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    assert!(lives("left") && lives("running"));
    drop((running, host));
    let bound = Instant::now() + SOON;
    while lives("left") || lives("running") {
        assert!(Instant::now() < bound, "a program outlives its host");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_command_that_prints_without_end_ends_with_its_call() {
    let host = cli_host();
    let command = "while :; do echo 0123456789; done";
    let mut call = host.start("cli_based_tool", json!({ "command": command })).unwrap();
    assert!(call.next_delta().unwrap().is_some());
    let finished = call.cancel();
    assert_eq!(finished.result.unwrap_err().kind, ErrorKind::Cancelled);
    let late = call_tool(&host, json!({ "command": command, "timeout_seconds": 1 }));
    assert_eq!(late["timed_out"], true);
}

// The tool's examples write into the fake host's own folder.
jaato_plugin_testkit::conformance!(tool_cli: tool; |suite| suite.with_all_examples().with_host(|host| {
    host.with_clock(jaato_plugin_testkit::FakeClockMode::Real)
}));
