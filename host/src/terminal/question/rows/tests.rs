//! The rows of questions on screens of many sizes.

use expect_test::{Expect, expect};

use super::*;

fn question(values: &[(&str, &str)]) -> Dialog {
    let value =
        |(name, text): &(&str, &str)| Value::new(Some((*name).to_owned()), (*text).to_owned());
    Dialog {
        title: "Run count of fixture-probe?".to_owned(),
        subject: String::new(),
        values: values.iter().map(value).collect(),
        details: Vec::new(),
        notes: vec![(Look::Yellow, "! Nobody knows what it does.".to_owned())],
        answers: vec!["Yes".to_owned(), "No (or say what to do instead)".to_owned()],
        prompt: String::new(),
        begun: String::new(),
        manner: Manner::Keys,
    }
}

fn text_of(row: &Row) -> String {
    row.0.iter().map(|(_, text)| text.as_str()).collect()
}

fn screen(question: &Dialog, size: (usize, usize)) -> Vec<String> {
    let rows = question.body(size, Extent::Fitted).unwrap();
    rows.iter().map(text_of).collect()
}

#[track_caller]
fn check(question: &Dialog, size: (usize, usize), expected: Expect) {
    expected.assert_eq(&(screen(question, size).join("\n") + "\n"));
}

#[test]
fn arguments_are_shown_as_a_user_reads_them() {
    check(
        &question(&[
            ("command", "echo \"a\""),
            ("text", "one\n  two\u{1b}[2J\u{202e}"),
            ("n\nm", "[1]"),
        ]),
        (24, 80),
        expect![[r#"
            Run count of fixture-probe?
              │ command: echo "a"
              │ text:
              │   one
              │     two<U+001B>[2J<U+202E>
              │ n<U+000A>m: [1]
              ! Nobody knows what it does.
              1 Yes
              2 No (or say what to do instead)
        "#]],
    );
}

#[test]
fn what_is_too_long_shows_beginning_and_end_and_counts_the_rest() {
    let lines: Vec<String> = (1..=400).map(|line| format!("line {line}")).collect();
    let question = question(&[("directory", "/tmp"), ("command", &lines.join("\n"))]);
    check(
        &question,
        (17, 60),
        expect![[r#"
        Run count of fixture-probe?
          │ directory: /tmp
          │ command:
          │   line 1
          │   line 2
          │   line 3
          │   line 4
          … 393 more lines
          │   line 398
          │   line 399
          │   line 400
          ! Nobody knows what it does.
          1 Yes
          2 No (or say what to do instead)
          s Show all of it
    "#]],
    );
}

#[test]
fn what_it_is_about_is_next_to_the_title_or_below_it() {
    let about = |subject: &str| Dialog {
        title: "Run this command?".to_owned(),
        subject: subject.to_owned(),
        notes: Vec::new(),
        ..question(&[])
    };
    let command = about("python3 -m unittest -q 2>&1 | tail -5");
    check(
        &command,
        (24, 80),
        expect![[r#"
        Run this command?  python3 -m unittest -q 2>&1 | tail -5
          1 Yes
          2 No (or say what to do instead)
    "#]],
    );
    check(
        &command,
        (24, 40),
        expect![[r#"
            Run this command?
              │ python3 -m unittest -q 2>&1 | 
              │ tail -5
              1 Yes
              2 No (or say what to do instead)
        "#]],
    );
    check(
        &about("cd a\nls"),
        (24, 80),
        expect![[r#"
        Run this command?
          │ cd a
          │ ls
          1 Yes
          2 No (or say what to do instead)
    "#]],
    );
}

#[test]
fn blanks_that_would_draw_another_question_stay_after_the_bar() {
    let forged =
        format!("rm -rf ~{}Run this command?  ls{}  1 Yes", " ".repeat(300), " ".repeat(90));
    for columns in [20, 40, 79, 80, 81, 200] {
        let rows = screen(&question(&[("command", &forged)]), (40, columns));
        let value = rows.iter().filter(|row| row.starts_with("  │ ")).count();
        assert!(value >= 3, "{rows:#?}");
        assert!(
            rows.iter().all(|row| columns_of(row) + MARGIN_COLUMNS <= columns),
            "{columns}: {rows:#?}"
        );
        assert_eq!(rows.iter().filter(|row| row.starts_with("  1 ")).count(), 1, "{rows:#?}");
    }
}

#[test]
fn a_question_never_has_more_rows_than_the_screen() {
    let long = "x".repeat(900_000);
    let lines = "y\n".repeat(5000);
    let many: Vec<(String, String)> =
        (0..300).map(|it| (format!("k{it}"), "v\nw".repeat(it))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (&**name, &**text)).collect();
    let one = [("command", long.as_str())];
    let two = [("a", lines.as_str()), ("command", "ls\nls"), ("日本", long.as_str())];
    for values in [&one[..], &two, &many, &[]] {
        for (rows, columns) in [(24, 20), (18, 37), (24, 80), (50, 132), (200, 300)] {
            let question = question(values);
            let shown = screen(&question, (rows, columns));
            // Including the typed line.
            assert!(shown.len() + 1 < rows, "{rows}x{columns}: {}", shown.len());
            assert!(
                shown.iter().all(|row| columns_of(row) + MARGIN_COLUMNS <= columns),
                "{shown:#?}"
            );
            assert!(shown[0].starts_with("Run count"), "{shown:#?}");
            assert!(shown.iter().any(|row| row == "  1 Yes"), "{shown:#?}");
            // If lines are omitted, a note reports it, and the user can show them.
            let is_cut = shown.iter().any(|row| row.trim_start().starts_with("… "));
            assert_eq!(is_cut, shown.iter().any(|row| row.starts_with("  s ")), "{shown:#?}");
            let whole = question.body((rows, columns), Extent::Whole).unwrap();
            assert!(!is_cut || whole.len() > shown.len());
        }
    }
}

#[test]
fn every_cut_value_shows_its_end() {
    let text = format!("begin{}end", "\n".repeat(500));
    let rows = screen(&question(&[("a", &text), ("b", &text)]), (24, 80)).join("\n");
    assert_eq!(
        (rows.matches("│   begin").count(), rows.matches("│   end").count()),
        (2, 2),
        "{rows}"
    );
}

#[test]
fn a_terminal_without_room_is_told_so() {
    for size in [(24, 19), (5, 80), (0, 0)] {
        let reason = question(&[("command", "ls")]).body(size, Extent::Fitted).unwrap_err();
        assert!(reason.contains(&format!("{} rows of {} columns", size.0, size.1)), "{reason}");
    }
}

#[test]
fn no_row_of_a_title_or_a_note_looks_like_an_answer_or_like_the_line_that_is_typed() {
    let width = 40 - MARGIN_COLUMNS;
    for begin in 0..width {
        let forged = format!("{} 2 Yes > 1 Yes, and don't ask again > y > ", "x".repeat(begin));
        let notes = vec![(Look::Dim, format!("asked because of {forged}"))];
        let question = Dialog { title: format!("Run {forged}?"), notes, ..question(&[]) };
        let rows = screen(&question, (24, 40));
        assert!(rows.iter().all(|row| columns_of(row) <= width), "{rows:#?}");
        let like = |row: &&String| {
            row.starts_with(PROMPT)
                || row.strip_prefix(SET_IN).is_some_and(|row| row.starts_with(['1', '2']))
        };
        let like: Vec<&String> = rows.iter().filter(like).collect();
        assert_eq!(like, ["  1 Yes", "  2 No (or say what to do instead)"], "{rows:#?}");
    }
}

/// A change of a file: even lines are context, odd lines are added.
fn diff(lines: usize) -> Value {
    let line = |number: usize| match number % 2 {
        0 => (Look::Dim, format!("  {number}")),
        _ => (Look::Green, format!("+ {number}")),
    };
    let lines = (0..lines).map(line).collect();
    Value::of_lines(Some("changed a.txt (+1)".to_owned()), lines, Vec::new())
}

fn looks(rows: &[Row], look: Look) -> usize {
    rows.iter().filter(|row| row.0.last().is_some_and(|(is, _)| *is == look)).count()
}

#[test]
fn lines_keep_their_looks_and_get_the_room_that_brief_values_leave() {
    let text = "word\n".repeat(100);
    let argument = Value::new(Some("content".to_owned()), text).briefly();
    let question = Dialog { values: vec![argument, diff(100)], ..question(&[]) };
    let rows = question.body((24, 80), Extent::Fitted).unwrap();
    let strong = rows.iter().filter(|row| row.0.last().is_some_and(|it| it.0 == Look::Strong));
    let strong: Vec<String> = strong.map(text_of).collect();
    assert_eq!(strong, ["Run count of fixture-probe?", "  │ changed a.txt (+1):"]);
    assert_eq!(looks(&rows, Look::Green), 6, "{rows:#?}");
    assert_eq!(rows.iter().filter(|row| text_of(row).ends_with("word")).count(), 1, "{rows:#?}");
}

#[test]
fn what_one_value_does_not_need_is_for_the_others() {
    let question = Dialog { values: vec![diff(100), diff(2), diff(100)], ..question(&[]) };
    let rows = question.body((60, 80), Extent::Fitted).unwrap();
    let notes: Vec<_> = rows.iter().filter(|row| text_of(row).contains("more lines")).collect();
    assert_eq!(rows.len(), 58, "{rows:#?}");
    assert_eq!(notes.len(), 2, "{notes:#?}");
}

#[test]
fn a_long_path_is_shown_whole_before_its_lines() {
    let path = format!("{}end.txt", "folder/".repeat(20));
    let value = Value::of_lines(Some(path), vec![(Look::Red, "- gone".to_owned())], Vec::new());
    let question = Dialog { values: vec![value], ..question(&[]) };
    let rows = screen(&question, (24, 80));
    let title: String = rows.iter().filter_map(|row| row.strip_prefix(BAR)).collect();
    assert!(title.contains("/end.txt:"), "{title}");
}

#[test]
fn what_matters_most_is_shown_if_not_all_finds_room() {
    let line = |number: usize| (Look::Dim, format!("  {number}"));
    let core = vec![line(49), (Look::Green, "+ 50".to_owned()), line(51)];
    let lines: Vec<_> = (0..50).map(line).chain(core[1..].to_vec()).collect();
    for name in [None, Some("changes a.txt (+1)".to_owned())] {
        let value = Value::of_lines(name, lines.clone(), core.clone());
        let question = Dialog { values: vec![value], ..question(&[]) };
        let texts = |extent: Extent, rows: usize| -> Vec<String> {
            let rows = question.body((rows, 80), extent).unwrap();
            let barred = rows.iter().filter(|row| text_of(row).starts_with(BAR));
            barred.map(|row| row.0[1].1.clone()).filter(|it| !it.starts_with("changes")).collect()
        };
        assert_eq!(texts(Extent::Fitted, 24), ["  49", "+ 50", "  51"]);
        assert!(question.can_show_more((24, 80)));
        for (extent, rows) in [(Extent::Whole, 24), (Extent::Fitted, 80)] {
            assert_eq!(texts(extent, rows).len(), 52);
        }
    }
}

#[test]
fn answers_have_numbers_and_rows_of_their_own_and_nothing_in_them_is_hidden() {
    let long = format!("Yes, and don't ask again for `{}`", "x".repeat(400));
    let answers = vec!["Yes".to_owned(), "a\nb\u{202e}".to_owned(), long];
    let question = Dialog { answers, ..question(&[("command", "ls")]) };
    let shown = screen(&question, (24, 60));
    let shown = &shown[shown.len() - 8..];
    assert_eq!(shown[..2], ["  1 Yes", "  2 a<U+000A>b<U+202E>"]);
    assert!(shown[2].starts_with("  3 Yes, and don't") && shown[7].ends_with('…'), "{shown:#?}");
    assert!(shown.iter().all(|row| row.chars().count() <= 56), "{shown:?}");
}

#[test]
fn a_path_without_end_shows_what_it_names_and_all_of_it_on_request() {
    let path = "./".repeat(400) + ".git/hooks/pre-commit";
    let value = Value::of_lines(Some(format!("creates {path} (+1)")), vec![], vec![]);
    let question = Dialog { values: vec![value], ..question(&[]) };
    let size = (24, 80);
    let rows = screen(&question, size);
    assert!(rows.iter().any(|row| row.ends_with(".git/hooks/pre-commit (+1):")), "{rows:#?}");
    assert_eq!(rows.iter().filter(|row| row.starts_with("  │ …")).count(), 1, "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("  s Show all")), "{rows:#?}");
    let whole = question.body(size, Extent::Whole).unwrap();
    let whole: String = whole.iter().map(|row| row.0[row.0.len() - 1].1.as_str()).collect();
    assert!(whole.contains(&path), "{whole}");
}

#[test]
fn a_name_that_is_longer_than_its_row_shows_its_beginning() {
    for length in [60, 100, 500] {
        let name = format!("begin{}", "x".repeat(length));
        let rows = screen(&question(&[(&name, "a\nb")]), (24, 40));
        let names = rows.iter().filter(|row| row.starts_with("  │ begin") && row.ends_with('…'));
        assert_eq!(names.count(), 1, "{rows:#?}");
    }
}

#[test]
fn details_are_shown_with_all_of_it_alone() {
    let details = vec![Value::new(Some("rule".to_owned()), "tools.default".to_owned())];
    let question = Dialog { details, ..question(&[("command", "ls")]) };
    let shows = |extent| {
        let rows = question.body((24, 80), extent).unwrap();
        rows.iter().any(|row| text_of(row).contains("tools.default"))
    };
    assert!(!shows(Extent::Fitted) && shows(Extent::Whole));
    assert!(!question.can_show_more((24, 80)));
}
