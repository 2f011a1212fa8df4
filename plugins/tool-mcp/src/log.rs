//! Keeps the newest output lines of servers for `mcp logs`. A file stores them, so that they are
//! available after the process has ended.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jaato_plugin_sdk::Error;
use jaato_plugin_sdk::serde::{Deserialize, Serialize};
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::mask;
use jaato_plugin_sdk::types::text::truncate_chars;
use parking_lot::Mutex;

use crate::config::files::replace_file;

/// The maximum number of lines kept, of all servers together, as in the original.
pub const LINES_MAX: usize = 500;
/// The maximum length of a line. The rest is dropped.
const LINE_CHARS_MAX: usize = 500;
/// A larger file is truncated to the newest lines when a process starts.
const FILE_BYTES_MAX: u64 = 512 * 1024;
/// The maximum number of bytes read from the file. Several processes may have written to it since
/// it was truncated.
const READ_BYTES_MAX: u64 = 8 * 1024 * 1024;
const FILE_NAME: &str = "log.jsonl";

/// The newest lines of all servers.
#[derive(Default)]
pub struct ServerLogStore {
    /// The lines of this process.
    own: Mutex<VecDeque<ServerLogLine>>,
    /// The file that stores all lines.
    kept: Option<ServerLogFile>,
}

/// A file of lines.
struct ServerLogFile {
    path: PathBuf,
    /// Opened by the first line. The inner `None` means that opening failed.
    file: Mutex<Option<Option<File>>>,
}

/// The log of one server.
#[derive(Clone)]
pub struct ServerLog {
    server: Arc<str>,
    lines: Arc<ServerLogStore>,
    /// The texts to hide in lines, longest first.
    secrets: Arc<[String]>,
    /// The line that the server printed last.
    printed: Arc<Mutex<Option<String>>>,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub struct ServerLogLine {
    /// Seconds since 1970.
    pub at: u64,
    /// The server's name.
    pub server: String,
    /// The text, without control characters.
    pub text: String,
}

impl ServerLogStore {
    /// Returns the log of a server.
    pub fn server_log(self: &Arc<Self>, server: &str) -> ServerLog {
        let lines = Arc::clone(self);
        let (secrets, printed) = (Arc::default(), Arc::default());
        ServerLog { server: server.into(), lines, secrets, printed }
    }

    /// Creates a log that also stores its lines in `folder`, if given. Blocks, because a large file
    /// is truncated.
    pub fn open_in_folder(folder: Option<&Path>) -> Self {
        let kept = folder.map(|folder| {
            let path = folder.join(FILE_NAME);
            if path.metadata().is_ok_and(|it| it.len() > FILE_BYTES_MAX) {
                // This is only a log. If it cannot be truncated, it is read up to its limit.
                let _ = replace_file(&path, &serialize_lines(&read_log_file(&path)));
            }
            ServerLogFile { path, file: Mutex::default() }
        });
        Self { kept, ..Self::default() }
    }

    /// Lists the lines of one server or of all servers, oldest first. Blocks on the file.
    pub fn list_lines(&self, server: Option<&str>) -> Vec<ServerLogLine> {
        let mut lines = match &self.kept {
            Some(kept) => read_log_file(&kept.path),
            None => self.own.lock().iter().cloned().collect(),
        };
        lines.retain(|line| server.is_none_or(|server| server == line.server));
        lines
    }

    /// Deletes all lines and returns their number. Blocks on the file.
    pub fn clear_logs(&self) -> usize {
        let count = self.list_lines(None).len();
        self.own.lock().clear();
        if let Some(kept) = &self.kept {
            // The next line creates a new file.
            *kept.file.lock() = None;
            let _ = fs::remove_file(&kept.path);
        }
        count
    }

    /// Returns the newest line of a server in this process.
    fn newest_line(&self, server: &str) -> Option<String> {
        let own = self.own.lock();
        own.iter().rev().find(|line| line.server == server).map(|line| line.text.clone())
    }

    fn record_line(&self, line: ServerLogLine) {
        if let Some(kept) = &self.kept {
            kept.append_line(&line);
        }
        let mut own = self.own.lock();
        if own.len() >= LINES_MAX {
            own.pop_front();
        }
        own.push_back(line);
    }
}

impl ServerLog {
    /// Sets the texts to hide in every line, longest first.
    pub fn with_secrets(mut self, secrets: Vec<String>) -> Self {
        self.secrets = secrets.into();
        self
    }

    /// Hides the secrets of the server's entry in a text.
    fn scrub_secrets(&self, text: &str) -> String {
        let text = self
            .secrets
            .iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), mask::HIDDEN));
        mask::mask_urls(&text)
    }

    /// Hides the secrets of the server's entry in an error.
    pub fn scrubbed_error(&self, error: Error) -> Error {
        let message = self.scrub_secrets(&error.message);
        let hint = error.hint.map(|hint| self.scrub_secrets(&hint));
        Error { message, hint, ..error }
    }

    /// Adds a line.
    pub fn add_line(&self, text: &str) {
        let text = sanitize_line(&self.scrub_secrets(text));
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        self.lines.record_line(ServerLogLine { at, server: self.server.to_string(), text });
    }

    /// Adds a line that the server printed.
    pub fn record_printed(&self, text: &str) {
        self.add_line(text);
        *self.printed.lock() = Some(sanitize_line(&self.scrub_secrets(text)));
    }

    /// Returns the server's last printed line since [`ServerLog::forget_last_line`].
    pub fn last_printed(&self) -> Option<String> {
        self.printed.lock().clone()
    }

    /// Forgets the last printed line, before the server is started again.
    pub fn forget_last_line(&self) {
        *self.printed.lock() = None;
    }

    /// Explains why the server ended: `what`, its last printed line, and the last line of its log.
    pub fn exit_reason(&self, what: &str) -> String {
        let printed = self.last_printed();
        let last =
            self.lines.newest_line(&self.server).filter(|last| Some(last) != printed.as_ref());
        let printed = printed.map(|it| format!(": {it}")).unwrap_or_default();
        let last = last.map(|it| format!(" ({it})")).unwrap_or_default();
        format!("{what}{last}{printed}")
    }

    /// Returns the server's name.
    pub fn server_name(&self) -> &str {
        &self.server
    }
}

impl ServerLogFile {
    fn append_line(&self, line: &ServerLogLine) {
        let mut file = self.file.lock();
        let open = || {
            let mut options = File::options();
            options.append(true).create(true).mode(0o600).open(&self.path).ok()
        };
        if let Some(file) = file.get_or_insert_with(open) {
            // This is only a log, so errors are ignored. One write per line keeps processes from
            // mixing their lines.
            let _ = file.write_all(&serialize_lines(std::slice::from_ref(line)));
        }
    }
}

/// Reads the newest lines of a file. Invalid lines are skipped.
fn read_log_file(path: &Path) -> Vec<ServerLogLine> {
    let mut bytes = Vec::new();
    // A missing file counts as empty.
    let _ = File::open(path).map(|file| file.take(READ_BYTES_MAX).read_to_end(&mut bytes));
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines: Vec<ServerLogLine> =
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].to_vec()
}

fn serialize_lines(lines: &[ServerLogLine]) -> Vec<u8> {
    let text = |line: &ServerLogLine| serde_json::to_string(line).unwrap_or_default() + "\n";
    lines.iter().map(text).collect::<String>().into_bytes()
}

/// Makes an untrusted text printable in one line: removes control characters and characters that
/// change the writing direction.
pub fn sanitize_line(text: &str) -> String {
    let is_bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let safe = |c: char| if is_bad(c) { ' ' } else { c };
    truncate_chars(text.trim_end(), LINE_CHARS_MAX).chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_log_lines_are_kept_sanitized_and_truncated() {
        let lines = Arc::new(ServerLogStore::default());
        let (moon, sun) = (lines.server_log("moon"), lines.server_log("sun"));
        sun.add_line("first");
        for number in 0..LINES_MAX {
            moon.add_line(&format!("\u{1b}[31m{number}\u{202e}"));
        }
        assert!(lines.list_lines(Some("sun")).is_empty());
        let all = lines.list_lines(None);
        assert_eq!((all.len(), all[0].text.as_str()), (LINES_MAX, " [31m0 "));
        moon.add_line(&"x".repeat(LINE_CHARS_MAX + 1));
        assert_eq!(lines.list_lines(None)[LINES_MAX - 1].text.chars().count(), LINE_CHARS_MAX + 1);
        assert_eq!(lines.clear_logs(), LINES_MAX);
    }

    #[test]
    fn log_lines_survive_the_process_and_a_long_file_is_truncated() {
        let folder = tempfile::tempdir().unwrap();
        let lines = || Arc::new(ServerLogStore::open_in_folder(Some(folder.path())));
        let first = lines();
        first
            .server_log("moon")
            .with_secrets(vec!["SECRET-1".to_owned()])
            .record_printed("SECRET-1 failed");
        let texts = |lines: &ServerLogStore| -> Vec<String> {
            lines.list_lines(Some("moon")).into_iter().map(|line| line.text).collect()
        };
        assert_eq!(texts(&lines()), ["… failed"]);
        let log = first.server_log("moon");
        (0..3000).for_each(|number| log.add_line(&format!("{number} {}", "x".repeat(200))));
        let next = lines();
        let path = folder.path().join(FILE_NAME);
        assert!(path.metadata().unwrap().len() < FILE_BYTES_MAX);
        assert!(texts(&next).len() == LINES_MAX && texts(&next)[LINES_MAX - 1].starts_with("2999"));
        assert_eq!(next.clear_logs(), LINES_MAX);
        next.server_log("moon").add_line("again");
        assert_eq!(texts(&lines()), ["again"]);
    }

    #[test]
    fn ended_server_is_reported_with_its_last_output() {
        let log = Arc::new(ServerLogStore::default()).server_log("moon");
        assert_eq!(log.exit_reason("it ended"), "it ended");
        log.record_printed("Error: no such module");
        log.add_line("it ended with code 1");
        let told = "it ended (it ended with code 1): Error: no such module";
        assert_eq!(log.exit_reason("it ended"), told);
        log.forget_last_line();
        assert_eq!(log.exit_reason("it ended"), "it ended (it ended with code 1)");
    }

    #[test]
    fn lines_hide_the_secrets_of_the_entry() {
        let lines = Arc::new(ServerLogStore::default());
        let log = lines.server_log("moon").with_secrets(vec!["SECRET-1".to_owned()]);
        log.add_line("started with SECRET-1 at https://e.example/?key=SECRET-2");
        assert_eq!(lines.list_lines(None)[0].text, "started with … at https://e.example/?…");
        let error = Error::failed("no SECRET-1 at\nhttp://u:p@h/x").with_hint("use SECRET-1");
        let error = log.scrubbed_error(error);
        assert_eq!(error.message, "no … at\nhttp://***@h/x");
        assert_eq!(error.hint.as_deref(), Some("use …"));
    }
}
