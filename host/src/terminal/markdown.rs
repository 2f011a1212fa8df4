//! Draws Markdown as it arrives: a block when it is final, and an open paragraph row by row.
//!
//! `pulldown-cmark` finds the markup. All other characters of the source are drawn and made
//! visible, so that all styles are jaato's own. The open block is held and laid out again at line
//! ends and between words. Rows that no further text can change are written ([`page`]). The points
//! at which this is tried depend only on the text, and not on the pieces in which it arrives.

mod markup;
mod page;
mod rows;
mod table;

use self::page::{Extent, Page, Screen, page};

/// Limit on the held bytes of a block. A longer block is drawn as far as it has arrived.
const HELD_BYTES_MAX: usize = 64 * 1024;

/// A block is laid out again when it has grown by this fraction, because a long block would take
/// too long otherwise.
const GROWTH_PART: usize = 64;

/// Columns of the narrowest supported terminal.
const COLUMNS_MIN: usize = 4;

/// Draws pieces of markdown.
#[derive(Debug)]
pub struct Markdown {
    has_looks: bool,
    /// The source after the last block that is drawn and closed.
    held: String,
    /// Bytes of the source that are drawn.
    drawn: usize,
    /// The length of the source when it was last laid out.
    looked_at: usize,
}

impl Markdown {
    /// Begins a text, with or without styles.
    pub fn new(has_looks: bool) -> Self {
        Self { has_looks, held: String::new(), drawn: 0, looked_at: 0 }
    }

    /// Takes the next piece. Returns the rows that are final now.
    pub fn piece(&mut self, text: &str, columns: usize) -> String {
        let mut rows = String::new();
        for letter in text.chars() {
            if letter == '\n' && self.held.trim_matches([' ', '\t', '\r']).is_empty() {
                // A text does not begin with an empty row.
                (self.held, self.looked_at) = (String::new(), 0);
                continue;
            }
            self.held.push(letter);
            let has_grown = self.held.len() - self.looked_at >= self.held.len() / GROWTH_PART;
            let has_a_row = self.held.len() - self.looked_at >= columns / 2;
            if self.held.len() > HELD_BYTES_MAX {
                rows += &self.end(columns);
            } else if letter == '\n' && has_grown {
                self.draw_extent(Extent::Lines, columns, &mut rows);
            } else if has_grown && has_a_row && is_between_words(letter) {
                self.draw_extent(Extent::Words, columns, &mut rows);
            }
        }
        rows
    }

    /// Ends the text and returns its remaining rows.
    pub fn end(&mut self, columns: usize) -> String {
        let mut rows = String::new();
        self.draw_extent(Extent::Whole, columns, &mut rows);
        *self = Self::new(self.has_looks);
        rows
    }

    /// Returns the last line of the text that is not drawn yet.
    pub fn coming(&self) -> Option<&str> {
        let coming = self.held.get(self.drawn..).unwrap_or_default();
        coming.lines().map(str::trim).rfind(|line| !line.is_empty())
    }

    fn draw_extent(&mut self, extent: Extent, columns: usize, rows: &mut String) {
        // The last column stays free, because some terminals continue in the next row when a row is
        // full.
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

    /// Escapes link definitions, so that they are drawn as text. Otherwise they would not be drawn
    /// at all, and the text that refers to them was drawn before they arrived.
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

    /// Removes the source that is drawn and closed.
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
            // Remove the lines after the fence that are drawn, and keep the fence.
            let fence = self.held[code.start..].find('\n').map(|at| code.start + at + 1);
            if let Some(fence) = fence.filter(|fence| *fence < self.drawn) {
                self.held.drain(fence..self.drawn);
                self.drawn = fence;
            }
        }
    }
}

/// Returns true if a word ends with this letter: a space, or a character of a script without
/// spaces.
fn is_between_words(letter: char) -> bool {
    letter == ' ' || console::measure_text_width(letter.encode_utf8(&mut [0; 4])) > 1
}

#[cfg(test)]
mod tests;
