//! The host's log: a file in the user's cache, so that plugin output does not land on the terminal.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::visible;

/// The largest log, in bytes. A larger one is renamed to `jaato.log.1` and a new one started, even
/// during writing.
pub const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How many bytes one source may write within [`SOURCE_WINDOW`]. The rest is dropped, because it
/// would push out the lines of all other sources.
pub const SOURCE_BYTES_MAX: u64 = 512 * 1024;

/// How long a source that wrote too much is muted at most.
pub const SOURCE_WINDOW: Duration = Duration::from_secs(60);

/// How many sources are counted separately. Further ones share a limit. A user has about ten
/// plugins.
const SOURCES_MAX: usize = 256;

/// How many bytes are written between two checks of the file, because another process may have
/// replaced it.
const LOOK_EVERY_BYTES: u64 = 64 * 1024;

/// The longest line, in bytes, so that a plugin cannot fill the disk with one call.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// The names of the levels. Their indices are the numbers at the plugin boundary.
const LEVELS: [&str; 5] = ["?", "error", "warn", "info", "debug"];

/// The log. Clones share it. The first line opens the file. If that fails, lines are lost, because
/// a log must not stop the work.
#[derive(Debug, Clone)]
pub struct Log(Arc<LogInner>);

#[derive(Debug)]
struct LogInner {
    path: Option<PathBuf>,
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    file: Option<File>,
    /// Bytes that were written since the last check of the file.
    written: u64,
    sources: HashMap<String, SourceUsage>,
}

/// The lines that a source has written recently.
#[derive(Debug)]
struct SourceUsage {
    since: Instant,
    bytes: u64,
}

/// Whether a source may write.
#[derive(Debug, PartialEq, Eq)]
enum WritePermit {
    Yes,
    /// The last line for now. A note about that is logged once.
    Last,
    No,
}

impl SourceUsage {
    fn count_bytes(&mut self, bytes: u64, now: Instant) -> WritePermit {
        if now.duration_since(self.since) >= SOURCE_WINDOW {
            *self = Self { since: now, bytes: 0 };
        }
        let before = self.bytes;
        self.bytes += bytes;
        match (before > SOURCE_BYTES_MAX, self.bytes > SOURCE_BYTES_MAX) {
            (true, _) => WritePermit::No,
            (false, true) => WritePermit::Last,
            (false, false) => WritePermit::Yes,
        }
    }
}

impl LogState {
    /// Opens the file at the path if it was replaced, and starts a new one if it is too large.
    fn reopen_if_needed(&mut self, path: &Path) {
        self.written = 0;
        let is_it = self.file.as_ref().and_then(|file| file.metadata().ok()).is_some_and(|own| {
            let found = std::fs::metadata(path);
            let is_same =
                |found: std::fs::Metadata| found.ino() == own.ino() && found.dev() == own.dev();
            own.len() <= LOG_BYTES_MAX && found.is_ok_and(is_same)
        });
        if !is_it {
            self.file = open_log_file(path);
        }
    }

    fn write(&mut self, path: &Path, line: &str) {
        if self.file.is_none() || self.written >= LOOK_EVERY_BYTES {
            self.reopen_if_needed(path);
        }
        let Some(file) = self.file.as_mut() else { return };
        self.written += line.len() as u64;
        // One write per line, so that lines of several processes do not mix.
        let _ = file.write_all(line.as_bytes());
    }
}

impl Log {
    /// Creates a log in a folder. Without a folder it records nothing.
    pub fn in_folder(folder: Option<&Path>) -> Self {
        let path = folder.map(|folder| folder.join("jaato.log"));
        Self(Arc::new(LogInner { path, state: Mutex::default() }))
    }

    /// Returns the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Writes one line. `source` is a plugin's name or `host`.
    pub fn write_line(&self, level: u8, source: &str, text: &str) {
        let Some(path) = &self.0.path else { return };
        let text = make_log_text_visible(text);
        let mut state = self.0.state.lock();
        let now = Instant::now();
        let is_known = state.sources.contains_key(source) || state.sources.len() < SOURCES_MAX;
        let key = if is_known { source } else { "" };
        let share = state.sources.entry(key.to_owned());
        let share = share.or_insert(SourceUsage { since: now, bytes: 0 });
        match share.count_bytes(text.len() as u64, now) {
            WritePermit::No => {}
            WritePermit::Yes => state.write(path, &format_log_line(level, source, &text)),
            WritePermit::Last => {
                let told = format!(
                    "`{source}` has written {SOURCE_BYTES_MAX} bytes within {} s: its further \
                     lines in that time are dropped",
                    SOURCE_WINDOW.as_secs()
                );
                state.write(path, &format_log_line(2, "host", &told));
            }
        }
    }
}

fn format_log_line(level: u8, source: &str, text: &str) -> String {
    let level = LEVELS.get(usize::from(level)).unwrap_or(&LEVELS[0]);
    let seconds =
        std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |time| time.as_secs_f64());
    format!("{seconds:.3} {level} {}: {text}\n", visible::visible_name(source))
}

fn open_log_file(path: &Path) -> Option<File> {
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > LOG_BYTES_MAX) {
        let _ = std::fs::rename(path, path.with_extension("log.1"));
    }
    let mut options = OpenOptions::new();
    jaato_places::open_own_file(path, options.append(true).create(true)).ok()
}

fn make_log_text_visible(text: &str) -> String {
    let mut end = text.len().min(LINE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // A log may be read at a terminal.
    visible::visible_name(&text[..end].replace(['\n', '\r'], " ⏎ ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_contains_no_terminal_control_characters() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::in_folder(Some(folder.path()));
        log.write_line(1, "tool-x\u{202e}", "a\u{1b}]0;owned\u{7}\nb\u{9b}31m\u{200b}");
        let logged = std::fs::read_to_string(folder.path().join("jaato.log")).unwrap();
        let (_, line) = logged.split_once(' ').unwrap();
        let shown = "a<U+001B>]0;owned<U+0007> ⏎ b<U+009B>31m<U+200B>";
        assert_eq!(line, format!("error tool-x<U+202E>: {shown}\n"));
    }

    #[test]
    fn flood_from_one_source_is_cut_and_other_sources_are_logged() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::in_folder(Some(folder.path()));
        let line = "x".repeat(LINE_BYTES_MAX);
        (0..4096).for_each(|_| log.write_line(3, "flood", &line));
        log.write_line(3, "other", "is heard");
        let text = std::fs::read_to_string(log.path().unwrap()).unwrap();
        assert!(text.len() as u64 <= SOURCE_BYTES_MAX + 4096, "{}", text.len());
        assert_eq!(text.matches("`flood` has written 524288 bytes within 60 s").count(), 1);
        assert!(text.ends_with("info other: is heard\n"));
    }

    #[test]
    fn flooding_source_may_write_again_after_its_time_window() {
        let now = Instant::now();
        let mut share = SourceUsage { since: now, bytes: 0 };
        assert_eq!(share.count_bytes(SOURCE_BYTES_MAX, now), WritePermit::Yes);
        assert_eq!(share.count_bytes(1, now), WritePermit::Last);
        assert_eq!(share.count_bytes(1, now), WritePermit::No);
        assert_eq!(share.count_bytes(1, now + SOURCE_WINDOW), WritePermit::Yes);
    }

    #[test]
    fn log_that_grows_too_large_is_rotated_while_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let (log, beside) =
            (Log::in_folder(Some(folder.path())), Log::in_folder(Some(folder.path())));
        let line = "x".repeat(LINE_BYTES_MAX);
        log.write_line(3, "host", "the first line");
        for number in 0..2_000 {
            log.write_line(3, &format!("source {}", number % 40), &line);
            beside.write_line(3, &format!("source {}", number % 40), &line);
        }
        let length = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
        let most = LOG_BYTES_MAX + 4 * LOOK_EVERY_BYTES;
        assert!(length("jaato.log") <= most && length("jaato.log.1") <= most);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
