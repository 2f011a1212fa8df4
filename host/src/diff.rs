//! Formats a file change for the user: a heading, and the styled lines of the change.
//!
//! The lines may still contain characters that control a terminal. The code that shows them must
//! make them visible.

use jaato_runtime::types::file_change::{
    FileChange, FileChangeKind, FileHunk, HunkLine, HunkLineKind,
};

use crate::terminal::Look;

/// Follows the lines of a truncated change.
const REST_LEFT_OUT: &str = "[… the rest is left out]";

/// Whether the change is planned or was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeTense {
    /// `changes a.txt`
    ToCome,
    /// `changed a.txt`
    Made,
}

/// Describes in one line what happens to a file.
pub fn change_heading(change: &FileChange, tense: ChangeTense) -> String {
    let what = match change.kind {
        FileChangeKind::Changed | FileChangeKind::Unknown => "change",
        FileChangeKind::Created => "create",
        FileChangeKind::Deleted => "delete",
        FileChangeKind::Moved => "move",
    };
    let end = match tense {
        ChangeTense::ToCome => "s",
        ChangeTense::Made => "d",
    };
    let from = change.moved_from.as_ref().map(|from| format!("{from} → ")).unwrap_or_default();
    let FileChange { path, lines_added, lines_removed, .. } = change;
    let crlf = if has_carriage_returns(change) { ", lines end in CRLF" } else { "" };
    format!("{what}{end} {from}{path} (+{lines_added} -{lines_removed}{crlf})")
}

/// Says how many files change, and by how many lines.
pub fn summarize_changes(changes: &[FileChange]) -> String {
    let sum = |count: fn(&FileChange) -> u64| changes.iter().map(count).sum::<u64>();
    let (added, removed) = (sum(|it| it.lines_added), sum(|it| it.lines_removed));
    format!("{} files (+{added} -{removed})", changes.len())
}

/// Returns all lines of a change, each with its number.
pub fn change_lines(change: &FileChange) -> Vec<(Look, String)> {
    let drawing = DiffFormat::for_change(change);
    let mut lines = Vec::new();
    for (number, hunk) in change.hunks.iter().enumerate() {
        if number > 0 {
            lines.push((Look::Dim, drawing.gap_line()));
        }
        drawing.draw_hunk(hunk, |_| true, &mut lines);
    }
    if change.is_cut {
        lines.push((Look::Dim, REST_LEFT_OUT.to_owned()));
    }
    if lines.is_empty() {
        lines.extend(missing_lines_note(change).map(|text| (Look::Dim, text.to_owned())));
    }
    lines
}

/// Returns only the changed lines.
pub fn changed_lines(change: &FileChange) -> Vec<(Look, String)> {
    let mut lines = lines_with_context(change, 0);
    if change.is_cut {
        lines.push((Look::Dim, REST_LEFT_OUT.to_owned()));
    }
    lines
}

/// Returns the changed lines, and `context` lines before and after each.
fn lines_with_context(change: &FileChange, context: usize) -> Vec<(Look, String)> {
    let drawing = DiffFormat::for_change(change);
    let mut lines = Vec::new();
    for (number, hunk) in change.hunks.iter().enumerate() {
        if number > 0 {
            lines.push((Look::Dim, drawing.gap_line()));
        }
        let is_change = |at: usize| {
            hunk.lines.get(at).is_some_and(|line| {
                matches!(line.kind, HunkLineKind::Added | HunkLineKind::Removed)
            })
        };
        let is_near = |at: usize| (at.saturating_sub(context)..=at + context).any(is_change);
        drawing.draw_hunk(hunk, is_near, &mut lines);
    }
    lines
}

/// Returns the changed lines with their neighbours, at most `lines_max`. The last line may count
/// the rest.
pub fn short_change_lines(change: &FileChange, lines_max: usize) -> Vec<(Look, String)> {
    let mut lines = lines_with_context(change, 1);
    if lines.len() > lines_max || change.is_cut {
        let left_out = lines.len().saturating_sub(lines_max.saturating_sub(1));
        lines.truncate(lines_max.saturating_sub(1));
        let note = match change.is_cut {
            true => "… and more".to_owned(),
            false => format!("… {left_out} more lines"),
        };
        lines.push((Look::Dim, note));
    }
    lines
}

/// Returns why a change has no lines. Returns `None` for a file that is only moved.
fn missing_lines_note(change: &FileChange) -> Option<&'static str> {
    let is_empty = |text: &Option<String>| text.as_deref() == Some("");
    match change.kind {
        FileChangeKind::Moved => None,
        FileChangeKind::Created if is_empty(&change.new) => Some("(an empty file)"),
        FileChangeKind::Deleted if is_empty(&change.old) => Some("(an empty file)"),
        FileChangeKind::Changed
        | FileChangeKind::Created
        | FileChangeKind::Deleted
        | FileChangeKind::Unknown => Some("(its lines are not shown)"),
    }
}

/// Returns true if each shown line ends in a carriage return, which then means nothing.
fn has_carriage_returns(change: &FileChange) -> bool {
    let mut lines = change.hunks.iter().flat_map(|hunk| &hunk.lines).peekable();
    lines.peek().is_some() && lines.all(|line| line.text.ends_with('\r'))
}

/// How to draw the lines of one change.
struct DiffFormat {
    /// The width of the highest number.
    digits: usize,
    without_carriage_returns: bool,
}

impl DiffFormat {
    fn for_change(change: &FileChange) -> Self {
        let ends = change
            .hunks
            .iter()
            .map(|hunk| hunk.old_start.max(hunk.new_start).saturating_add(hunk.lines.len() as u64));
        let digits = ends.max().unwrap_or(0).to_string().len();
        Self { digits, without_carriage_returns: has_carriage_returns(change) }
    }

    fn gap_line(&self) -> String {
        format!("{:>1$}", "…", self.digits)
    }

    fn draw_hunk(
        &self,
        hunk: &FileHunk,
        is_shown: impl Fn(usize) -> bool,
        lines: &mut Vec<(Look, String)>,
    ) {
        let (mut old, mut new) = (hunk.old_start, hunk.new_start);
        for (at, line) in hunk.lines.iter().enumerate() {
            let (look, sign, number) = match line.kind {
                HunkLineKind::Removed => (Look::Red, '-', old),
                HunkLineKind::Added => (Look::Green, '+', new),
                HunkLineKind::Same | HunkLineKind::Unknown => (Look::Dim, ' ', new),
            };
            old = old.saturating_add(u64::from(line.kind != HunkLineKind::Added));
            new = new.saturating_add(u64::from(line.kind != HunkLineKind::Removed));
            if is_shown(at) {
                let text = self.line_text(line);
                lines.push((look, format!("{number:>0$} {sign} {text}", self.digits)));
                if line.is_unended {
                    let note = "(no line end)";
                    lines.push((Look::Dim, format!("{:>1$}   {note}", "", self.digits)));
                }
            }
        }
    }

    /// Returns the text as a single line, even if a plugin put line breaks into it.
    fn line_text(&self, line: &HunkLine) -> String {
        let text = match self.without_carriage_returns {
            true => line.text.strip_suffix('\r').unwrap_or(&line.text),
            false => &line.text,
        };
        text.replace('\n', "␊").replace('\t', "    ")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Creates a hunk of lines that begin with their sign.
    fn parse_hunk(old_start: u64, new_start: u64, text: &str) -> FileHunk {
        let line = |line: &str| {
            let (sign, text) = line.split_at(1);
            let kind = match sign {
                "-" => HunkLineKind::Removed,
                "+" => HunkLineKind::Added,
                _ => HunkLineKind::Same,
            };
            HunkLine { kind, text: text.to_owned(), ..HunkLine::default() }
        };
        FileHunk { old_start, new_start, lines: text.split('|').map(line).collect() }
    }

    fn sample_change(hunks: Vec<FileHunk>) -> FileChange {
        let count = |kind: HunkLineKind| {
            let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.kind == kind).count() as u64
        };
        let (lines_added, lines_removed) =
            (count(HunkLineKind::Added), count(HunkLineKind::Removed));
        let path = "a.txt".to_owned();
        FileChange { path, hunks, lines_added, lines_removed, ..FileChange::default() }
    }

    #[track_caller]
    fn check_lines(lines: &[(Look, String)], expected: Expect) {
        let shown = lines.iter().map(|(look, text)| format!("{look:?}|{text}\n"));
        expected.assert_eq(&shown.collect::<String>());
    }

    #[test]
    fn diff_lines_have_line_numbers_and_styles() {
        let mut change = sample_change(vec![
            parse_hunk(8, 8, " a|-b|+B|+C| d"),
            parse_hunk(120, 121, " x|-y| z"),
        ]);
        change.hunks[1].lines[2].is_unended = true;
        assert_eq!(change_heading(&change, ChangeTense::ToCome), "changes a.txt (+2 -2)");
        check_lines(
            &change_lines(&change),
            expect![[r#"
                Dim|  8   a
                Red|  9 - b
                Green|  9 + B
                Green| 10 + C
                Dim| 11   d
                Dim|  …
                Dim|121   x
                Red|121 - y
                Dim|122   z
                Dim|      (no line end)
            "#]],
        );
    }

    #[test]
    fn the_short_form_shows_what_changes_and_counts_the_rest() {
        let long = sample_change(vec![
            parse_hunk(1, 1, " a| b| c|-d|+D| e| f| g|-h"),
            parse_hunk(20, 20, "+i"),
        ]);
        check_lines(
            &short_change_lines(&long, 12),
            expect![[r#"
                Dim| 3   c
                Red| 4 - d
                Green| 4 + D
                Dim| 5   e
                Dim| 7   g
                Red| 8 - h
                Dim| …
                Green|20 + i
            "#]],
        );
        assert_eq!(short_change_lines(&long, 8).len(), 8);
        check_lines(
            &short_change_lines(&long, 3),
            expect![[r#"
                Dim| 3   c
                Red| 4 - d
                Dim|… 6 more lines
            "#]],
        );
        let cut = FileChange { is_cut: true, ..long };
        assert_eq!(short_change_lines(&cut, 3).last().unwrap().1, "… and more");
        assert_eq!(change_lines(&cut).last().unwrap().1, "[… the rest is left out]");
    }

    #[test]
    fn carriage_returns_are_shown_where_they_differ() {
        let same = sample_change(vec![parse_hunk(1, 1, "-a\r|+b\r")]);
        assert_eq!(
            change_heading(&same, ChangeTense::Made),
            "changed a.txt (+1 -1, lines end in CRLF)"
        );
        assert_eq!(change_lines(&same)[0].1, "1 - a");
        let other = sample_change(vec![parse_hunk(1, 1, "-a\r|+a")]);
        assert_eq!(change_heading(&other, ChangeTense::Made), "changed a.txt (+1 -1)");
        assert_eq!(change_lines(&other)[0].1, "1 - a\r");
    }

    #[test]
    fn change_without_lines_shows_a_note_instead() {
        let kind = |kind: FileChangeKind| FileChange { kind, ..sample_change(Vec::new()) };
        assert_eq!(change_lines(&kind(FileChangeKind::Changed))[0].1, "(its lines are not shown)");
        let new = FileChange { new: Some(String::new()), ..kind(FileChangeKind::Created) };
        assert_eq!(change_lines(&new)[0].1, "(an empty file)");
        let moved = FileChange { moved_from: Some("b".to_owned()), ..kind(FileChangeKind::Moved) };
        assert_eq!(
            (change_heading(&moved, ChangeTense::Made).as_str(), change_lines(&moved).len()),
            ("moved b → a.txt (+0 -0)", 0)
        );
        assert_eq!(short_change_lines(&moved, 12), []);
    }

    #[test]
    fn extreme_line_numbers_and_embedded_newlines_are_shown() {
        let wild = sample_change(vec![parse_hunk(u64::MAX, 0, "-a\nb|+c| d")]);
        assert_eq!(change_lines(&wild)[0].1, format!("{} - a␊b", u64::MAX));
        assert_eq!(summarize_changes(&[wild.clone(), wild]), "2 files (+2 -2)");
    }
}
