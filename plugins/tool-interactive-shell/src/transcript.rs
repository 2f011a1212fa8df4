//! The text that a session has shown and no result contains yet. Pure.
//!
//! Lines that scroll off the screen are added to it, and each result takes it. It never contains
//! the frames of a program that draws. While a call waits, it streams all but the newest
//! [`KEPT_BYTES`] into its result. While no call waits, the oldest text beyond [`HELD_BYTES_MAX`]
//! is dropped and counted.

use crate::screen::UnseenText;

/// The number of the newest bytes that stay here while a call streams, because `wait_for` searches
/// them.
const KEPT_BYTES: usize = 64 * 1024;

/// The maximum number of bytes that wait for a call. This exceeds a server's log of an hour, but an
/// endless output must not fill the memory.
const HELD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The new text of a session.
#[derive(Debug, Default)]
pub struct SessionTranscript {
    text: String,
    /// The number of dropped bytes before the text.
    lost: u64,
}

impl SessionTranscript {
    /// Adds new text.
    pub fn push_text(&mut self, new: &UnseenText) {
        let is_open = !self.text.is_empty() && !self.text.ends_with('\n');
        if is_open && !new.continues && !new.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&new.text);
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the text has reached its maximum size.
    pub fn is_full(&self) -> bool {
        self.text.len() >= HELD_BYTES_MAX
    }

    /// Drops the older half, because no call reads it.
    pub fn drop_older_half(&mut self) {
        let half = self.text.ceil_char_boundary(self.text.len() / 2);
        self.text.drain(..half);
        self.add_lost_bytes(half as u64);
    }

    /// Counts bytes that a call took without returning them in a result.
    pub fn add_lost_bytes(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Takes the older text if the text is long.
    pub fn take_surplus_text(&mut self) -> Option<String> {
        if self.text.len() < 2 * KEPT_BYTES {
            return None;
        }
        let newest = self.text.ceil_char_boundary(self.text.len() - KEPT_BYTES);
        let newest = self.text.split_off(newest);
        Some(self.take_with_note(newest))
    }

    /// Takes the whole text.
    pub fn take_text(&mut self) -> String {
        self.take_with_note(String::new())
    }

    /// Leaves `rest` and returns the old text, after a note about the bytes dropped before it.
    fn take_with_note(&mut self, rest: String) -> String {
        let text = std::mem::replace(&mut self.text, rest);
        match std::mem::take(&mut self.lost) {
            0 => text,
            lost => format!("[… {lost} bytes that no call waited for are not kept …]\n{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unseen_line(text: &str, continues: bool) -> UnseenText {
        UnseenText { text: text.to_owned(), continues }
    }

    #[test]
    fn new_text_is_returned_once_and_a_redrawn_line_is_separate() {
        let mut transcript = SessionTranscript::default();
        transcript.push_text(&unseen_line("$ ", true));
        assert_eq!(transcript.take_text(), "$ ");
        transcript.push_text(&unseen_line("ls\nb\n$ ", true));
        transcript.push_text(&unseen_line("", false));
        assert_eq!(transcript.text(), "ls\nb\n$ ");
        transcript.push_text(&unseen_line("$ pwd", false));
        assert_eq!(transcript.take_text(), "ls\nb\n$ \n$ pwd");
        assert_eq!(transcript.take_text(), "");
    }

    #[test]
    fn a_call_streams_all_but_the_newest_text() {
        let mut transcript = SessionTranscript::default();
        transcript.push_text(&unseen_line(&"x".repeat(2 * KEPT_BYTES - 1), true));
        assert_eq!(transcript.take_surplus_text(), None);
        transcript.push_text(&unseen_line("日本", true));
        let surplus = transcript.take_surplus_text().unwrap();
        assert!(surplus.len() + transcript.text().len() == 2 * KEPT_BYTES + 5);
        assert!((KEPT_BYTES - 3..=KEPT_BYTES).contains(&transcript.text().len()));
    }

    #[test]
    fn transcript_drops_the_oldest_text_and_counts_it() {
        let mut transcript = SessionTranscript::default();
        transcript.push_text(&unseen_line(&"x".repeat(HELD_BYTES_MAX - 1), true));
        assert!(!transcript.is_full());
        transcript.push_text(&unseen_line("日", true));
        assert!(transcript.is_full());
        let all = transcript.text().len();
        transcript.drop_older_half();
        let lost = all - transcript.text().len();
        transcript.add_lost_bytes(1);
        let note = format!("[… {} bytes that no call waited for are not kept …]\nx", lost + 1);
        assert!(transcript.take_text().starts_with(&note));
        assert_eq!(transcript.take_text(), "");
    }
}
