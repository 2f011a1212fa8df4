//! The services `terminal.show`, `terminal.ask_user` and `terminal.watch`, for a plugin with a
//! terminal.

mod secret_prompt;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_loader::{EngineServiceAnswer, FrameStream};
use jaato_session::Cancel;
use jaato_types::terminal::{ASK, SHOW, TerminalAsk, TerminalScreen, WATCH};
use jaato_types::text::truncate_chars;
use jaato_types::{Error, ErrorKind, Frame, FrameError, PluginName, SessionId};

use crate::board::SharedTerminals;
use secret_prompt::TerminalQuestion;

/// Maximum number of rows and columns of a screen: more than any terminal has.
const SIDE_MAX: u16 = 1000;

/// Maximum bytes of a screen's lines, and of its ANSI text. A screen of 200 by 60 with a colour for
/// each cell needs half of it.
const SCREEN_BYTES_MAX: usize = 512 * 1024;

/// Maximum length of a terminal's name, in characters.
const NAME_MAX: usize = 64;

/// Maximum length of a stored command or prompt, in characters.
const TEXT_MAX: usize = 400;

/// One plugin's access to its terminals on the board.
pub struct TerminalServices {
    /// The board.
    pub board: Arc<SharedTerminals>,
    /// The plugin.
    pub plugin: PluginName,
    /// The session of the call.
    pub session: SessionId,
}

/// Returns true if an operation belongs to these services.
pub fn is_operation(operation: &str) -> bool {
    [SHOW, ASK, WATCH].contains(&operation)
}

impl TerminalServices {
    /// Answers one request.
    pub fn call(
        self,
        operation: &str,
        request: Vec<u8>,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        match operation {
            ASK => Box::pin(async move { self.ask_secret(&request).await }),
            WATCH => Box::pin(std::future::ready(self.watch_user_actions())),
            _ => Box::pin(std::future::ready(self.show_terminal(&request))),
        }
    }

    fn show_terminal(&self, request: &[u8]) -> Result<EngineServiceAnswer, Error> {
        let parsed = Frame::parse(request).map_err(bad_request)?;
        let mut screen: TerminalScreen = parsed.json().map_err(bad_request)?;
        let ansi = std::str::from_utf8(parsed.bytes).map_err(|error| {
            refused_error(format!("the screen's ANSI text is not UTF-8: {error}"))
        })?;
        check_screen(&screen, ansi)?;
        screen.command = truncate_chars(&screen.command, TEXT_MAX);
        let over = self.own_terminal(screen.terminal)?;
        let shown = self.board.show_screen(
            &self.session,
            &self.plugin,
            &over,
            (screen, ansi.to_owned()),
        )?;
        encode_answer(&shown)
    }

    fn watch_user_actions(&self) -> Result<EngineServiceAnswer, Error> {
        let news = self.board.open_user_actions(&self.session, &self.plugin)?;
        Ok(EngineServiceAnswer::Stream(Box::new(FrameStream(news))))
    }

    async fn ask_secret(&self, request: &[u8]) -> Result<EngineServiceAnswer, Error> {
        let ask: TerminalAsk = Frame::read(request).map_err(bad_request)?;
        check_name(&ask.name)?;
        let asked = TerminalQuestion {
            board: Arc::clone(&self.board),
            plugin: self.plugin.clone(),
            session: self.session.clone(),
            over: self.own_terminal(ask.terminal)?,
            ask: TerminalAsk {
                command: truncate_chars(&ask.command, TEXT_MAX),
                prompt: truncate_chars(&ask.prompt, TEXT_MAX),
                ..ask
            },
        };
        encode_answer(&secret_prompt::ask_user(asked).await?)
    }

    /// Checks that the plugin has this terminal. Returns a token that is cancelled when it has
    /// ended.
    fn own_terminal(&self, number: u64) -> Result<Cancel, Error> {
        self.board.sessions()?.terminal_end(&self.session, &self.plugin, number).ok_or_else(|| {
            let text = format!("plugin `{}` has no terminal {number}", self.plugin);
            Error::new(ErrorKind::NotFound, text)
                .with_hint("a plugin can use only terminals that it started in this session")
        })
    }
}

fn check_screen(screen: &TerminalScreen, ansi: &str) -> Result<(), Error> {
    check_name(&screen.name)?;
    let sides = [screen.rows, screen.columns];
    if sides.iter().any(|side| !(1..=SIDE_MAX).contains(side)) {
        let [rows, columns] = sides;
        return Err(refused_error(format!(
            "a screen of {rows} rows and {columns} columns: each must be from 1 to {SIDE_MAX}"
        )));
    }
    if screen.lines.len() > usize::from(screen.rows) {
        let (lines, rows) = (screen.lines.len(), screen.rows);
        return Err(refused_error(format!("{lines} lines on a screen of {rows} rows")));
    }
    let bytes = screen.lines.iter().map(String::len).sum::<usize>().max(ansi.len());
    if bytes > SCREEN_BYTES_MAX {
        return Err(refused_error(format!(
            "a screen of {bytes} bytes: at most {SCREEN_BYTES_MAX}"
        )));
    }
    Ok(())
}

/// Checks a name, which users type and which is part of a path in a list.
fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "_-.".contains(sign);
    if (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    let name = truncate_chars(name, NAME_MAX);
    Err(refused_error(format!(
        "a terminal cannot be called `{}`: letters, digits, `_`, `-` and `.`, at most {NAME_MAX}",
        name.escape_debug()
    )))
}

fn refused_error(text: String) -> Error {
    Error::new(ErrorKind::InvalidArguments, text)
}

fn bad_request(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}

fn encode_answer<T: serde::Serialize>(value: &T) -> Result<EngineServiceAnswer, Error> {
    let written = Frame::write(value);
    written
        .map(EngineServiceAnswer::Frame)
        .map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_screen() -> TerminalScreen {
        let name = "session_0".to_owned();
        TerminalScreen { name, rows: 2, columns: 3, is_alive: true, ..TerminalScreen::default() }
    }

    #[track_caller]
    fn check_error(screen: &TerminalScreen, ansi: &str, expected: &str) {
        let text =
            check_screen(screen, ansi).map_or_else(|error| error.message, |()| String::new());
        assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{text}");
    }

    #[test]
    fn screen_size_lines_and_bytes_are_limited() {
        check_error(&sample_screen(), "", "");
        check_error(&TerminalScreen { rows: 1000, columns: 1000, ..sample_screen() }, "", "");
        check_error(&TerminalScreen { rows: 1001, ..sample_screen() }, "", "1001 rows");
        check_error(&TerminalScreen { columns: 0, ..sample_screen() }, "", "0 columns");
        check_error(&TerminalScreen { lines: vec![String::new(); 2], ..sample_screen() }, "", "");
        let three = TerminalScreen { lines: vec![String::new(); 3], ..sample_screen() };
        check_error(&three, "", "3 lines on a screen of 2 rows");
        check_error(&sample_screen(), &"x".repeat(SCREEN_BYTES_MAX), "");
        check_error(&sample_screen(), &"x".repeat(SCREEN_BYTES_MAX + 1), "524289 bytes");
    }

    #[test]
    fn terminal_name_must_be_short_and_printable() {
        for (name, is_one) in [
            ("session_0", true),
            (&"n".repeat(64), true),
            (&"n".repeat(65), false),
            ("", false),
            ("a/b", false),
            ("a\u{1b}[2J", false),
        ] {
            assert_eq!(check_name(name).is_ok(), is_one, "{name:?}");
        }
    }
}
