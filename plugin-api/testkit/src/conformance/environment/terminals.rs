//! Checks of environments with terminals.

use std::time::Duration;

use jaato_types::execution::{STREAM_CLOSE, STREAM_END, STREAM_KEY, STREAM_NEXT};
use jaato_types::execution::{StreamClose, StreamNext};
use jaato_types::process::{ProcessExit, Signal};
use jaato_types::terminal::{
    END, RESIZE, SIGNAL, SPAWN, STATE, TerminalEvent, TerminalSpawn, TerminalState, WRITE,
};
use jaato_types::{ErrorKind, Frame, Result};
use serde_json::{Value, json};

use super::commands::{OUTPUT_BYTES_MAX, display_text};
use super::{PreparedEnvironment, ask_environment, ask_with_bytes, call_environment};
use crate::FakeHost;
use crate::conformance::{ConformanceSuite, ConformanceVerdict, ensure, prefix_error};

/// Longer than a program takes to read its input.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal number that does not exist.
const NOBODYS: u64 = 1 << 40;

/// A program on a terminal, and its output.
struct TerminalProgramScreen<'a> {
    ready: &'a PreparedEnvironment<'a>,
    terminal: u64,
    stream: u64,
    seen: Vec<u8>,
    exit: Option<ProcessExit>,
}

impl<'a> TerminalProgramScreen<'a> {
    /// Runs a shell command on a terminal of 33 rows and 101 columns.
    fn start_program(
        ready: &'a PreparedEnvironment<'a>,
        line: &str,
    ) -> std::result::Result<Self, String> {
        let spawn = TerminalSpawn {
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), line.to_owned()],
            rows: 33,
            columns: 101,
            ..TerminalSpawn::default()
        };
        let spawned: Value =
            ask_environment(ready.instance, SPAWN, &spawn).map_err(prefix_error("a terminal"))?;
        let number = |key: &str| spawned[key].as_u64().ok_or(format!("it has no `{key}`"));
        let (terminal, stream) = (number("terminal")?, number(STREAM_KEY)?);
        Ok(Self { ready, terminal, stream, seen: Vec::new(), exit: None })
    }

    /// Reads one piece. Returns false after the last one.
    fn read_piece(&mut self) -> std::result::Result<bool, String> {
        let next = StreamNext { stream: self.stream, ..StreamNext::default() };
        let frame = call_environment(self.ready.instance, STREAM_NEXT, &next, &[])
            .map_err(prefix_error("its stream"))?;
        let parsed = Frame::parse(&frame).map_err(|error| error.to_string())?;
        if parsed.json == STREAM_END.to_string().as_bytes() {
            return Ok(false);
        }
        match parsed.json().map_err(|error| format!("no event: {error}"))? {
            TerminalEvent::Output => self.seen.extend_from_slice(parsed.bytes),
            TerminalEvent::Exited(exit) => self.exit = Some(exit),
            TerminalEvent::Unknown => {}
        }
        ensure(self.seen.len() < OUTPUT_BYTES_MAX, || "its output does not end".into())?;
        Ok(true)
    }

    fn has(&self, text: &str) -> bool {
        self.seen.windows(text.len()).any(|seen| seen == text.as_bytes())
    }

    /// Reads until a text is shown.
    fn read_until(&mut self, text: &str) -> ConformanceVerdict {
        while !self.has(text) {
            let has_more = self.read_piece()? && self.exit.is_none();
            ensure(has_more || self.has(text), || {
                format!("it ended with {:?}, without {text:?}", display_text(&self.seen))
            })?;
        }
        Ok(())
    }

    /// Reads to the end and returns the exit.
    fn read_to_end(mut self) -> std::result::Result<ProcessExit, String> {
        while self.read_piece()? {}
        let closed: Result<Value> = ask_environment(
            self.ready.instance,
            STREAM_CLOSE,
            &StreamClose { stream: self.stream, ..StreamClose::default() },
        );
        closed.map_err(prefix_error("closing a stream"))?;
        self.exit.ok_or("it does not report its exit".into())
    }

    fn run_operation(&self, operation: &str, mut request: Value) -> ConformanceVerdict {
        request["terminal"] = self.terminal.into();
        self.ready
            .ask_environment::<Value>(operation, request)
            .map(drop)
            .map_err(prefix_error(operation))
    }

    fn type_text(&self, text: &str) -> ConformanceVerdict {
        let named = json!({ "terminal": self.terminal });
        let typed: Result<Value> =
            ask_with_bytes(self.ready.instance, WRITE, &named, text.as_bytes());
        typed.map(drop).map_err(prefix_error("typing"))
    }

    /// Writes input to a program that reads, with a limit on the time. An environment that enforces
    /// the limit returns how many bytes the terminal took.
    fn type_text_within(&self, text: &str, longest: Duration) -> ConformanceVerdict {
        let wait_ms = longest.as_millis() as u64;
        let named = json!({ "terminal": self.terminal, "wait_ms": wait_ms });
        let typed: Value = ask_with_bytes(self.ready.instance, WRITE, &named, text.as_bytes())
            .map_err(prefix_error("typing within a time"))?;
        ensure(typed["bytes"].is_null() || typed["bytes"] == text.len(), || {
            format!("of {} bytes that were typed it tells {}", text.len(), typed["bytes"])
        })
    }
}

/// Returns true if the environment has terminals. Without them, [`SPAWN`] is an unknown operation.
fn has_terminals(ready: &PreparedEnvironment<'_>) -> bool {
    ready.has_operation(SPAWN, json!({ "program": "no-such-moon" }))
}

/// A program runs on a terminal of the requested size, notices a new size, reads input, and ends
/// with its exit code.
pub fn terminals_have_size_and_input(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if has_terminals(&ready) {
        let line = "test -t 0 && test -t 1 && test -t 2 && echo \"on $TERM\"; stty size; read moon; \
            stty size; echo \"it is $moon\"; exit 4";
        let mut screen = TerminalProgramScreen::start_program(&ready, line)?;
        screen.read_until("33 101\r\n")?;
        ensure(screen.has("on xterm-256color\r\n"), || {
            format!(
                "its streams are not a terminal, or `TERM` is wrong: {:?}",
                display_text(&screen.seen)
            )
        })?;
        screen.run_operation(RESIZE, json!({ "rows": 5, "columns": 70 }))?;
        let state: TerminalState = ready
            .ask_environment(STATE, json!({ "terminal": screen.terminal }))
            .map_err(prefix_error("a look at it"))?;
        ensure(state.echoes != Some(false), || {
            format!("it does not show what is typed: {state:?}")
        })?;
        screen.type_text_within("full\n", PATIENCE)?;
        screen.read_until("full\r\n5 70\r\n")?;
        screen.read_until("it is full\r\n")?;
        let exit = screen.read_to_end()?;
        ensure(exit.code == Some(4), || format!("its exit: {exit:?}"))?;
    }
    ready.shut_down(host)
}

/// A signal and the key for it reach the foreground program.
pub fn terminals_signal_their_foreground(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if has_terminals(&ready) {
        let line = "trap 'echo caught; exit 6' INT; echo up; while :; do sleep 0.01; done";
        for how in ["a signal", "a key"] {
            let mut screen = TerminalProgramScreen::start_program(&ready, line)?;
            screen.read_until("up\r\n")?;
            match how {
                "a key" => screen.type_text("\x03")?,
                _ => screen.run_operation(SIGNAL, json!({ "signal": Signal::Interrupt }))?,
            }
            screen.read_until("caught\r\n").map_err(|what| format!("{how}: {what}"))?;
            let exit = screen.read_to_end()?;
            ensure(exit.code == Some(6), || format!("{how}: its exit: {exit:?}"))?;
        }
    }
    ready.shut_down(host)
}

/// A program that was ended on a terminal reports so, and its number becomes invalid when its
/// stream is closed.
pub fn a_terminal_is_ended(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if has_terminals(&ready) {
        // A hangup alone does not end this program.
        let mut screen = TerminalProgramScreen::start_program(
            &ready,
            "trap '' HUP INT; echo up; sleep 300; echo late",
        )?;
        screen.read_until("up\r\n")?;
        screen.run_operation(END, json!({}))?;
        let named = json!({ "terminal": screen.terminal });
        while screen.read_piece()? {}
        ensure(!screen.has("late"), || "it continued after its end".into())?;
        let exit = screen.read_to_end()?;
        ensure(exit.code != Some(0), || format!("it ended well: {exit:?}"))?;
        let gone: Result<Value> = ready.ask_environment(STATE, named);
        let is_gone = gone.is_err_and(|error| error.kind == ErrorKind::NotFound);
        ensure(is_gone, || "a closed terminal still exists".into())?;
    }
    ready.shut_down(host)
}

/// Processes that a program left running are ended too, if the exit reports them.
pub fn processes_left_by_a_terminal_are_ended(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if has_terminals(&ready) {
        let line = "(trap '' HUP; echo up; exec sleep 300) & \
            while ! kill -0 $!; do :; done; read moon; exit 5";
        let mut screen = TerminalProgramScreen::start_program(&ready, line)?;
        screen.read_until("up\r\n")?;
        screen.type_text("\n")?;
        while screen.read_piece()? && screen.exit.is_none() {}
        let exit = screen.exit.clone().unwrap_or_default();
        ensure(exit.code == Some(5), || format!("its exit: {exit:?}"))?;
        let left = exit.left_running.iter().find(|process| process.name == "sleep");
        if let Some(left) = left {
            screen.run_operation(END, json!({}))?;
            // The process may end a moment later.
            let line = format!("while kill -0 {}; do sleep 0.01; done; echo gone", left.pid);
            TerminalProgramScreen::start_program(&ready, &line)?.read_until("gone\r\n")?;
        }
        screen.read_to_end()?;
    }
    ready.shut_down(host)
}

/// Unknown terminals, unknown programs and invalid sizes are refused.
pub fn bad_requests_of_terminals_are_refused(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if has_terminals(&ready) {
        let refused = |operation: &str, request: Value, kind: ErrorKind| {
            let asked: Result<Value> = ready.ask_environment(operation, request);
            let is_told = asked.is_err_and(|error| error.kind == kind);
            ensure(is_told, || format!("`{operation}` does not fail with `{}`", kind.name()))
        };
        let nobodys = json!({ "terminal": NOBODYS, "rows": 5, "columns": 7, "signal": "kill" });
        for operation in [WRITE, RESIZE, SIGNAL, STATE, END] {
            refused(operation, nobodys.clone(), ErrorKind::NotFound)?;
        }
        let spawn =
            |program: &str, directory: &str| json!({ "program": program, "directory": directory });
        refused(SPAWN, spawn("no-such-moon", ""), ErrorKind::NotFound)?;
        refused(SPAWN, spawn("sh", "no-such-folder"), ErrorKind::NotFound)?;
        let mut screen =
            TerminalProgramScreen::start_program(&ready, "echo up; read moon; exit 7")?;
        screen.read_until("up\r\n")?;
        let flat = json!({ "terminal": screen.terminal, "rows": 0, "columns": 7 });
        refused(RESIZE, flat, ErrorKind::InvalidArguments)?;
        screen.type_text("\n")?;
        let exit = screen.read_to_end()?;
        ensure(exit.code == Some(7), || format!("it does not live on: {exit:?}"))?;
    }
    ready.shut_down(host)
}

/// Starts a program on a terminal and leaves it running.
pub(super) fn leave_terminal_open(ready: &PreparedEnvironment<'_>) -> ConformanceVerdict {
    if has_terminals(ready) {
        TerminalProgramScreen::start_program(ready, "trap '' HUP; echo up; sleep 300")?
            .read_until("up\r\n")?;
    }
    Ok(())
}
