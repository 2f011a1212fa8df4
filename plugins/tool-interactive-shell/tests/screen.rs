//! The visible screen, its new text, and the terminal's replies.
#![allow(clippy::unwrap_used, missing_docs)]

use tool_interactive_shell::screen::{
    EmulatedScreen, HISTORY_ROWS_MAX, REPLY_BYTES_MAX, ScreenCursor, UnseenText,
};

/// Creates a screen of 5 rows and 20 columns and feeds it.
fn screen_fed_with(bytes: &str) -> EmulatedScreen {
    let mut screen = EmulatedScreen::new(5, 20);
    screen.feed_output(bytes.as_bytes());
    screen
}

/// Feeds and marks each of `told`, feeds `last`, and compares the new text.
#[track_caller]
fn check_new_text(told: &[&str], last: &str, expected: &str) {
    let mut screen = EmulatedScreen::new(5, 20);
    for bytes in told {
        screen.feed_output(bytes.as_bytes());
        screen.mark_seen();
        assert_eq!(screen.unseen_text(), UnseenText::default(), "just told");
    }
    screen.feed_output(last.as_bytes());
    assert_eq!(screen.unseen_text().text, expected);
    screen.mark_seen();
    assert_eq!(screen.unseen_text(), UnseenText::default());
}

#[test]
fn new_plain_lines_are_returned_once() {
    check_new_text(&[], "", "");
    check_new_text(&[], "hello\r\n", "hello\n");
    check_new_text(&["hello\r\n"], "world\r\n", "world\n");
    check_new_text(&[], "a  \r\nb", "a\nb");
    check_new_text(&["a\r\n"], "", "");
}

#[test]
fn prompt_keeps_its_space_and_text_typed_after_it_is_returned_alone() {
    check_new_text(&[], ">>> ", ">>> ");
    check_new_text(&[">>> "], "1+1\r\n2\r\n>>> ", "1+1\n2\n>>> ");
    check_new_text(&[">>> "], "\r\n>>> ", ">>> ");
    check_new_text(&["Password: "], "\r\nwelcome\r\n$ ", "welcome\n$ ");
    check_new_text(&["$ "], "   ", "");
    check_new_text(&["a\r\n$ "], "\r\x1b[K$ ls\r\nb\r\n$ ", "ls\nb\n$ ");
}

#[test]
fn blank_lines_are_returned_unchanged() {
    check_new_text(&["$ x\r\n"], "\r\n\r\nhi\r\n", "\n\nhi\n");
    check_new_text(&["$ x\r\n"], "\r\n", "\n");
    check_new_text(&["$ "], "\r\n\r\n", "\n");
}

#[test]
fn progress_bar_returns_only_its_last_state() {
    check_new_text(&[], "10%\r20%\r100%\r\ndone\r\n", "100%\ndone\n");
    check_new_text(&["at 10%"], "\rat 20%", "at 20%");
    check_new_text(&["at 99%"], "\rat 100%\r\n", "at 100%\n");
    check_new_text(&[], "long line\r\x1b[Kx", "x");
    check_new_text(&[], "|\x08/\x08-\x08\\\x08 \x08done", "done");
}

#[test]
fn redraw_above_the_cursor_is_returned_from_its_first_changed_line() {
    check_new_text(&["head\r\na 1%\r\nb 1%\r\n"], "\x1b[2Aa 9%\r\nb 2%\r\n", "a 9%\nb 2%\n");
    check_new_text(&["head\r\na 1%\r\nb 1%\r\n"], "\x1b[1Ab 2%\r\n", "b 2%\n");
    check_new_text(&["head\r\na 1%\r\n"], "\x1b[1Aa 1%\r\n", "");
}

#[test]
fn scrolled_off_lines_are_still_returned() {
    let lines: String = (0..50).map(|n| format!("line {n}\r\n")).collect();
    check_new_text(
        &["$ "],
        &format!("seq\r\n{lines}$ "),
        &format!("seq\n{lines}$ ").replace('\r', ""),
    );
    check_new_text(&[&lines], "more\r\n", "more\n");
    check_new_text(
        &[&lines, "$ "],
        &format!("x\r\n{lines}"),
        &format!("x\n{lines}").replace('\r', ""),
    );
}

#[test]
fn wrapped_lines_are_joined_again() {
    let long = "0123456789".repeat(7);
    check_new_text(&[], &format!("{long}\r\nx"), &format!("{long}\nx"));
    check_new_text(&["$ "], &format!("{long}\r\n"), &format!("{long}\n"));
    let exact = "x".repeat(20);
    check_new_text(&[], &format!("{exact}\r\ny"), &format!("{exact}\ny"));
    check_new_text(&[&exact], "y", "y");
    check_new_text(&[&format!("$ {long}")], "end", "end");
}

#[test]
fn cleared_screen_returns_only_later_text() {
    check_new_text(&["$ a\r\nb\r\n$ "], "\x1b[H\x1b[2Jnew", "new");
    check_new_text(&["$ a\r\nb\r\n$ "], "\x1b[H\x1b[2J\x1b[3J$ ", "$ ");
    check_new_text(&["$ "], "\x1b[H\x1b[J$ ", "$ ");
    check_new_text(&[], "gone\x1b[H\x1b[2Jnew", "new");
    check_new_text(&["same\r\n"], "\x1bcsame\r\n", "same\n");
    check_new_text(&["same\r\n"], "\x1b[2J\x1b[3;3Hx", "  x");
    let lines: String = (0..9).map(|n| format!("{n}\r\n")).collect();
    check_new_text(&["$ "], &format!("{lines}\x1b[H\x1b[2Jnew"), "0\n1\n2\n3\n4\nnew");
}

#[test]
fn full_screen_program_leaves_the_normal_screen_unchanged() {
    let mut screen = screen_fed_with("$ ");
    screen.mark_seen();
    screen.feed_output(b"vi\r\n\x1b[?1049h\x1b[H~ text\x1b[2;3H");
    assert!(screen.is_full_screen());
    assert_eq!(screen.unseen_text(), UnseenText::default());
    assert_eq!(screen.visible_lines(), ["~ text"]);
    assert_eq!(screen.cursor(), ScreenCursor { row: 1, column: 2, is_visible: true });
    screen.mark_seen();
    screen.feed_output(b"\x1b[2J\x1b[?1049l$ ");
    assert!(!screen.is_full_screen());
    assert_eq!(screen.unseen_text().text, "vi\n$ ");
}

#[test]
fn the_older_ways_to_the_alternate_screen_work_too() {
    for mode in ["47", "1047", "1049"] {
        let mut screen = screen_fed_with(&format!("a\x1b[?{mode}hb"));
        assert!(screen.is_full_screen(), "{mode}");
        screen.feed_output(format!("\x1b[?{mode}l").as_bytes());
        assert_eq!(
            (screen.is_full_screen(), screen.visible_lines()),
            (false, vec!["a".to_owned()])
        );
    }
}

#[test]
fn wide_and_combined_characters_are_returned_unchanged() {
    check_new_text(&[], "漢字かな e\u{301} 👩\u{200d}🔬", "漢字かな e\u{301} 👩\u{200d}🔬");
    let wide = "漢".repeat(25);
    check_new_text(&[], &format!("x{wide}\r\n"), &format!("x{wide}\n"));
    check_new_text(&["名前: "], "太郎\r\n", "太郎\n");
}

#[test]
fn colours_tabs_and_titles_leave_no_trace_in_the_text() {
    check_new_text(
        &[],
        "\x1b[1;31mred\x1b[0m\tx\x1b]0;title\x07\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\",
        "red     xlink",
    );
    check_new_text(&[], "a\x07\x00\x0e\x0fb\x1bPq#0\x1b\\c\x1b[?25l", "abc");
    check_new_text(&[], "\x1b[8mhidden\x1b[m.", "      .");
    check_new_text(&[], "a\u{202e}b\u{200b}c\u{feff}\u{e0041}d\u{85}e", "abcde");
}

#[test]
fn invalid_utf8_is_shown_as_a_replacement() {
    let mut screen = EmulatedScreen::new(5, 20);
    screen.feed_output(b"a\xffb\xc3(\xe6\xbc\xa2");
    assert_eq!(screen.unseen_text().text, "a\u{fffd}b\u{fffd}(漢");
}

/// Returns all new text: the text that scrolled off, then the unseen text on the screen.
fn new_text(screen: &mut EmulatedScreen) -> String {
    let scrolled = screen.take_scrolled().unwrap_or_default();
    let unseen = screen.unseen_text();
    assert!(scrolled.text.is_empty() || unseen.continues, "the unseen text continues the line");
    scrolled.text + &unseen.text
}

#[test]
fn no_line_is_lost_however_many_scroll_away() {
    for size in [3, 1000, 100_000] {
        let mut screen = screen_fed_with("$ ");
        screen.mark_seen();
        let lines: String = (0..9000).map(|number| format!("line {number}\n")).collect();
        let bytes = format!("seq\n{lines}$ ").replace('\n', "\r\n");
        bytes.as_bytes().chunks(size).for_each(|piece| screen.feed_output(piece));
        assert_eq!((screen.line_feeds(), screen.processed_bytes()), (9001, 2 + bytes.len() as u64));
        assert!(screen.unseen_text().text.lines().count() >= HISTORY_ROWS_MAX);
        let scrolled = screen.take_scrolled().unwrap();
        assert!(scrolled.continues, "the text continues after the prompt");
        assert_eq!(scrolled.text + &screen.unseen_text().text, format!("seq\n{lines}$ "), "{size}");
        screen.mark_seen();
        screen.feed_output(b"pwd\r\n/\r\n$ ");
        assert_eq!(new_text(&mut screen), "pwd\n/\n$ ");
    }
}

#[test]
fn text_already_returned_is_not_returned_again_after_scrolling_off() {
    for told in ["one\r\ntwo\r\n$ ", "one\r\ntwo\r\n", "0123456789012345678901234567890 $ "] {
        let mut screen = screen_fed_with(told);
        screen.mark_seen();
        let lines: String = (0..3000).map(|number| format!("{number}\n")).collect();
        screen.feed_output(format!("x\n{lines}").replace('\n', "\r\n").as_bytes());
        assert_eq!(new_text(&mut screen), format!("x\n{lines}"), "{told:?}");
    }
}

#[test]
fn changed_text_that_scrolled_off_is_returned_from_its_first_change() {
    let mut screen = screen_fed_with("a 1%\r\nb 1%\r\n");
    screen.mark_seen();
    let lines: String = (0..3000).map(|number| format!("{number}\n")).collect();
    screen.feed_output(format!("\x1b[1Ab 9%\n{lines}").replace('\n', "\r\n").as_bytes());
    let scrolled = screen.take_scrolled().unwrap();
    assert!(!scrolled.continues, "it begins a line");
    assert_eq!(scrolled.text + &screen.unseen_text().text, format!("b 9%\n{lines}"));
    let mut screen = screen_fed_with("at 10%");
    screen.mark_seen();
    screen.feed_output(format!("\rat 99%\n{lines}").replace('\n', "\r\n").as_bytes());
    let scrolled = screen.take_scrolled().unwrap();
    assert!(!scrolled.continues, "the line was overwritten from its beginning");
    assert_eq!(scrolled.text + &screen.unseen_text().text, format!("at 99%\n{lines}"));
}

#[test]
fn long_lines_are_returned_complete_even_if_split_by_scrolling() {
    let mut screen = EmulatedScreen::new(5, 20);
    let line = "0123456789".repeat(5);
    let lines = format!("{line}\n").repeat(3000);
    screen.feed_output(lines.replace('\n', "\r\n").as_bytes());
    assert_eq!(new_text(&mut screen), lines);
    screen.mark_seen();
    // One line that never ends.
    screen.feed_output("0123456789".repeat(20_000).as_bytes());
    let begun = screen.take_scrolled().unwrap().text;
    assert!(!begun.contains('\n') && begun.len() > 100_000);
    assert_eq!(begun + &new_text(&mut screen), "0123456789".repeat(20_000));
}

#[test]
fn repeat_sequence_is_returned_completely() {
    let mut screen = screen_fed_with("$ ");
    screen.feed_output(b"\r\nx\x1b[65535b\r\nend");
    let rows = screen.unseen_text().text.len() / 20;
    assert!((HISTORY_ROWS_MAX..HISTORY_ROWS_MAX + 300).contains(&rows), "{rows}");
    assert_eq!(new_text(&mut screen), format!("$\n{}\nend", "x".repeat(65536)));
}

#[test]
fn redrawn_frames_leave_no_scrolled_text() {
    for (begin, frame) in [
        ("\x1b[?1049h", "\x1b[Hone\r\ntwo\r\nthree\r\nfour\r\nfive"),
        ("", "\x1b[Hone\r\ntwo\r\nthree\r\nfour\r\nfive"),
        ("", "\x1b[H\x1b[2J\x1b[3Jone\r\ntwo\r\nthree\r\nfour\r\nfive"),
        ("", "\r 42% [#####   ]"),
        ("a\r\nb\r\n", "\x1b[2Aa 1%\r\nb 2%\r\n"),
    ] {
        let mut screen = screen_fed_with(begin);
        for _ in 0..5000 {
            screen.feed_output(frame.as_bytes());
        }
        assert_eq!(screen.take_scrolled(), None, "{frame:?}");
        assert_eq!(screen.unseen_text_above_screen().text, "", "{frame:?}");
    }
}

#[test]
fn text_scrolled_off_before_drawing_is_separate_from_the_drawing() {
    let mut screen = screen_fed_with("$ ");
    screen.mark_seen();
    let lines: String = (0..50).map(|number| format!("{number}\n")).collect();
    screen.feed_output(format!("x\n{lines}\x1b[Hdrawn\n").replace('\n', "\r\n").as_bytes());
    assert!(screen.is_drawn());
    let above = screen.unseen_text_above_screen();
    let expected: String = (0..46).map(|number| format!("{number}\n")).collect();
    assert_eq!((above.text, above.continues), (format!("x\n{expected}"), true));
}

#[test]
fn flood_is_returned_as_the_screen_would_show_it() {
    let lines: String = (0..5000).map(|number| format!("q\t{number}\n")).collect();
    let shown = |prepared: &str, size: usize| {
        let mut screen = EmulatedScreen::new(5, 40);
        screen.feed_output(prepared.as_bytes());
        screen.mark_seen();
        let bytes = lines.replace('\n', "\r\n");
        bytes.as_bytes().chunks(size).for_each(|piece| screen.feed_output(piece));
        new_text(&mut screen)
    };
    // Nothing, line drawing, concealed text, custom tab stops.
    for prepared in ["", "\x1b(0", "\x1b[8m", "\x1b[3g\x1b[1;20H\x1bH\x1b[H"] {
        assert_eq!(shown(prepared, 1_000_000), shown(prepared, 100), "{prepared:?}");
    }
    assert!(shown("", 1_000_000).starts_with("q       0\nq       1\n"));
    assert!(shown("\x1b(0", 1_000_000).starts_with('─'));
}

#[test]
fn releasing_memory_does_not_change_the_visible_text() {
    let lines: String = (0..50).map(|n| format!("line {n}\n")).collect();
    let mut screen = screen_fed_with(&lines.replace('\n', "\r\n"));
    screen.release_memory();
    assert_eq!(screen.unseen_text().text, lines);
    screen.feed_output(b"more\r\n");
    assert_eq!(screen.unseen_text().text, lines + "more\n");
}

#[test]
fn resize_returns_no_text_again() {
    for (rows, columns) in [(5, 7), (5, 60), (2, 20), (40, 20), (1, 2), (500, 1000)] {
        let mut screen = screen_fed_with("a line of text\r\nanother one\r\n$ ");
        screen.mark_seen();
        screen.resize(rows, columns);
        assert_eq!(screen.unseen_text(), UnseenText::default(), "{rows} x {columns}");
        screen.feed_output(b"ls\r\nnew\r\n$ ");
        assert_eq!(screen.unseen_text().text, "ls\nnew\n$ ", "{rows} x {columns}");
        assert_eq!((screen.rows(), screen.columns()), (rows, columns));
    }
}

#[test]
fn screen_size_is_clamped_to_its_limits() {
    for (asked, given) in [((0, 0), (1, 2)), ((u16::MAX, u16::MAX), (500, 1000))] {
        let screen = EmulatedScreen::new(asked.0, asked.1);
        assert_eq!((screen.rows(), screen.columns()), given);
        let mut screen = EmulatedScreen::new(24, 80);
        screen.resize(asked.0, asked.1);
        assert_eq!((screen.rows(), screen.columns()), given);
    }
}

#[test]
fn cursor_line_and_mid_line_state_reveal_a_prompt() {
    for (bytes, line, is_mid_line) in [
        ("", "", false),
        ("a\r\n", "", false),
        ("a\r\n$ ", "$ ", true),
        ("name: x\x1b[3D", "name", true),
        ("name: \r", "", false),
        ("   ", "   ", false),
        ("0123456789012345678901234> ", "0123456789012345678901234> ", true),
        ("01234567890123456789", "01234567890123456789", true),
        ("漢> ", "漢> ", true),
    ] {
        let screen = screen_fed_with(bytes);
        assert_eq!((screen.cursor_line().as_str(), screen.is_mid_line()), (line, is_mid_line));
    }
}

#[test]
fn input_modes_of_the_terminal_are_reported() {
    let mut screen = screen_fed_with("\x1b[?2004h\x1b[?1h\x1b[?25l");
    assert!(screen.wants_bracketed_paste() && screen.wants_application_cursor());
    assert!(!screen.cursor().is_visible);
    screen.feed_output(b"\x1b[?2004l\x1b[?1l\x1b[?25h");
    assert!(!screen.wants_bracketed_paste() && !screen.wants_application_cursor());
    assert!(screen.cursor().is_visible);
}

#[test]
fn terminal_queries_are_answered_once() {
    for (question, answer) in [
        ("ab\x1b[6n", "\x1b[1;3R"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[c", "\x1b[?6c"),
        ("\x1b[?2004$p", "\x1b[?2004;2$y"),
        ("\x1b[18t", "\x1b[8;5;20t"),
        ("\x1b]11;?\x07", "\x1b]11;rgb:0000/0000/0000\x07"),
        ("\x1b]10;?\x1b\\", "\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\"),
    ] {
        let mut screen = screen_fed_with(question);
        assert_eq!(String::from_utf8(screen.take_replies()).unwrap(), answer);
        assert_eq!(screen.take_replies(), b"");
    }
    assert!(screen_fed_with("\x1b[>c").take_replies().starts_with(b"\x1b[>0;"));
}

#[test]
fn unsafe_terminal_queries_are_not_answered() {
    for question in [
        "\x1b]52;c;?\x07",
        "\x1b]52;c;c2VjcmV0\x07\x1b]52;c;?\x07",
        "\x1b]0;rm -rf\x07\x1b[21t",
        "\x1b]2;x\x07\x1b[20t",
        "\x1b[?u",
        "\x1b]4;1;?\x07",
        "\x1b[14t",
        "\x05",
    ] {
        assert_eq!(screen_fed_with(question).take_replies(), b"", "{question:?}");
    }
}

#[test]
fn terminal_replies_are_limited_and_complete() {
    let mut screen = EmulatedScreen::new(5, 20);
    screen.feed_output("\x1b[6n".repeat(100_000).as_bytes());
    let replies = screen.take_replies();
    assert!(replies.len() <= REPLY_BYTES_MAX && replies.len() > REPLY_BYTES_MAX - 6);
    assert!(replies.ends_with(b"R"));
    screen.feed_output(b"\x1b[6n");
    assert_eq!(screen.take_replies(), b"\x1b[1;1R");
}

#[test]
fn coloured_screen_output_reproduces_the_same_screen() {
    let bytes = "\x1b[1;31mred\x1b[0m \x1b[44m  \x1b[m\r\n\r\n\x1b[38;5;200mp\x1b[48;2;1;2;3mq\
                 \x1b[m 漢e\u{301}\tx\r\n\x1b[7minverse\x1b[27m \x1b[4mu\x1b[m\x1b]0;t\x07  ";
    let screen = screen_fed_with(bytes);
    let ansi = screen.ansi_text();
    let again = screen_fed_with(&ansi);
    assert_eq!(again.ansi_text(), ansi);
    assert_eq!(again.visible_lines(), screen.visible_lines());
    let plain = "\x1b[0;1;31mred\x1b[0m \x1b[0;44m  \x1b[0m\r\n\r\n";
    assert!(ansi.starts_with(plain), "{ansi:?}");
    assert!(ansi.ends_with("\x1b[0;7minverse\x1b[0m \x1b[0;4mu\x1b[0m"), "{ansi:?}");
    assert_eq!(screen_fed_with("").ansi_text(), "");
}

/// Faults of the emulator that this crate corrects. See the decision record.
#[test]
fn editing_within_a_row_leaves_the_rest_as_it_is() {
    assert_eq!(
        screen_fed_with("0123456789abcdefghij\x1b[16G\x1b[9P").visible_lines(),
        ["0123456789abcde"]
    );
    assert_eq!(screen_fed_with("one\r\ntwo\x1b[1J").visible_lines(), Vec::<String>::new());
    let mut screen = screen_fed_with("\x1b[9;12r");
    for n in 0..9 {
        screen.feed_output(format!("{n}\r\n").as_bytes());
    }
    assert_eq!(screen.visible_lines(), ["5", "6", "7", "8"]);
}
