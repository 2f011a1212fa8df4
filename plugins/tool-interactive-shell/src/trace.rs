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

/// The variable that names the file.
pub const VARIABLE: &str = "JAATO_TRACE_LOG";

/// The file's name in our own folder: the original's.
const FILE_NAME: &str = "rich_client_trace.log";

/// A trace that is longer begins anew: it must not fill a disk.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

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

#[cfg(unix)]
mod platform {
    use std::fs::File;
    use std::io::{Error, Result};
    use std::path::{Path, PathBuf};

    use rustix::fs::{CWD, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat};

    /// Opens a file for its owner alone, at its end; neither a link nor anything that is no file.
    pub fn open(path: &Path) -> Result<File> {
        open_at(CWD, path)
    }

    /// Opens a file in the folder that is this user's and nobody else may enter.
    pub fn open_own(temporary: &Path, name: &str) -> Result<(PathBuf, File)> {
        let user = rustix::process::geteuid().as_raw();
        let path = temporary.join(format!("jaato-{user}"));
        match mkdirat(CWD, &path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(told(&path, &error.into())),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let folder = openat(CWD, &path, flags, Mode::empty());
        let folder = folder.map_err(|error| told(&path, &error.into()))?;
        let facts = fstat(&folder).map_err(|error| told(&path, &error.into()))?;
        if facts.st_uid != user || facts.st_mode & 0o077 != 0 {
            let text = "the folder is another user's, or others may enter it";
            return Err(told(&path, &Error::other(text)));
        }
        let file = open_at(&folder, Path::new(name))?;
        Ok((path.join(name), file))
    }

    fn open_at(folder: impl std::os::fd::AsFd, path: &Path) -> Result<File> {
        // Without `NONBLOCK` a pipe would hold up whoever opens it.
        let flags = OFlags::CREATE
            | OFlags::APPEND
            | OFlags::WRONLY
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let opened = openat(folder, path, flags, Mode::RUSR | Mode::WUSR);
        let file = opened.map_err(|error| told(path, &error.into()))?;
        let facts = fstat(&file).map_err(|error| told(path, &error.into()))?;
        if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            return Err(told(path, &Error::other("it is no file")));
        }
        if facts.st_uid == rustix::process::geteuid().as_raw() {
            fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(|error| told(path, &error.into()))?;
        }
        Ok(File::from(file))
    }

    fn told(path: &Path, error: &Error) -> Error {
        Error::new(error.kind(), format!("cannot trace to `{}`: {error}", path.display()))
    }
}

#[cfg(not(unix))]
mod platform {
    use std::fs::{File, OpenOptions, create_dir_all};
    use std::io::Result;
    use std::path::{Path, PathBuf};

    pub fn open(path: &Path) -> Result<File> {
        OpenOptions::new().create(true).append(true).open(path)
    }

    /// The temporary folder is the user's own there.
    pub fn open_own(temporary: &Path, name: &str) -> Result<(PathBuf, File)> {
        let folder = temporary.join("jaato");
        create_dir_all(&folder)?;
        let path = folder.join(name);
        Ok((path.clone(), open(&path)?))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_line_has_the_form_of_the_original() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.log");
        let trace = Trace::open(Some("main"), Some(path.clone().into()), folder.path());
        trace.line("spawn: id=session_0, cmd=bash\n--norc, backend=pty");
        let text = fs::read_to_string(&path).unwrap();
        let (time, rest) = text.split_once("] ").unwrap();
        let pattern = regex::Regex::new(r"^\[\d\d:\d\d:\d\d\.\d{3}$").unwrap();
        assert!(pattern.is_match(time), "{text}");
        assert_eq!(
            rest,
            "[InteractiveShell:main] spawn: id=session_0, cmd=bash --norc, backend=pty\n"
        );
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn the_folder_of_ours_is_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let trace = Trace::open(None, None, folder.path());
        let path = PathBuf::from(trace.place().unwrap());
        trace.line("one");
        assert!(fs::read_to_string(&path).unwrap().ends_with("[InteractiveShell] one\n"));
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, link) = (folder.path().join("victim"), folder.path().join("link"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        let trace = Trace::open(None, Some(link.into()), folder.path());
        trace.line("one");
        assert!(trace.place().unwrap_err().contains("cannot trace to"));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn a_folder_that_others_may_enter_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let own = folder.path().join(format!("jaato-{user}"));
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        let trace = Trace::open(None, None, folder.path());
        assert!(trace.place().unwrap_err().contains("others may enter"), "{trace:?}");
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    }

    #[test]
    fn a_long_trace_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.log");
        fs::write(&path, vec![b'x'; usize::try_from(BYTES_MAX).unwrap() + 1]).unwrap();
        let trace = Trace::open(None, Some(path.clone().into()), folder.path());
        trace.line("one");
        assert!(fs::read_to_string(&path).unwrap().starts_with('['));
    }
}
