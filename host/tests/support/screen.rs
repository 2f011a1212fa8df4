//! Screens as a user sees them, drawn by a terminal emulator from jaato's output.
//!
//! Colours become marks: `‹red:…›`. Durations and the test's own folder are normalized.

use std::fmt::Write as _;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::time::Instant;

use super::command::{DEADLINE, LOOK_AGAIN, Running};
use super::{Command, House, skip};

/// Runs a shell line on its own terminal, and records the terminal's output in a file. The program
/// `script` creates the terminal, if it is installed.
pub fn run_recorded(
    house: &House,
    line: &str,
    record: &Path,
    change: impl FnOnce(Command) -> Command,
) -> Option<Running> {
    let found = std::process::Command::new("script").arg("--version").output();
    if !found.is_ok_and(|output| output.status.success()) {
        skip("`script` is not installed");
        return None;
    }
    let record = record.to_str().unwrap();
    let words = ["--quiet", "--return", "--flush", "--command", line, record];
    let command = Command::program(house, "script", &words).variable("SHELL", "/bin/sh");
    Some(change(command).start())
}

/// A size of a terminal.
#[derive(Clone, Copy)]
pub struct ScreenSize {
    pub rows: u16,
    pub columns: u16,
}

/// A terminal that runs jaato.
pub struct RecordedTerminal<'a> {
    house: &'a House,
    size: ScreenSize,
    running: Running,
}

impl<'a> RecordedTerminal<'a> {
    /// Runs jaato on a terminal of this size. Returns `None` if no terminal can be created.
    pub fn begin(
        house: &'a House,
        words: &str,
        size: ScreenSize,
        variable: Option<(&str, &str)>,
    ) -> Option<Self> {
        let ScreenSize { rows, columns } = size;
        let binary = house.binary().display().to_string();
        let line = format!("stty rows {rows} cols {columns}; exec '{binary}' {words}");
        let running = run_recorded(house, &line, &house.path().join("screen"), |command| {
            let command = command.variable("TERM", "xterm-256color").with_long_deadline();
            match variable {
                Some((name, value)) => command.variable(name, value),
                None => command,
            }
        })?;
        Some(Self { house, size, running })
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    pub fn wait_until_shown(&self, text: &str) {
        let begun = Instant::now();
        while !self.plain_rows().contains(text) {
            assert!(begun.elapsed() < DEADLINE, "`{text}` does not appear:\n{}", self.plain_rows());
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Waits until a text was written to the terminal, even if later output has replaced it.
    #[track_caller]
    pub fn wait_until_written(&self, text: &str) {
        let begun = Instant::now();
        let was_shown = || {
            let recorded = fs::read(self.house.path().join("screen")).unwrap_or_default();
            String::from_utf8_lossy(&recorded).contains(text)
        };
        while !was_shown() {
            assert!(
                begun.elapsed() < 5 * DEADLINE,
                "`{text}` did not appear:\n{}",
                self.plain_rows()
            );
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Types bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.running.write(bytes);
    }

    /// Ends jaato and returns its last screen for a snapshot.
    pub fn last_screen(self) -> String {
        let Self { house, size, running } = self;
        running.wait_with_open_input();
        drawn_screen(house, size)
    }

    /// Returns the current screen for a snapshot.
    pub fn current_screen(&self) -> String {
        drawn_screen(self.house, self.size)
    }

    /// Returns the rows with text, without colours.
    fn plain_rows(&self) -> String {
        run_in_emulator(self.house, self.size).screen().contents()
    }
}

/// Returns the terminal's state.
fn run_in_emulator(house: &House, size: ScreenSize) -> vt100::Parser {
    let recorded = fs::read(house.path().join("screen")).unwrap_or_default();
    // `script` writes its own line before and after.
    let begin = recorded.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let end = recorded.windows(13).rposition(|it| it == b"\nScript done ");
    let own = &recorded[begin.min(recorded.len())..end.unwrap_or(recorded.len())];
    let [rows, columns] = [size.rows, size.columns].map(|it| NonZero::new(it).unwrap());
    let mut parser = vt100::Parser::new(rows, columns, 0);
    parser.process(own);
    parser
}

/// Returns the terminal's screen for a snapshot.
fn drawn_screen(house: &House, size: ScreenSize) -> String {
    let parser = run_in_emulator(house, size);
    let screen = parser.screen();
    let mut text = String::new();
    for row in 0..size.rows {
        let mut line = String::new();
        let mut mark = String::new();
        for column in 0..size.columns {
            let Some(cell) = screen.cell(row, column) else { continue };
            if cell.is_wide_continuation() {
                continue;
            }
            let wanted =
                if cell.contents().trim().is_empty() { mark.clone() } else { style_name(cell) };
            if wanted != mark {
                close_mark(&mut line, &mark);
                if !wanted.is_empty() {
                    let _ = write!(line, "‹{wanted}:");
                }
                mark = wanted;
            }
            line.push_str(if cell.has_contents() { cell.contents() } else { " " });
        }
        close_mark(&mut line, &mark);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    normalize_folder_names(&without_session_ids(&normalize_durations(
        &house.normalize_output(text.trim_end()),
    )))
}

/// Replaces the ids of sessions by one of the same length.
fn without_session_ids(text: &str) -> String {
    const ID: &str = "20260101-000000-abcdef";
    let is_id = |part: &[u8]| {
        part.iter().zip(ID.bytes()).all(|(found, byte)| match byte {
            b'-' => *found == b'-',
            b'a'..=b'z' => found.is_ascii_alphanumeric(),
            _ => found.is_ascii_digit(),
        })
    };
    let mut alike = text.to_owned();
    let ids: Vec<usize> = text
        .as_bytes()
        .windows(ID.len())
        .enumerate()
        .filter_map(|(at, part)| is_id(part).then_some(at))
        .collect();
    for at in ids {
        alike.replace_range(at..at + ID.len(), ID);
    }
    alike
}

/// Ends a mark after the last letter that has it.
fn close_mark(line: &mut String, mark: &str) {
    if !mark.is_empty() {
        let end = line.trim_end().len();
        line.insert(end, '›');
    }
}

/// Returns the name of a cell's style, empty for plain text.
fn style_name(cell: &vt100::Cell) -> String {
    const COLOURS: [&str; 8] =
        ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
    let colour = match cell.fgcolor() {
        vt100::Color::Default => None,
        vt100::Color::Idx(number) => {
            Some(COLOURS.get(usize::from(number % 8)).map_or("other", |name| name))
        }
        vt100::Color::Rgb(..) => Some("other"),
    };
    let looks = [
        colour,
        cell.bold().then_some("bold"),
        cell.dim().then_some("dim"),
        cell.italic().then_some("italic"),
        cell.underline().then_some("underlined"),
        cell.inverse().then_some("inverse"),
    ];
    looks.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Normalizes the random folder names of sessions.
fn normalize_folder_names(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some((_, folder)) = text.split_once("/session-") {
        let folder: String = folder.chars().take_while(|it| *it != '/').collect();
        text = text.replace(&format!("/session-{folder}"), "/session-NAME");
    }
    text
}

/// The text before a duration in a result.
const WAITED: &str = "waited_ms ";

/// Normalizes durations.
fn normalize_durations(text: &str) -> String {
    let mut alike = String::new();
    for line in text.lines() {
        if let Some((begin, _)) = line.split_once(WAITED) {
            // The number of digits determines how much of the rest fits.
            let _ = writeln!(alike, "{begin}{WAITED}N");
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let is_unit = |word: &&str| {
            let unit = word.trim_end_matches(|it: char| !it.is_ascii_lowercase());
            matches!(unit, "ms" | "s")
        };
        for (at, word) in words.iter().enumerate() {
            let digits = word.trim_start_matches(|it: char| !it.is_ascii_digit());
            let is_number = !digits.is_empty()
                && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let is_duration = is_number && words.get(at + 1).is_some_and(is_unit);
            if at > 0 {
                alike.push(' ');
            }
            match is_duration {
                true => alike.push_str(&word.replace(digits, "N")),
                false if at > 0 && is_unit(word) && alike.ends_with("N ") => {
                    alike.push_str(&word.replacen("ms", "s", 1));
                }
                false => alike.push_str(word),
            }
        }
        alike.push('\n');
    }
    alike
}
