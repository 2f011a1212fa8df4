//! Tests long outputs: nothing is lost, and the model learns where the whole output is.

use std::fs;

use serde_json::{Value, json};

use super::{BASH, output, play, reason};

/// Returns numbers, one per line.
fn numbers(last: u32) -> String {
    (1..=last).map(|number| format!("{number}\n")).collect()
}

/// Returns the text in a result's file. The result shows its two ends.
#[track_caller]
fn whole_output(told: &Value, key: &str) -> String {
    assert!(told.to_string().len() <= 16 * 1024, "{told}");
    let file = told["output_file"].as_str().unwrap();
    let text = fs::read_to_string(file).unwrap();
    let note = format!(" bytes left out; the whole output: {file} …]\n");
    let (before, tail) = told[key].as_str().unwrap().split_once(&note).unwrap();
    let (head, left_out) = before.split_once("\n[… ").unwrap();
    assert!(text.starts_with(head) && text.ends_with(tail), "{told}");
    assert_eq!(head.len() + tail.len() + left_out.parse::<usize>().unwrap(), text.len());
    text
}

#[test]
fn output_within_the_limit_is_returned_whole_whatever_its_line_count() {
    play(BASH, |calls, session, _| {
        let told = calls.input(session, "seq 1 1000\n");
        assert_eq!(output(&told), numbers(1000) + "$ ");
        assert!(told.get("output_file").is_none(), "{told}");
    });
}

#[test]
fn long_output_returns_both_ends_and_is_kept_completely_in_a_file() {
    play(BASH, |calls, session, _| {
        for last in [4000, 400_000] {
            let told = calls.input(session, &format!("seq 1 {last}\n"));
            assert_eq!(reason(&told), "waiting");
            assert!(output(&told).starts_with("1\n2\n3\n"), "{}", output(&told));
            assert!(output(&told).ends_with(&format!("\n{last}\n$ ")), "{}", output(&told));
            assert_eq!(whole_output(&told, "output"), numbers(last) + "$ ");
        }
        // New output is reported as usual.
        assert_eq!(output(&calls.input(session, "echo on\n")), "on\n$ ");
    });
}

#[test]
fn long_output_of_a_finished_program_is_kept_completely() {
    play("seq 1 4000", |calls, session, spawned| {
        assert_eq!(reason(spawned), "exit");
        assert_eq!(whole_output(spawned, "output"), numbers(4000));
        assert_eq!(calls.close(session)["final_output"], "");
        // The file stays as long as jaato runs.
        assert!(fs::exists(spawned["output_file"].as_str().unwrap()).unwrap());
    });
}

#[test]
fn close_returns_the_last_output_of_a_session() {
    play(BASH, |calls, session, _| {
        let line = json!({ "session_id": session, "input": "seq 1 3000\n", "timeout": 0 });
        calls.call("shell_input", &line);
        let ready = json!({ "session_id": session, "wait_for": "^3000$", "timeout": 20 });
        calls.call("shell_read", &ready);
        calls.input(session, "trap 'seq 1 4000' EXIT\n");
        let closed = calls.close(session);
        let text = whole_output(&closed, "final_output");
        assert!(text.ends_with(&numbers(4000)), "{closed}");
    });
}

#[test]
fn intermediate_frames_of_a_redrawing_program_are_not_in_the_output() {
    let frame = "printf '\\033[H\\033[2Jframe %s\\nof many\\n' $i";
    let bar = "printf '\\r%s %%' $i";
    for draw in [frame, bar] {
        play(BASH, |calls, session, _| {
            let line = format!("for i in $(seq 1 20000); do {draw}; done; echo\n");
            let line = json!({ "session_id": session, "input": line, "timeout": 30 });
            let told = calls.call("shell_input", &line);
            assert_eq!(reason(&told), "waiting", "{told}");
            assert!(told.get("output_file").is_none(), "{told}");
            assert!(output(&told).contains("20000") && output(&told).len() < 100, "{told}");
        });
    }
}
