//! Shows one terminal live, and types there if requested.

use std::io;

use jaato_runtime::types::terminal::TerminalScreen;
use jaato_runtime::{FoundTerminal, JoinedTerminal, TerminalReply, join_terminal};
use nix::sys::signal::{Signal, raise};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

use super::draw::{DrawnScreen, ScreenFrame};
use super::screen::CellGrid;
use super::tty::{Tty, read_keys};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{report, terminal};

/// The key that always leaves: Ctrl-].
const LEAVE: u8 = 0x1d;

/// Keys that leave if keys are not typed: Ctrl-C, q.
const LEAVE_LOOKING: [u8; 2] = [0x03, b'q'];

/// The purpose of joining a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachPurpose {
    /// To watch it.
    Look,
    /// To watch it and type there.
    Type,
}

/// How the connection ended.
enum AttachEnd {
    /// The user left.
    Left,
    /// A signal ended it.
    Signal,
    /// The model's terminal has ended.
    Ended,
    /// Its host is gone.
    Gone,
    /// The host refused.
    Refused(String),
}

/// The shown state.
struct AttachedTerminal {
    screen: CellGrid,
    cursor: Option<(u16, u16)>,
    is_alive: bool,
    command: String,
    /// The problem with the typed text.
    trouble: Option<String>,
}

/// Joins a terminal.
pub async fn attach_found_terminal(found: &FoundTerminal, purpose: AttachPurpose) -> CommandResult {
    let is_live = terminal::input_is_terminal() && terminal::output_is_terminal();
    if purpose == AttachPurpose::Type && !is_live {
        let text = "`--type` is refused: standard input and output must be a terminal";
        return Err(CommandFailure::new(Exit::Usage, text)
            .hint("without `--type`, jaato prints the current screen"));
    }
    let name = found.listed.full_name();
    let lost = |error: io::Error| {
        CommandFailure::new(Exit::Failed, format!("cannot join `{name}`: {error}"))
    };
    let mut joined = join_terminal(found, purpose == AttachPurpose::Type).await.map_err(lost)?;
    let end = if is_live {
        show_terminal(&mut joined, &name, purpose).await.map_err(lost)?
    } else {
        print_screen(&mut joined).await.map_err(lost)??
    };
    match end {
        AttachEnd::Left => Ok(Exit::Done),
        AttachEnd::Signal => Ok(Exit::Cancelled),
        AttachEnd::Ended => {
            report::print_notes(&format!("`{name}` has ended"));
            Ok(Exit::Done)
        }
        AttachEnd::Gone => {
            Err(CommandFailure::new(Exit::Failed, format!("the host of `{name}` has ended")))
        }
        AttachEnd::Refused(why) => {
            Err(CommandFailure::new(Exit::Failed, format!("cannot join `{name}`: {why}")))
        }
    }
}

/// Prints the current screen as text.
async fn print_screen(
    joined: &mut JoinedTerminal,
) -> io::Result<Result<AttachEnd, CommandFailure>> {
    while let Some(reply) = joined.next().await? {
        match reply {
            TerminalReply::Screen { screen, .. } => {
                return Ok(report::print_line(&screen.lines.join("\n")).map(|()| AttachEnd::Left));
            }
            TerminalReply::Refused { message } => return Ok(Ok(AttachEnd::Refused(message))),
            TerminalReply::Ended => return Ok(Ok(AttachEnd::Ended)),
            TerminalReply::Attached { .. }
            | TerminalReply::Terminals { .. }
            | TerminalReply::NotTyped { .. }
            | TerminalReply::Unknown => {}
        }
    }
    Ok(Ok(AttachEnd::Gone))
}

/// Shows the terminal until the user leaves, or something ends it. Then restores the user's own
/// terminal.
async fn show_terminal(
    joined: &mut JoinedTerminal,
    name: &str,
    purpose: AttachPurpose,
) -> io::Result<AttachEnd> {
    let mut signals = AttachSignalStreams::listen()?;
    let mut tty = Tty::take()?;
    let mut typed = read_keys()?;
    let mut drawn = DrawnScreen::default();
    let mut shown: Option<AttachedTerminal> = None;
    loop {
        tokio::select! {
            reply = joined.next() => match reply? {
                None => return Ok(AttachEnd::Gone),
                Some(TerminalReply::Ended) => return Ok(AttachEnd::Ended),
                Some(TerminalReply::Refused { message }) => return Ok(AttachEnd::Refused(message)),
                Some(TerminalReply::Screen { screen, ansi }) => shown = Some(AttachedTerminal::from_screen(screen, &ansi)),
                Some(TerminalReply::NotTyped { message }) => {
                    if let Some(shown) = &mut shown {
                        shown.trouble = Some(message);
                    }
                }
                Some(
                    TerminalReply::Attached { .. }
                    | TerminalReply::Terminals { .. }
                    | TerminalReply::Unknown,
                ) => {}
            },
            bytes = typed.recv() => {
                let Some(bytes) = bytes else { return Ok(AttachEnd::Left) };
                let (to_type, leaves) = split_leave_key(&bytes, purpose);
                if !to_type.is_empty() {
                    joined.type_bytes(to_type).await?;
                }
                if leaves {
                    return Ok(AttachEnd::Left);
                }
            }
            what = signals.next() => match what {
                AttachSignal::End => return Ok(AttachEnd::Signal),
                AttachSignal::NewSize => {}
                AttachSignal::Stop => {
                    tty.give_back();
                    // Stops here until the process is continued.
                    raise(Signal::SIGSTOP)?;
                    tty.take_again()?;
                    drawn.forget();
                }
            },
        }
        if let Some(shown) = &shown {
            let status = shown.status_text(name, purpose);
            let frame = ScreenFrame {
                screen: &shown.screen,
                cursor: shown.cursor,
                status: &status,
                types: purpose == AttachPurpose::Type,
            };
            tty.write(&drawn.draw(Tty::size(), &frame))?;
        }
    }
}

/// Returns the keys to type, and whether one of them leaves.
fn split_leave_key(bytes: &[u8], purpose: AttachPurpose) -> (&[u8], bool) {
    let leaves = |byte: &u8| {
        *byte == LEAVE || (purpose == AttachPurpose::Look && LEAVE_LOOKING.contains(byte))
    };
    let leave = bytes.iter().position(leaves);
    let to_type = match purpose {
        AttachPurpose::Look => &[],
        AttachPurpose::Type => &bytes[..leave.unwrap_or(bytes.len())],
    };
    (to_type, leave.is_some())
}

impl AttachedTerminal {
    fn from_screen(screen: TerminalScreen, ansi: &str) -> Self {
        let TerminalScreen { rows, columns, cursor, is_alive, command, lines, .. } = screen;
        let lines = lines.join("\r\n");
        // A screen without colours is better than nothing.
        let ansi = if ansi.is_empty() { &lines } else { ansi };
        let cursor = cursor.map(|(row, column)| {
            (row.min(rows.saturating_sub(1)), column.min(columns.saturating_sub(1)))
        });
        let screen = CellGrid::read(rows, columns, ansi);
        Self { screen, cursor, is_alive, command, trouble: None }
    }

    fn status_text(&self, name: &str, purpose: AttachPurpose) -> String {
        let how = match (&self.trouble, purpose) {
            (Some(trouble), _) => trouble.as_str(),
            (None, AttachPurpose::Look) => "viewing: q quits",
            (None, AttachPurpose::Type) => "typing: Ctrl-] quits",
        };
        let ended = if self.is_alive { "" } else { " (ended)" };
        format!(" {name} · {how} · {}{ended}", self.command)
    }
}

/// A signal from the system.
enum AttachSignal {
    End,
    NewSize,
    Stop,
}

/// Signals that would leave the terminal unusable for a shell, or change its size.
struct AttachSignalStreams {
    interrupt: SignalStream,
    terminate: SignalStream,
    hangup: SignalStream,
    quit: SignalStream,
    size: SignalStream,
    stop: SignalStream,
}

impl AttachSignalStreams {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            size: signal(SignalKind::window_change())?,
            stop: signal(SignalKind::from_raw(Signal::SIGTSTP as i32))?,
        })
    }

    async fn next(&mut self) -> AttachSignal {
        tokio::select! {
            _ = self.interrupt.recv() => AttachSignal::End,
            _ = self.terminate.recv() => AttachSignal::End,
            _ = self.hangup.recv() => AttachSignal::End,
            _ = self.quit.recv() => AttachSignal::End,
            _ = self.size.recv() => AttachSignal::NewSize,
            _ = self.stop.recv() => AttachSignal::Stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_before_the_leave_key_are_typed_only_in_type_mode() {
        let typed = |bytes: &'static [u8]| split_leave_key(bytes, AttachPurpose::Type);
        assert_eq!(typed(b"q\x03"), (b"q\x03".as_slice(), false));
        assert_eq!(typed(b"ls\x1dmore"), (b"ls".as_slice(), true));
        let looked = |bytes: &'static [u8]| split_leave_key(bytes, AttachPurpose::Look);
        assert_eq!(looked(b"rm"), (b"".as_slice(), false));
        for key in [b"q".as_slice(), b"\x03", b"\x1d"] {
            assert_eq!(looked(key), (b"".as_slice(), true));
        }
    }
}
