//! The host's log: a file in the user's cache, so that no plugin's words land on the terminal.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Largest log, in bytes; a larger one is kept once as `jaato.log.1` and begun anew.
pub const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Longest line, in bytes: a plugin cannot fill the disk with one call.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// How urgent a line is; the numbers are those of the boundary.
const LEVELS: [&str; 5] = ["?", "error", "warn", "info", "debug"];

/// The log. Clones share it. The file is opened with the first line; where it cannot be, lines are lost:
/// a log must not stop the work.
#[derive(Debug, Clone)]
pub struct Log(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: Option<PathBuf>,
    file: Mutex<Option<File>>,
}

impl Log {
    /// Makes a log in a folder; without one it keeps nothing.
    pub fn in_folder(folder: Option<&Path>) -> Self {
        let path = folder.map(|folder| folder.join("jaato.log"));
        Self(Arc::new(Inner { path, file: Mutex::new(None) }))
    }

    /// Returns the file, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Writes one line. `source` is a plugin's name or `host`.
    pub fn line(&self, level: u8, source: &str, text: &str) {
        let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            *file = self.0.path.as_deref().and_then(open);
        }
        let Some(file) = file.as_mut() else { return };
        let level = LEVELS.get(usize::from(level)).unwrap_or(&LEVELS[0]);
        let seconds =
            std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |time| time.as_secs_f64());
        let text: String = shown(text);
        // One write a line, so that lines of several processes do not mix.
        let _ = file.write_all(format!("{seconds:.3} {level} {source}: {text}\n").as_bytes());
    }
}

fn open(path: &Path) -> Option<File> {
    std::fs::create_dir_all(path.parent()?).ok()?;
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > LOG_BYTES_MAX) {
        let _ = std::fs::rename(path, path.with_extension("log.1"));
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).ok()
}

fn shown(text: &str) -> String {
    let mut end = text.len().min(LINE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace(['\n', '\r'], " ⏎ ")
}
