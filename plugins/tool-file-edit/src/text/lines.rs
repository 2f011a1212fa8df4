//! Handles line ends: a model sees only LF, and unedited lines keep their own line ends.

use std::borrow::Cow;
use std::ops::Range;

/// A text with every CR LF as LF, as a model sees it, and its mapping to the original.
#[derive(Debug)]
pub struct LineView<'a> {
    original: &'a str,
    text: Cow<'a, str>,
    /// The sorted positions in `text` of line ends that are CR LF in the original.
    carriage_returns: Vec<usize>,
}

impl<'a> LineView<'a> {
    /// Creates the view of a text.
    pub fn new(original: &'a str) -> Self {
        let pairs = memchr::memmem::find_iter(original.as_bytes(), b"\r\n");
        let mut carriage_returns = Vec::new();
        for (before, at) in pairs.enumerate() {
            carriage_returns.push(at - before);
        }
        let text = match carriage_returns.is_empty() {
            true => Cow::Borrowed(original),
            false => Cow::Owned(original.replace("\r\n", "\n")),
        };
        Self { original, text, carriage_returns }
    }

    /// Returns the text with LF.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Replaces pieces of [`Self::text`], which must be in order and must not overlap. New text
    /// gets the line ends of the replaced text or of the lines around it.
    pub fn replace_pieces(&self, pieces: &[(Range<usize>, &str)]) -> String {
        let grown: usize = pieces.iter().map(|(_, new)| new.len()).sum();
        let (mut result, mut done) = (String::with_capacity(self.original.len() + grown), 0);
        for (range, new) in pieces {
            result.push_str(&self.original[done..self.original_position(range.start)]);
            match self.has_carriage_return_at(range) {
                true => result.push_str(&with_carriage_returns(new)),
                false => result.push_str(new),
            }
            done = self.original_position(range.end);
        }
        result.push_str(&self.original[done..]);
        result
    }

    /// Writes a new text with the line ends of most lines.
    pub fn with_original_line_ends(&self, new: &'a str) -> Cow<'a, str> {
        match self.has_mostly_carriage_returns() {
            true => with_carriage_returns(new),
            false => Cow::Borrowed(new),
        }
    }

    fn has_mostly_carriage_returns(&self) -> bool {
        let count = memchr::memchr_iter(b'\n', self.text.as_bytes()).count();
        2 * self.carriage_returns.len() > count
    }

    /// Returns the position in the original.
    fn original_position(&self, at: usize) -> usize {
        at + self.carriage_returns.partition_point(|carriage_return| *carriage_return < at)
    }

    /// Returns true if the first line end in a range, or else the next one, is CR LF.
    fn has_carriage_return_at(&self, range: &Range<usize>) -> bool {
        if self.carriage_returns.is_empty() {
            return false;
        }
        match memchr::memchr(b'\n', &self.text.as_bytes()[range.start..]) {
            Some(ahead) => self.carriage_returns.binary_search(&(range.start + ahead)).is_ok(),
            None => self.has_mostly_carriage_returns(),
        }
    }
}

/// Writes every line end as CR LF. Existing ones stay.
fn with_carriage_returns(text: &str) -> Cow<'_, str> {
    match text.contains('\n') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n")),
        false => Cow::Borrowed(text),
    }
}

/// Counts lines, including a last line without a line end.
pub fn count_lines(text: &str) -> usize {
    let ended = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    ended + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_view_replacement(original: &str, old: &str, new: &str, expected: &str) {
        let view = LineView::new(original);
        assert!(!view.text().contains("\r\n"));
        let at = view.text().find(old).unwrap();
        assert_eq!(view.replace_pieces(&[(at..at + old.len(), new)]), expected);
    }

    #[test]
    fn unedited_lines_keep_their_line_ends() {
        check_view_replacement("a\nb\nc\n", "b\n", "x\ny\n", "a\nx\ny\nc\n");
        check_view_replacement("a\r\nb\r\nc", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc");
        check_view_replacement("a\r\nb\nc\r\n", "b\n", "x\ny\n", "a\r\nx\ny\nc\r\n");
        check_view_replacement("a\r\nb\nc\r\n", "c", "x\ny", "a\r\nb\nx\r\ny\r\n");
        check_view_replacement("a\r\nb", "b", "x\ny", "a\r\nx\r\ny");
        check_view_replacement("a\r\nb", "\n", "", "ab");
        check_view_replacement("a\r\nb", "b", "x\r\ny", "a\r\nx\r\ny");
        check_view_replacement("a\rb\r\n", "b", "c", "a\rc\r\n");
        check_view_replacement("a\nb\n", "b", "x\r\ny", "a\nx\r\ny\n");
    }

    #[test]
    fn several_ranges_are_replaced_at_once() {
        let view = LineView::new("ä\r\nb\r\nc\r\n");
        assert_eq!(view.text(), "ä\nb\nc\n");
        assert_eq!(view.replace_pieces(&[(0..2, "1\n2"), (5..6, "")]), "1\r\n2\r\nb\r\n\r\n");
        assert_eq!(view.replace_pieces(&[]), "ä\r\nb\r\nc\r\n");
    }

    #[test]
    fn rewritten_text_gets_the_most_common_line_ends() {
        assert_eq!(
            LineView::new("a\r\nb\r\nc\n").with_original_line_ends("x\ny\r\n"),
            "x\r\ny\r\n"
        );
        assert_eq!(LineView::new("a\nb\r\n").with_original_line_ends("x\ny\n"), "x\ny\n");
        assert_eq!(LineView::new("").with_original_line_ends("x\r\ny\n"), "x\r\ny\n");
    }

    #[test]
    fn final_newline_does_not_count_as_a_line() {
        let counts = ["", "a", "a\n", "a\nb", "\n\n"].map(count_lines);
        assert_eq!(counts, [0, 1, 1, 2, 2]);
    }
}
