//! The trace log: one line for each thing that is done with a session, in the form of the original.
//!
//! What is typed is never traced, nor what programs show; of a command line the name of its program
//! is. The file is opened without following a link, belongs to this user, and only its owner may
//! read it; where that cannot be had there is no trace, and `shell_list` says why.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Zoned;
use parking_lot::Mutex;

use crate::platform;

/// The variable that names the file.
pub const VARIABLE: &str = "JAATO_TRACE_LOG";

/// The file's name in our own folder: the original's.
const FILE_NAME: &str = "rich_client_trace.log";

/// A trace that is longer is emptied: it must not fill a disk.
pub const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A trace that was not written to for this long is emptied: it must not tell for ever what
/// sessions did.
pub const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Where a trace is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Nowhere.
    Off,
    /// In this file.
    At(PathBuf),
    /// In a folder of ours in the temporary folder.
    AtTemporary,
}

impl Wanted {
    /// Reads what the person says: the setting switches it off, the variable names a file.
    pub fn of(is_on: bool, named: Option<OsString>) -> Self {
        match named.filter(|name| !name.is_empty()) {
            _ if !is_on => Self::Off,
            Some(name) => Self::At(name.into()),
            None => Self::AtTemporary,
        }
    }
}

/// A trace log.
#[derive(Debug)]
pub struct Trace {
    label: String,
    place: Result<PathBuf, String>,
    file: Mutex<Option<File>>,
}

impl Trace {
    /// Opens the file.
    pub fn open(agent: Option<&str>, wanted: Wanted, temporary: &Path) -> Self {
        let label = match agent {
            Some(agent) => format!("[InteractiveShell:{agent}]"),
            None => "[InteractiveShell]".to_owned(),
        };
        let opened = match wanted {
            Wanted::Off => Err(io::Error::other("it is switched off")),
            Wanted::At(path) => platform::open(&path).map(|file| (path, file)),
            Wanted::AtTemporary => platform::open_own(temporary, FILE_NAME),
        };
        let (place, file) = match opened {
            Ok((path, file)) => (Ok(path), Some(file)),
            Err(error) => (Err(error.to_string()), None),
        };
        if let Some(file) = &file {
            forget_if_old(file);
        }
        Self { label, place, file: Mutex::new(file) }
    }

    /// Writes one line. A full disk costs the line.
    pub fn line(&self, text: impl fmt::Display) {
        let mut file = self.file.lock();
        let Some(file) = file.as_mut() else { return };
        let time = Zoned::now().strftime("%H:%M:%S%.3f").to_string();
        let text = text.to_string().replace(char::is_control, " ");
        if file.metadata().is_ok_and(|facts| facts.len() > BYTES_MAX) {
            let _ = file.set_len(0);
        }
        let _ = file.write_all(format!("[{time}] {} {text}\n", self.label).as_bytes());
    }

    /// Returns where it is, or why it is nowhere.
    pub fn place(&self) -> Result<String, String> {
        self.place.as_ref().map(|path| path.display().to_string()).map_err(Clone::clone)
    }
}

/// Empties a trace that is too old. A trace of unknown age stays.
fn forget_if_old(file: &File) {
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
    fn a_setting_switches_it_off_wherever_it_would_go() {
        let named = || Some(OsString::from("/t.log"));
        assert_eq!(Wanted::of(true, None), Wanted::AtTemporary);
        assert_eq!(Wanted::of(true, Some(OsString::new())), Wanted::AtTemporary);
        assert_eq!(Wanted::of(true, named()), Wanted::At("/t.log".into()));
        assert_eq!(Wanted::of(false, named()), Wanted::Off);
    }
}
