//! Tests limits on the number, duration and output of sessions.

use serde_json::json;

use super::{BASH, ShellCalls, house_with_shells, output_text, play_program};

#[test]
fn at_most_eight_sessions_run_and_a_flooding_one_blocks_no_other() {
    let Some(house) = house_with_shells() else { return };
    let mut calls = ShellCalls::in_house(&house);
    for number in 0..7 {
        assert_eq!(calls.spawn(BASH).0, format!("session_{number}"));
    }
    calls.call("shell_spawn", &json!({ "command": "yes", "timeout": 0 }));
    let error = calls.call_refused("shell_spawn", &json!({ "command": BASH }));
    assert_eq!(error["kind"], "limit_reached");
    assert!(error["hint"].as_str().unwrap().contains("`session_7`"), "{error}");
    for number in 0..7 {
        let answer =
            calls.type_text(&format!("session_{number}"), &format!("echo {number}{number}\n"));
        assert_eq!(output_text(&answer), format!("{number}{number}\n$ "));
    }
    assert_eq!(calls.close("session_7")["signal"]["name"], "SIGHUP");
    // An ended session does not count.
    calls.type_text("session_0", "exit\n");
    assert_eq!(calls.spawn(BASH).0, "session_8");
    assert_eq!(calls.spawn(BASH).0, "session_9");
    calls.end(&house);
}

#[test]
fn raw_terminal_output_can_be_read() {
    play_program(BASH, |calls, session, _| {
        let raw = json!({ "session_id": session, "raw": true });
        calls.call("shell_read", &raw);
        let shown = calls.type_text(session, "printf '\\033[31mred\\033[m\\n'\n");
        assert_eq!(output_text(&shown), "red\n$ ");
        let given = calls.call("shell_read", &raw);
        assert!(given["raw"].as_str().unwrap().contains("\u{1b}[31mred\u{1b}[m\r\n"), "{given}");
        assert_eq!((&given["bytes_lost"], &given["bytes_left"]), (&json!(0), &json!(0)));
    });
}

#[test]
fn programs_run_in_the_configured_folder() {
    let Some(house) = house_with_shells() else { return };
    let folder = house.path().join("workspace/below");
    std::fs::create_dir_all(&folder).unwrap();
    house.configure_more(&format!(
        "[plugins.tool-interactive-shell]\nworkspace_root = {:?}\nmax_sessions = 1\n",
        folder.display().to_string()
    ));
    let mut calls = ShellCalls::in_house(&house);
    let answer = calls.call("shell_spawn", &json!({ "command": "pwd", "cols": 500 }));
    assert_eq!(output_text(&answer).trim_end(), folder.display().to_string());
    let size = json!({ "command": "stty size", "rows": 30, "cols": 100 });
    assert_eq!(output_text(&calls.call("shell_spawn", &size)).trim_end(), "30 100");
    calls.spawn("cat");
    assert_eq!(
        calls.call_refused("shell_spawn", &json!({ "command": "cat" }))["kind"],
        "limit_reached"
    );
    calls.end(&house);
}
