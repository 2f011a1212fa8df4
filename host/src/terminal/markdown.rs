//! Markdown as it comes: blocks are drawn once they are final, and of an open paragraph each row
//! that is full.
//!
//! `pulldown-cmark` says what is markup; all other characters of the source are drawn, made visible
//! so that all looks are jaato's own. The block that is still open is held and drawn anew at line
//! ends and between words; rows that no further text can change are written ([`page`]). Where that
//! is tried depends on the text alone, and not on the pieces in which it comes.

mod markup;
mod page;
mod rows;
mod table;

use self::page::{Extent, Page, Screen, page};

/// Bytes of a block that are held; what is longer is drawn as it is.
const HELD_BYTES_MAX: usize = 64 * 1024;

/// A block is drawn again when it has grown by this part of it: else a long one takes too long.
const GROWTH_PART: usize = 64;

/// Columns of the narrowest terminal that is drawn for.
const COLUMNS_MIN: usize = 4;

/// Draws pieces of markdown.
#[derive(Debug)]
pub struct Markdown {
    has_looks: bool,
    /// The source from the end of the last block that is drawn and closed.
    held: String,
    /// Bytes of it that are drawn.
    drawn: usize,
    /// Its length when it was drawn last.
    looked_at: usize,
}

impl Markdown {
    /// Begins a text, with looks or without.
    pub fn new(has_looks: bool) -> Self {
        Self { has_looks, held: String::new(), drawn: 0, looked_at: 0 }
    }

    /// Takes the next piece; returns what of the text is drawn now.
    pub fn piece(&mut self, text: &str, columns: usize) -> String {
        let mut rows = String::new();
        for letter in text.chars() {
            if letter == '\n' && self.held.trim_matches([' ', '\t', '\r']).is_empty() {
                // No empty row begins a text.
                (self.held, self.looked_at) = (String::new(), 0);
                continue;
            }
            self.held.push(letter);
            let has_grown = self.held.len() - self.looked_at >= self.held.len() / GROWTH_PART;
            let has_a_row = self.held.len() - self.looked_at >= columns / 2;
            if self.held.len() > HELD_BYTES_MAX {
                rows += &self.end(columns);
            } else if letter == '\n' && has_grown {
                self.draw(Extent::Lines, columns, &mut rows);
            } else if has_grown && has_a_row && is_between_words(letter) {
                self.draw(Extent::Words, columns, &mut rows);
            }
        }
        rows
    }

    /// Ends the text here, and draws what is left of it.
    pub fn end(&mut self, columns: usize) -> String {
        let mut rows = String::new();
        self.draw(Extent::Whole, columns, &mut rows);
        *self = Self::new(self.has_looks);
        rows
    }

    /// The last line of the text that is not drawn yet.
    pub fn coming(&self) -> Option<&str> {
        let coming = self.held.get(self.drawn..).unwrap_or_default();
        coming.lines().map(str::trim).rfind(|line| !line.is_empty())
    }

    fn draw(&mut self, extent: Extent, columns: usize, rows: &mut String) {
        // The last column stays free: what fills a row goes on in the next one on some terminals.
        let room = columns.saturating_sub(1).max(COLUMNS_MIN);
        let screen = Screen { room, has_looks: self.has_looks };
        let mut page = page(&self.held, self.drawn, screen, extent);
        while self.escape(&page) {
            page = page::page(&self.held, self.drawn, screen, extent);
        }
        let drawn = self.drawn;
        for row in page.rows.iter().take_while(|row| row.end <= page.stable_to) {
            if row.end > drawn {
                rows.push_str(&row.written(drawn));
                self.drawn = self.drawn.max(row.end);
            }
        }
        self.let_go(&page, extent);
        self.looked_at = self.held.len();
    }

    /// Takes definitions of links for text: they would not be drawn at all, and what refers to them
    /// has been drawn before they come.
    fn escape(&mut self, page: &Page) -> bool {
        let mut definitions = page.definitions.clone();
        definitions.retain(|at| self.held[*at..].starts_with('['));
        definitions.sort_unstable();
        for at in definitions.iter().rev() {
            self.held.insert(*at, '\\');
            self.drawn += usize::from(self.drawn > *at);
        }
        !definitions.is_empty()
    }

    /// Lets go of what is drawn and closed.
    fn let_go(&mut self, page: &Page, extent: Extent) {
        if extent == Extent::Words {
            // The last line may still be part of the block before it.
            return;
        }
        if let [.., before, _] = page.blocks.as_slice() {
            if page.stable_to < before.end {
                return;
            }
            let end = self.held[..before.end].trim_end().len();
            self.held.drain(..end);
            self.drawn = self.drawn.saturating_sub(end);
        } else if let ([code], true) = (page.blocks.as_slice(), page.is_fenced) {
            // The fence and what comes after the lines that are drawn.
            let fence = self.held[code.start..].find('\n').map(|at| code.start + at + 1);
            if let Some(fence) = fence.filter(|fence| *fence < self.drawn) {
                self.held.drain(fence..self.drawn);
                self.drawn = fence;
            }
        }
    }
}

/// Tells whether a word ends with this letter: a blank, or a sign of a script without blanks.
fn is_between_words(letter: char) -> bool {
    letter == ' ' || console::measure_text_width(letter.encode_utf8(&mut [0; 4])) > 1
}

#[cfg(test)]
mod tests;
