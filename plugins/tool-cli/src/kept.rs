//! Keeps the two ends of an output, and cuts them to what a model is shown.

use std::collections::VecDeque;

use crate::plain::Plain;

/// Bytes kept of each end at least: terminal sequences cost nothing where they are shown.
const END_BYTES: usize = 16 * 1024;

/// The two ends of an output.
#[derive(Debug)]
pub struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    end_bytes: usize,
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
        Self { head: Vec::new(), tail: VecDeque::new(), bytes: 0, end_bytes }
    }

    /// Takes what was printed.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.end_bytes - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.end_bytes)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.end_bytes);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Counts what was printed.
    pub fn bytes(&self) -> u64 {
        self.bytes
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
        let left_out = self.bytes - ends.0 - ends.1;
        let text = format!("{head_text}\n[… {left_out} bytes left out …]\n{tail_text}");
        Shown { text, ends: Some(ends) }
    }
}

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
        assert_eq!((small.whole().as_deref(), small.bytes()), (Some("a日b"), 5));
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
    fn nothing_is_kept_of_the_middle() {
        let mut endless = Kept::for_room(0);
        for _ in 0..1000 {
            endless.push(&[b'x'; 64 * 1024]);
        }
        assert_eq!(endless.bytes(), 64 * 1024 * 1000);
        assert!(endless.head.capacity() + endless.tail.capacity() <= 8 * END_BYTES);
    }
}
