//! Selects the rows of a screen to show to users: those that changed since the last result. Pure.
//!
//! The model gets the whole screen with each result. Users see all results in a row, so they would
//! read the same rows again and again.

/// Replaces rows that did not change.
const UNCHANGED: &str = "…";

/// The row that vim shows after the end of a file.
const NO_LINE: &str = "~";

/// The text if nothing changed.
const NOTHING: &str = "(the screen is as it was)";

/// Returns the changed rows, with marks for unchanged rows between them. Rows that only moved up or
/// down count as unchanged.
pub fn changed_rows(before: &[String], now: &[String]) -> String {
    let moved = row_shift(before, now);
    let (mut shown, mut is_gap) = (Vec::new(), false);
    for (at, row) in now.iter().enumerate() {
        if is_empty(row) {
            continue;
        }
        if previous_row(before, at, moved) == Some(row) {
            is_gap = true;
            continue;
        }
        if std::mem::take(&mut is_gap) {
            shown.push(UNCHANGED);
        }
        shown.push(row);
    }
    if shown.is_empty() {
        return NOTHING.to_owned();
    }
    shown.join("\n")
}

/// Returns by how many rows the screen moved, so that most rows are unchanged. Among equal results,
/// the smallest move wins.
fn row_shift(before: &[String], now: &[String]) -> isize {
    let longest = before.len().max(now.len()) as isize;
    let same = |by: isize| {
        let same = now.iter().enumerate();
        same.filter(|(at, row)| !is_empty(row) && previous_row(before, *at, by) == Some(row))
            .count()
    };
    (-longest..=longest).max_by_key(|by| (same(*by), -by.abs())).unwrap_or(0)
}

fn previous_row(before: &[String], at: usize, moved: isize) -> Option<&String> {
    before.get(at.checked_add_signed(moved)?)
}

fn is_empty(row: &str) -> bool {
    matches!(row.trim(), "" | NO_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen_rows(rows: &str) -> Vec<String> {
        rows.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check_changed_rows(before: &str, now: &str, expected: &str) {
        assert_eq!(changed_rows(&screen_rows(before), &screen_rows(now)), expected);
    }

    const VIM: &str = "one\ntwo\n~\n~\n~\n\"a.txt\" 2L, 8B      1,1      All";

    #[test]
    fn the_first_screen_is_shown_without_its_empty_rows() {
        check_changed_rows("", VIM, "one\ntwo\n\"a.txt\" 2L, 8B      1,1      All");
    }

    #[test]
    fn only_changed_rows_of_the_next_screen_are_shown() {
        let typed = "one\ntwo and more\n~\n~\n~\n-- INSERT --      2,9      All";
        check_changed_rows(VIM, typed, "…\ntwo and more\n-- INSERT --      2,9      All");
        let last = "one\ntwo\n~\n~\n~\n:wq";
        check_changed_rows(VIM, last, "…\n:wq");
        let both = "ONE\ntwo\nthree\n~\n~\nstatus";
        check_changed_rows(VIM, both, "ONE\n…\nthree\nstatus");
    }

    #[test]
    fn moved_rows_are_not_shown_again() {
        check_changed_rows("1\n2\n3\n4\n5", "2\n3\n4\n5\n6", "…\n6");
        check_changed_rows("1\n2\n3\n4\n5", "0\n1\n2\n3\n4", "0");
        check_changed_rows("1\n2\n3\n4\nstatus 1", "3\n4\n5\n6\nstatus 2", "…\n5\n6\nstatus 2");
    }

    #[test]
    fn unchanged_screen_is_reported_as_unchanged() {
        check_changed_rows(VIM, VIM, NOTHING);
        check_changed_rows("one", "\n~\n", NOTHING);
    }

    #[test]
    fn screens_of_different_sizes_are_compared() {
        check_changed_rows("a\nb", "a\nb\nc\nd", "…\nc\nd");
        check_changed_rows("a\nb\nc\nd", "c\nd", NOTHING);
    }
}
