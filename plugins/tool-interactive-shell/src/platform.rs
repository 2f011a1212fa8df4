//! Opens the trace log so that only its owner can access it, on each system.

#[cfg(not(unix))]
pub use elsewhere::{open_for_appending, open_in_own_folder};
#[cfg(unix)]
pub use unix::{open_for_appending, open_in_own_folder};

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io::{Error, Result};
    use std::path::{Path, PathBuf};

    use rustix::fs::{
        AtFlags, CWD, FileType, Mode, OFlags, chmodat, fchmod, fstat, mkdirat, openat,
    };

    /// Opens a file for appending, for its owner only. Rejects links and everything that is not a
    /// file.
    pub fn open_for_appending(path: &Path) -> Result<File> {
        open_at(CWD, path)
    }

    /// Opens a file in a folder that only this user can access.
    pub fn open_in_own_folder(temporary: &Path, name: &str) -> Result<(PathBuf, File)> {
        let user = rustix::process::geteuid().as_raw();
        let path = temporary.join(format!("jaato-{user}"));
        match mkdirat(CWD, &path, Mode::RWXU) {
            // Sets the mode regardless of the umask.
            Ok(()) => chmodat(CWD, &path, Mode::RWXU, AtFlags::empty())
                .map_err(|error| open_error(&path, &error.into()))?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(open_error(&path, &error.into())),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let folder = openat(CWD, &path, flags, Mode::empty());
        let folder = folder.map_err(|error| open_error(&path, &error.into()))?;
        let facts = fstat(&folder).map_err(|error| open_error(&path, &error.into()))?;
        if facts.st_uid != user || facts.st_mode & 0o077 != 0 {
            let text = "the folder belongs to another user, or others may enter it";
            return Err(open_error(&path, &Error::other(text)));
        }
        let file = open_at(&folder, Path::new(name))?;
        Ok((path.join(name), file))
    }

    fn open_at(folder: impl std::os::fd::AsFd, path: &Path) -> Result<File> {
        // Without `NONBLOCK`, opening a named pipe would block.
        let flags = OFlags::CREATE
            | OFlags::APPEND
            | OFlags::WRONLY
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let opened = openat(folder, path, flags, Mode::RUSR | Mode::WUSR);
        let file = opened.map_err(|error| open_error(path, &error.into()))?;
        let facts = fstat(&file).map_err(|error| open_error(path, &error.into()))?;
        if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            return Err(open_error(path, &Error::other("it is not a regular file")));
        }
        if facts.st_uid != rustix::process::geteuid().as_raw() {
            return Err(open_error(path, &Error::other("the file belongs to another user")));
        }
        fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(|error| open_error(path, &error.into()))?;
        Ok(File::from(file))
    }

    fn open_error(path: &Path, error: &Error) -> Error {
        Error::new(error.kind(), format!("cannot trace to `{}`: {error}", path.display()))
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::fs::{File, OpenOptions, create_dir_all};
    use std::io::Result;
    use std::path::{Path, PathBuf};

    pub fn open_for_appending(path: &Path) -> Result<File> {
        OpenOptions::new().create(true).append(true).open(path)
    }

    /// On this system, the temporary folder belongs to the user.
    pub fn open_in_own_folder(temporary: &Path, name: &str) -> Result<(PathBuf, File)> {
        let folder = temporary.join("jaato");
        create_dir_all(&folder)?;
        let path = folder.join(name);
        Ok((path.clone(), open_for_appending(&path)?))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use std::path::PathBuf;

    use std::time::{Duration, SystemTime};

    use crate::trace::{AGE_MAX, BYTES_MAX, TraceLocation, TraceLog};

    const AT_TEMPORARY: TraceLocation = TraceLocation::AtTemporary;

    fn permission_mode(path: &std::path::Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn trace_line_has_the_format_of_the_original() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.log");
        let trace = TraceLog::open(Some("main"), TraceLocation::At(path.clone()), folder.path());
        trace.write_line("spawn: id=session_0, cmd=bash\n--norc, backend=pty");
        let text = fs::read_to_string(&path).unwrap();
        let (time, rest) = text.split_once("] ").unwrap();
        let pattern = regex::Regex::new(r"^\[\d\d:\d\d:\d\d\.\d{3}$").unwrap();
        assert!(pattern.is_match(time), "{text}");
        assert_eq!(
            rest,
            "[InteractiveShell:main] spawn: id=session_0, cmd=bash --norc, backend=pty\n"
        );
        assert_eq!(permission_mode(&path), 0o600);
    }

    #[test]
    fn trace_folder_is_private_to_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let trace = TraceLog::open(None, AT_TEMPORARY, folder.path());
        let path = PathBuf::from(trace.path_or_reason().unwrap());
        trace.write_line("one");
        assert!(fs::read_to_string(&path).unwrap().ends_with("[InteractiveShell] one\n"));
        assert_eq!(permission_mode(path.parent().unwrap()), 0o700);
        assert_eq!(permission_mode(&path), 0o600);
    }

    #[test]
    fn trace_does_not_follow_a_symlink() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, link) = (folder.path().join("victim"), folder.path().join("link"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        let trace = TraceLog::open(None, TraceLocation::At(link), folder.path());
        trace.write_line("one");
        assert!(trace.path_or_reason().unwrap_err().contains("cannot trace to"));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn trace_folder_open_to_others_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let own = folder.path().join(format!("jaato-{user}"));
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        let trace = TraceLog::open(None, AT_TEMPORARY, folder.path());
        assert!(trace.path_or_reason().unwrap_err().contains("others may enter"), "{trace:?}");
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    }

    #[test]
    fn overlong_trace_file_is_restarted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.log");
        fs::write(&path, vec![b'x'; usize::try_from(BYTES_MAX).unwrap() + 1]).unwrap();
        let trace = TraceLog::open(None, TraceLocation::At(path.clone()), folder.path());
        trace.write_line("one");
        assert!(fs::read_to_string(&path).unwrap().starts_with('['));
    }

    #[test]
    fn old_trace_file_is_restarted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.log");
        for (age, expected) in [(AGE_MAX / 2, "old\n["), (AGE_MAX + Duration::from_secs(60), "[")] {
            fs::write(&path, "old\n").unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            let trace = TraceLog::open(None, TraceLocation::At(path.clone()), folder.path());
            trace.write_line("one");
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.starts_with(expected), "{age:?}: {text}");
        }
    }

    #[test]
    fn a_trace_that_is_switched_off_makes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let trace = TraceLog::open(None, TraceLocation::Off, folder.path());
        trace.write_line("one");
        assert!(trace.path_or_reason().unwrap_err().contains("switched off"), "{trace:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
