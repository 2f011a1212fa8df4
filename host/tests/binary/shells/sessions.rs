//! Tests sessions: started, used, listed, closed, and errors in calls.

use serde_json::json;

use super::{
    BASH, ShellCalls, house_with_shell_settings, house_with_shells, kill_worker, output_text,
    play_program, return_reason,
};

#[test]
fn python_repl_session_can_be_started_used_and_closed() {
    if !super::is_installed("python3") {
        return;
    }
    play_program("python3 -q", |calls, session, spawned| {
        assert_eq!((session, output_text(spawned)), ("session_0", ">>> "));
        let hello = calls.type_text(session, "print('hello')\n");
        assert_eq!((output_text(&hello), return_reason(&hello)), ("hello\n>>> ", "waiting"));
        assert_eq!(calls.close(session), json!({ "exit_status": 0, "final_output": "" }));
    });
}

#[test]
fn sessions_are_listed_with_command_age_and_backend() {
    let Some(house) = house_with_shells() else { return };
    let mut calls = ShellCalls::in_house(&house);
    let none = calls.call("shell_list", &json!({}));
    assert_eq!((&none["count"], &none["sessions"]), (&json!(0), &json!([])));
    assert_eq!(none["backend"], "pty");
    let (first, _) = calls.spawn(BASH);
    let named = json!({ "command": "cat", "session_name": "mine" });
    assert_eq!(calls.call("shell_spawn", &named)["session_id"], "mine");
    assert_eq!(calls.call("shell_spawn", &named)["session_id"], "mine_1");
    let listed = calls.call("shell_list", &json!({}));
    assert_eq!(listed["count"], 3);
    let one = &listed["sessions"][0];
    assert_eq!((&one["session_id"], &one["command"]), (&json!(first), &json!(BASH)));
    assert_eq!((&one["is_alive"], &one["backend"]), (&json!(true), &json!("pty")));
    assert!(one["age_seconds"].is_number() && one["idle_seconds"].is_number(), "{one}");
    calls.end(&house);
}

#[test]
fn trace_log_names_the_backend_but_never_the_input() {
    let Some(house) = house_with_shells() else { return };
    let mut calls = ShellCalls::in_house(&house);
    let (session, _) = calls.spawn(BASH);
    calls.type_text(&session, "true moonshine\n");
    calls.call_refused("shell_spawn", &json!({ "command": "no-such-program --password hunter2" }));
    let path = calls.call("shell_list", &json!({}))["trace_log"].as_str().unwrap().to_owned();
    calls.close(&session);
    calls.end(&house);
    assert!(path.starts_with(&house.path().join("run").display().to_string()), "{path}");
    let trace = std::fs::read_to_string(&path).unwrap();
    // Only the program's name is shown, because any other word of the command line may be a secret.
    let spawn = "[InteractiveShell] spawn: id=session_0, cmd=bash, backend=pty\n";
    assert!(trace.contains(spawn), "{trace}");
    assert!(trace.contains("spawn: cmd=no-such-program, error=not_found\n"), "{trace}");
    assert!(trace.contains("end: id=session_0, exit_status=0\n"), "{trace}");
    assert!(!trace.contains("norc") && !trace.contains("hunter2"), "{trace}");
    assert!(trace.contains("[InteractiveShell] initialize: max_sessions=8"), "{trace}");
    assert!(trace.contains("input: id=session_0\n") && !trace.contains("moonshine"), "{trace}");
}

#[test]
fn trace_log_path_is_set_by_the_variable() {
    let Some(house) = house_with_shells() else { return };
    let path = house.path().join("run/elsewhere.log");
    let command = house.command(&["call", "--batch"]).variable("JAATO_TRACE_LOG", &path);
    let mut calls = ShellCalls::start(command);
    let listed = calls.call("shell_list", &json!({}));
    assert_eq!(listed["trace_log"], path.display().to_string());
    calls.end(&house);
    assert!(std::fs::read_to_string(&path).unwrap().contains("initialize: "));
}

#[test]
fn trace_log_is_private_for_every_umask() {
    use std::os::unix::fs::PermissionsExt as _;
    for umask in ["000", "277"] {
        let Some(house) = house_with_shells() else { return };
        let binary = house.binary().display().to_string();
        let line = format!("umask {umask}; exec '{binary}' call shell_list '{{}}'");
        let command = crate::support::Command::program(&house, "sh", &["-c", &line]);
        let run = house.path().join("run");
        let listed = command.variable("TMPDIR", &run).run().code(0).json();
        let path = std::path::PathBuf::from(listed["trace_log"].as_str().unwrap());
        let mode =
            |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert!(path.starts_with(&run), "{}", path.display());
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600), "{umask}");
    }
}

#[test]
fn the_trace_can_be_switched_off() {
    let settings = "[plugins.tool-interactive-shell]\ntrace_log = false\n";
    let Some(house) = house_with_shell_settings(settings) else { return };
    let path = house.path().join("run/elsewhere.log");
    let command = house.command(&["call", "--batch"]).variable("JAATO_TRACE_LOG", &path);
    let mut calls = ShellCalls::start(command);
    let listed = calls.call("shell_list", &json!({}));
    assert!(listed["trace_log_missing"].as_str().unwrap().contains("switched off"), "{listed}");
    calls.end(&house);
    assert!(!path.exists());
}

#[test]
fn unknown_program_session_or_key_is_reported_as_not_found() {
    let Some(house) = house_with_shells() else { return };
    let mut calls = ShellCalls::in_house(&house);
    let spawn = calls.call_refused("shell_spawn", &json!({ "command": "no-such-program -x" }));
    assert_eq!(spawn["kind"], "not_found");
    let message = spawn["message"].as_str().unwrap();
    assert!(message.contains("was not found or was not executable: `no-such-program -x`"));
    // A failed start does not use up a name.
    assert_eq!(calls.spawn(BASH).0, "session_0");
    let input = calls.call_refused("shell_input", &json!({ "session_id": "zz", "input": "x" }));
    assert_eq!(input["message"], "no session with id `zz`");
    assert!(input["hint"].as_str().unwrap().contains("session_0"), "{input}");
    let key = json!({ "session_id": "session_0", "key": "bogus" });
    let control = calls.call_refused("shell_control", &key);
    assert_eq!(control["message"], "unknown control key: `bogus`");
    calls.end(&house);
}

#[test]
fn missing_or_invalid_arguments_are_named_in_the_error() {
    let Some(house) = house_with_shells() else { return };
    let mut calls = ShellCalls::in_house(&house);
    let (session, _) = calls.spawn("cat");
    for (tool, arguments, expected) in [
        ("shell_spawn", json!({ "command": " " }), "command is required"),
        (
            "shell_spawn",
            json!({ "command": "cat", "session_name": "a/b" }),
            "is not a valid session name",
        ),
        ("shell_input", json!({ "session_id": "" , "input": "x" }), "session_id is required"),
        ("shell_input", json!({ "session_id": session }), "input is required"),
        ("shell_input", json!({ "session_id": session, "input": "x", "ask_user": true }), "one of"),
        ("shell_control", json!({ "session_id": session }), "key is required"),
        (
            "shell_read",
            json!({ "session_id": session, "wait_for": "(" }),
            "not a regular expression",
        ),
        ("shell_spawn", json!({ "command": "cat", "rows": 0 }), "rows"),
        ("shell_spawn", json!({ "command": [7] }), "command"),
        ("shell_close", json!({}), "session_id"),
    ] {
        let error = calls.call_refused(tool, &arguments);
        assert_eq!(error["kind"], "invalid_arguments", "{arguments} {error}");
        assert!(error["message"].as_str().unwrap().contains(expected), "{arguments} {error}");
    }
    let much = "x".repeat(1024 * 1024 + 1);
    let error = calls.call_refused("shell_input", &json!({ "session_id": session, "input": much }));
    assert_eq!(error["kind"], "limit_reached");
    calls.end(&house);
}

#[test]
fn program_that_exits_immediately_is_reported() {
    play_program("sh -c 'echo bye; exit 4'", |calls, session, spawned| {
        let expected = ("bye\n", "exit", false);
        let alive = spawned["is_alive"].as_bool().unwrap();
        assert_eq!((output_text(spawned), return_reason(spawned), alive), expected);
        assert_eq!(spawned["exit_status"], 4);
        assert_eq!(spawned["note"], "Process exited immediately. Check the command and output.");
        // It can be read until it is closed.
        assert_eq!(calls.call("shell_read", &json!({ "session_id": session }))["output"], "");
        let late =
            calls.call_refused("shell_input", &json!({ "session_id": session, "input": "x" }));
        assert_eq!(late["message"], format!("session `{session}` has exited"));
        assert_eq!(calls.close(session)["exit_status"], 4);
        let gone = calls.call_refused("shell_close", &json!({ "session_id": session }));
        assert_eq!(gone["kind"], "not_found");
    });
}

#[test]
fn death_by_signal_is_reported_without_an_exit_code() {
    play_program(BASH, |calls, session, _| {
        let killed = calls.type_text(session, "kill -9 $$\n");
        assert_eq!((return_reason(&killed), &killed["exit_status"]), ("exit", &json!(null)));
        assert_eq!(killed["signal"], json!({ "name": "SIGKILL", "number": 9 }));
        let closed = calls.close(session);
        assert_eq!(closed["signal"]["name"], "SIGKILL");
    });
    play_program(BASH, |calls, session, _| {
        assert_eq!(calls.type_text(session, "exit 9\n")["exit_status"], 9);
    });
}

#[test]
fn command_line_with_shell_syntax_is_run_by_a_shell() {
    play_program("echo one && printf 'two three' | tr a-z A-Z", |_, _, spawned| {
        assert_eq!(output_text(spawned), "one\nTWO THREE");
    });
}

#[test]
fn busy_program_is_waited_for_until_the_timeout() {
    play_program(BASH, |calls, session, _| {
        let line = json!({ "session_id": session, "input": "sleep 0.9; echo don''e\n" });
        let done = calls.call("shell_input", &line);
        assert_eq!((output_text(&done), return_reason(&done)), ("done\n$ ", "waiting"));
        let line = json!({ "session_id": session, "input": "sleep 300\n", "timeout": 0.7 });
        let busy = calls.call("shell_input", &line);
        assert_eq!((output_text(&busy), return_reason(&busy)), ("", "limit"));
        assert!(busy["note"].as_str().unwrap().contains("shell_read"), "{busy}");
        let read = json!({ "session_id": session, "timeout": 0.1 });
        assert_eq!(return_reason(&calls.call("shell_read", &read)), "limit");
        // A program that has shown nothing for long may be a server.
        let read = json!({ "session_id": session, "timeout": 2.5 });
        let silent = calls.call("shell_read", &read);
        assert!(
            silent["note"].as_str().unwrap().contains("computes, sleeps or serves"),
            "{silent}"
        );
        assert!(silent.get("expects").is_none(), "{silent}");
    });
}

#[test]
fn a_read_can_wait_for_a_pattern_or_the_next_prompt() {
    play_program(BASH, |calls, session, _| {
        let begin = "for i in 1 2 3; do echo line $i; sleep 0.2; done; sleep 0.3; echo end\n";
        calls.call("shell_input", &json!({ "session_id": session, "input": begin, "timeout": 0 }));
        let wait = |pattern: &str, timeout: f64| json!({ "session_id": session, "wait_for": pattern, "timeout": timeout });
        let second = calls.call("shell_read", &wait("^line [23]$", 20.0));
        assert_eq!(return_reason(&second), "found");
        assert!(output_text(&second).contains("line 2") && !output_text(&second).contains("end"));
        let never = calls.call("shell_read", &wait("no such thing", 0.05));
        assert_eq!(return_reason(&never), "limit");
        let prompt = calls.call("shell_read", &wait("prompt", 20.0));
        assert_eq!(return_reason(&prompt), "waiting");
        assert!(output_text(&prompt).ends_with("end\n$ "), "{prompt}");
    });
}

#[test]
fn read_waits_until_new_output_or_the_timeout() {
    play_program("cat", |calls, session, _| {
        let read = |timeout: f64| json!({ "session_id": session, "timeout": timeout });
        let idle = calls.call("shell_read", &read(0.4));
        assert_eq!(
            (output_text(&idle), return_reason(&idle), &idle["expects"]),
            ("", "limit", &json!("line"))
        );
        assert!(idle["waited_ms"].as_u64().unwrap() >= 400, "{idle}");
        assert_eq!(idle["note"], "the time limit has passed, and the program waits for input");
        // A timeout of zero does not wait.
        assert!(calls.call("shell_read", &read(0.0))["waited_ms"].as_u64().unwrap() < 400);
    });
    // Output appears on its own while a shell is at its prompt.
    play_program(BASH, |calls, session, _| {
        calls.type_text(session, "(sleep 0.5; echo la''te) &\n");
        let late = calls.call("shell_read", &json!({ "session_id": session, "timeout": 20 }));
        assert!(output_text(&late).contains("late"), "{late}");
        assert!(late["waited_ms"].as_u64().unwrap() < 15_000, "{late}");
    });
}

#[test]
fn read_returns_when_the_program_changes_its_state() {
    play_program(BASH, |calls, session, _| {
        let line = "stty -echo; PS1=; sleep 0.4\n";
        calls.type_text(session, "stty -echo; PS1=\n");
        calls.call("shell_input", &json!({ "session_id": session, "input": line, "timeout": 0 }));
        let read = json!({ "session_id": session, "timeout": 20 });
        let done = calls.call("shell_read", &read);
        assert_eq!(return_reason(&done), "waiting", "{done}");
    });
}

#[test]
fn read_that_times_out_still_reports_that_the_program_waits() {
    play_program("cat", |calls, session, _| {
        let read = json!({ "session_id": session, "wait_for": "late", "timeout": 0.3 });
        let waiting = calls.call("shell_read", &read);
        assert_eq!((return_reason(&waiting), &waiting["expects"]), ("limit", &json!("line")));
        assert_eq!(waiting["note"], "the time limit has passed, and the program waits for input");
    });
}

#[test]
fn sessions_are_reported_lost_when_the_environment_worker_dies() {
    let Some(house) = house_with_shells() else { return };
    house.isolate_plugin("*");
    let mut calls = ShellCalls::in_house(&house);
    let (session, _) = calls.spawn(BASH);
    kill_worker(&house, "environment_local");
    let read = json!({ "session_id": session, "wait_for": "never", "timeout": 20 });
    let lost = calls.call("shell_read", &read);
    assert_eq!((return_reason(&lost), &lost["is_alive"]), ("exit", &json!(false)));
    assert!(lost["lost"].is_string() && lost["exit_status"].is_null(), "{lost}");
    // The next session has a fresh worker.
    let (second, _) = calls.spawn(BASH);
    assert_eq!(output_text(&calls.type_text(&second, "echo on\n")), "on\n$ ");
    calls.end(&house);
}

#[test]
fn programs_end_when_the_shell_plugins_worker_dies() {
    let Some(house) = house_with_shells() else { return };
    house.isolate_plugin("*");
    let mut calls = ShellCalls::in_house(&house);
    let spawn = json!({ "command": "sleep 300", "timeout": 0 });
    let session = calls.call("shell_spawn", &spawn)["session_id"].clone();
    house.wait_for_process("sleep 300");
    kill_worker(&house, "tool_interactive_shell");
    house.wait_for_no_process("sleep 300");
    // Whatever the first answer says about the death, the session is gone and new ones can start.
    calls.call_any("shell_read", &json!({ "session_id": session }));
    let gone = calls.call_refused("shell_read", &json!({ "session_id": session }));
    assert_eq!(gone["kind"], "not_found", "{gone}");
    assert_eq!(output_text(&calls.spawn("echo on").1), "on\n");
    calls.end(&house);
}
