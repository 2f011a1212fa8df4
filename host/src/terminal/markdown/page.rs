//! The rows of a piece of Markdown, and how many of them no further text can change.

use std::ops::Range;

use console::Style;
use jaato_runtime::visible;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::markup::{is_emphasis, is_link};
use super::rows::{Place, Row, Word, broken, push_words};
use super::table::{Table, TableRow};

/// Fewest columns after bullets and bars. Deeper nesting runs over the edge.
const ROOM_MIN: usize = 8;

/// The deepest nesting of emphasis that is styled. Thousands of asterisks in a row would take
/// seconds.
const NESTED_MAX: usize = 8;

/// The text before each row of a quotation.
const QUOTE: &str = "▐ ";

/// The rows of a text.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub rows: Vec<Row>,
    /// The offset in the source after which further text may change the rows.
    pub stable_to: usize,
    /// Blocks at the top level, in order.
    pub blocks: Vec<Range<usize>>,
    /// Whether the last block at the top level is fenced code.
    pub is_fenced: bool,
    /// The offsets of link definitions, which cause no events.
    pub definitions: Vec<usize>,
}

/// How much of a text has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The whole text.
    Whole,
    /// Whole lines, which others may follow.
    Lines,
    /// Text up to a space in the last line.
    Words,
}

/// The screen for which rows are drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    /// Columns of a row.
    pub room: usize,
    pub has_looks: bool,
}

/// A bullet, a number, an indentation or a bar before the rows of a block.
#[derive(Debug)]
struct Before {
    /// The text of the first row, until that is drawn.
    first: Option<String>,
    rest: String,
}

struct Drawing<'a> {
    source: &'a str,
    screen: Screen,
    page: Page,
    before: Vec<Before>,
    /// The number in the source and the displayed number of each list's last item.
    numbers: Vec<Option<(u64, u64)>>,
    /// The offset of the last item, if it has no row.
    empty_item: Option<usize>,
    styles: Vec<Style>,
    links: Vec<String>,
    line: Vec<Word>,
    /// The style of code or HTML, whose lines are not wrapped.
    exact: Option<Style>,
    /// The ends of empty lines that are drawn together with the next line.
    exact_blanks: Vec<usize>,
    table: Option<Table>,
    /// The offset of the last block, if it is a table.
    open_table: Option<usize>,
    is_setext: bool,
    /// Bytes of the source that are drawn.
    drawn: usize,
    /// The offset at which the last block ends.
    end: usize,
    depth: usize,
    inline: Inline,
}

/// The state of the last block's text.
#[derive(Debug, Default)]
struct Inline {
    begin: Option<usize>,
    /// The offset of the outermost open emphasis or link.
    outer: Option<usize>,
    depth: usize,
    brackets: Vec<usize>,
    /// The offset after which further text may change the styles.
    pending: Option<usize>,
}

/// Lays out a text.
pub(super) fn page(source: &str, drawn: usize, screen: Screen, extent: Extent) -> Page {
    let events = Parser::new_ext(source, Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS)
        .into_offset_iter();
    let definitions = events.reference_definitions().iter().map(|(_, it)| it.span.start).collect();
    let mut drawing = Drawing {
        source,
        screen,
        page: Page { definitions, ..Page::default() },
        before: Vec::new(),
        numbers: Vec::new(),
        empty_item: None,
        styles: Vec::new(),
        links: Vec::new(),
        line: Vec::new(),
        exact: None,
        exact_blanks: Vec::new(),
        table: None,
        open_table: None,
        is_setext: false,
        drawn,
        end: 0,
        depth: 0,
        inline: Inline::default(),
    };
    for (event, range) in events {
        drawing.event(event, range);
    }
    drawing.page.stable_to = drawing.stable_to(extent);
    drawing.page
}

impl Drawing<'_> {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => {
                if self.depth == 0 {
                    self.page.is_fenced = matches!(&tag, Tag::CodeBlock(CodeBlockKind::Fenced(_)));
                    self.page.blocks.push(range.clone());
                }
                self.depth += 1;
                self.start_tag(tag, range);
            }
            Event::End(tag) => {
                self.depth -= 1;
                self.end_tag(tag, range);
            }
            Event::Text(text) if self.exact.is_some() => self.exact_text(&text, range),
            Event::Html(text) => self.exact_text(&text, range),
            Event::Text(text) => {
                self.look_for_openers(&text, &range);
                self.words(&text, range);
            }
            Event::Code(text) => {
                self.styles.push(self.style().cyan());
                self.words(&text, range);
                self.styles.pop();
            }
            Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.words(&text, range);
            }
            Event::FootnoteReference(name) => self.words(&format!("[^{name}]"), range),
            Event::TaskListMarker(is_done) => {
                self.words(if is_done { "[x] " } else { "[ ] " }, range);
            }
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => {
                if self.depth == 0 {
                    self.page.is_fenced = false;
                    self.page.blocks.push(range.clone());
                }
                self.begin_block(range.start);
                self.rule(&range);
                self.end_block(range.end);
            }
        }
    }

    fn start_tag(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Emphasis => self.open_emphasis(self.style().italic(), &range, 1),
            Tag::Strong => self.open_emphasis(self.style().bold(), &range, 2),
            Tag::Strikethrough | Tag::Superscript | Tag::Subscript => {
                self.open_inline(self.style(), &range);
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.open_link(dest_url.into_string(), &range);
            }
            Tag::Paragraph => self.begin_block(range.start),
            Tag::Heading { .. } => {
                self.begin_block(range.start);
                // Drawn as the paragraph that it was before the line below it arrived, followed by
                // that line.
                self.is_setext = self.source[range].trim_end().contains('\n');
                if !self.is_setext {
                    self.styles.push(self.style().bold());
                }
            }
            Tag::CodeBlock(kind) => {
                self.begin_block(range.start);
                // One word is the language. Several words have a meaning for the reader.
                if let CodeBlockKind::Fenced(info) = kind
                    && info.trim().contains(' ')
                {
                    let (at, style) = (range.start, self.style().dim());
                    let info = visible::visible_text(info.trim()).into_owned();
                    self.row(vec![Word { style, ..unbroken_word(info, at, at + 1) }], at + 1);
                }
                self.exact = Some(self.style().cyan());
            }
            Tag::HtmlBlock => {
                self.begin_block(range.start);
                self.exact = Some(self.style());
            }
            Tag::Table(alignments) => {
                self.begin_block(range.start);
                self.table = Some(Table { begin: range.start, alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                let row = TableRow { begin: range.start, end: range.end, cells: Vec::new() };
                if let Some(table) = &mut self.table {
                    table.rows.push(row);
                }
            }
            Tag::TableCell => {}
            Tag::BlockQuote(_) => {
                self.begin_block(range.start);
                self.before.push(Before { first: None, rest: QUOTE.to_owned() });
            }
            Tag::List(_) => {
                self.end_line();
                self.numbers.push(None);
            }
            Tag::Item => self.begin_item(range.start),
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => self.begin_block(range.start),
        }
    }

    fn end_tag(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Emphasis => self.close_emphasis(&range, 1),
            TagEnd::Strong => self.close_emphasis(&range, 2),
            TagEnd::Strikethrough | TagEnd::Superscript | TagEnd::Subscript => self.close_inline(),
            TagEnd::Link | TagEnd::Image => self.end_link(range),
            TagEnd::Heading(_) => {
                self.end_line();
                if self.is_setext {
                    let line = self.source[range.clone()].trim_end().lines().next_back();
                    let line = line.unwrap_or_default().trim_start_matches([' ', '>']).to_owned();
                    self.row(vec![unbroken_word(line, range.end - 1, range.end)], range.end);
                } else {
                    self.styles.pop();
                }
                self.inline = Inline::default();
                self.end_block(range.end);
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                self.end_exact_line(range.end);
                self.exact = None;
                self.exact_blanks.clear();
                self.end_block(range.end);
            }
            TagEnd::TableCell => {
                let line = std::mem::take(&mut self.line);
                let row = self.table.as_mut().and_then(|table| table.rows.last_mut());
                if let Some(row) = row {
                    row.cells.push(line);
                    // Text after the last cell of the head's columns belongs to the row, too.
                    self.end = range.end;
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => self.end_table_row(range),
            TagEnd::Table => {
                self.inline = Inline::default();
                self.end = self.source[..range.end].trim_end().len();
                self.end_table();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.before.pop();
            }
            TagEnd::List(_) => {
                self.numbers.pop();
            }
            TagEnd::Item => {
                self.end_line();
                let is_empty = self.before.last().is_some_and(|before| before.first.is_some());
                if is_empty {
                    self.empty_item = Some(range.start);
                    self.row(Vec::new(), range.start + 1);
                }
                self.before.pop();
            }
            TagEnd::Paragraph
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_) => {
                self.end_line();
                self.end_block(range.end);
            }
        }
    }

    /// Begins emphasis. If its delimiters are code, they are drawn as text.
    fn open_emphasis(&mut self, style: Style, range: &Range<usize>, delimiter: usize) {
        if self.is_emphasis(range, delimiter) {
            self.open_inline(style, range);
        } else {
            self.open_inline(self.style(), range);
            self.words_of_source(range.start..range.start + delimiter);
        }
    }

    fn close_emphasis(&mut self, range: &Range<usize>, delimiter: usize) {
        self.close_inline();
        if !self.is_emphasis(range, delimiter) {
            self.words_of_source(range.end - delimiter..range.end);
        }
    }

    fn is_emphasis(&self, range: &Range<usize>, delimiter: usize) -> bool {
        self.inline.depth < NESTED_MAX && is_emphasis(self.source, range, delimiter)
    }

    fn open_link(&mut self, to: String, range: &Range<usize>) {
        self.open_inline(self.style(), range);
        if !is_link(self.source, range, &to) {
            let bracket = self.source[range.clone()].find('[').unwrap_or_default();
            self.words_of_source(range.start..range.start + bracket + 1);
        }
        self.links.push(to);
    }

    fn end_link(&mut self, range: Range<usize>) {
        self.close_inline();
        let to = self.links.pop().unwrap_or_default();
        let said = &self.source[range.clone()];
        // Do not write the address twice if the text is the address.
        let is_said = said.starts_with('<') || said.starts_with(&format!("[{to}]"));
        if !is_link(self.source, &range, &to) {
            let bracket = self.source[self.end..range.end].find(']').unwrap_or_default();
            self.words_of_source(self.end + bracket..range.end);
        } else if !is_said {
            self.styles.push(self.style().dim());
            let last = range.end.saturating_sub(1);
            self.words(&format!(" ({to})"), last..range.end);
            self.styles.pop();
        }
        // Continue after the address, even if it is not drawn.
        self.end = self.end.max(range.end);
    }

    fn words_of_source(&mut self, range: Range<usize>) {
        let source = self.source;
        self.words(&source[range.clone()], range);
    }

    /// Returns the columns after the text before a row.
    fn room(&self) -> usize {
        let taken: usize =
            self.before.iter().map(|before| console::measure_text_width(&before.rest)).sum();
        self.screen.room.saturating_sub(taken).max(ROOM_MIN)
    }

    fn style(&self) -> Style {
        let plain = || Style::new().force_styling(self.screen.has_looks);
        self.styles.last().cloned().unwrap_or_else(plain)
    }

    /// Begins a block, with an empty row before it if the source has one.
    fn begin_block(&mut self, at: usize) {
        self.end_line();
        (self.inline, self.empty_item, self.open_table) = (Inline::default(), None, None);
        // Content after a bullet continues the bullet's row.
        let is_behind_a_bullet = self.before.last().is_some_and(|before| before.first.is_some());
        if !is_behind_a_bullet && lines_between(&self.source[self.end.min(at)..at]) > 1 {
            self.row(Vec::new(), at);
        }
        self.end = at;
    }

    fn end_block(&mut self, end: usize) {
        self.end = self.end.max(self.source[..end].trim_end().len());
    }

    fn begin_item(&mut self, at: usize) {
        self.begin_block(at);
        let digits = self.source[at..].trim_start();
        let length = digits.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(digits.len());
        let (digits, rest) = digits.split_at(length);
        let marker = match (digits.parse::<u64>(), self.numbers.last_mut()) {
            (Ok(number), Some(last)) => {
                // If all items have the same number, the author leaves the counting to the
                // renderer.
                let shown = match *last {
                    Some((before, shown)) if before == number => shown + 1,
                    Some(_) | None => number,
                };
                *last = Some((number, shown));
                format!("{shown}{} ", rest.chars().next().unwrap_or('.'))
            }
            (Ok(_) | Err(_), _) => "• ".to_owned(),
        };
        let rest = " ".repeat(console::measure_text_width(&marker));
        self.before.push(Before { first: Some(marker), rest });
    }

    fn words(&mut self, text: &str, range: Range<usize>) {
        self.inline.begin.get_or_insert(range.start);
        // Code is enclosed in backticks.
        let within = self.source[range.clone()].find(text);
        let place =
            match within.filter(|at| *at == 0 || self.source[range.start..].starts_with('`')) {
                Some(at) => Place::From(range.start + at),
                None => Place::Within(range.start, range.end),
            };
        self.end = self.end.max(range.end);
        let style = self.style();
        push_words(&mut self.line, text, &style, place);
    }

    /// Ends a line of a paragraph, an item or a heading.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return;
        }
        let first = self.page.rows.len();
        for words in broken(line, self.room()) {
            let end = words.last().map_or(self.end, |word| word.end);
            self.row(words, end);
        }
        // Rows from the same piece of the source are drawn together.
        let mut below: Option<(usize, usize)> = None;
        for row in self.page.rows[first..].iter_mut().rev() {
            if let Some((_, end)) = below.filter(|(begin, _)| *begin < row.end) {
                row.end = end;
            }
            below = row.words.first().map(|word| (word.at, row.end));
        }
    }

    fn exact_text(&mut self, text: &str, range: Range<usize>) {
        let is_verbatim = self.source.get(range.clone()) == Some(text);
        let style = self.exact.clone().unwrap_or_else(|| self.style());
        let mut at = range.start;
        for piece in text.split_inclusive('\n') {
            let end = if is_verbatim { at + piece.len() } else { range.end };
            let code = visible::visible_text(piece.trim_end_matches('\n')).into_owned();
            self.line.push(Word { style: style.clone(), ..unbroken_word(code, at, end) });
            if piece.ends_with('\n') {
                self.end_exact_line(end);
            }
            at = end;
        }
        self.end = self.end.max(self.source[..range.end].trim_end().len());
    }

    fn end_exact_line(&mut self, end: usize) {
        let line = std::mem::take(&mut self.line);
        if line.iter().all(|word| word.text.trim().is_empty()) {
            self.exact_blanks.extend((!line.is_empty()).then_some(end));
            return;
        }
        for end in std::mem::take(&mut self.exact_blanks) {
            self.row(Vec::new(), end);
        }
        self.row(line, end);
    }

    fn end_table_row(&mut self, range: Range<usize>) {
        let style = self.style();
        let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) else { return };
        // Cells without a column in the head cause no events.
        let behind = self.source[self.end.min(range.end)..range.end].trim();
        let behind = behind.trim_start_matches('|').trim_end_matches('|').trim();
        if let Some(cell) = row.cells.last_mut().filter(|_| !behind.is_empty()) {
            let place = Place::Within(range.start, range.end);
            push_words(cell, &format!(" | {behind}"), &style, place);
        }
        self.end = range.end;
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let begin = table.begin;
        self.open_table = Some(begin);
        if begin < self.drawn {
            // The head was drawn as a paragraph because it was too long to wait for. Draw the rest
            // unchanged.
            let (style, mut at) = (self.style(), begin);
            for line in self.source[begin..self.end].split_inclusive('\n') {
                push_words(&mut self.line, line, &style, Place::From(at));
                self.end_line();
                at += line.len();
            }
            return;
        }
        for line in table.lines(self.room()) {
            self.row(vec![unbroken_word(line, begin, self.end)], self.end);
        }
    }

    fn rule(&mut self, range: &Range<usize>) {
        let line = "─".repeat(self.room());
        self.row(vec![unbroken_word(line, range.start, range.end)], range.end);
    }

    fn row(&mut self, words: Vec<Word>, end: usize) {
        let before = self.before.iter_mut().map(|it| it.first.take().unwrap_or(it.rest.clone()));
        let before: String = before.collect();
        self.page.rows.push(Row { before, words, end });
    }

    fn open_inline(&mut self, style: Style, range: &Range<usize>) {
        self.inline.begin.get_or_insert(range.start);
        if self.inline.depth == 0 {
            self.inline.outer = Some(range.start);
        }
        self.inline.depth += 1;
        self.styles.push(style);
    }

    fn close_inline(&mut self) {
        self.inline.depth = self.inline.depth.saturating_sub(1);
        if self.inline.depth == 0 {
            self.inline.outer = None;
        }
        self.styles.pop();
    }

    /// Looks for characters that further text may turn into markup.
    fn look_for_openers(&mut self, text: &str, range: &Range<usize>) {
        if self.table.is_some() || self.source.get(range.clone()) != Some(text) {
            return;
        }
        let bytes = self.source.as_bytes();
        for (index, sign) in text.bytes().enumerate() {
            let at = range.start + index;
            let before = at.checked_sub(1).map(|before| bytes[before]);
            let after = bytes[at..].iter().find(|next| **next != sign);
            let may_be_first_of_word = after.is_none_or(|next| !next.is_ascii_whitespace());
            let next = bytes.get(at + 1);
            let opens = match sign {
                b'`' => true,
                b'*' => may_be_first_of_word,
                b'_' => {
                    may_be_first_of_word && !before.is_some_and(|it| it.is_ascii_alphanumeric())
                }
                b'<' => next.is_none_or(|next| next.is_ascii_alphabetic() || b"/!?".contains(next)),
                b'\\' => next.is_none_or(|next| *next == b'\n' || *next == b'\r'),
                b'[' => {
                    let at = at - usize::from(before == Some(b'!'));
                    self.inline.brackets.push(self.inline.outer.map_or(at, |outer| outer.min(at)));
                    false
                }
                b']' => {
                    let opened = self.inline.brackets.pop();
                    let at = opened.filter(|_| next.is_none_or(|next| *next == b'('));
                    self.note_opener(at);
                    false
                }
                _ => false,
            };
            if opens {
                self.note_opener(Some(at));
            }
        }
    }

    fn note_opener(&mut self, at: Option<usize>) {
        let Some(at) = at else { return };
        let at = self.inline.outer.map_or(at, |outer| outer.min(at));
        self.inline.pending = Some(self.inline.pending.map_or(at, |pending| pending.min(at)));
    }

    /// Returns the offset in the source before which no further text changes a row.
    fn stable_to(&self, extent: Extent) -> usize {
        if extent == Extent::Whole {
            return usize::MAX;
        }
        let source = self.source;
        let (mut stable, end) = (usize::MAX, self.end.min(source.len()));
        let is_closed = lines_between(&source[source[..end].trim_end().len()..]) > 1;
        if let Some(at) = self.empty_item {
            stable = at;
        }
        if !is_closed && let Some(begin) = self.open_table {
            stable = stable.min(begin);
        }
        if let Some(begin) = self.inline.begin.filter(|_| !is_closed) {
            let brackets = self.inline.brackets.iter().copied();
            stable = brackets.chain(self.inline.pending).fold(stable, usize::min);
            stable = stable.min(self.may_be_head_of_table(begin));
        }
        if extent == Extent::Words {
            let begin = source.rfind('\n').map_or(0, |at| at + 1);
            let is_text = self.inline.begin.is_some();
            let mut last = self.page.rows.iter().rev().filter_map(|row| row.words.first());
            stable = match (last.next(), last.next()) {
                (Some(last), Some(full)) if is_text && full.at >= begin => stable.min(last.at),
                // The kind of a line is unknown until a row of it is full: an apparent fence may be
                // code in a paragraph.
                (Some(_) | None, _) => 0,
            };
        }
        stable
    }

    /// Returns the offset of a paragraph's line that the next line may make the head of a table.
    fn may_be_head_of_table(&self, begin: usize) -> usize {
        let text = &self.source[begin..];
        let (whole, mut at) = (lines_between(text), begin);
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let may_be = match index {
                0 => line.contains('|'),
                _ => line.trim_start_matches([' ', '>']).starts_with('|'),
            };
            let next_is_whole = index + 1 < whole;
            if may_be && !next_is_whole {
                // A backslash before the line is a line break only if the line does not begin a
                // table.
                let above = self.source[begin..at].strip_suffix("\\\n");
                return above
                    .map_or(at, |above| above.rfind('\n').map_or(begin, |end| begin + end + 1));
            }
            at += line.len();
        }
        usize::MAX
    }
}

/// Counts the line ends in the text between two blocks.
fn lines_between(source: &str) -> usize {
    source.bytes().filter(|byte| *byte == b'\n').count()
}

/// Creates a word from a text that is not wrapped.
fn unbroken_word(text: String, at: usize, end: usize) -> Word {
    let style = Style::new().force_styling(false);
    Word { text, style, at, end, blanks: 0, may_begin: true }
}
