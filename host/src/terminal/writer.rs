//! Writes to standard output and standard error, and holds the writes back while a question is
//! open.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use console::{Style, Term};
use jaato_runtime::visible;
use nix::errno::Errno;
use parking_lot::{Mutex, MutexGuard};

use super::Text;
use super::above_line::{Above, Printer};
use super::own_output::stdout;
use crate::platform;

/// Limit on the bytes that are held while a question is open. The user may take a long time to
/// answer while a tool prints.
const HELD_BYTES_MAX: usize = 256 * 1024;

/// The rows and columns to assume if the size is unknown.
const SIZE: (usize, usize) = (24, 80);

/// Moves the cursor to the start of the row and erases the row.
const ERASE_ROW: &str = "\r\u{1b}[K";

/// Erases everything after the cursor.
const ERASE_BELOW: &str = "\u{1b}[J";

/// The stream that a text is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// Output that waits until the question is closed.
#[derive(Debug, Default)]
pub(super) struct Held {
    pieces: Vec<(Channel, Vec<u8>)>,
    bytes: usize,
    /// Bytes that were dropped because the limit was reached.
    cut: usize,
    /// The editor that shows held lines above its own line, if one is open.
    pub(super) above: Option<Above>,
}

/// `Some` while a question is open. The lock also keeps concurrent writes apart.
static HELD: Mutex<Option<Held>> = Mutex::new(None);

/// Set after the terminal accepted nothing for too long. Later writes are dropped.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

pub(super) fn held() -> MutexGuard<'static, Option<Held>> {
    HELD.lock()
}

/// Returns true if standard input is a terminal.
pub fn input_is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Returns true if standard output is a terminal.
pub fn output_is_terminal() -> bool {
    static IS_TERMINAL: OnceLock<bool> = OnceLock::new();
    *IS_TERMINAL.get_or_init(|| io::stdout().is_terminal())
}

/// Returns true if standard error is a terminal.
pub fn errors_are_terminal() -> bool {
    static IS_TERMINAL: OnceLock<bool> = OnceLock::new();
    *IS_TERMINAL.get_or_init(|| io::stderr().is_terminal())
}

/// Returns the rows and columns of the terminal for errors and questions.
pub fn size() -> (usize, usize) {
    size_of(Channel::Errors)
}

/// Returns the rows and columns of a channel's terminal.
pub fn size_of(channel: Channel) -> (usize, usize) {
    let term = match channel {
        Channel::Output => Term::stdout(),
        Channel::Errors => Term::stderr(),
    };
    let (rows, columns) = term.size();
    let or = |is: u16, else_is| if is == 0 { else_is } else { usize::from(is) };
    (or(rows, SIZE.0), or(columns, SIZE.1))
}

/// Writes a text and a line end to standard error.
///
/// # Errors
/// If the reader closed standard error. Any other error, such as a full disk, is ignored: only this
/// text is lost, because answers are written elsewhere.
pub fn say(text: &Text) -> io::Result<()> {
    errors(&(text.styled(|| Style::new().for_stderr()) + "\n"))
}

/// Writes a text of several lines to standard output without styles.
///
/// # Errors
/// If standard output cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    output(&visible::visible_text(text))
}

/// Writes styled text to standard output.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_styled(text: &Text) -> io::Result<()> {
    output(&text.styled(Style::new))
}

/// Writes JSON to standard output, with all control characters escaped.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_json(text: &str) -> io::Result<()> {
    output(&visible::visible_json(text))
}

/// Passes on the output of the user's own command unchanged.
///
/// # Errors
/// If the channel cannot be written.
pub fn pass(channel: Channel, bytes: &[u8]) -> io::Result<()> {
    write_to_channel(channel, bytes)
}

/// Draws on the terminal. [`crate::shell`] made the text from cells, so it is safe.
///
/// # Errors
/// If standard output cannot be written.
pub fn draw(text: &str) -> io::Result<()> {
    write_to_channel(Channel::Output, text.as_bytes())
}

/// Writes text that is already visible to standard output.
pub(super) fn output(text: &str) -> io::Result<()> {
    write_to_channel(Channel::Output, text.as_bytes())
}

/// Writes text that is already visible to standard error. Fails only if the reader closed it.
pub(super) fn errors(text: &str) -> io::Result<()> {
    write_to_channel(Channel::Errors, text.as_bytes()).or_else(if_read)
}

fn if_read(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Err(error) } else { Ok(()) }
}

/// Drops all later writes, so that a terminal that accepts nothing cannot keep the process alive.
pub fn give_up() {
    GIVEN_UP.store(true, SeqCst);
}

/// Returns true if all writes are dropped.
fn has_given_up() -> bool {
    GIVEN_UP.load(SeqCst)
}

fn write_to_channel(channel: Channel, bytes: &[u8]) -> io::Result<()> {
    // Check this before taking the lock: another thread may hold it in a write that never ends.
    if has_given_up() {
        return Ok(());
    }
    let is_terminal = match channel {
        Channel::Output => output_is_terminal(),
        Channel::Errors => errors_are_terminal(),
    };
    if !is_terminal {
        // Write without the lock, so that a slow reader of a pipe does not delay a question.
        return write_now(channel, bytes);
    }
    match held().as_mut() {
        Some(held) => {
            held.take(channel, bytes);
            Ok(())
        }
        None => write_now(channel, bytes),
    }
}

/// Draws the row of a spinner, unless a question is open.
pub(super) fn draw_moving(text: &str) {
    let held = held();
    if held.is_none() && !has_given_up() {
        // If the terminal is gone, there is nothing to show.
        let _ = write_now(Channel::Errors, text.as_bytes());
    }
}

fn write_now(channel: Channel, bytes: &[u8]) -> io::Result<()> {
    match channel {
        Channel::Output if platform::is_output_closed() => Err(Errno::EBADF.into()),
        Channel::Output => {
            let mut out = stdout();
            out.write_all(bytes)?;
            out.flush()
        }
        Channel::Errors => io::stderr().lock().write_all(bytes),
    }
}

impl Held {
    fn take(&mut self, channel: Channel, bytes: &[u8]) {
        let room = HELD_BYTES_MAX - self.bytes;
        let mut end = bytes.len().min(room);
        // Do not cut a UTF-8 character in two. The loop ends immediately if the bytes are not
        // UTF-8.
        while end < bytes.len() && end > 0 && bytes[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        self.cut += bytes.len() - end;
        // Text after the cut would appear out of context, so take no more.
        self.bytes = if end < bytes.len() { HELD_BYTES_MAX } else { self.bytes + end };
        match self.pieces.last_mut() {
            _ if end == 0 => {}
            Some((last, piece)) if *last == channel => piece.extend_from_slice(&bytes[..end]),
            _ => self.pieces.push((channel, bytes[..end].to_vec())),
        }
    }

    /// Takes out the complete lines, in their order.
    pub(super) fn take_lines(&mut self) -> Vec<u8> {
        let has_end = |piece: &(Channel, Vec<u8>)| piece.1.contains(&b'\n');
        let mut lines = Vec::new();
        if let Some(last) = self.pieces.iter().rposition(has_end) {
            let rest = self.pieces.split_off(last);
            for (_, bytes) in self.pieces.drain(..) {
                lines.extend(bytes);
            }
            for (channel, mut bytes) in rest {
                let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let open = bytes.split_off(end);
                lines.extend(bytes);
                if !open.is_empty() {
                    self.pieces.push((channel, open));
                }
            }
        }
        if let Some(note) = self.note() {
            lines.extend(self.pieces.drain(..).flat_map(|(_, bytes)| bytes));
            lines.extend(note.into_bytes());
            self.cut = 0;
        }
        self.bytes = self.pieces.iter().map(|(_, bytes)| bytes.len()).sum();
        lines
    }

    fn note(&self) -> Option<String> {
        (self.cut > 0).then(|| format!("\nnote: {} more bytes of output are not shown\n", self.cut))
    }
}

/// The terminal while a question is open: only the question is written to it. Dropping this value
/// writes the held output.
#[derive(Debug)]
pub struct OpenQuestion {
    /// Whether the last row waits for an answer.
    line_is_open: AtomicBool,
}

/// Opens a question. From this point, all other output is held. [`crate::ask::Stage`] makes sure
/// that only one question is open.
pub fn open_question() -> OpenQuestion {
    *held() = Some(Held::default());
    OpenQuestion { line_is_open: AtomicBool::new(false) }
}

/// Returns true if output is held because a question is open.
pub(super) fn something_is_held() -> bool {
    held().as_ref().is_some_and(|held| !held.pieces.is_empty())
}

/// Returns true if a question is open.
pub(super) fn question_is_open() -> bool {
    held().is_some()
}

/// Writes one of jaato's own control sequences, which switches a mode of the terminal.
///
/// # Errors
/// If the terminal is gone.
pub(super) fn switch(sequence: &'static str) -> io::Result<()> {
    let _held = held();
    if errors_are_terminal() { write_now(Channel::Errors, sequence.as_bytes()) } else { Ok(()) }
}

impl OpenQuestion {
    /// Writes rows of the question.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn say(&self, text: &Text) -> io::Result<()> {
        self.write_text(&(text.styled(|| Style::new().for_stderr()) + "\n"))
    }

    /// Writes the text before the answer and leaves the row open.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn say_open(&self, text: &Text) -> io::Result<()> {
        self.write_text(&text.styled(|| Style::new().for_stderr()))?;
        self.line_is_open.store(true, SeqCst);
        Ok(())
    }

    /// Erases the open row.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn erase_row(&self) -> io::Result<()> {
        self.row_has_ended();
        self.write_text(ERASE_ROW)
    }

    /// Redraws the row of the edited line, with the cursor `columns_after` columns before its end.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn draw_row(&self, text: &Text, columns_after: usize) -> io::Result<()> {
        self.line_is_open.store(true, SeqCst);
        let back = match columns_after {
            0 => String::new(),
            columns => format!("\u{1b}[{columns}D"),
        };
        self.write_text(&format!("{ERASE_ROW}{}{back}", text.styled(|| Style::new().for_stderr())))
    }

    /// Erases the open row and `rows_above` rows above it.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn erase_rows(&self, rows_above: usize) -> io::Result<()> {
        self.row_has_ended();
        let up = match rows_above {
            0 => String::new(),
            rows => format!("\u{1b}[{rows}A"),
        };
        self.write_text(&format!("\r{up}{ERASE_BELOW}"))
    }

    /// Shows held output and all later output above the line that the user types. The line's editor
    /// prints it when it is ready.
    pub fn print_above(&self, printer: Printer) {
        if let Some(held) = held().as_mut() {
            held.above = Some(Above::new(printer));
        }
    }

    /// Ends the open row, unless the user's input ended it.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn end_row(&self) -> io::Result<()> {
        if self.line_is_open.swap(false, SeqCst) { self.write_text("\n") } else { Ok(()) }
    }

    /// Records that the user ended the open row.
    pub fn row_has_ended(&self) {
        self.line_is_open.store(false, SeqCst);
    }

    fn write_text(&self, text: &str) -> io::Result<()> {
        let _held = held();
        write_now(Channel::Errors, text.as_bytes())
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let mut held = held();
        let Some(held) = held.take() else { return };
        // If the terminal is gone, nothing is shown, and the next write fails.
        if self.line_is_open.load(SeqCst) {
            let _ = write_now(Channel::Errors, b"\n");
        }
        if let Some(sent) = held.above.as_ref().and_then(Above::not_shown) {
            let _ = write_now(Channel::Errors, sent);
        }
        for (channel, bytes) in &held.pieces {
            let _ = write_now(*channel, bytes);
        }
        if let Some(note) = held.note() {
            let _ = write_now(Channel::Errors, note.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_has_a_bound_and_says_what_was_cut() {
        let mut held = Held::default();
        held.take(Channel::Output, &vec![b'a'; HELD_BYTES_MAX - 1]);
        held.take(Channel::Output, b"b");
        assert_eq!(
            (held.pieces.len(), held.pieces[0].1.len(), held.note()),
            (1, HELD_BYTES_MAX, None)
        );
        held.take(Channel::Errors, b"more");
        assert_eq!((held.pieces.len(), held.cut), (1, 4));
        assert!(held.note().unwrap().contains("4 more bytes of output"));
    }

    #[test]
    fn whole_lines_are_taken_in_their_order_and_an_open_one_stays() {
        let mut held = Held::default();
        assert_eq!(held.take_lines(), b"");
        for (channel, text) in
            [(Channel::Output, "a"), (Channel::Errors, "b\nc"), (Channel::Output, "\nd")]
        {
            held.take(channel, text.as_bytes());
        }
        assert_eq!(held.take_lines(), b"ab\nc\n");
        assert_eq!((held.take_lines(), held.bytes), (Vec::new(), 1));
        held.take(Channel::Errors, &vec![b'x'; HELD_BYTES_MAX]);
        let lines = String::from_utf8(held.take_lines()).unwrap();
        assert!(
            lines.starts_with("dxx") && lines.contains("note: 1 more bytes of output"),
            "{lines:.9}"
        );
        assert_eq!((held.bytes, held.cut), (0, 0));
    }

    #[test]
    fn no_sign_is_cut_in_two_and_nothing_follows_a_cut() {
        let mut held = Held::default();
        held.take(Channel::Errors, &vec![b'a'; HELD_BYTES_MAX - 1]);
        held.take(Channel::Errors, "é".as_bytes());
        held.take(Channel::Errors, b"b");
        assert_eq!((held.pieces[0].1.len(), held.cut), (HELD_BYTES_MAX - 1, 3));
    }
}
