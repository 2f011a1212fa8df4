//! Keeps the two ends of an output, and cuts them to what a model is shown.
//!
//! A line that a program began anew with `\r`, as progress bars do, is kept as it was left: a model
//! reads what a person would see at the end.

use std::collections::VecDeque;

use crate::plain::Plain;

/// Bytes kept of each end at least: terminal sequences cost nothing where they are shown.
const END_BYTES: usize = 16 * 1024;

/// The two ends of an output.
#[derive(Debug)]
pub struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes that were printed.
    printed: u64,
    /// Bytes of all lines as they were left.
    bytes: u64,
    end_bytes: usize,
    /// Bytes of the last line so far.
    line_bytes: u64,
    /// A `\r` came last: what comes next ends the line, or replaces it.
    is_at_return: bool,
    /// What came behind it and shows nothing so far.
    behind_return: Vec<u8>,
}

/// What is shown of an output.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// The text.
    pub text: String,
    /// Bytes that stand before and behind the gap; none where all is shown.
    pub ends: Option<(u64, u64)>,
}

impl Kept {
    /// Keeps as much of each end as can be shown in so many bytes of JSON: a byte becomes at least
    /// one.
    pub fn for_room(json_bytes: usize) -> Self {
        let end_bytes = json_bytes.max(END_BYTES);
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            printed: 0,
            bytes: 0,
            end_bytes,
            line_bytes: 0,
            is_at_return: false,
            behind_return: Vec::new(),
        }
    }

    /// Takes what was printed.
    pub fn push(&mut self, bytes: &[u8]) {
        self.printed += bytes.len() as u64;
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let end = piece.last().copied().filter(|end| matches!(end, b'\n' | b'\r'));
            let body = &piece[..piece.len() - usize::from(end.is_some())];
            if self.is_at_return {
                self.behind_return.extend_from_slice(body);
                if self.is_seen_behind_return(end.is_some()) {
                    self.forget_line();
                    let body = std::mem::take(&mut self.behind_return);
                    self.keep(&body);
                    self.is_at_return = false;
                }
            } else {
                self.keep(body);
            }
            if let Some(end) = end {
                self.is_at_return = end == b'\r';
                self.behind_return.clear();
            }
            if end == Some(b'\n') {
                self.keep(b"\n");
                self.line_bytes = 0;
            }
        }
    }

    /// Tells whether something is shown of what stands behind a `\r`, beside colours: `ESC [ … m`
    /// and its like, which are forgotten. Of a sequence that has not ended nobody knows, unless
    /// `is_all` of the line is here.
    fn is_seen_behind_return(&mut self, is_all: bool) -> bool {
        let mut rest = &self.behind_return[..];
        let is_seen = loop {
            let Some(sequence) = rest.strip_prefix(b"\x1b[") else {
                break !rest.is_empty() && (is_all || rest != b"\x1b");
            };
            match sequence.iter().position(|byte| !(0x20..=0x3f).contains(byte)) {
                Some(end) if (0x40..=0x7e).contains(&sequence[end]) => rest = &sequence[end + 1..],
                Some(_) => break true,
                None => break is_all || rest.len() > SEQUENCE_BYTES_MAX,
            }
        };
        let forgotten = self.behind_return.len() - rest.len();
        self.behind_return.drain(..forgotten);
        is_seen
    }

    /// Takes the last line away, wherever its bytes are: at the end, among those that are not kept,
    /// at the beginning.
    fn forget_line(&mut self) {
        let line = std::mem::take(&mut self.line_bytes);
        let of_all = self.bytes;
        self.bytes -= line;
        let in_tail = self.tail.len().min(usize::try_from(line).unwrap_or(usize::MAX));
        let not_kept = of_all - (self.head.len() + self.tail.len()) as u64;
        self.tail.truncate(self.tail.len() - in_tail);
        let in_head = (line - in_tail as u64).saturating_sub(not_kept);
        let in_head = usize::try_from(in_head).unwrap_or(usize::MAX);
        self.head.truncate(self.head.len().saturating_sub(in_head));
    }

    fn keep(&mut self, bytes: &[u8]) {
        let is_head = self.bytes == self.head.len() as u64;
        let room = if is_head { self.end_bytes - self.head.len() } else { 0 };
        self.bytes += bytes.len() as u64;
        self.line_bytes += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.end_bytes)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.end_bytes);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Counts what was printed.
    pub fn printed(&self) -> u64 {
        self.printed
    }

    /// Returns all as text, where all is here.
    pub fn whole(&self) -> Option<String> {
        let kept = (self.head.len() + self.tail.len()) as u64;
        (kept == self.bytes).then(|| {
            let mut plain = Plain::default();
            let mut text = plain.text(&self.head);
            let (front, back) = self.tail.as_slices();
            text += &plain.text(front);
            text += &plain.text(back);
            text + plain.finish()
        })
    }

    /// Shows as much of both ends as fits into so many bytes of JSON.
    pub fn cut(&self, json_bytes: usize) -> Shown {
        let half = json_bytes / 2;
        let (head_text, head_bytes) = first_that_fit(&self.head, half);
        // Where the ends meet in what is kept, what the head did not show may be shown by the tail.
        let kept = (self.head.len() + self.tail.len()) as u64;
        let mut behind: Vec<u8> = Vec::new();
        if kept == self.bytes {
            behind.extend_from_slice(&self.head[head_bytes..]);
        }
        behind.extend(&self.tail);
        let (tail_text, tail_bytes) = last_that_fit(&behind, half);
        let ends = (head_bytes as u64, tail_bytes as u64);
        let left_out = self.printed - ends.0 - ends.1;
        let text = format!("{head_text}\n[… {left_out} bytes left out …]\n{tail_text}");
        Shown { text, ends: Some(ends) }
    }
}

/// Longest sequence of colours that is waited for.
const SEQUENCE_BYTES_MAX: usize = 64;

/// Returns the text at the beginning that fits, and how many bytes it stands for.
fn first_that_fit(bytes: &[u8], json_bytes: usize) -> (String, usize) {
    let (mut text, mut room, mut read) = (String::new(), json_bytes, 0);
    Plain::default().read(bytes, |c, at| {
        let Some(left) = room.checked_sub(json_len(c)) else { return false };
        (room, read) = (left, at);
        text.push(c);
        true
    });
    (text, read)
}

/// Returns the text at the end that fits, and how many bytes it stands for.
fn last_that_fit(bytes: &[u8], json_bytes: usize) -> (String, usize) {
    // What begins in the middle of a character belongs to the gap.
    let is_middle = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let skipped = bytes.iter().take(3).take_while(|byte| is_middle(byte)).count();
    let mut characters = Vec::new();
    let mut plain = Plain::default();
    plain.read(&bytes[skipped..], |c, at| {
        characters.push((c, skipped + at));
        true
    });
    characters.extend(plain.finish().chars().map(|c| (c, bytes.len())));
    let mut room = json_bytes;
    let fitting = characters.iter().rev().take_while(|(c, _)| {
        let left = room.checked_sub(json_len(*c));
        room = left.unwrap_or(0);
        left.is_some()
    });
    let first = characters.len() - fitting.count();
    // A character begins where the one before it ends.
    let start = first.checked_sub(1).map_or(skipped, |before| characters[before].1);
    let text = characters[first..].iter().map(|(c, _)| c).collect();
    let is_empty = first == characters.len();
    (text, if is_empty { 0 } else { bytes.len() - start })
}

/// Counts the bytes of a text inside a JSON string.
pub fn json_bytes(text: &str) -> usize {
    text.chars().map(json_len).sum()
}

fn json_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\t' => 2,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pieces: &[&[u8]]) -> Kept {
        let mut kept = Kept::for_room(0);
        pieces.iter().for_each(|piece| kept.push(piece));
        kept
    }

    #[test]
    fn a_small_output_is_whole() {
        let small = kept(&[b"a\xe6", b"\x97\xa5", b"b"]);
        assert_eq!((small.whole().as_deref(), small.printed()), (Some("a日b"), 5));
        assert_eq!(kept(&[]).whole().as_deref(), Some(""));
        let full = kept(&[&[b'x'; 2 * END_BYTES]]);
        assert_eq!(full.whole().map(|text| text.len()), Some(2 * END_BYTES));
        assert_eq!(kept(&[&[b'x'; 2 * END_BYTES], b"y"]).whole(), None);
    }

    #[test]
    fn both_ends_are_shown_and_what_lies_between_is_counted() {
        let mut large = Kept::for_room(0);
        for number in 0..100_000_u32 {
            large.push(format!("{number:09}\n").as_bytes());
        }
        // Ten bytes of output are eleven of JSON: the line end has two.
        let shown = large.cut(220);
        let lines: Vec<&str> = shown.text.lines().collect();
        assert_eq!((lines[0], lines[9], lines.len()), ("000000000", "000000009", 22));
        assert_eq!((lines[10], lines[11]), ("", "[… 999800 bytes left out …]"));
        assert_eq!((lines[12], lines[21]), ("000099990", "000099999"));
        assert_eq!(shown.ends, Some((100, 100)));
    }

    #[test]
    fn whole_characters_are_shown_and_the_counts_are_those_of_bytes() {
        let shown = kept(&["日本日本日本".as_bytes()]).cut(16);
        assert_eq!(shown.text, "日本\n[… 6 bytes left out …]\n日本");
        assert_eq!(shown.ends, Some((6, 6)));
        // A tail that begins inside a character.
        let mut bytes = "日".as_bytes().to_vec();
        bytes.extend("月".repeat(2 * END_BYTES).as_bytes());
        let shown = kept(&[&bytes]).cut(10);
        assert_eq!(shown.text, "日\n[… 98301 bytes left out …]\n月");
    }

    #[test]
    fn colours_cost_nothing_and_are_counted() {
        let shown = kept(&[b"\x1b[31mab\x1b[0m", &[b'x'; 100], b"\x1b[31mcd"]).cut(4);
        assert_eq!(shown.text, "ab\n[… 104 bytes left out …]\ncd");
        assert_eq!(shown.ends, Some((7, 7)));
    }

    #[test]
    fn a_line_that_is_begun_anew_is_kept_as_it_was_left() {
        let check = |pieces: &[&[u8]], expected: &str| {
            let whole = kept(pieces);
            assert_eq!(whole.whole().as_deref(), Some(expected));
            let bytes: Vec<&[u8]> = pieces.iter().flat_map(|piece| piece.chunks(1)).collect();
            assert_eq!(kept(&bytes).whole().as_deref(), Some(expected));
        };
        check(&[b"get\n 10 %\r 20 %", b"\r100 %\r\nthere\n"], "get\n100 %\nthere\n");
        check(&[b"10 %\r20 %\r"], "20 %");
        check(&[b"a\r\r\r\nb\r"], "a\nb");
        check(&[b"\r", b"\n"], "\n");
        check(&[b"long line\rno"], "no");
        // Colours show nothing, and a line that ends in them is no other one.
        check(&[b"\x1b[31mred\r\x1b[m\nnext"], "red\nnext");
        check(&[b"red\r\x1b[m\x1b[0;1m\r\nnext"], "red\nnext");
        check(&[b"10 %\r\x1b[K20 %\r\x1b[K\x1b[1m30 %\n"], "30 %\n");
        check(&[b"a\r\x1b"], "a");
        check(&[b"a\r\x1b[", &[b'0'; 100], b"mb"], "b");
    }

    #[test]
    fn colours_without_end_behind_a_return_are_not_kept() {
        let mut kept = kept(&[b"line\r"]);
        for _ in 0..10_000 {
            kept.push(b"\x1b[m\x1b[1;31");
            kept.push(b"m");
            assert_eq!(kept.behind_return.len(), 0);
        }
        let longest = [&b"\x1b["[..], &[b'0'; SEQUENCE_BYTES_MAX - 2]].concat();
        kept.push(&longest);
        assert_eq!((kept.whole().as_deref(), kept.behind_return.len()), (Some("line"), 64));
        kept.push(b"0");
        assert_eq!((kept.whole().as_deref(), kept.behind_return.len()), (Some(""), 0));
    }

    #[test]
    fn a_long_progress_is_no_long_output() {
        let mut long = kept(&[b"begin\n"]);
        for number in 0..20_000 {
            long.push(format!("{number} of 20000\r").as_bytes());
        }
        long.push(b"\ndone\n");
        assert_eq!(long.whole().as_deref(), Some("begin\n19999 of 20000\ndone\n"));
        // A line that reaches from the beginning over what is not kept to the end.
        let mut wide = kept(&[b"begin\n", &[b'x'; 5 * END_BYTES], b"\r", b"short\n"]);
        assert_eq!(
            (wide.whole().as_deref(), wide.printed()),
            (Some("begin\nshort\n"), 13 + 5 * END_BYTES as u64)
        );
        wide.push(&[b'y'; END_BYTES]);
        assert_eq!(wide.whole().map(|text| text.len()), Some(END_BYTES + 12));
        // One that begins behind what is not kept.
        let mut late = kept(&[&[b'x'; 5 * END_BYTES], b"\n10 %\r20 %\n"]);
        late.push(&[b'y'; 3]);
        assert!(late.cut(100).text.ends_with("xx\n20 %\nyyy"), "{}", late.cut(100).text);
        assert_eq!(late.bytes, 5 * END_BYTES as u64 + 9);
    }

    #[test]
    fn nothing_is_kept_of_the_middle() {
        let mut endless = Kept::for_room(0);
        for _ in 0..1000 {
            endless.push(&[b'x'; 64 * 1024]);
        }
        assert_eq!(endless.printed(), 64 * 1024 * 1000);
        assert!(endless.head.capacity() + endless.tail.capacity() <= 8 * END_BYTES);
    }
}
