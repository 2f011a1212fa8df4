//! What stands on screens of many sizes.

use expect_test::{Expect, expect};

use super::*;

fn question(values: &[(&str, &str)]) -> Question {
    let value =
        |(name, text): &(&str, &str)| Value::new(Some((*name).to_owned()), (*text).to_owned());
    Question {
        head: "cli_based_tool of tool-cli wants to run with".to_owned(),
        values: values.iter().map(value).collect(),
        why: "(tool `cli_based_tool` needs a permission)".to_owned(),
        choices: Vec::new(),
        prompt: "run it? [y]es, [a]lways for exactly this call, [n]o, or say what to do instead:"
            .to_owned(),
        manner: Manner::Letters,
    }
}

fn screen(question: &Question, size: (usize, usize)) -> Vec<String> {
    let mut rows = question.body("1 kovami", size, Extent::Fitted).unwrap();
    rows.extend(question.prompt_rows("1 kovami", size));
    rows.into_iter().map(|row| row.before.to_owned() + &row.text).collect()
}

#[track_caller]
fn check(values: &[(&str, &str)], size: (usize, usize), expected: Expect) {
    expected.assert_eq(&(screen(&question(values), size).join("\n") + "|\n"));
}

#[test]
fn arguments_are_shown_as_a_person_reads_them() {
    check(
        &[("command", "echo \"a\""), ("text", "one\ntwo\u{1b}[2J\u{202e}"), ("n\nm", "[1]")],
        (24, 80),
        expect![[r#"
            question 1 kovami: cli_based_tool of tool-cli wants to run with
              command: echo "a"
              text:
              │ one
              │ two<U+001B>[2J<U+202E>
              n<U+000A>m: [1]
            (tool `cli_based_tool` needs a permission)
            1 kovami: run it? [y]es, [a]lways for exactly this call, [n]o, or say what
            to do instead: |
        "#]],
    );
}

#[test]
fn what_is_too_long_shows_beginning_and_end_and_counts_the_rest() {
    let lines: Vec<String> = (1..=400).map(|line| format!("line {line}")).collect();
    check(
        &[("directory", "/tmp"), ("command", &lines.join("\n"))],
        (16, 60),
        expect![[r#"
            question 1 kovami: cli_based_tool of tool-cli wants to
            run with
              directory: /tmp
              command:
              │ line 1
              │ line 2
              │ line 3
              │ line 4
              … 393 more lines, 3044 bytes …
              │ line 398
              │ line 399
              │ line 400
            (tool `cli_based_tool` needs a permission)
            1 kovami: run it? [s]how all, [y]es, [a]lways for
            exactly this call, [n]o, or say what to do instead: |
        "#]],
    );
}

#[test]
fn blanks_that_would_draw_another_question_stay_behind_the_bar() {
    let forged = format!("rm -rf ~{}question 2: ls{}run it?", " ".repeat(300), " ".repeat(90));
    for columns in [20, 40, 79, 80, 81, 200] {
        let rows = screen(&question(&[("command", &forged)]), (40, columns));
        let value = rows.iter().skip_while(|row| !row.starts_with("  command")).skip(1);
        let value: Vec<&String> = value.take_while(|row| row.starts_with("  │ ")).collect();
        assert!(!value.is_empty(), "{rows:#?}");
        assert!(
            rows.iter().all(|row| columns_of(row) + MARGIN_COLUMNS <= columns),
            "{columns}: {rows:#?}"
        );
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
            assert!(shown.len() < rows, "{rows}x{columns}: {}", shown.len());
            assert!(
                shown.iter().all(|row| columns_of(row) + MARGIN_COLUMNS <= columns),
                "{shown:#?}"
            );
            assert!(shown[0].starts_with("question 1"), "{shown:#?}");
            assert!(shown.join(" ").contains("run it?"), "{shown:#?}");
            // Where something is left out, it says so, and all of it can be had.
            let is_cut = shown.iter().any(|row| row.trim_start().starts_with("… "));
            assert!(!is_cut || question.can_show_more("1 kovami", (rows, columns)), "{shown:#?}");
            let whole = question.body("1 kovami", (rows, columns), Extent::Whole).unwrap();
            assert!(!is_cut || whole.len() > shown.len());
        }
    }
}

#[test]
fn every_cut_value_shows_its_end() {
    let text = format!("begin{}end", "\n".repeat(500));
    let rows = screen(&question(&[("a", &text), ("b", &text)]), (24, 80)).join("\n");
    assert_eq!((rows.matches("│ begin").count(), rows.matches("│ end").count()), (2, 2), "{rows}");
}

#[test]
fn a_terminal_without_room_is_told_so() {
    for size in [(24, 19), (5, 80), (0, 0)] {
        let reason =
            question(&[("command", "ls")]).body("1 kovami", size, Extent::Fitted).unwrap_err();
        assert!(reason.contains(&format!("{} rows of {} columns", size.0, size.1)), "{reason}");
    }
}

#[test]
fn a_list_has_a_row_for_each_name() {
    let names = ["AGENTS.md", "x\nhint: run"]
        .map(|name| Value::new(None, visible::name(name).into_owned()));
    let question = Question { values: names.into(), ..question(&[]) };
    let rows = screen(&question, (24, 80));
    assert_eq!(rows[1..3], ["  AGENTS.md", "  x<U+000A>hint: run"]);
}

/// A file's change: an even line stays, an odd one comes.
fn diff(lines: usize) -> Value {
    let line = |number: usize| match number % 2 {
        0 => (Look::Dim, format!("  {number}")),
        _ => (Look::Green, format!("+ {number}")),
    };
    let lines = (0..lines).map(line).collect();
    Value::of_lines("changed a.txt (+1)".to_owned(), lines, Vec::new())
}

#[test]
fn lines_keep_their_looks_and_get_the_room_that_brief_values_leave() {
    let text = "word\n".repeat(100);
    let argument = Value::new(Some("content".to_owned()), text).briefly();
    let question = Question { values: vec![argument, diff(100)], ..question(&[]) };
    let rows = question.body("1 kovami", (24, 80), Extent::Fitted).unwrap();
    let looks = |look: Look| rows.iter().filter(|row| row.look == look).count();
    let strong: Vec<_> = rows.iter().filter(|row| row.look == Look::Strong).collect();
    assert_eq!(
        strong.iter().map(|row| row.text.as_str()).collect::<Vec<_>>(),
        ["  changed a.txt (+1):"]
    );
    assert_eq!((looks(Look::Green), looks(Look::Dim)), (6, 7), "{rows:#?}");
    assert!(rows.iter().filter(|row| row.look == Look::Green).all(|row| row.before == BAR));
    let shown = rows.iter().filter(|row| row.text == "word").count();
    assert_eq!(shown, 1, "{rows:#?}");
}

#[test]
fn what_one_value_does_not_need_is_for_the_others() {
    let question = Question { values: vec![diff(100), diff(2), diff(100)], ..question(&[]) };
    let rows = question.body("1 kovami", (60, 80), Extent::Fitted).unwrap();
    let notes: Vec<_> = rows.iter().filter(|row| row.text.contains("more lines")).collect();
    assert_eq!(rows.len(), 57, "{rows:#?}");
    assert_eq!(notes.len(), 2, "{notes:#?}");
}

#[test]
fn a_long_path_is_shown_whole_before_its_lines() {
    let path = format!("{}/end.txt", "folder/".repeat(20));
    let value = Value::of_lines(path, vec![(Look::Red, "- gone".to_owned())], Vec::new());
    let question = Question { values: vec![value], ..question(&[]) };
    let rows = question.body("1 kovami", (24, 80), Extent::Fitted).unwrap();
    let title: String =
        rows.iter().filter(|row| row.look == Look::Strong).map(|row| row.text.as_str()).collect();
    assert!(title.ends_with("/end.txt:"), "{title}");
}

#[test]
fn what_matters_most_is_shown_where_not_all_finds_room() {
    let line = |number: usize| (Look::Dim, format!("  {number}"));
    let core = vec![line(49), (Look::Green, "+ 50".to_owned()), line(51)];
    let lines: Vec<_> = (0..50).map(line).chain(core[1..].to_vec()).collect();
    let value = Value::of_lines("changes a.txt (+1)".to_owned(), lines, core);
    let question = Question { values: vec![value], ..question(&[]) };
    let texts = |extent: Extent, rows: usize| -> Vec<String> {
        let rows = question.body("1 kovami", (rows, 80), extent).unwrap();
        rows.iter().filter(|row| row.before == BAR).map(|row| row.text.clone()).collect()
    };
    assert_eq!(texts(Extent::Fitted, 24), ["  49", "+ 50", "  51"]);
    assert!(question.can_show_more("1 kovami", (24, 80)));
    for (extent, rows) in [(Extent::Whole, 24), (Extent::Fitted, 80)] {
        assert_eq!(texts(extent, rows).len(), 52);
    }
}

#[test]
fn choices_have_numbers_and_rows_of_their_own_however_long_and_nothing_in_them_is_hidden() {
    let long = format!("calls that only run `{} …`", "x".repeat(400));
    let choices = vec!["exactly this call".to_owned(), "a\nb\u{202e}".to_owned(), long];
    let question = Question { choices, ..question(&[("command", "ls")]) };
    let rows = question.body("1 a", (24, 60), Extent::Fitted).unwrap();
    let shown: Vec<&str> = rows.iter().rev().take(4).map(|row| row.text.as_str()).collect();
    assert_eq!(shown[3], "  1  exactly this call");
    assert_eq!(shown[2], "  2  a b<U+202E>");
    assert!(shown[1].starts_with("  3  calls that only run") && shown[0].ends_with('…'));
    assert!(shown.iter().all(|row| row.chars().count() <= 56), "{shown:?}");
}

#[test]
fn a_path_without_end_shows_what_it_names_and_all_of_it_on_request() {
    let path = "./".repeat(400) + ".git/hooks/pre-commit";
    let value = Value::of_lines(format!("creates {path} (+1)"), vec![], vec![]);
    let question = Question { values: vec![value], ..question(&[]) };
    let size = (24, 80);
    let rows = screen(&question, size);
    assert!(rows.iter().any(|row| row.ends_with(".git/hooks/pre-commit (+1):")), "{rows:#?}");
    assert_eq!(rows.iter().filter(|row| row.starts_with('…')).count(), 1, "{rows:#?}");
    assert!(rows.iter().any(|row| row.contains("[s]how all")), "{rows:#?}");
    let whole = question.body("1 kovami", size, Extent::Whole).unwrap();
    let whole: String = whole.iter().map(|row| row.text.as_str()).collect();
    assert!(whole.contains(&path), "{whole}");
}
