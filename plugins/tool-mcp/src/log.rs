//! What servers print and what becomes of them: the newest lines, for `mcp logs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jaato_plugin_sdk::Error;
use jaato_plugin_sdk::types::mask;
use parking_lot::Mutex;

/// Lines that are kept of all servers, as in the original.
pub const LINES_MAX: usize = 500;
/// Longest line; the rest of it is left out.
const LINE_CHARS_MAX: usize = 500;

/// The newest lines of all servers.
#[derive(Default)]
pub struct Lines(Mutex<VecDeque<Line>>);

/// Where one server's lines go.
#[derive(Clone)]
pub struct ServerLog {
    server: Arc<str>,
    lines: Arc<Lines>,
    /// The texts that no line shows, the longest first.
    secrets: Arc<[String]>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Seconds since 1970.
    pub at: u64,
    /// Whose it is.
    pub server: Arc<str>,
    /// What happened, without what a terminal would obey.
    pub text: String,
}

impl Lines {
    /// Returns where the lines of a server go.
    pub fn of(self: &Arc<Self>, server: &str) -> ServerLog {
        let lines = Arc::clone(self);
        ServerLog { server: server.into(), lines, secrets: Arc::default() }
    }

    /// Lists the lines of one server or of all, the oldest first.
    pub fn list(&self, server: Option<&str>) -> Vec<Line> {
        let is_asked = |line: &&Line| server.is_none_or(|server| server == &*line.server);
        self.0.lock().iter().filter(is_asked).cloned().collect()
    }

    /// Forgets all; returns how many there were.
    pub fn clear(&self) -> usize {
        std::mem::take(&mut *self.0.lock()).len()
    }
}

impl ServerLog {
    /// Hides these texts in every line. The longest comes first.
    pub fn hiding(mut self, secrets: Vec<String>) -> Self {
        self.secrets = secrets.into();
        self
    }

    /// Hides the secrets of the server's entry in a text.
    fn scrubbed(&self, text: &str) -> String {
        let text = self
            .secrets
            .iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), mask::HIDDEN));
        mask::urls(&text)
    }

    /// Hides the secrets of the server's entry in an error.
    pub fn scrubbed_error(&self, error: Error) -> Error {
        let message = self.scrubbed(&error.message);
        let hint = error.hint.map(|hint| self.scrubbed(&hint));
        Error { message, hint, ..error }
    }

    /// Adds a line.
    pub fn line(&self, text: &str) {
        let text = safe(&self.scrubbed(text));
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        let mut lines = self.lines.0.lock();
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(Line { at, server: Arc::clone(&self.server), text });
    }

    /// Returns the server's name.
    pub fn server(&self) -> &str {
        &self.server
    }
}

/// Makes a text of a stranger's one line that a terminal can show: no control characters, none that
/// turn the direction of writing.
pub fn safe(text: &str) -> String {
    let is_bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let safe = |c: char| if is_bad(c) { ' ' } else { c };
    let mut line: String = text.trim_end().chars().take(LINE_CHARS_MAX).map(safe).collect();
    if text.trim_end().chars().nth(LINE_CHARS_MAX).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept_safe_and_short() {
        let lines = Arc::new(Lines::default());
        let (moon, sun) = (lines.of("moon"), lines.of("sun"));
        sun.line("first");
        for number in 0..LINES_MAX {
            moon.line(&format!("\u{1b}[31m{number}\u{202e}"));
        }
        assert!(lines.list(Some("sun")).is_empty());
        let all = lines.list(None);
        assert_eq!((all.len(), all[0].text.as_str()), (LINES_MAX, " [31m0 "));
        moon.line(&"x".repeat(LINE_CHARS_MAX + 1));
        assert_eq!(lines.list(None)[LINES_MAX - 1].text.chars().count(), LINE_CHARS_MAX + 1);
        assert_eq!(lines.clear(), LINES_MAX);
    }

    #[test]
    fn lines_hide_the_secrets_of_the_entry() {
        let lines = Arc::new(Lines::default());
        let log = lines.of("moon").hiding(vec!["SECRET-1".to_owned()]);
        log.line("started with SECRET-1 at https://e.example/?key=SECRET-2");
        assert_eq!(lines.list(None)[0].text, "started with … at https://e.example/?…");
        let error = Error::failed("no SECRET-1 at\nhttp://u:p@h/x").with_hint("use SECRET-1");
        let error = log.scrubbed_error(error);
        assert_eq!(error.message, "no … at\nhttp://***@h/x");
        assert_eq!(error.hint.as_deref(), Some("use …"));
    }
}
