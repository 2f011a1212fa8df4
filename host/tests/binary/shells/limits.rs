//! Limits: how many sessions, how long, how much.

use serde_json::json;

use super::{BASH, Calls, furnish, output, play, reason};

#[test]
fn eight_sessions_live_at_a_time_and_one_may_flood() {
    let Some(house) = furnish() else { return };
    let mut calls = Calls::of(&house);
    for number in 0..7 {
        assert_eq!(calls.spawn(BASH).0, format!("session_{number}"));
    }
    calls.call("shell_spawn", &json!({ "command": "yes", "timeout": 0 }));
    let error = calls.refused("shell_spawn", &json!({ "command": BASH }));
    assert_eq!(error["kind"], "limit_reached");
    assert!(error["hint"].as_str().unwrap().contains("`session_7`"), "{error}");
    for number in 0..7 {
        let answer = calls.input(&format!("session_{number}"), &format!("echo {number}{number}\n"));
        assert_eq!(output(&answer), format!("{number}{number}\n$ "));
    }
    assert_eq!(calls.close("session_7")["signal"]["name"], "SIGHUP");
    // One that has ended takes no place.
    calls.input("session_0", "exit\n");
    assert_eq!(calls.spawn(BASH).0, "session_8");
    assert_eq!(calls.spawn(BASH).0, "session_9");
    calls.end(&house);
}

#[test]
fn what_floods_is_cut_and_counted() {
    play(BASH, |calls, session, _| {
        let flood = calls.input(session, "seq 1 50000\n");
        assert_eq!(reason(&flood), "waiting");
        assert!(output(&flood).ends_with("49999\n50000\n$ "), "{}", output(&flood));
        assert!(flood.to_string().len() < 16 * 1024);
        assert_eq!(flood["truncated"], true);
        let message = flood["truncation_message"].as_str().unwrap();
        // The line that was typed and the numbers.
        assert!(message.contains(" 50001 line ends"), "{message}");
        assert_eq!(output(&calls.input(session, "echo on\n")), "on\n$ ");
    });
}

#[test]
fn the_raw_stream_is_there() {
    play(BASH, |calls, session, _| {
        let raw = json!({ "session_id": session, "raw": true });
        calls.call("shell_read", &raw);
        let shown = calls.input(session, "printf '\\033[31mred\\033[m\\n'\n");
        assert_eq!(output(&shown), "red\n$ ");
        let given = calls.call("shell_read", &raw);
        assert!(given["raw"].as_str().unwrap().contains("\u{1b}[31mred\u{1b}[m\r\n"), "{given}");
        assert_eq!((&given["bytes_lost"], &given["bytes_left"]), (&json!(0), &json!(0)));
    });
}

#[test]
fn programs_run_where_the_configuration_says() {
    let Some(house) = furnish() else { return };
    let folder = house.path().join("workspace/below");
    std::fs::create_dir_all(&folder).unwrap();
    house.configure_more(&format!(
        "[plugins.tool-interactive-shell]\nworkspace_root = {:?}\nmax_sessions = 1\n",
        folder.display().to_string()
    ));
    let mut calls = Calls::of(&house);
    let answer = calls.call("shell_spawn", &json!({ "command": "pwd", "cols": 500 }));
    assert_eq!(output(&answer).trim_end(), folder.display().to_string());
    let size = json!({ "command": "stty size", "rows": 30, "cols": 100 });
    assert_eq!(output(&calls.call("shell_spawn", &size)).trim_end(), "30 100");
    calls.spawn("cat");
    assert_eq!(calls.refused("shell_spawn", &json!({ "command": "cat" }))["kind"], "limit_reached");
    calls.end(&house);
}

#[test]
fn a_session_whose_file_is_full_says_how_much_is_kept_and_how_much_is_not() {
    play(BASH, |calls, session, _| {
        // 36 MB, of which 32 MiB are kept.
        let line = "head -c 27000000 /dev/zero | base64 -w 76\n";
        let line = json!({ "session_id": session, "input": line, "timeout": 30 });
        let flood = calls.call("shell_input", &line);
        assert_eq!(reason(&flood), "waiting", "{flood}");
        let message = flood["truncation_message"].as_str().unwrap();
        let quota = 32 * 1024 * 1024;
        assert!(message.contains(&format!("only the first {quota} bytes")), "{message}");
        let lost: u64 =
            message.split(", and ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        let left = &flood["left_out"];
        let end = left["from"].as_u64().unwrap() + left["bytes"].as_u64().unwrap();
        assert!(end > 36_000_000, "{left}");
        assert!(lost < end - quota && lost > end - quota - 1024 * 1024, "{lost} {end}");
        let file = flood["output_file"].as_str().unwrap();
        assert_eq!(std::fs::metadata(file).unwrap().len(), quota);
        // What is asked for in the gap begins behind it, and that is told.
        let read = json!({ "session_id": session, "from": quota });
        let behind = calls.call("shell_read", &read);
        assert_eq!(behind["from"], json!(quota + behind["bytes_lost"].as_u64().unwrap()));
    });
}
