//! Lays rows out in columns: in full width for programs, within the terminal's width for users.
//! Pure.
//!
//! If the columns do not fit, the widest are narrowed and their cells continue on further lines,
//! broken at words. If even that would leave too little of them, each row becomes lines of `name:
//! value`.

use console::measure_text_width;

/// The gap between two columns.
const GAP: usize = 2;

/// The smallest width of a narrowed column. A narrower one would show no whole words.
const NARROWEST: usize = 12;

/// On a terminal narrower than this, rows are stacked if they do not fit.
const STACKED_BELOW: usize = 60;

/// The additional indent of a stacked value's further lines.
const STACKED_INDENT: usize = 2;

/// The lines of a table. The first ones may be its head.
#[derive(Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// The number of lines of the head. 0 if the rows are stacked.
    pub head_lines: usize,
    /// All lines.
    pub lines: Vec<String>,
}

/// Lays out aligned rows without truncating or wrapping them.
pub fn lay_out_full_width(head: &[String], rows: &[Vec<String>]) -> TableLayout {
    lay_out_side_by_side(head, rows, &natural_widths(head, rows))
}

/// Returns the widths of columns that fit together. Returns `None` if too little of them would be
/// left.
pub fn column_widths(head: &[String], rows: &[Vec<String>], room: usize) -> Option<Vec<usize>> {
    shrink_widths(&natural_widths(head, rows), &longest_words(head, rows), room)
}

/// Lays out rows so that no line is wider than `columns`.
pub fn lay_out_fitting(head: &[String], rows: &[Vec<String>], columns: usize) -> TableLayout {
    // The last column stays free, because on some terminals a full row continues on the next one.
    let columns = columns.saturating_sub(1).max(NARROWEST);
    let natural = natural_widths(head, rows);
    let gaps = GAP * head.len().saturating_sub(1);
    let room = columns.saturating_sub(gaps);
    if natural.iter().sum::<usize>() <= room {
        return lay_out_side_by_side(head, rows, &natural);
    }
    match column_widths(head, rows, room).filter(|_| columns + 1 >= STACKED_BELOW) {
        Some(widths) => lay_out_side_by_side(head, rows, &widths),
        None => lay_out_stacked(head, rows, columns),
    }
}

fn natural_widths(head: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths = vec![0; head.len()];
    for row in rows.iter().map(Vec::as_slice).chain([head]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(measure_text_width(cell));
        }
    }
    widths
}

/// Narrows the widest columns until all fit. First only between words, then all except the first
/// column, which names the row, and finally that one too. Returns `None` if too little of them
/// would be left.
fn shrink_widths(natural: &[usize], words: &[usize], room: usize) -> Option<Vec<usize>> {
    let mut widths = natural.to_vec();
    let whole_words: Vec<usize> = words.iter().map(|word| NARROWEST.max(*word)).collect();
    let first = natural.first().copied().unwrap_or_default();
    let but_first = |at| if at == 0 { first } else { NARROWEST };
    let later = (0..natural.len()).map(but_first).collect();
    for floors in [whole_words, later, vec![NARROWEST; natural.len()]] {
        while widths.iter().sum::<usize>() > room {
            let wide = widths.iter_mut().zip(&floors).filter(|(width, floor)| **width > **floor);
            // Of two equally wide columns, the later one is narrowed.
            let Some((widest, _)) = wide.max_by_key(|(width, _)| **width) else { break };
            *widest -= 1;
        }
    }
    (widths.iter().sum::<usize>() <= room).then_some(widths)
}

/// Returns the longest word of each column.
fn longest_words(head: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let words = |row: &[String]| -> Vec<String> {
        let longest = |cell: &String| {
            let words = cell.split_whitespace();
            words.max_by_key(|word| measure_text_width(word)).unwrap_or_default().to_owned()
        };
        row.iter().map(longest).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(|row| words(row)).collect();
    natural_widths(&words(head), &rows)
}

fn lay_out_side_by_side(head: &[String], rows: &[Vec<String>], widths: &[usize]) -> TableLayout {
    let mut lines = Vec::new();
    let mut head_lines = 0;
    for (index, row) in std::iter::once(head).chain(rows.iter().map(Vec::as_slice)).enumerate() {
        let cells: Vec<Vec<String>> =
            row.iter().zip(widths).map(|(cell, width)| wrap_lines(cell, *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1).max(1);
        for at in 0..height {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(widths) {
                let piece = cell.get(at).map_or("", String::as_str);
                line.push_str(piece);
                let pad = width.saturating_sub(measure_text_width(piece)) + GAP;
                line.push_str(&" ".repeat(pad));
            }
            lines.push(line.trim_end().to_owned());
        }
        if index == 0 {
            head_lines = height;
        }
    }
    TableLayout { head_lines, lines }
}

fn lay_out_stacked(head: &[String], rows: &[Vec<String>], columns: usize) -> TableLayout {
    let mut lines = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            lines.push(String::new());
        }
        for (name, cell) in head.iter().zip(row).filter(|(_, cell)| !cell.trim().is_empty()) {
            lines.extend(format_named_value(&name.to_lowercase(), cell, columns));
        }
    }
    TableLayout { head_lines: 0, lines }
}

/// Formats a value after its name, with an indent on further lines. A value without a name gets no
/// prefix.
pub fn format_named_value(name: &str, value: &str, columns: usize) -> Vec<String> {
    let text = if name.is_empty() { value.to_owned() } else { format!("{name}: {value}") };
    if measure_text_width(&text) <= columns {
        return vec![text];
    }
    // With single blanks between words, the length of a line is that of its parts.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = wrap_lines(&text, columns).into_iter().next().unwrap_or_default();
    let rest = text.get(first.len()..).unwrap_or_default().trim_start();
    let indent = " ".repeat(STACKED_INDENT);
    let more = wrap_lines(rest, columns.saturating_sub(STACKED_INDENT).max(1));
    let more = more.into_iter().filter(|line| !line.is_empty());
    std::iter::once(first).chain(more.map(|line| format!("{indent}{line}"))).collect()
}

/// Breaks a text into lines of at most this many columns. Breaks at blanks, and breaks a longer
/// word after a symbol or before a capital, else anywhere, so that nothing is lost. A text that
/// fits stays unchanged.
pub fn wrap_lines(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    if measure_text_width(text) <= columns {
        return vec![text.to_owned()];
    }
    let (mut lines, mut line) = (Vec::new(), String::new());
    for mut word in text.split_whitespace() {
        let taken = measure_text_width(&line);
        if taken > 0 && taken + 1 + measure_text_width(word) > columns {
            lines.push(std::mem::take(&mut line));
        } else if taken > 0 {
            line.push(' ');
        }
        while line.is_empty() && measure_text_width(word) > columns {
            let (begin, rest) = word.split_at(break_position(word, columns));
            lines.push(begin.to_owned());
            word = rest;
        }
        line.push_str(word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Breaks prose at blanks, so that a terminal breaks no word. Further rows are indented more than
/// their line, or aligned with the text after its name, if a gap shows that there is one. Text in
/// backticks, and a word that is too long, stays whole, so that it can be copied.
pub fn wrap_prose(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| wrap_line(line, columns)).collect::<Vec<_>>().join("\n")
}

fn wrap_line(line: &str, columns: usize) -> String {
    // A broken line leaves the last column free, because on some terminals a full row continues on
    // the next one.
    if measure_text_width(line) <= columns {
        return line.to_owned();
    }
    let begin = line.len() - line.trim_start().len();
    let (mut broken, rest) = (line[..begin].to_owned(), &line[begin..]);
    let mut taken = measure_text_width(&broken);
    let behind_name = rest.find("  ").map(|gap| {
        let blanks = rest[gap..].len() - rest[gap..].trim_start().len();
        taken + measure_text_width(&rest[..gap]) + blanks
    });
    // However deep a line is indented, there is room for words.
    let indent = match behind_name {
        Some(column) if column <= columns / 2 => column,
        Some(_) | None => (taken + STACKED_INDENT).min(columns / 2),
    };
    let mut is_first = true;
    for unit in split_unbreakable(rest) {
        let width = measure_text_width(unit);
        if is_first {
            is_first = false;
        } else if taken + 1 + width >= columns && !unit.is_empty() {
            broken.truncate(broken.trim_end().len());
            broken.push('\n');
            broken.push_str(&" ".repeat(indent));
            taken = indent;
        } else {
            broken.push(' ');
            taken += 1;
        }
        broken.push_str(unit);
        taken += width;
    }
    broken
}

/// Returns the words of a line. Text between two backticks is one word.
fn split_unbreakable(line: &str) -> Vec<&str> {
    let mut quotes_left = line.matches('`').count();
    // With an odd number, the last one quotes nothing.
    quotes_left -= quotes_left % 2;
    let (mut units, mut begin, mut is_quoted) = (Vec::new(), 0, false);
    for (at, sign) in line.char_indices() {
        if sign == ' ' && !is_quoted {
            units.push(&line[begin..at]);
            begin = at + 1;
        } else if sign == '`' && quotes_left > 0 {
            is_quoted = !is_quoted;
            quotes_left -= 1;
        }
    }
    units.push(&line[begin..]);
    units
}

/// Finds where to break a word that is too long: at the last good place, unless that would leave
/// most of the line blank.
fn break_position(word: &str, columns: usize) -> usize {
    let (mut width, mut fits, mut good) = (0, 0, 0);
    let mut before: Option<char> = None;
    for (at, letter) in word.char_indices() {
        let is_sign = before.is_some_and(|before| "-_/.,:=&?".contains(before));
        let is_capital = letter.is_uppercase() && before.is_some_and(char::is_lowercase);
        if at > 0 && (is_sign || is_capital) {
            good = at;
        }
        width += measure_text_width(letter.encode_utf8(&mut [0; 4]));
        if width > columns && at > 0 {
            break;
        }
        fits = at + letter.len_utf8();
        before = Some(letter);
    }
    if good > fits / 3 { good } else { fits }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn sample_table() -> (Vec<String>, Vec<Vec<String>>) {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let head = words(&["TOOL", "PLUGIN", "DESCRIPTION"]);
        let rows = vec![
            words(&[
                "cli_based_tool",
                "tool-cli",
                "Run a shell command and return what it prints, with its exit code",
            ]),
            words(&[
                "list",
                "",
                "日本語 is wide, and ./a/path/that/is/longer/than/the/column/has/room/for goes on",
            ]),
        ];
        (head, rows)
    }

    #[test]
    fn text_wraps_only_between_words() {
        let said = "error: a line that is longer\n  hint: run `jaato trust /a/very/long/path` then";
        assert_eq!(wrap_prose(said, 200), said);
        let expected = "error: a line that\n  is longer\n  hint: run\n    `jaato trust /a/very/long/path`\n    then";
        assert_eq!(wrap_prose(said, 20), expected);
        // A single backtick quotes nothing.
        assert_eq!(wrap_prose("a`b c d", 5), "a`b\n  c\n  d");
        assert_eq!(wrap_prose("`a b` it`s c", 8), "`a b`\n  it`s\n  c");
        assert_eq!(wrap_prose("", 4), "");
        assert_eq!(wrap_prose("日本 日本 日本", 8), "日本\n  日本\n  日本");
        assert_eq!(wrap_prose("name  some words", 12), "name  some\n      words");
    }

    #[test]
    fn deeply_indented_text_wraps_to_a_bounded_length() {
        let said = " ".repeat(50_000) + &"word ".repeat(25_000);
        assert!(wrap_prose(&said, 80).len() < said.len() * 3);
    }

    #[track_caller]
    fn check_layout(columns: usize, expected: Expect) {
        let (head, rows) = sample_table();
        let laid = lay_out_fitting(&head, &rows, columns);
        for line in &laid.lines {
            assert!(measure_text_width(line) < columns, "{line:?}");
        }
        expected.assert_eq(&(laid.lines.join("\n") + "\n"));
    }

    #[test]
    fn a_narrow_terminal_has_a_line_for_each_value() {
        check_layout(
            40,
            expect![[r#"
                tool: cli_based_tool
                plugin: tool-cli
                description: Run a shell command and
                  return what it prints, with its exit
                  code

                tool: list
                description: 日本語 is wide, and
                  ./a/path/that/is/longer/than/the/
                  column/has/room/for goes on
            "#]],
        );
    }

    #[test]
    fn widest_column_is_wrapped_at_eighty_columns() {
        check_layout(
            80,
            expect![[r#"
            TOOL            PLUGIN    DESCRIPTION
            cli_based_tool  tool-cli  Run a shell command and return what it prints, with
                                      its exit code
            list                      日本語 is wide, and
                                      ./a/path/that/is/longer/than/the/column/has/room/for
                                      goes on
        "#]],
        );
    }

    #[test]
    fn widest_column_is_wrapped_at_a_hundred_columns() {
        check_layout(
            100,
            expect![[r#"
            TOOL            PLUGIN    DESCRIPTION
            cli_based_tool  tool-cli  Run a shell command and return what it prints, with its exit code
            list                      日本語 is wide, and ./a/path/that/is/longer/than/the/column/has/room/for
                                      goes on
        "#]],
        );
    }

    #[test]
    fn table_that_fits_or_is_piped_keeps_its_columns() {
        let (head, rows) = sample_table();
        let laid = lay_out_full_width(&head, &rows);
        assert_eq!(lay_out_fitting(&head, &rows, 200), laid);
        assert_eq!((laid.head_lines, laid.lines.len()), (1, 3));
        let longest = laid.lines.iter().map(|line| measure_text_width(line)).max();
        // One more for the column that stays free.
        let exact = longest.unwrap_or_default() + 1;
        assert_eq!(lay_out_fitting(&head, &rows, exact), laid);
        assert_ne!(lay_out_fitting(&head, &rows, exact - 1), laid);
    }

    #[test]
    fn too_many_columns_are_stacked_as_lines() {
        let head: Vec<String> = (0..9).map(|at| format!("COLUMN {at}")).collect();
        let rows = vec![vec!["0123456789 0123456789".to_owned(); 9]];
        let laid = lay_out_fitting(&head, &rows, 80);
        assert_eq!((laid.head_lines, laid.lines.len()), (0, 9));
        assert_eq!(laid.lines[8], "column 8: 0123456789 0123456789");
    }

    #[test]
    fn no_letter_is_lost_at_any_width() {
        let text = "one   two 日本語日本語 ./a/path/without/blanks end";
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        for columns in 2..60 {
            let lines = wrap_lines(text, columns);
            assert_eq!(letters(&lines.concat()), letters(text), "{columns}");
            assert!(lines.iter().all(|line| measure_text_width(line) <= columns), "{lines:?}");
            let behind = format_named_value("name", text, columns.max(8));
            assert_eq!(letters(&behind.concat()), letters(&format!("name:{text}")), "{columns}");
        }
    }
}
