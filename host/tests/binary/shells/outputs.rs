//! Tests long outputs: nothing is lost, and the model learns where the whole output is.

use std::fs;

use serde_json::{Value, json};

use super::{BASH, output_text, play_program, return_reason};

/// Returns numbers, one per line.
fn number_lines(last: u32) -> String {
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
    play_program(BASH, |calls, session, _| {
        let told = calls.type_text(session, "seq 1 1000\n");
        assert_eq!(output_text(&told), number_lines(1000) + "$ ");
        assert!(told.get("output_file").is_none(), "{told}");
    });
}

#[test]
fn long_output_returns_both_ends_and_is_kept_completely_in_a_file() {
    play_program(BASH, |calls, session, _| {
        for last in [4000, 400_000] {
            let told = calls.type_text(session, &format!("seq 1 {last}\n"));
            assert_eq!(return_reason(&told), "waiting");
            assert!(output_text(&told).starts_with("1\n2\n3\n"), "{}", output_text(&told));
            assert!(
                output_text(&told).ends_with(&format!("\n{last}\n$ ")),
                "{}",
                output_text(&told)
            );
            assert_eq!(whole_output(&told, "output"), number_lines(last) + "$ ");
        }
        // New output is reported as usual.
        assert_eq!(output_text(&calls.type_text(session, "echo on\n")), "on\n$ ");
    });
}

#[test]
fn long_output_of_a_finished_program_is_kept_completely() {
    play_program("seq 1 4000", |calls, session, spawned| {
        assert_eq!(return_reason(spawned), "exit");
        assert_eq!(whole_output(spawned, "output"), number_lines(4000));
        assert_eq!(calls.close(session)["final_output"], "");
        // The file stays as long as jaato runs.
        assert!(fs::exists(spawned["output_file"].as_str().unwrap()).unwrap());
    });
}

#[test]
fn close_returns_the_last_output_of_a_session() {
    play_program(BASH, |calls, session, _| {
        let line = json!({ "session_id": session, "input": "seq 1 3000\n", "timeout": 0 });
        calls.call("shell_input", &line);
        let ready = json!({ "session_id": session, "wait_for": "^3000$", "timeout": 20 });
        calls.call("shell_read", &ready);
        calls.type_text(session, "trap 'seq 1 4000' EXIT\n");
        let closed = calls.close(session);
        let text = whole_output(&closed, "final_output");
        assert!(text.ends_with(&number_lines(4000)), "{closed}");
    });
}

#[test]
fn intermediate_frames_of_a_redrawing_program_are_not_in_the_output() {
    let frame = "printf '\\033[H\\033[2Jframe %s\\nof many\\n' $i";
    let bar = "printf '\\r%s %%' $i";
    for draw in [frame, bar] {
        play_program(BASH, |calls, session, _| {
            let line = format!("for i in $(seq 1 20000); do {draw}; done; echo\n");
            let line = json!({ "session_id": session, "input": line, "timeout": 30 });
            let told = calls.call("shell_input", &line);
            assert_eq!(return_reason(&told), "waiting", "{told}");
            assert!(told.get("output_file").is_none(), "{told}");
            assert!(
                output_text(&told).contains("20000") && output_text(&told).len() < 100,
                "{told}"
            );
        });
    }
}
