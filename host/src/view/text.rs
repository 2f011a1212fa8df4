//! Shapes texts for a terminal: safe to print, one line, no wider than there is room.

use std::borrow::Cow;

/// Replaces control characters, so that no model and no tool can drive the person's terminal.
/// Line ends and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(is_unsafe) {
        Cow::Owned(text.replace(is_unsafe, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns a text as one line of at most so many columns, with `…` where it was cut.
pub fn one_line(text: &str, columns: usize) -> String {
    let line = printable(text).replace(['\n', '\t'], " ");
    console::truncate_str(&line, columns.max(1), "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_model_says_can_drive_the_terminal() {
        assert_eq!(printable("a\x1b]0;evil\x07\r\nb\tc"), "a\u{fffd}]0;evil\u{fffd}\u{fffd}\nb\tc");
    }

    #[test]
    fn a_line_is_cut_at_the_width_and_says_so() {
        assert_eq!(one_line("ab\ncdef", 5), "ab c…");
        assert_eq!(one_line("日本語", 4), "日…");
    }
}
