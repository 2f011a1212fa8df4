//! The trace log, with one line for each action on a session, in the original's format.
//!
//! Input and output are never traced. Of a command line, only the program's name is. The file is
//! opened without following a link, belongs to this user, and is readable only by its owner. If
//! that is impossible, nothing is traced, and `shell_list` reports the reason.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Zoned;
use parking_lot::Mutex;

use crate::platform;

/// The environment variable that names the file.
pub const VARIABLE: &str = "JAATO_TRACE_LOG";

/// The file's name in jaato's own folder, as in the original.
const FILE_NAME: &str = "rich_client_trace.log";

/// The maximum size of a trace. A larger one is emptied, because it must not fill a disk.
pub const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The maximum age of a trace. An older one is emptied, because it must not keep a record of
/// sessions forever.
pub const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The requested location of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceLocation {
    /// No trace.
    Off,
    /// This file.
    At(PathBuf),
    /// A file in jaato's folder in the temporary folder.
    AtTemporary,
}

impl TraceLocation {
    /// Reads the user's settings: the setting switches the trace off, and the variable names a
    /// file.
    pub fn from_settings(is_on: bool, named: Option<OsString>) -> Self {
        match named.filter(|name| !name.is_empty()) {
            _ if !is_on => Self::Off,
            Some(name) => Self::At(name.into()),
            None => Self::AtTemporary,
        }
    }
}

/// A trace log.
#[derive(Debug)]
pub struct TraceLog {
    label: String,
    place: Result<PathBuf, String>,
    file: Mutex<Option<File>>,
}

impl TraceLog {
    /// Opens the trace.
    pub fn open(agent: Option<&str>, wanted: TraceLocation, temporary: &Path) -> Self {
        let label = match agent {
            Some(agent) => format!("[InteractiveShell:{agent}]"),
            None => "[InteractiveShell]".to_owned(),
        };
        let opened = match wanted {
            TraceLocation::Off => Err(io::Error::other("it is switched off")),
            TraceLocation::At(path) => platform::open_for_appending(&path).map(|file| (path, file)),
            TraceLocation::AtTemporary => platform::open_in_own_folder(temporary, FILE_NAME),
        };
        let (place, file) = match opened {
            Ok((path, file)) => (Ok(path), Some(file)),
            Err(error) => (Err(error.to_string()), None),
        };
        if let Some(file) = &file {
            truncate_if_old(file);
        }
        Self { label, place, file: Mutex::new(file) }
    }

    /// Writes one line. If the disk is full, the line is lost.
    pub fn write_line(&self, text: impl fmt::Display) {
        let mut file = self.file.lock();
        let Some(file) = file.as_mut() else { return };
        let time = Zoned::now().strftime("%H:%M:%S%.3f").to_string();
        let text = text.to_string().replace(char::is_control, " ");
        if file.metadata().is_ok_and(|facts| facts.len() > BYTES_MAX) {
            let _ = file.set_len(0);
        }
        let _ = file.write_all(format!("[{time}] {} {text}\n", self.label).as_bytes());
    }

    /// Returns the path, or the reason why nothing is traced.
    pub fn path_or_reason(&self) -> Result<String, String> {
        self.place.as_ref().map(|path| path.display().to_string()).map_err(Clone::clone)
    }
}

/// Empties a trace that is too old. A trace of unknown age stays.
fn truncate_if_old(file: &File) {
    let changed = file.metadata().and_then(|facts| facts.modified());
    let age = changed.ok().and_then(|changed| changed.elapsed().ok());
    if age.is_some_and(|age| age > AGE_MAX) {
        let _ = file.set_len(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_setting_disables_the_log_despite_a_configured_path() {
        let named = || Some(OsString::from("/t.log"));
        assert_eq!(TraceLocation::from_settings(true, None), TraceLocation::AtTemporary);
        assert_eq!(
            TraceLocation::from_settings(true, Some(OsString::new())),
            TraceLocation::AtTemporary
        );
        assert_eq!(TraceLocation::from_settings(true, named()), TraceLocation::At("/t.log".into()));
        assert_eq!(TraceLocation::from_settings(false, named()), TraceLocation::Off);
    }
}
