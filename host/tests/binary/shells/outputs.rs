//! Long outputs: nothing of them is lost, and the model is told where the rest is.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{BASH, Calls, output, play, reason};

/// Numbers, a line each.
fn numbers(last: u32) -> String {
    (1..=last).map(|number| format!("{number}\n")).collect()
}

/// What a result has left out, put together of further reads.
#[track_caller]
fn left_out(calls: &mut Calls, session: &str, told: &Value) -> String {
    let left = &told["left_out"];
    let (mut from, bytes) = (left["from"].as_u64().unwrap(), left["bytes"].as_u64().unwrap());
    let mut text = String::new();
    while (text.len() as u64) < bytes {
        let page = calls.call("shell_read", &json!({ "session_id": session, "from": from }));
        assert_eq!((&page["from"], page.get("bytes_lost")), (&json!(from), None), "{page}");
        assert!(page.to_string().len() < 16 * 1024);
        text += output(&page);
        from = page["next_from"].as_u64().unwrap_or(u64::MAX);
    }
    text.truncate(usize::try_from(bytes).unwrap());
    text
}

/// The output with the lines that it left out in their place.
#[track_caller]
fn whole(told: &Value, left: &str) -> String {
    let (head, rest) = output(told).split_once("[… ").unwrap();
    let tail = rest.split_once("…]\n").unwrap().1;
    assert_eq!(told["left_out"]["lines"], left.matches('\n').count(), "{told}");
    format!("{head}{left}{tail}")
}

#[test]
fn an_output_that_fits_is_told_whole_however_many_lines_it_has() {
    play(BASH, |calls, session, _| {
        let told = calls.input(session, "seq 1 1000\n");
        assert_eq!(output(&told), numbers(1000) + "$ ");
        assert!(told.get("truncated").is_none() && told.get("output_file").is_none(), "{told}");
    });
}

#[test]
fn of_a_long_output_both_ends_are_told_and_every_line_is_in_a_file_and_in_further_reads() {
    play(BASH, |calls, session, _| {
        for last in [3000, 40_000] {
            let told = calls.input(session, &format!("seq 1 {last}\n"));
            assert_eq!((reason(&told), &told["truncated"]), ("waiting", &json!(true)));
            assert!(output(&told).starts_with("1\n2\n3\n"), "{}", output(&told));
            assert!(output(&told).ends_with(&format!("\n{last}\n$ ")), "{}", output(&told));
            assert!(told.to_string().len() < 16 * 1024);
            let expected = numbers(last) + "$ ";
            let left = left_out(calls, session, &told);
            assert_eq!(whole(&told, &left), expected);
            // The line that was typed is new, too.
            let line_ends = format!("with {} line ends; ", last + 1);
            let message = told["truncation_message"].as_str().unwrap();
            assert!(message.contains(&line_ends), "{message}");
            let file = told["output_file"].as_str().unwrap();
            let text = fs::read_to_string(file).unwrap();
            assert!(text.ends_with(&format!("$ seq 1 {last}\n{expected}")), "{last}");
            let from = told["left_out"]["from"].as_u64().unwrap() as usize;
            assert!(text[from..].starts_with(&left), "{last}");
        }
        // What is new is told as ever, and behind the end there is nothing.
        assert_eq!(output(&calls.input(session, "echo on\n")), "on\n$ ");
        let behind = json!({ "session_id": session, "from": 1_000_000_000 });
        assert_eq!(calls.refused("shell_read", &behind)["kind"], "invalid_arguments");
    });
}

#[test]
fn a_program_that_only_prints_loses_nothing_either() {
    play("seq 1 3000", |calls, session, spawned| {
        assert_eq!(reason(spawned), "exit");
        let left = left_out(calls, session, spawned);
        assert_eq!(whole(spawned, &left), numbers(3000));
        let file = spawned["output_file"].as_str().unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), numbers(3000));
        assert_eq!(calls.close(session)["final_output"], "");
        // The file stays as long as jaato.
        assert!(fs::exists(file).unwrap());
    });
}

#[test]
fn what_a_session_shows_last_is_told_by_its_close() {
    play(BASH, |calls, session, _| {
        let line = json!({ "session_id": session, "input": "seq 1 3000\n", "timeout": 0 });
        calls.call("shell_input", &line);
        let ready = json!({ "session_id": session, "wait_for": "^3000$", "timeout": 20 });
        calls.call("shell_read", &ready);
        let trap = "trap 'seq 1 3000' EXIT\n";
        calls.input(session, trap);
        let closed = calls.close(session);
        assert_eq!(closed["truncated"], true, "{closed}");
        let last = closed["final_output"].as_str().unwrap();
        assert!(last.contains("\n1\n2\n") && last.ends_with("\n3000\n"), "{last}");
        let text = fs::read_to_string(closed["output_file"].as_str().unwrap()).unwrap();
        assert!(text.ends_with(&numbers(3000)));
    });
}

#[test]
fn the_frames_of_a_program_that_redraws_are_in_no_file() {
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
            // The text of the session has the line that was typed, and the last frame.
            let again = calls.call("shell_read", &json!({ "session_id": session, "from": 0 }));
            assert!(!output(&again).contains("19999") && output(&again).len() < 300, "{again}");
        });
    }
}

#[test]
fn a_file_that_a_command_has_removed_is_told_to_be_gone() {
    play(BASH, |calls, session, _| {
        let told = calls.input(session, "seq 1 20000\n");
        fs::remove_file(told["output_file"].as_str().unwrap()).unwrap();
        let told = calls.input(session, "seq 1 3000\n");
        let message = told["truncation_message"].as_str().unwrap();
        assert!(message.contains("changed or removed"), "{message}");
        assert!(told.get("output_file").is_none(), "{told}");
        // Memory has it all the same.
        let left = left_out(calls, session, &told);
        assert_eq!(whole(&told, &left), numbers(3000) + "$ ");
    });
}

#[test]
fn files_of_closed_sessions_are_there_until_there_are_too_many() {
    let Some(house) = super::furnish() else { return };
    let mut calls = Calls::of(&house);
    let files: Vec<String> = (0..10)
        .map(|_| {
            let (session, told) = calls.spawn("seq 1 3000");
            calls.close(&session);
            told["output_file"].as_str().unwrap().to_owned()
        })
        .collect();
    let bound = Instant::now() + Duration::from_secs(60);
    // They are removed beside the calls.
    while files[..2].iter().any(|file| fs::exists(file).unwrap()) {
        assert!(Instant::now() < bound, "the oldest are still there");
        calls.call("shell_list", &json!({}));
    }
    assert!(files[2..].iter().all(|file| fs::exists(file).unwrap()), "{files:?}");
    calls.end(&house);
    assert!(!files.iter().any(|file| fs::exists(file).unwrap()), "they go with jaato");
}
