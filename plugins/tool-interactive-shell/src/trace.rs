//! The trace log: one line for each thing that is done with a session, in the form of the original.
//!
//! What is typed is never traced, nor what programs show. The file is opened without following a link, and only
//! its owner may read it; where that cannot be had there is no trace, and `shell_list` says why.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Zoned;

use crate::platform;

/// The variable that names the file.
pub const VARIABLE: &str = "JAATO_TRACE_LOG";

/// The file's name in our own folder: the original's.
const FILE_NAME: &str = "rich_client_trace.log";

/// A trace that is longer begins anew: it must not fill a disk.
pub const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A trace log.
#[derive(Debug)]
pub struct Trace {
    label: String,
    place: Result<PathBuf, String>,
    file: Mutex<Option<File>>,
}

impl Trace {
    /// Opens the file that is named, else one in a folder of ours in the temporary folder.
    pub fn open(agent: Option<&str>, named: Option<OsString>, temporary: &Path) -> Self {
        let label = match agent {
            Some(agent) => format!("[InteractiveShell:{agent}]"),
            None => "[InteractiveShell]".to_owned(),
        };
        let opened = match named.filter(|name| !name.is_empty()) {
            Some(name) => platform::open(Path::new(&name)).map(|file| (PathBuf::from(name), file)),
            None => platform::open_own(temporary, FILE_NAME),
        };
        let (place, file) = match opened {
            Ok((path, file)) => (Ok(path), Some(file)),
            Err(error) => (Err(error.to_string()), None),
        };
        Self { label, place, file: Mutex::new(file) }
    }

    /// Writes one line. A full disk costs the line.
    pub fn line(&self, text: impl fmt::Display) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
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
