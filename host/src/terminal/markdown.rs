//! Markdown as it comes, drawn line by line: headings, emphasis, lists, code, and tables as wide as
//! the terminal.
//!
//! What models write is made visible before it is drawn, so that all looks are jaato's own. A line
//! is drawn once it has ended, a table once it has; what has come of them meanwhile can be asked
//! for.

use jaato_runtime::visible;
use termimad::MadSkin;

/// Begins and ends a block of code.
const FENCES: [&str; 2] = ["```", "~~~"];

/// Bytes that are held until a line or a table ends; what is longer is drawn as it is.
const HELD_BYTES_MAX: usize = 64 * 1024;

/// Columns of the narrowest terminal that is drawn for.
const COLUMNS_MIN: usize = 4;

/// Draws pieces of markdown.
pub struct Markdown {
    skin: MadSkin,
    /// The last line, as far as it is there.
    line: String,
    /// The lines of a table that may go on.
    table: String,
    /// What ends the block of code, inside of one.
    fence: Option<&'static str>,
}

impl Markdown {
    /// Begins a text, with looks or without.
    pub fn new(has_looks: bool) -> Self {
        let mut skin = if has_looks { MadSkin::default_dark() } else { MadSkin::no_style() };
        // Colours of the terminal's own are read on light and on dark ones.
        let plain = termimad::CompoundStyle::default();
        skin.paragraph.compound_style = plain;
        for style in [&mut skin.code_block.compound_style, &mut skin.inline_code] {
            *style = plain;
            if has_looks {
                style.set_fg(termimad::crossterm::style::Color::Cyan);
            }
        }
        skin.ordered_item_styles = MadSkin::no_style().ordered_item_styles;
        skin.bold = plain;
        skin.italic = plain;
        if has_looks {
            skin.bold.add_attr(termimad::crossterm::style::Attribute::Bold);
            skin.italic.add_attr(termimad::crossterm::style::Attribute::Italic);
        }
        for header in &mut skin.headers {
            header.align = termimad::Alignment::Left;
            header.compound_style = skin.bold;
        }
        skin.table.compound_style = termimad::CompoundStyle::default();
        Self { skin, line: String::new(), table: String::new(), fence: None }
    }

    /// Takes the next piece; returns what of the text is drawn now.
    pub fn piece(&mut self, text: &str, columns: usize) -> String {
        let mut drawn = String::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') || self.line.len() > HELD_BYTES_MAX {
                self.end_line(columns, &mut drawn);
            }
        }
        drawn
    }

    /// Ends the text here, and draws what is left of it.
    pub fn end(&mut self, columns: usize) -> String {
        let mut drawn = String::new();
        if !self.line.is_empty() {
            self.end_line(columns, &mut drawn);
        }
        self.end_table(columns, &mut drawn);
        self.fence = None;
        drawn
    }

    /// What has come and is not drawn yet.
    pub fn coming(&self) -> Option<&str> {
        match (self.line.trim(), self.table.lines().next_back()) {
            ("", last) => last,
            (line, _) => Some(line),
        }
    }

    fn end_line(&mut self, columns: usize, drawn: &mut String) {
        let line = std::mem::take(&mut self.line);
        let line = visible::text(line.trim_end_matches(['\r', '\n'])).into_owned();
        let trimmed = line.trim_start();
        if let Some(fence) = self.fence {
            match trimmed.trim_end() == fence {
                true => self.fence = None,
                // Not wrapped: code is copied.
                false => self.draw(&format!("```\n{line}\n```"), None, drawn),
            }
            return;
        }
        let may_go_on = self.table.len() < HELD_BYTES_MAX;
        if trimmed.starts_with('|') && may_go_on {
            self.table.push_str(&line);
            self.table.push('\n');
            return;
        }
        self.end_table(columns, drawn);
        self.fence = FENCES.into_iter().find(|fence| trimmed.starts_with(fence));
        match () {
            () if self.fence.is_some() => {}
            () if trimmed.is_empty() => drawn.push('\n'),
            () => self.draw(&line, Some(columns), drawn),
        }
    }

    fn end_table(&mut self, columns: usize, drawn: &mut String) {
        let table = std::mem::take(&mut self.table);
        if !table.is_empty() {
            self.draw(table.trim_end(), Some(columns), drawn);
        }
    }

    fn draw(&self, markdown: &str, columns: Option<usize>, drawn: &mut String) {
        // The last column stays free: what fills a row goes on in the next one on some terminals.
        let width = columns.map(|columns| columns.saturating_sub(1).max(COLUMNS_MIN));
        let text = self.skin.text(markdown, width).to_string();
        for line in text.lines() {
            drawn.push_str(line.trim_end());
            drawn.push('\n');
        }
    }
}

impl std::fmt::Debug for Markdown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Markdown").field("coming", &self.coming()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn drawn(text: &str, columns: usize) -> String {
        let mut markdown = Markdown::new(false);
        // Letter by letter is as all at once.
        let mut drawn = String::new();
        for letter in text.chars() {
            drawn += &markdown.piece(letter.encode_utf8(&mut [0; 4]), columns);
        }
        drawn += &markdown.end(columns);
        assert_eq!(drawn, {
            let mut markdown = Markdown::new(false);
            markdown.piece(text, columns) + &markdown.end(columns)
        });
        drawn
    }

    const TEXT: &str = "# Moons\n\nThere are **two** moons of `mars`, and this is a longer line that does not fit.\n\n\
        - Phobos\n  - small\n- Deimos\n\n1. first\n2. second\n\n> said\n\n\
        | moon | km | what is known of it |\n|---|---:|---|\n| Phobos | 22 | it comes nearer, and will break one day |\n| Deimos | 12 | it goes away |\n\n\
        ```rust\nfn main() { // **not bold**, and a line of code that is long stays as it is written\n}\n```\nend";

    #[test]
    fn a_text_is_drawn_at_forty_columns() {
        expect![[r#"
            Moons

            There are two moons of mars, and this
            is a longer line that does not fit.

            • Phobos
              • small
            • Deimos

            1. first
            2. second

            ▐ said

            │ moon │km │   what is known of it    │
            ├──────┼───┼──────────────────────────┤
            │Phobos│ 22│it comes nearer, and will │
            │      │   │break one day             │
            │Deimos│ 12│it goes away              │

            fn main() { // **not bold**, and a line of code that is long stays as it is written
            }
            end
        "#]]
        .assert_eq(&drawn(TEXT, 40));
    }

    #[test]
    fn a_text_is_drawn_at_eighty_columns() {
        expect![[r#"
            Moons

            There are two moons of mars, and this is a longer line that does not fit.

            • Phobos
              • small
            • Deimos

            1. first
            2. second

            ▐ said

            │ moon │km │          what is known of it          │
            ├──────┼───┼───────────────────────────────────────┤
            │Phobos│ 22│it comes nearer, and will break one day│
            │Deimos│ 12│it goes away                           │

            fn main() { // **not bold**, and a line of code that is long stays as it is written
            }
            end
        "#]]
        .assert_eq(&drawn(TEXT, 80));
    }

    #[test]
    fn nothing_that_a_model_says_can_drive_the_terminal() {
        let evil = drawn("**a\x1b]0;evil\x07b** `\x1b[2J`\n", 80);
        assert!(!evil.contains('\x1b') && !evil.contains('\x07'), "{evil:?}");
        let mut markdown = Markdown::new(true);
        let drawn = markdown.piece("**\x1b[2J**\n", 80);
        assert!(drawn.contains("<U+001B>[2J") && !drawn.contains("\x1b[2J"), "{drawn:?}");
    }

    #[test]
    fn what_is_not_drawn_yet_can_be_asked_for() {
        let mut markdown = Markdown::new(false);
        assert_eq!(
            (markdown.piece("one\ntw", 80), markdown.coming()),
            ("one\n".into(), Some("tw"))
        );
        assert_eq!((markdown.piece("o\n", 80), markdown.coming()), ("two\n".into(), None));
        markdown.piece("| a |\n", 80);
        assert_eq!(markdown.coming(), Some("| a |"));
        assert!(!markdown.end(80).is_empty());
    }

    #[test]
    fn a_line_without_an_end_is_bounded() {
        let mut markdown = Markdown::new(false);
        let drawn = markdown.piece(&"word ".repeat(HELD_BYTES_MAX), 80);
        assert!(!drawn.is_empty() || markdown.line.len() <= HELD_BYTES_MAX + 5);
    }
}
