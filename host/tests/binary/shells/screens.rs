//! Tests what a user would see: progress bars, redraws, full-screen programs, wide characters,
//! sizes.

use serde_json::json;

use super::{BASH, is_installed, output_text, play_program, return_reason};

#[test]
fn progress_bar_is_returned_in_its_final_state() {
    play_program(BASH, |calls, session, _| {
        let bar = "for i in 10 50 100; do printf 'Progress: %d%%\\r' $i; sleep 0.05; done; echo\n";
        let answer = calls.type_text(session, bar);
        assert_eq!(output_text(&answer), "Progress: 100%\n$ ");
    });
}

#[test]
fn colours_and_titles_are_not_part_of_the_text() {
    play_program(BASH, |calls, session, _| {
        let line = "printf '\\033]0;title\\007\\033[1;31mred\\033[0m \\033]8;;http://x\\007link\\033]8;;\\007\\n'\n";
        assert_eq!(output_text(&calls.type_text(session, line)), "red link\n$ ");
    });
}

#[test]
fn wide_and_combining_characters_are_preserved() {
    play_program("cat", |calls, session, _| {
        let text = "日本語 e\u{301} 👍 ok\n";
        assert_eq!(output_text(&calls.type_text(session, text)), text);
    });
}

#[test]
fn full_screen_editor_is_returned_as_a_screen_with_cursor() {
    if !is_installed("vim") {
        return;
    }
    play_program("vim -u NONE notes.txt", |calls, session, spawned| {
        assert_eq!(spawned["full_screen"], true, "{spawned}");
        assert_eq!((return_reason(spawned), &spawned["expects"]), ("waiting", &json!("keys")));
        assert_eq!(spawned["cursor"], json!({ "row": 1, "column": 1 }));
        let written = calls.type_text(session, "ihello\nworld");
        assert!(output_text(&written).starts_with("hello\nworld\n~\n"), "{written}");
        assert_eq!(written["cursor"], json!({ "row": 2, "column": 6 }));
        calls.press_key(session, "escape");
        let quit = calls.type_text(session, ":wq\n");
        assert_eq!((return_reason(&quit), &quit["exit_status"]), ("exit", &json!(0)));
    });
}

#[test]
fn earlier_lines_return_after_a_full_screen_program_ends() {
    if !is_installed("less") {
        return;
    }
    play_program(BASH, |calls, session, _| {
        calls.type_text(session, "echo before; seq 1 200 > many\n");
        let page = calls.type_text(session, "LESS= less many\n");
        assert_eq!(page["full_screen"], true, "{page}");
        assert!(output_text(&page).starts_with("1\n2\n3\n"), "{page}");
        let next = calls.type_text(session, " ");
        assert!(output_text(&next).starts_with("24\n25\n"), "{next}");
        // The expected text may be on a drawn screen.
        let shown = json!({ "session_id": session, "wait_for": "^46$", "timeout": 20 });
        assert_eq!(return_reason(&calls.call("shell_read", &shown)), "found");
        let left = calls.type_text(session, "q");
        assert!(left.get("full_screen").is_none() && output_text(&left).ends_with("$ "), "{left}");
        assert!(!output_text(&left).contains("24"), "{left}");
    });
}
