//! Keeps the two ends of a text that arrives piece by piece.
//!
//! If a program restarts a line with `\r`, as progress bars do, only the last state of the line is
//! kept, so that a model reads what a terminal would finally show.

use std::collections::VecDeque;

/// The two ends of a text.
#[derive(Debug)]
pub(super) struct TextEnds {
    head: String,
    /// UTF-8 whose first character may be incomplete.
    tail: VecDeque<u8>,
    /// Bytes of all lines, each in its last state.
    bytes: u64,
    end_bytes: usize,
    /// Bytes of the last line so far.
    line_bytes: u64,
    /// Whether a `\r` came last. The next character ends the line, or replaces it.
    is_at_return: bool,
}

impl TextEnds {
    /// Keeps this many bytes of each end.
    pub(super) fn new(end_bytes: usize) -> Self {
        Self {
            head: String::new(),
            tail: VecDeque::new(),
            bytes: 0,
            end_bytes,
            line_bytes: 0,
            is_at_return: false,
        }
    }

    /// Adds a piece.
    pub(super) fn push(&mut self, text: &str) {
        for piece in text.split_inclusive(['\n', '\r']) {
            let body = piece.trim_end_matches(['\n', '\r']);
            if !body.is_empty() {
                if std::mem::take(&mut self.is_at_return) {
                    self.forget_line();
                }
                self.add_text(body);
            }
            match &piece[body.len()..] {
                "\n" => {
                    self.add_text("\n");
                    (self.line_bytes, self.is_at_return) = (0, false);
                }
                "\r" => self.is_at_return = true,
                _ => {}
            }
        }
    }

    /// Returns the text, and its end if the first string is not the whole text.
    pub(super) fn into_texts(mut self) -> (String, Option<String>) {
        let is_all = (self.head.len() + self.tail.len()) as u64 == self.bytes;
        let tail = self.tail.make_contiguous();
        let is_middle = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let skipped = if is_all { 0 } else { tail.iter().take_while(is_middle).count() };
        let tail = String::from_utf8_lossy(&tail[skipped..]);
        match is_all {
            true => (self.head + &tail, None),
            false => (self.head, Some(tail.into_owned())),
        }
    }

    /// Removes the last line, wherever its bytes are: in the tail, among the dropped bytes, or in
    /// the head.
    fn forget_line(&mut self) {
        let line = std::mem::take(&mut self.line_bytes);
        let not_kept = self.bytes - (self.head.len() + self.tail.len()) as u64;
        self.bytes -= line;
        let in_tail = self.tail.len().min(usize::try_from(line).unwrap_or(usize::MAX));
        self.tail.truncate(self.tail.len() - in_tail);
        let in_head = (line - in_tail as u64).saturating_sub(not_kept);
        let in_head = usize::try_from(in_head).unwrap_or(usize::MAX);
        self.head.truncate(self.head.len().saturating_sub(in_head));
    }

    fn add_text(&mut self, text: &str) {
        let is_head = self.bytes == self.head.len() as u64;
        let room = if is_head { self.end_bytes - self.head.len() } else { 0 };
        self.bytes += text.len() as u64;
        self.line_bytes += text.len() as u64;
        let (head, rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(head);
        let rest = &rest.as_bytes()[rest.len().saturating_sub(self.end_bytes)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.end_bytes);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END_BYTES: usize = 1024;

    fn text_ends(pieces: &[&str]) -> TextEnds {
        let mut ends = TextEnds::new(END_BYTES);
        pieces.iter().for_each(|piece| ends.push(piece));
        ends
    }

    #[test]
    fn a_text_is_whole_up_to_both_ends_and_not_a_byte_more() {
        let full = "x".repeat(2 * END_BYTES);
        assert_eq!(text_ends(&[&full]).into_texts(), (full.clone(), None));
        let (head, tail) = text_ends(&[&full, "y"]).into_texts();
        assert_eq!((head.len(), tail.map(|tail| tail.len())), (END_BYTES, Some(END_BYTES)));
        assert_eq!(text_ends(&[]).into_texts(), (String::new(), None));
    }

    #[test]
    fn characters_stay_whole() {
        for shift in ["", "x", "xx"] {
            let long = format!("{shift}{}", "日".repeat(END_BYTES));
            let (head, tail) = text_ends(&[&long]).into_texts();
            let tail = tail.unwrap();
            assert!(long.starts_with(&head) && long.ends_with(&tail), "{head} {tail}");
            assert!(head.len() > END_BYTES - 3 && tail.len() > END_BYTES - 3);
        }
    }

    #[test]
    fn carriage_return_keeps_only_the_last_state_of_a_line() {
        let check = |pieces: &[&str], expected: &str| {
            let expected = (expected.to_owned(), None);
            assert_eq!(text_ends(pieces).into_texts(), expected);
            let all = pieces.concat();
            let chars: Vec<String> = all.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            assert_eq!(text_ends(&chars).into_texts(), expected);
        };
        check(&["get\n 10 %\r 20 %", "\r100 %\r\nthere\n"], "get\n100 %\nthere\n");
        check(&["10 %\r20 %\r"], "20 %");
        check(&["a\r\r\r\nb\r"], "a\nb");
        check(&["\r", "\n"], "\n");
        check(&["long line\rno"], "no");
    }

    #[test]
    fn long_progress_line_does_not_count_as_long_output() {
        let mut long = text_ends(&["begin\n"]);
        for number in 0..20_000 {
            long.push(&format!("{number} of 20000\r"));
        }
        long.push("\ndone\n");
        assert_eq!(long.into_texts(), ("begin\n19999 of 20000\ndone\n".to_owned(), None));
        // A line that reaches from the head over the dropped bytes to the tail.
        let wide = "x".repeat(5 * END_BYTES);
        let wide = text_ends(&["begin\n", &wide, "\r", "short\n"]);
        assert_eq!(wide.into_texts(), ("begin\nshort\n".to_owned(), None));
        // A line that begins after the dropped bytes.
        let late = text_ends(&[&"x".repeat(5 * END_BYTES), "\n10 %\r20 %\n", "yyy"]);
        assert_eq!(late.bytes, 5 * END_BYTES as u64 + 9);
        assert!(late.into_texts().1.unwrap().ends_with("xx\n20 %\nyyy"));
    }

    #[test]
    fn long_output_keeps_no_middle_in_memory() {
        let mut endless = TextEnds::new(END_BYTES);
        let piece = "x".repeat(64 * 1024);
        for _ in 0..1000 {
            endless.push(&piece);
        }
        assert_eq!(endless.bytes, 64 * 1024 * 1000);
        assert!(endless.head.capacity() + endless.tail.capacity() <= 8 * END_BYTES);
    }
}
