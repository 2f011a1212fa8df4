//! All that a session's results tell, as one text: where it is, and which part of it is new. Pure.
//!
//! The text gets what scrolled off the screen, and what each result tells. The last of it is kept
//! in memory; what is more goes into a file up to a quota; `keep` writes it. Frames of a program
//! that draws are never in the text.
//!
//! Invariant: each byte is in the file, in memory, or counted as kept nowhere.

use crate::cut;
use crate::screen::Unseen;

/// Bytes that are kept in memory of what is in a file as well, at least.
const RECENT_BYTES: usize = 64 * 1024;

/// Bytes of the beginning of what is new that are kept wherever the rest of it is, beside those
/// that a result may show: the echo of what was typed stands before them.
const ECHO_BYTES: usize = 4 * 1024;

/// Bytes that are not in a file before one is written: a session of a few screens needs no file.
const WRITE_BYTES: usize = 64 * 1024;

/// Bytes that are written at once.
const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a session's file. A build's log is a tenth of that; a program that prints without end
/// must not fill a disk.
pub const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// A place in the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Bytes before it.
    pub bytes: u64,
    /// Line ends before it.
    pub lines: u64,
}

/// The text of a session.
#[derive(Debug)]
pub struct Transcript {
    end: Place,
    /// Where the part begins that was not told yet.
    told: Place,
    /// The last of the text.
    recent: String,
    /// The first bytes of the part that was not told yet.
    head: String,
    in_file: u64,
    file: File,
    file_bytes_max: u64,
    text_bytes_max: usize,
}

/// The file of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum File {
    /// There is none yet.
    None,
    /// Where it is.
    At(String),
    /// It is not written any more: why, and where its beginning is.
    Over { path: Option<String>, why: String },
}

/// The part that was not told yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct New {
    /// Where it begins.
    pub from: Place,
    /// Where it ends.
    pub to: Place,
    /// Its beginning; all of it where it is not longer.
    pub head: String,
    /// Its end; empty where the beginning is all.
    pub tail: String,
}

/// Where the text is from a place on.
#[derive(Debug, PartialEq, Eq)]
pub enum Kept {
    /// In the file, up to this byte.
    InFile { path: String, to: u64 },
    /// In memory: the text, and where it begins.
    InMemory { from: u64, text: String },
    /// Behind its end.
    Nowhere,
}

/// What became of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// Where it is.
    pub path: Option<String>,
    /// The bytes of the text, from its beginning, that are in it.
    pub bytes: u64,
    /// Why there are no more.
    pub why: Option<String>,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            end: Place::default(),
            told: Place::default(),
            recent: String::new(),
            head: String::new(),
            in_file: 0,
            file: File::None,
            file_bytes_max: FILE_BYTES_MAX,
            text_bytes_max: cut::text_bytes_max(None),
        }
    }
}

impl Transcript {
    /// Makes one of which a result shows so many bytes of JSON.
    pub fn of_results(text_bytes_max: usize) -> Self {
        Self { text_bytes_max, ..Self::default() }
    }

    /// Returns how many bytes of JSON a result shows of it.
    pub fn text_bytes_max(&self) -> usize {
        self.text_bytes_max
    }

    fn head_bytes(&self) -> usize {
        self.text_bytes_max + ECHO_BYTES
    }

    /// More than both ends of what is told.
    fn recent_bytes(&self) -> usize {
        RECENT_BYTES.max(3 * self.text_bytes_max)
    }

    /// Adds what is new.
    pub fn push(&mut self, new: &Unseen) {
        if new.text.is_empty() {
            return;
        }
        if !new.continues && !self.recent.is_empty() && !self.recent.ends_with('\n') {
            self.add("\n");
            if self.told.bytes + 1 == self.end.bytes {
                // The end of a line that was told is not new.
                self.told = self.end;
                self.head.clear();
            }
        }
        self.add(&new.text);
    }

    fn add(&mut self, text: &str) {
        let room = self.head_bytes().saturating_sub(self.head.len());
        if room > 0 && self.head.len() as u64 == self.end.bytes - self.told.bytes {
            self.head.push_str(&text[..text.floor_char_boundary(room)]);
        }
        self.recent.push_str(text);
        self.end.bytes += text.len() as u64;
        self.end.lines += memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        self.forget();
    }

    /// Counts the bytes that were not told yet.
    pub fn new_bytes(&self) -> u64 {
        self.end.bytes - self.told.bytes
    }

    /// Returns as much of the part that was not told yet as is in memory: its end.
    pub fn new_text(&self) -> &str {
        &self.recent[self.in_recent(self.told.bytes)..]
    }

    /// Takes the part that was not told yet, and marks it as told. Of a long part it returns the
    /// beginning, and the last `bytes` as its end.
    pub fn tell(&mut self, bytes: usize) -> New {
        let (from, to) = (self.told, self.end);
        let mut head = std::mem::take(&mut self.head);
        self.told = self.end;
        let new = &self.recent[self.in_recent(from.bytes)..];
        if to.bytes - from.bytes <= self.head_bytes() as u64 {
            return New { from, to, head: new.to_owned(), tail: String::new() };
        }
        let begun = head.len();
        let tail = &new[new.ceil_char_boundary(new.len().saturating_sub(bytes))..];
        // Where they meet, nothing stands in both.
        let between = to.bytes - from.bytes - tail.len() as u64;
        if between < begun as u64 {
            head.truncate(usize::try_from(between).unwrap_or(begun));
        }
        New { from, to, head, tail: tail.to_owned() }
    }

    /// Returns what is to be written next behind what is in the file. Little waits until there is
    /// more, unless all is wanted.
    pub fn next_piece(&mut self, is_all_wanted: bool) -> Option<(String, u64)> {
        if matches!(self.file, File::Over { .. }) {
            return None;
        }
        let waiting = &self.recent[self.in_recent(self.in_file)..];
        if waiting.is_empty() || (!is_all_wanted && waiting.len() < WRITE_BYTES) {
            return None;
        }
        let room = self.file_bytes_max - self.in_file;
        let bytes = usize::try_from(room).unwrap_or(usize::MAX).min(PIECE_BYTES_MAX);
        let piece = &waiting[..waiting.floor_char_boundary(bytes)];
        if piece.is_empty() {
            self.end_file(format!("its quota of {} bytes is used up", self.file_bytes_max));
            return None;
        }
        Some((piece.to_owned(), self.in_file))
    }

    /// Returns where the file is that is written on.
    pub fn path(&self) -> Option<&str> {
        match &self.file {
            File::At(path) => Some(path),
            File::None | File::Over { .. } => None,
        }
    }

    /// Notes what was written.
    pub fn written(&mut self, path: String, bytes: usize) {
        self.file = File::At(path);
        self.in_file += bytes as u64;
        self.forget();
    }

    /// Notes that the file cannot be written any more.
    pub fn end_file(&mut self, why: String) {
        let path = self.path().map(str::to_owned);
        self.file = File::Over { path, why };
        self.forget();
    }

    /// Notes that what was written is gone, too.
    pub fn lose_file(&mut self, why: String) {
        self.file = File::Over { path: None, why };
        self.in_file = 0;
        self.forget();
    }

    /// Tells what became of the file.
    pub fn file(&self) -> FileFacts {
        let (path, why) = match &self.file {
            File::None => (None, None),
            File::At(path) => (Some(path.clone()), None),
            File::Over { path, why } => (path.clone(), Some(why.clone())),
        };
        FileFacts { path, bytes: self.in_file, why }
    }

    /// Counts the bytes between two places that are kept nowhere.
    pub fn lost(&self, from: u64, to: u64) -> u64 {
        self.recent_from().min(to).saturating_sub(self.in_file.max(from))
    }

    /// Finds the text from a byte on.
    pub fn kept(&self, from: u64) -> Kept {
        if from >= self.end.bytes {
            return Kept::Nowhere;
        }
        let path = match &self.file {
            File::At(path) | File::Over { path: Some(path), .. } => Some(path),
            File::None | File::Over { path: None, .. } => None,
        };
        match path {
            Some(path) if from < self.in_file && from < self.recent_from() => {
                Kept::InFile { path: path.clone(), to: self.in_file }
            }
            _ => {
                let at = self.recent.ceil_char_boundary(self.in_recent(from));
                let from = self.recent_from() + at as u64;
                Kept::InMemory { from, text: self.recent[at..].to_owned() }
            }
        }
    }

    /// Returns where the text ends.
    pub fn end(&self) -> Place {
        self.end
    }

    fn recent_from(&self) -> u64 {
        self.end.bytes - self.recent.len() as u64
    }

    /// Returns where in `recent` a byte of the text stands; its beginning for what is older.
    fn in_recent(&self, byte: u64) -> usize {
        let at = usize::try_from(byte.saturating_sub(self.recent_from())).unwrap_or(usize::MAX);
        at.min(self.recent.len())
    }

    /// Forgets what is older than memory keeps, and in the file, or kept by no file.
    fn forget(&mut self) {
        // Not for each line: to move the rest costs as much as the text.
        if self.recent.len() < 2 * self.recent_bytes() {
            return;
        }
        let old = self.recent.len() - self.recent_bytes();
        let old = match self.file {
            File::Over { .. } => old,
            File::None | File::At(_) => old.min(self.in_recent(self.in_file)),
        };
        self.recent.drain(..self.recent.floor_char_boundary(old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Unseen {
        Unseen { text: text.to_owned(), continues: true }
    }

    fn numbers(range: std::ops::Range<u32>) -> Unseen {
        line(&range.map(|number| format!("{number}\n")).collect::<String>())
    }

    /// Writes what wants to be written.
    fn write(transcript: &mut Transcript, is_all_wanted: bool, file: &mut String) {
        while let Some((piece, at)) = transcript.next_piece(is_all_wanted) {
            assert_eq!(at, file.len() as u64);
            file.push_str(&piece);
            transcript.written("/f".to_owned(), piece.len());
        }
    }

    #[test]
    fn what_is_new_is_told_once_and_a_line_goes_on_where_it_was_told_in_part() {
        let mut transcript = Transcript::default();
        transcript.push(&line("$ "));
        assert_eq!(transcript.tell(100).head, "$ ");
        transcript.push(&line("ls\nb\n$ "));
        let new = transcript.tell(100);
        assert_eq!((new.head.as_str(), new.tail.as_str()), ("ls\nb\n$ ", ""));
        assert_eq!(
            (new.from, new.to),
            (Place { bytes: 2, lines: 0 }, Place { bytes: 9, lines: 2 })
        );
        assert_eq!(transcript.tell(100).head, "");
        // A line that was redrawn begins a line of its own.
        transcript.push(&Unseen { text: "$ pwd".to_owned(), continues: false });
        let new = transcript.tell(100);
        assert_eq!((new.head.as_str(), new.from), ("$ pwd", Place { bytes: 10, lines: 3 }));
        let mut file = String::new();
        write(&mut transcript, true, &mut file);
        assert_eq!(file, "$ ls\nb\n$ \n$ pwd");
    }

    #[test]
    fn much_goes_to_the_file_and_both_ends_stay() {
        let (mut transcript, mut file) = (Transcript::default(), String::new());
        let mut all = String::new();
        for thousand in 0..100 {
            let piece = numbers(thousand * 1000..(thousand + 1) * 1000);
            all += &piece.text;
            transcript.push(&piece);
            write(&mut transcript, false, &mut file);
            assert!(transcript.recent.len() < 3 * RECENT_BYTES);
        }
        let new = transcript.tell(9000);
        assert_eq!((new.to.bytes, new.to.lines), (all.len() as u64, 100_000));
        assert!(all.starts_with(&new.head) && all.ends_with(&new.tail));
        assert_eq!((new.head.len(), new.tail.len()), (transcript.head_bytes(), 9000));
        write(&mut transcript, true, &mut file);
        assert_eq!(file, all);
        assert_eq!(transcript.lost(0, new.to.bytes), 0);
        assert_eq!(transcript.kept(5), Kept::InFile { path: "/f".to_owned(), to: new.to.bytes });
        let Kept::InMemory { from, text } = transcript.kept(new.to.bytes - 6) else { panic!() };
        assert_eq!((from, text.as_str()), (new.to.bytes - 6, "99999\n"));
        assert_eq!(transcript.kept(new.to.bytes), Kept::Nowhere);
    }

    #[test]
    fn the_two_ends_of_what_is_a_little_too_long_share_nothing() {
        let mut transcript = Transcript::default();
        let text = "x".repeat(transcript.head_bytes() + 10);
        transcript.push(&line(&text));
        let new = transcript.tell(9000);
        assert_eq!(new.head.len() + new.tail.len(), text.len());
    }

    #[test]
    fn what_is_beyond_the_quota_is_counted_to_the_byte() {
        let mut transcript = Transcript { file_bytes_max: 100_000, ..Transcript::default() };
        let mut file = String::new();
        for _ in 0..50 {
            transcript.push(&line(&"0123456789\n".repeat(1000)));
            write(&mut transcript, false, &mut file);
        }
        assert_eq!(file.len(), 100_000);
        let facts = transcript.file();
        assert_eq!((facts.path.as_deref(), facts.bytes), (Some("/f"), 100_000));
        assert!(facts.why.unwrap().contains("100000 bytes"));
        let all = transcript.end().bytes;
        assert_eq!(all, 550_000);
        let in_memory = transcript.recent.len() as u64;
        assert!(in_memory >= RECENT_BYTES as u64, "{in_memory}");
        assert_eq!(transcript.lost(0, all), all - 100_000 - in_memory);
        assert_eq!(transcript.lost(0, 99_999), 0);
        assert_eq!(transcript.lost(99_999, 100_001), 1);
        // What is asked for in the gap begins behind it.
        let Kept::InMemory { from, .. } = transcript.kept(200_000) else { panic!() };
        assert_eq!(from, all - in_memory);
    }

    #[test]
    fn without_a_file_the_last_of_it_stays_in_memory() {
        let mut transcript = Transcript::default();
        assert_eq!(transcript.next_piece(true), None);
        transcript.push(&line("日本\n"));
        transcript.end_file("the environment has no folder for it".to_owned());
        transcript.push(&line(&"日本\n".repeat(100_000)));
        assert!(transcript.recent.len() < 2 * RECENT_BYTES);
        assert!(transcript.lost(0, transcript.end().bytes) > 0);
        assert_eq!(transcript.next_piece(true), None);
        assert_eq!(transcript.file().path, None);
    }

    #[test]
    fn what_was_in_a_file_that_is_gone_is_counted_as_kept_nowhere() {
        let (mut transcript, mut file) = (Transcript::default(), String::new());
        for _ in 0..50 {
            transcript.push(&numbers(0..1000));
            write(&mut transcript, false, &mut file);
        }
        let all = transcript.end().bytes;
        assert_eq!(transcript.lost(0, all), 0);
        transcript.lose_file("gone".to_owned());
        assert_eq!(transcript.lost(0, all), all - transcript.recent.len() as u64);
        let facts = FileFacts { path: None, bytes: 0, why: Some("gone".to_owned()) };
        assert_eq!((transcript.file(), transcript.next_piece(true)), (facts, None));
        let Kept::InMemory { from, .. } = transcript.kept(0) else { panic!() };
        assert_eq!(from, all - transcript.recent.len() as u64);
    }
}
