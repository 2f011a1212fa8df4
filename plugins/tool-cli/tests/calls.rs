//! Calls the tool as a host does, with real programs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::service::{OUTPUT, OutputAnswer, SessionFacts};
use jaato_plugin_sdk::types::{Delta, Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, Reply};

/// Far less than what is slept in the commands below.
const SOON: Duration = Duration::from_secs(15);

fn host() -> FakeHost {
    FakeHost::new(tool_cli::__jaato::MODULE)
}

/// A session in a folder of its own.
fn host_in(folder: &Path) -> FakeHost {
    let working_directory = folder.to_str().unwrap().to_owned();
    host().with_session(SessionFacts { working_directory, ..SessionFacts::default() })
}

#[track_caller]
fn call(host: &FakeHost, arguments: Value) -> Value {
    Value::Object(host.call("cli_based_tool", arguments).unwrap().content)
}

#[track_caller]
fn run(command: &str) -> Value {
    call(&host(), json!({ "command": command }))
}

fn refused(arguments: Value) -> Error {
    host().call("cli_based_tool", arguments).unwrap_err()
}

fn printed(stdout: &str) -> Value {
    json!({ "stdout": stdout, "stderr": "", "returncode": 0 })
}

#[test]
fn a_real_shell_runs_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_in(folder.path());
    let shell = |command: &str| call(&host, json!({ "command": command }));
    assert_eq!(shell("mkdir sub && cd sub && touch b a && ls"), printed("a\nb\n"));
    assert_eq!(shell("cd sub; echo *"), printed("a b\n"));
    assert_eq!(shell("X='a  b'; echo \"$X\" | tr a-z A-Z"), printed("A  B\n"));
    assert_eq!(shell("cat <<END\nmönd 'x' \"y\"\nEND"), printed("mönd 'x' \"y\"\n"));
    assert_eq!(shell("echo \"$HOME\""), printed(&format!("{}\n", std::env::var("HOME").unwrap())));
    assert_eq!(shell("basename \"$PWD\"")["stdout"], {
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        json!(format!("{name}\n"))
    });
}

#[test]
fn words_are_passed_as_they_are_and_never_read_as_a_script() {
    let words = json!({
        "command": "printf",
        "args": ["%s\n", "$HOME", "a b; rm -rf x", "*", "'\"", "", "möndchen", "a\nb"],
    });
    let expected = "$HOME\na b; rm -rf x\n*\n'\"\n\nmöndchen\na\nb\n";
    assert_eq!(call(&host(), words), printed(expected));
    // The program's name is a word too.
    let odd = call(&host(), json!({ "command": "echo a; echo b", "args": ["c"] }));
    assert_eq!((&odd["stdout"], &odd["returncode"]), (&json!(""), &json!(127)));
    assert_eq!(call(&host(), json!({ "command": "echo a", "args": [] })), printed("a\n"));
}

#[test]
fn codes_and_signals_are_told_apart() {
    let failed = run("echo no >&2; exit 3");
    assert_eq!(failed, json!({ "stdout": "", "stderr": "no\n", "returncode": 3 }));
    let signalled = run("kill -SEGV $$");
    let signal = json!({ "name": "SIGSEGV", "number": 11 });
    assert_eq!((&signalled["returncode"], &signalled["signal"]), (&Value::Null, &signal));
    let missing = run("no_such_program_anywhere");
    assert_eq!(missing["returncode"], 127);
    let text = missing["stderr"].as_str().unwrap();
    assert!(text.contains("no_such_program_anywhere") && text.contains("not found"), "{text}");
}

#[test]
fn standard_input_is_at_its_end() {
    assert_eq!(run("cat; read x; echo \"$?\""), printed("1\n"));
}

#[test]
fn bad_commands_are_refused() {
    for command in ["", "  \n"] {
        let error = refused(json!({ "command": command }));
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
        assert!(error.hint.is_some());
    }
    assert_eq!(refused(json!({ "command": "echo a\0b" })).kind, ErrorKind::InvalidArguments);
    assert_eq!(refused(json!({ "args": ["x"] })).kind, ErrorKind::InvalidArguments);
    let bound = refused(json!({ "command": "ls", "timeout_seconds": 3601 }));
    assert_eq!(bound.kind, ErrorKind::InvalidArguments);
}

#[test]
fn a_folder_that_is_gone_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let facts = json!({ "name": "here", "is_host": true });
    let host = host_in(&folder.path().join("gone"))
        .with_service("environment.describe", move |_| Ok(Reply::Json(facts.clone())));
    let error = host.call("cli_based_tool", json!({ "command": "ls" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.message.contains("gone"), "{error}");
}

#[test]
fn a_deadline_ends_the_command_and_what_it_printed_is_told() {
    let begin = Instant::now();
    let late = call(&host(), json!({ "command": "echo so far; sleep 300", "timeout_seconds": 1 }));
    assert!(begin.elapsed() < SOON);
    assert_eq!((&late["stdout"], &late["timed_out"]), (&json!("so far\n"), &json!(true)));
    assert_eq!((&late["returncode"], &late["timeout_seconds"]), (&Value::Null, &json!(1)));
}

/// A host whose environment gives commands half a second.
fn hurried_host() -> FakeHost {
    let facts = json!({ "name": "hurried", "is_host": true, "shell_timeout_ms": 500 });
    host().with_service("environment.describe", move |_| Ok(Reply::Json(facts.clone())))
}

#[test]
fn the_environments_deadline_holds_where_neither_call_nor_configuration_have_one() {
    let late = call(&hurried_host(), json!({ "command": "echo so far; sleep 300" }));
    assert_eq!((&late["stdout"], &late["timed_out"]), (&json!("so far\n"), &json!(true)));
    assert_eq!(late["timeout_seconds"], 0.5);
    let asked = call(&hurried_host(), json!({ "command": "sleep 300", "timeout_seconds": 1 }));
    assert_eq!(asked["timeout_seconds"], 1);
    let configured = hurried_host().with_config(json!({ "timeout_seconds": 1 }));
    let configured = call(&configured, json!({ "command": "sleep 300" }));
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
    let host = host().with_config(config);
    assert_eq!(call(&host, json!({ "command": "moon_phase" })), printed("half\n"));
    assert_eq!(call(&host, json!({ "command": "echo $0" })), printed("/bin/sh\n"));
    assert_eq!(call(&host, json!({ "command": "sleep 300" }))["timed_out"], true);
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
fn what_fits_is_told_whole_and_no_file_is_made() {
    let finished = host().instance().unwrap().run(
        "cli_based_tool",
        json!({ "command": "printf '\\033[31mred\\033[0m\\r\\n'; head -c 13000 /dev/zero | tr '\\0' x" }),
    );
    let told = Value::Object(finished.result.unwrap().content);
    assert_eq!(told["stdout"], json!(format!("red\n{}", "x".repeat(13_000))));
    assert!(!told.as_object().unwrap().contains_key("truncated"));
    assert_eq!(finished.output, b"");
}

#[test]
fn of_much_output_both_ends_are_told_and_the_whole_is_in_the_file() {
    let command = "seq -f 'line %.0f' 1 200000; seq 1 5000 >&2";
    let host = host();
    let finished = host.instance().unwrap().run("cli_based_tool", json!({ "command": command }));
    let told = Value::Object(finished.result.unwrap().content);
    assert!(told.to_string().len() <= 16 * 1024);
    for (stream, first, last) in
        [("stdout", "line 1\n", "line 200000\n"), ("stderr", "1\n", "5000\n")]
    {
        let text = told[stream].as_str().unwrap();
        assert!(text.starts_with(first) && text.ends_with(last), "{stream}");
        assert!(text.contains(" bytes left out …]\n"), "{stream}");
    }
    assert_eq!(told["truncated"], true);
    let stdout: usize = (1..=200_000).map(|n: u32| format!("line {n}\n").len()).sum();
    let stderr: usize = (1..=5000).map(|n: u32| format!("{n}\n").len()).sum();
    let message = told["truncation_message"].as_str().unwrap();
    assert!(message.starts_with(&format!("stdout has {stdout} bytes, shown are")), "{message}");
    assert!(message.contains(&format!("; stderr has {stderr} bytes, shown are")), "{message}");
    assert_eq!(finished.output.len(), stdout + stderr);
    let file = std::fs::read(told["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(file, finished.output);
    // What was left out is what was counted.
    let text = told["stdout"].as_str().unwrap();
    let (head, rest) = text.split_once("\n[… ").unwrap();
    let (left_out, tail) = rest.split_once(" bytes left out …]\n").unwrap();
    assert_eq!(head.len() + tail.len() + left_out.parse::<usize>().unwrap(), stdout);
}

#[test]
fn of_a_file_that_got_too_large_what_is_in_it_is_told_and_the_command_goes_on() {
    let written = AtomicU64::new(0);
    let host = host().with_service(OUTPUT, move |request| {
        let before = written.fetch_add(request.bytes.len() as u64, Ordering::SeqCst);
        if before > 100_000 {
            return Err(Error::new(ErrorKind::LimitReached, "it is too much"));
        }
        let bytes = before + request.bytes.len() as u64;
        Reply::of(&OutputAnswer::new("/o/f.txt".to_owned(), bytes))
    });
    let told = call(&host, json!({ "command": "seq 100000; exit 7" }));
    let asked = host.asked();
    let pieces: Vec<_> = asked.iter().filter(|it| it.operation == OUTPUT).collect();
    let (_, taken) = pieces.split_last().unwrap();
    let taken: usize = taken.iter().map(|piece| piece.bytes.len()).sum();
    assert!(taken > 100_000, "what is refused is not tried again: {}", pieces.len());
    assert_eq!((&told["output_file"], &told["returncode"]), (&json!("/o/f.txt"), &json!(7)));
    let message = told["truncation_message"].as_str().unwrap();
    let expected = format!(
        "; only the first {taken} bytes, stdout and stderr as they came, are in output_file: it is \
         too much"
    );
    assert!(message.ends_with(&expected), "{message}");
    assert!(told["stdout"].as_str().unwrap().ends_with("\n99999\n100000\n"), "{told}");
}

#[test]
fn bytes_that_are_no_text_are_shown_replaced_and_kept_as_they_are() {
    let small = run("printf 'a\\377\\000b'");
    assert_eq!(small["stdout"], "a\u{fffd}\u{fffd}b");
    let host = host();
    let large = host
        .instance()
        .unwrap()
        .run("cli_based_tool", json!({ "command": "head -c 300000 /dev/zero | tr '\\0' '\\377'" }));
    let told = Value::Object(large.result.unwrap().content);
    assert!(told["stdout"].as_str().unwrap().starts_with("\u{fffd}\u{fffd}"));
    assert!(told.to_string().len() <= 16 * 1024);
    assert_eq!(large.output, vec![0xff; 300_000]);
}

#[test]
fn a_person_sees_what_is_printed_while_it_is() {
    let host = host();
    let command = "printf 'one\\n'; while [ ! -e go ]; do sleep 0.01; done; printf '\\303'; printf '\\266\\n' >&1";
    let mut call = host.start("cli_based_tool", json!({ "command": command })).unwrap();
    assert_eq!(call.next_delta().unwrap(), Some(Delta::output("one\n")));
    // Another call runs beside it, in the same folder.
    assert_eq!(self::call(&host, json!({ "command": "touch go" })), printed(""));
    let finished = call.wait();
    assert_eq!(finished.result.unwrap().content["stdout"], "one\nö\n");
    let shown: String = finished.deltas.iter().map(text_of).collect();
    assert_eq!(shown, "one\nö\n");
}

fn text_of(delta: &Delta) -> &str {
    match delta {
        Delta::Output { text, .. } => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_is_left_behind_does_not_hang_the_call() {
    let begin = Instant::now();
    let left = run("sleep 300 & echo started");
    assert!(begin.elapsed() < SOON);
    assert_eq!((&left["stdout"], &left["returncode"]), (&json!("started\n"), &json!(0)));
    if cfg!(target_os = "linux") {
        assert_eq!(left["left_running"][0]["name"], "sleep");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_outlives_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_in(folder.path());
    call(&host, json!({ "command": "sleep 300 & echo $! > left" }));
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
    let host = host();
    let command = "while :; do echo 0123456789; done";
    let mut call = host.start("cli_based_tool", json!({ "command": command })).unwrap();
    assert!(call.next_delta().unwrap().is_some());
    let finished = call.cancel();
    assert_eq!(finished.result.unwrap_err().kind, ErrorKind::Cancelled);
    let late = self::call(&host, json!({ "command": command, "timeout_seconds": 1 }));
    assert_eq!((&late["timed_out"], &late["truncated"]), (&json!(true), &json!(true)));
}

#[test]
fn an_output_that_cannot_be_kept_does_not_stop_the_command() {
    let full =
        host().with_service("output", |_| Err(Error::new(ErrorKind::Io, "the disk is full")));
    let told = call(&full, json!({ "command": "seq 1 100000; echo done >&2" }));
    assert_eq!((&told["stderr"], &told["returncode"]), (&json!("done\n"), &json!(0)));
    let message = told["truncation_message"].as_str().unwrap();
    assert!(message.ends_with("the whole could not be kept: the disk is full"), "{message}");
}

// Its examples write into the fake host's own folder.
jaato_plugin_testkit::conformance!(tool_cli: tool; |suite| suite.with_all_examples().with_host(|host| {
    host.with_clock(jaato_plugin_testkit::Clock::Real)
}));
