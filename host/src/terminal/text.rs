//! Text for the terminal: styled pieces, and lines that are truncated to a width.

use console::Style;
use jaato_runtime::visible;

/// Columns of a name in a question. A valid name is shorter.
pub const NAME_COLUMNS: usize = 80;

/// The style of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The terminal's default style.
    Plain,
    /// Less important.
    Dim,
    /// More important.
    Strong,
    /// Wrong or removed.
    Red,
    /// A warning.
    Yellow,
    /// Added.
    Green,
}

/// A text of styled pieces. Each piece is made visible before it gets its style, regardless of its
/// author.
#[derive(Debug, Clone, Default)]
pub struct Text(Vec<(Look, String)>);

impl Text {
    /// Creates an empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a piece without a style.
    pub fn plain(self, text: &str) -> Self {
        self.with(Look::Plain, text)
    }

    /// Adds a piece that is less important.
    pub fn dim(self, text: &str) -> Self {
        self.with(Look::Dim, text)
    }

    /// Adds a piece that is more important.
    pub fn strong(self, text: &str) -> Self {
        self.with(Look::Strong, text)
    }

    /// Adds a piece that is wrong.
    pub fn red(self, text: &str) -> Self {
        self.with(Look::Red, text)
    }

    /// Adds a piece with a style.
    pub fn with(mut self, look: Look, text: &str) -> Self {
        self.0.push((look, visible::visible_text(text).into_owned()));
        self
    }

    /// Adds the mark at the start of each row of a question, which no other text can contain.
    pub(super) fn mark(mut self) -> Self {
        self.0.push((Look::Yellow, format!("{} ", visible::QUESTION_MARK)));
        self
    }

    /// Returns the styled text. `style` creates a style for the target stream.
    pub fn styled(&self, style: impl Fn() -> Style) -> String {
        let styled = self.0.iter().map(|(look, text)| match look {
            Look::Plain => text.clone(),
            Look::Dim => style().dim().apply_to(text).to_string(),
            Look::Strong => style().bold().apply_to(text).to_string(),
            Look::Red => style().red().apply_to(text).to_string(),
            Look::Yellow => style().yellow().apply_to(text).to_string(),
            Look::Green => style().green().apply_to(text).to_string(),
        });
        styled.collect()
    }
}

/// Returns a text as one line of at most `columns` columns, with `…` if it was truncated.
pub fn one_line(text: &str, columns: usize) -> String {
    truncate_to_columns(&visible::visible_text(text), columns)
}

/// Returns a text that must be exact, such as a call or a name, as one line of at most `columns`
/// columns, with `…` if it was truncated.
pub fn exact_line(text: &str, columns: usize) -> String {
    truncate_to_columns(&visible::escape_lines(text), columns)
}

fn truncate_to_columns(text: &str, columns: usize) -> String {
    console::truncate_str(&text.replace(['\n', '\t'], " "), columns.max(1), "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_model_says_can_drive_the_terminal() {
        let shown =
            Text::new().plain("a\x1b]0;evil\x07\r\nb\tc").dim("\u{202e}").styled(Style::new);
        assert_eq!(shown, "a<U+001B>]0;evil<U+0007>\nb\tc<U+202E>");
    }

    #[test]
    fn looks_are_jaatos_own() {
        let forced = || Style::new().force_styling(true);
        let shown = Text::new().red("\x1b[32mgreen").plain("\x1b[0m").styled(forced);
        assert_eq!(shown, "\x1b[31m<U+001B>[32mgreen\x1b[0m<U+001B>[0m");
    }

    #[test]
    fn only_a_question_has_its_mark() {
        assert_eq!(Text::new().plain("║ ").styled(Style::new), "<U+2551> ");
        assert_eq!(Text::new().mark().styled(Style::new), "║ ");
    }

    #[test]
    fn a_line_is_cut_at_the_width_and_says_so() {
        assert_eq!(one_line("ab\ncdef", 5), "ab c…");
        assert_eq!(one_line("日本語", 4), "日…");
        assert_eq!(exact_line("a\u{200b}b", 40), "a<U+200B>b");
    }
}
